"""Samples written in the configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset
from neuralrace.errors import UserError

Rows = Annotated[tuple[Annotated[tuple[float, ...], Field(min_length=1)], ...], Field(min_length=1)]


class Table(Dataset):
    """Inputs and targets from the configuration, one row for each sample."""

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
                    raise UserError(
                        f"row {number} has length {len(row)}, and row 0 has {len(rows[0])}",
                        key=name,
                        value=row,
                        remedy="use rows of equal length",
                    )
        for name, rows in (("y", self.y), ("contexts", self.contexts)):
            if rows is not None and len(rows) != len(self.x):
                samples = f"{len(self.x)} row{'s' * (len(self.x) > 1)}"
                raise UserError(
                    f"has {len(rows)} entries, and x has {samples}",
                    key=name,
                    remedy="use one of each for every sample",
                )
        if self.contexts and (missing := set(range(max(self.contexts))) - set(self.contexts)):
            raise UserError(
                f"has numbers up to {max(self.contexts)} without {sorted(missing)}",
                key="contexts",
                value=self.contexts,
                remedy="number contexts from 0 without gaps",
            )
        return self

    def load(self) -> Data:
        """The rows as arrays."""
        return Data(
            x=np.array(self.x),
            y=np.array(self.y),
            contexts=None if self.contexts is None else np.array(self.contexts),
        )
