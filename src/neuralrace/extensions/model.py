"""The base class of configuration models: strict validation, canonical JSON and its checksum."""

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

from neuralrace.errors import shorten
from neuralrace.extensions.representation import shown
from neuralrace.extensions.source import attributes

Positive = Annotated[int, Field(gt=0)]
"""A positive whole number."""
PROBLEMS = {
    "missing": "is required and missing",
    "extra_forbidden": "unknown key; {similar}`neuralrace keys` lists all",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "string_type": "expected a text",
    "string_too_short": "expected at least {min_length} character",
    "string_pattern_mismatch": "expected a text that matches {pattern}",
    "literal_error": "expected {expected}; {similar}",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "too_short": "expected at least {min_length} item",
    "too_long": "expected at most {max_length} items",
    "dict_type": "expected a mapping of keys to values",
    "model_type": "expected a mapping of keys to values",
    "model_attributes_type": "expected a mapping of keys to values",
    "union_tag_not_found": "expected a mapping with {discriminator}, which says what it is",
    "union_tag_invalid": "unknown name {tag!r}; {similar}expected {expected_tags}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
}
"""The problem by the type of a validation error; Pydantic's own messages speak of Python."""


def is_absent(value: Any) -> bool:
    """Whether a key is left out of the specification, which is then that of other versions."""
    return value is None


def problem_of(detail: ErrorDetails, similar: str = "") -> str:
    """What is wrong with a value, and what is accepted in its place.

    Args:
        detail: an entry of `ValidationError.errors()`.
        similar: a question that names similar names, with a space at its end.
    """
    context: dict[str, Any] = {**detail.get("ctx", {}), "similar": similar}
    if "error" in context:  # raised by a validator
        return str(context["error"])
    if "tag" in context:
        context["tag"] = shorten(str(context["tag"]), 80)
    text = PROBLEMS.get(detail["type"], detail["msg"].replace("{", "{{").replace("}", "}}"))
    return text.format(**context).rstrip("; ")


def _describe(schema: dict[str, Any], model: type["ConfigModel"]) -> None:
    """Adds the descriptions of keys and the example to a JSON schema."""
    for cls in reversed(model.__mro__):
        if issubclass(cls, ConfigModel) and cls is not ConfigModel:
            texts = attributes(Path(inspect.getfile(cls)), cls.__name__)
            for name in texts.keys() & schema["properties"].keys():
                schema["properties"][name]["description"] = texts[name]
    if model.example:
        name = schema["properties"]["name"]["const"]
        schema["examples"] = [{"name": name, **model.example}]


class ConfigModel(BaseModel):
    """A frozen, strictly typed model that refuses unknown keys.

    Everything in `config/` is an instance of a subclass: a dataset, for example, is its own
    configuration.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        json_schema_extra=_describe,
    )
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a small instance, if some have no default. The manual shows them, and
    `neuralrace.testing` uses them."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        # a table from Python holds all its numbers
        return ((name, shown(value)) for name, value in super().__repr_args__())

    def canonical(self) -> str:
        """Canonical JSON: compact, with keys in order of definition."""
        return self.model_dump_json()

    def sha256(self) -> str:
        """Hex digest of `canonical`."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()
