"""The base class of configuration models: strict validation, canonical JSON and its checksum."""

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from neuralrace.extensions.source import attributes

Positive = Annotated[int, Field(gt=0)]
"""A positive whole number."""


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

    def canonical(self) -> str:
        """Canonical JSON: compact, with keys in order of definition."""
        return self.model_dump_json()

    def sha256(self) -> str:
        """Hex digest of `canonical`."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()
