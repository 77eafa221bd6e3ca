"""The manual, generated from models and declarations by `python -m neuralrace.config.manual`.

`config/schema.json` describes a configuration file to editors and validators; the tables between
the markers in `config/README.md` describe the same keys to people, and `docs/reference.md` what
metrics, solutions and observables they can name; see `neuralrace.config.reference`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from neuralrace.config.cell import Cell
from neuralrace.config.reference import reference
from neuralrace.config.settings import Settings
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS

SCHEMA_FILE = "schema.json"
MANUAL_FILE = "README.md"
REFERENCE_FILE = "reference.md"
DECLARED = {registry.kind: list(registry) for registry in (METRICS, SOLUTIONS, OBSERVABLES)}
"""Names whose meaning stands in the reference, by what they are names of."""
BEGIN = "<!-- written by `make manual` from here: edit docstrings in src/neuralrace instead -->"
END = "<!-- written by `make manual` up to here -->"

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

    A file may be one of several that are merged, and a required key may come from `sweep`: the
    schema demands no key. What is required, and rules between keys,
    `neuralrace.config.load.read_plan` checks on merged and fanned-out cells.
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


def key_tables() -> str:
    """Markdown tables of all keys: dotted key, type, default and meaning."""
    keys = list(_keys(_schema(Cell)))
    parts = ["### Whole workflow", _table(_keys(_schema(Settings)))]
    parts += ["### Every experiment", _table(keys)]
    for key in keys:
        for heading, member, own in _variants(key):
            parts += [f"### {heading}", member["description"]]
            parts += [_table(own)] if len(own) > 1 else []
            for example in member.get("examples", ()):
                parts.append(f"For example `{_yaml(example)}`.")
    return "\n\n".join(parts)


def with_tables(manual: str) -> str:
    """The text of the manual with fresh tables between its markers.

    Raises:
        ValueError: a marker is missing.
    """
    before, begin, rest = manual.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{MANUAL_FILE} lacks the line {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{key_tables()}\n\n{END}{after}"


def write(config: Path, docs: Path) -> None:
    """Brings schema and manual of the configuration up to date, and the reference.

    Raises:
        ValueError: the manual lacks a marker.
    """
    manual = config / MANUAL_FILE
    manual.write_text(with_tables(manual.read_text(encoding="utf-8")), encoding="utf-8")
    schema = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    (config / SCHEMA_FILE).write_text(schema + "\n", encoding="utf-8")
    (docs / REFERENCE_FILE).write_text(reference(), encoding="utf-8")


# Walking a schema --------------------------------------------------------------------------------


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


def _variants(key: Key, outer: str = "") -> Iterator[tuple[str, Schema, list[Key]]]:
    """What a choice is between, each with a heading and its own keys; choices inside it follow."""
    for member in key.schema.get("oneOf", ()):
        heading = f"`{key.path}.name: {_name(member)}`"
        keys = list(_keys(member, f"{key.path}."))
        yield heading + outer, member, keys
        for inner in keys:
            yield from _variants(inner, f" with {heading}")


def _name(member: Schema) -> str:
    return member["properties"]["name"]["const"]


# Markdown ----------------------------------------------------------------------------------------


def _table(keys: Iterable[Key]) -> str:
    rows = [_row(key) for key in keys if not {"properties", "const"} & set(key.schema)]
    return "\n".join(["| Key | Type | Default | Meaning |", "|---|---|---|---|", *rows])


def _row(key: Key) -> str:
    path, schema, default = key.path, key.schema, key.schema.get("default")
    if "oneOf" in schema:
        path, schema = f"{path}.name", {"enum": [_name(member) for member in schema["oneOf"]]}
        default = default and default["name"]
    shown = "required" if key.required else f"`{_yaml(default)}`"
    cells = (f"`{path}`", _type(schema), shown, " ".join(key.schema["description"].split()))
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _type(schema: Schema, plural: str = "") -> str:
    """A type in words."""
    if "enum" in schema:
        for kind, names in DECLARED.items():
            if schema["enum"] == names:
                linked = f"[{kind}](../docs/{REFERENCE_FILE}#{kind}): "
                return linked + ", ".join(names)
        return ", ".join(f"`{value}`" for value in schema["enum"])
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
    write(Path("config"), Path("docs"))
