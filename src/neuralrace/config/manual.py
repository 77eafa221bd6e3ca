"""The JSON schema and the manual of a configuration, generated from the models' docstrings.

`python -m neuralrace.config.manual FILE` writes the schema, which editors complete and check keys
with; installing does so into `config/schema.json`. The site shows `key_tables`, and
`neuralrace keys` prints `key_lines`.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from neuralrace.config.cell import Cell
from neuralrace.config.settings import Settings
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS

REFERENCE_PAGE = "reference.md"
EXTENSION_NAMES = {registry.kind: list(registry) for registry in (METRICS, SOLUTIONS, OBSERVABLES)}
"""Names that the reference page explains, by kind."""

Schema = dict[str, Any]
TYPES = {
    "boolean": "`true` or `false`",
    "integer": "integer",
    "null": "`null`",
    "number": "number",
    "string": "text",
}
BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


class Key(NamedTuple):
    """A key by its dotted path: a value, a mapping, or a choice between mappings by `name`."""

    path: str
    schema: Schema
    required: bool


def config_schema() -> Schema:
    """The JSON schema of a configuration file.

    The schema requires no key, because several files may be merged and a required key may come from
    `sweep`. `neuralrace.config.load.read_plan` checks required keys, and rules between keys, on the
    cells of the merged configuration.
    """
    cell = Cell.model_json_schema()
    definitions = cell.pop("$defs") | {"Cell": cell}
    swept: dict[str, list[Schema]] = {}
    for path, place in _places(cell, "#/$defs/Cell", definitions):
        swept.setdefault(path, []).append({"$ref": place})
    cell["description"] = "A cell, or a `sweep` over cells."
    cell["properties"]["sweep"] = {
        "description": "Lists of values by dotted key; one cell per combination.",
        "type": "object",
        "properties": {
            path: {
                "type": "array",
                "minItems": 1,
                "items": schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
            }
            for path, schemas in swept.items()
        },
        "patternProperties": {
            r"^[a-z0-9_.]+( *, *[a-z0-9_.]+)+$": {
                "description": "Keys that take their values together: lists of one value for each.",
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 2},
            }
        },
        "additionalProperties": False,
    }
    schema = Settings.model_json_schema()
    schema["description"] = "A configuration file of neuralrace."
    schema["properties"]["experiments"] = _by_name(
        _by_name({"$ref": "#/$defs/Cell"}, "Experiments of one paper."),
        "Experiments by paper and name.",
    )
    schema["$defs"] = definitions
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_partial(schema)}


class Section(NamedTuple):
    """A part of the manual: the keys of the workflow, of an experiment, or of one choice."""

    heading: str
    text: str
    keys: list[Key]
    examples: list[Any]


def sections() -> Iterator[Section]:
    """All parts of the manual."""
    yield Section("Whole workflow", "", list(_keys(_schema(Settings))), [])
    keys = list(_keys(_schema(Cell)))
    yield Section("Every experiment", "", keys, [])
    for key in keys:
        for heading, member, own in _choices(key):
            yield Section(heading, member["description"], own, member.get("examples", []))


def key_tables() -> str:
    """All keys as Markdown: a table for each section, with dotted key, type, default, meaning."""
    parts = []
    for heading, text, keys, examples in sections():
        rows = ["| " + " | ".join(row) + " |" for row in map(_row, _values(keys))]
        table = ["| Key | Type | Default | Meaning |", "|---|---|---|---|", *rows] if rows else []
        shown = (f"For example `{_yaml(example)}`." for example in examples)
        parts += filter(None, [f"## {heading}", text, "\n".join(table), *shown])
    return "\n\n".join(parts)


def key_lines(prefix: str = "") -> list[str]:
    """All keys as plain text, those of each choice below its heading.

    Args:
        prefix: shows only the keys inside this one, such as `training`.
    """
    lines = []
    inside = f"{prefix.rstrip('.')}." if prefix else ""
    for heading, _, keys, _ in sections():
        rows = [_row(key) for key in _values(keys) if f"{key.path}.".startswith(inside)]
        plain = (
            f"  {key}: {meaning} ({kind}; {default})".replace("`", "").replace(r"\|", "|")
            for key, kind, default, meaning in rows
        )
        lines += [heading.replace("`", ""), *plain] if rows else []
    return lines


def _schema(model: type[ConfigModel]) -> Schema:
    """The schema of a model, every reference replaced by what it refers to."""
    schema = model.model_json_schema()
    return _inline(schema, schema.get("$defs", {}))


def _inline(schema: Any, definitions: Schema) -> Any:
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]] | schema
    inlined = {}
    for word, value in schema.items():
        if word == "properties":
            inlined[word] = {name: _inline(item, definitions) for name, item in value.items()}
        elif word not in ("$defs", "$ref", "discriminator", "title"):
            inlined[word] = _inline(value, definitions)
    return inlined


def _places(
    schema: Schema, place: str, definitions: Schema, prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Dotted path of each key of a mapping and of those inside it, and where its schema stands."""
    for name, value in schema["properties"].items():
        own = f"{place}/properties/{name}"
        yield prefix + name, own
        for inner in (value, *value.get("oneOf", ())):
            if "$ref" in inner:
                other = definitions[inner["$ref"].rsplit("/", 1)[1]]
                yield from _places(other, inner["$ref"], definitions, f"{prefix}{name}.")


