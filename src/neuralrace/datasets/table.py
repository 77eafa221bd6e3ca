"""Samples written in the configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset
from neuralrace.datasets.held_out import check_keys, with_test
from neuralrace.errors import UserError
from neuralrace.extensions.model import is_absent

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
    x_test: Rows | None = Field(None, exclude_if=is_absent)
    """Input of each test sample, which is not trained on; the observable `test_loss` is their
    loss."""
    y_test: Rows | None = Field(None, exclude_if=is_absent)
    """Target of each test sample."""
    contexts_test: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        None, exclude_if=is_absent
    )
    """Context of each test sample."""
    test: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, exclude_if=is_absent)
    """Share of the samples that become test samples in place of `x_test`, the same ones in all
    runs."""

    @model_validator(mode="after")
    def _rows_fit(self) -> "Table":
        check_keys(self.x_test, self.y_test, self.test)
        tables = {"x": self.x, "y": self.y, "x_test": self.x_test, "y_test": self.y_test}
        for name, rows in tables.items():
            for number, row in enumerate(rows or ()):
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
        if self.has_test:
            self.load()  # they fit
        return self

    @property
    def has_test(self) -> bool:
        """See `Dataset.has_test`."""
        return self.x_test is not None or self.test is not None

    def load(self) -> Data:
        """The rows as arrays."""
        x, y, contexts = _arrays(self.x, self.y, self.contexts)
        test = None
        if self.x_test is not None:
            test = _arrays(self.x_test, self.y_test, self.contexts_test)
        return with_test(Data(x, y, contexts=contexts), test, self.test)


def _arrays(x: Any, y: Any, contexts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return np.array(x), np.array(y), None if contexts is None else np.array(contexts)
