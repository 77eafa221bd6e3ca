"""The results folder as a table of cells, for analyses across cells."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.given import Kind
from neuralrace.records.files import read


@dataclass(frozen=True)
class Catalogue:
    """Cells with results, one row each in `table`.

    Columns: paper, experiment, cell, folder, and each entry of the specification under its
    dotted key (`dataset.name`, `network.activation`, `training.learning_rate`). Init scales and
    seeds are dimensions of the datasets.
    """

    table: pd.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    def select(self, **values: Any) -> "Catalogue":
        """The cells whose columns have these values; write dots in keys as two underscores.

        `select(paper="deep_linear", network__activation="linear")`.

        Raises:
            UserError: an unknown column.
        """
        table = self.table
        for key, value in values.items():
            column = key.replace("__", ".")
            if column not in table:
                raise UserError(f"{column!r} is no column; there are {', '.join(table.columns)}")
            table = table.loc[[entry == value for entry in table[column]]]
        return Catalogue(table.reset_index(drop=True))

    def open(self, kind: Kind = "trajectory") -> Iterator[tuple[str, xr.Dataset]]:
        """Cell identifier and dataset of every cell that has a file of this kind.

        Raises:
            UserError: a damaged file.
        """
        columns = (self.table[name] for name in ("folder", "paper", "experiment", "cell"))
        for folder, *names in zip(*columns, strict=True):
            path = Path(folder) / f"{kind}.nc"
            if path.is_file():
                yield "/".join(names), read(path, kind)


def open_results(folder: str | Path = "results") -> Catalogue:
    """All cells below a results folder.

    Raises:
        UserError: there are none, or a file is damaged.
    """
    rows = []
    for path in sorted(Path(folder).glob("*/*/*/trajectory.nc")):
        if path.relative_to(folder).parts[0] == "smoke":
            continue
        attrs = read(path, "trajectory").attrs
        spec = pd.json_normalize(json.loads(attrs["spec"])).iloc[0].to_dict()
        named = {key: attrs[key] for key in ("paper", "experiment", "cell")}
        rows.append(named | {"folder": str(path.parent)} | spec)
    if not rows:
        raise UserError(f"{folder}: no results found. Run `snakemake --cores all figures`.")
    return Catalogue(pd.DataFrame(rows))