def _partial(schema: Any) -> Any:
    """The schema of a part of what is described: nothing is required, so choices may overlap."""
    if isinstance(schema, list):
        return [_partial(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        "anyOf" if word == "oneOf" else word: (
            {name: _partial(item) for name, item in value.items()}
            if word in ("$defs", "properties")
            else _partial(value)
        )
        for word, value in schema.items()
        if word not in ("discriminator", "required", "title")
    }


def _by_name(schema: Schema, description: str) -> Schema:
    return {
        "description": description,
        "type": "object",
        "propertyNames": {"pattern": "^[a-z][a-z0-9_.]*$"},
        "additionalProperties": schema,
    }


def _keys(schema: Schema, prefix: str = "") -> Iterator[Key]:
    """All keys of a mapping and of the mappings inside it."""
    for name, value in schema["properties"].items():
        yield Key(prefix + name, value, name in schema.get("required", ()))
        if "properties" in value:
            yield from _keys(value, f"{prefix}{name}.")


def _choices(key: Key, outer: str = "") -> Iterator[tuple[str, Schema, list[Key]]]:
    """What a choice is between, each with a heading and its own keys; choices inside it follow."""
    for member in key.schema.get("oneOf", ()):
        heading = f"`{key.path}.name: {_name(member)}`"
        keys = list(_keys(member, f"{key.path}."))
        yield heading + outer, member, keys
        for inner in keys:
            yield from _choices(inner, f" with {heading}")


def _name(member: Schema) -> str:
    return member["properties"]["name"]["const"]


# Markdown ----------------------------------------------------------------------------------------


def _values(keys: Iterable[Key]) -> list[Key]:
    """The keys that take a value of their own: no mappings, and not the name of a choice."""
    return [key for key in keys if not {"properties", "const"} & set(key.schema)]


def _row(key: Key) -> tuple[str, str, str, str]:
    """Key, type, default and meaning, as Markdown."""
    path, schema, default = key.path, key.schema, key.schema.get("default")
    if "oneOf" in schema:
        path, schema = f"{path}.name", {"enum": [_name(member) for member in schema["oneOf"]]}
        default = default and default["name"]
    shown = "required" if key.required else f"`{_yaml(default)}`"
    meaning = " ".join(key.schema["description"].split())
    cells = (f"`{path}`", _type(schema), shown, meaning)
    key_, kind, default_, meaning = (cell.replace("|", r"\|") for cell in cells)
    return key_, kind, default_, meaning


def _type(schema: Schema, plural: str = "") -> str:
    """A type in words."""
    if "enum" in schema:
        for kind, names in EXTENSION_NAMES.items():
            if schema["enum"] == names:
                linked = f"[{kind}]({REFERENCE_PAGE}#{kind}): "
                return linked + ", ".join(names)
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "oneOf" in schema:
        names = ", ".join(f"`{_name(member)}`" for member in schema["oneOf"])
        return f"mapping{plural} of name {names}"
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "prefixItems" in schema:
        return f"pair{plural} of {_type(schema['prefixItems'][0], plural='s')}"
    if "properties" in schema:
        return f"network{plural} of name `{_name(schema)}`"
    if schema["type"] == "object":
        return f"mapping of names to {_type(schema['additionalProperties'], plural='s')}"
    if schema["type"] == "array":
        some = "non-empty list" if schema.get("minItems") else "list"
        return f"{some}{plural} of {_type(schema['items'], plural='s')}"
    bounds = [f"{sign} {schema[bound]}" for bound, sign in BOUNDS.items() if bound in schema]
    return " ".join([TYPES[schema["type"]] + plural, ", ".join(bounds)]).strip()


def _yaml(value: Any) -> str:
    """A default as it is written in a configuration file."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key != "name")
        return "{" + ", ".join(f"{key}: {_yaml(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


if __name__ == "__main__":
    text = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")
