"""Samples written out in the configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset

Rows = Annotated[tuple[Annotated[tuple[float, ...], Field(min_length=1)], ...], Field(min_length=1)]


class Table(Dataset):
    """Inputs and targets as written: one row for each sample."""

    example: ClassVar[Mapping[str, Any]] = {
        "x": [[1.0, 0.0], [0.0, 2.0]],
        "y": [[3.0], [1.0]],
    }
    name: Literal["table"]
    x: Rows
    """Input of each sample."""
    y: Rows
    """Target of each sample."""
    contexts: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """Context of each sample, numbered from 0 without gaps; gates may depend on it."""

    @model_validator(mode="after")
    def _rows_fit(self) -> "Table":
        for name, rows in (("x", self.x), ("y", self.y)):
            for number, row in enumerate(rows):
                if len(row) != len(rows[0]):
                    raise ValueError(
                        f"row {number} of {name} has length {len(row)}, row 0 has {len(rows[0])}; "
                        "rows must be equally long"
                    )
        if len(self.y) != len(self.x):
            raise ValueError(f"x has {len(self.x)} rows, y has {len(self.y)}; one of each a sample")
        if self.contexts is not None:
            if len(self.contexts) != len(self.x):
                raise ValueError(
                    f"{len(self.contexts)} contexts for {len(self.x)} samples; one for each sample"
                )
            missing = set(range(max(self.contexts))) - set(self.contexts)
            if missing:
                raise ValueError(
                    f"contexts go up to {max(self.contexts)} and lack {sorted(missing)}; "
                    "number them from 0 without gaps"
                )
        return self

    def load(self) -> Data:
        """The rows as arrays."""
        return Data(
            x=np.array(self.x),
            y=np.array(self.y),
            contexts=None if self.contexts is None else np.array(self.contexts),
        )
