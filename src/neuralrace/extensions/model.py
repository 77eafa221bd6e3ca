"""The base class of configuration models: strict validation, canonical JSON and its checksum."""

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from neuralrace.extensions.source import attributes


def _told(schema: dict[str, Any], model: type["ConfigModel"]) -> None:
    """Completes a schema, when one is asked for, by the texts of keys and by the example."""
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

    Everything a person can write in `config/` is an instance of a subclass, so the configuration
    object and the thing that it configures are one.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        json_schema_extra=_told,
    )
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a small one, where it cannot do without; the manual shows them, and
    `neuralrace.testing` tries them."""

    def canonical(self) -> str:
        """The one JSON text of this object: compact, keys in order of definition."""
        return self.model_dump_json()

    def sha256(self) -> str:
        """Hex digest of `canonical`."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()
