"""Analysis across the cells of a results folder, with xarray and pandas.

A key of a specification is dotted, such as `training.learning_rate`. It is swept where it differs
among cells, but for those that say which init scales and seeds there are: these are axes already.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from neuralrace.errors import UserError, alike
from neuralrace.given import Kind
from neuralrace.records.files import open_lazily
from neuralrace.records.results import PLACE, CellResults, Results, open_results
from neuralrace.spec import flat

AXES = ["init_scales", "seeds", "first_seed"]
"""Keys whose values are those of the axes `init_scale` and `seed`."""

Cells = Results | Sequence[CellResults]


def open_tree(folder: str | Path = "results", **select: Any) -> xr.DataTree:
    """The files of a results folder as one tree, without reading their arrays.

    A node for each file, `paper/experiment/cell/{trajectory,theory,metrics}`. The node of the cell
    has its specification as attributes, under dotted keys. Every file is opened, which takes about
    10 ms: to select by paper, experiment or cell opens no others. An array is read whenever it is
    used, and not kept; `.load()` keeps it.

    Args:
        folder: holds `<paper>/<experiment>/<cell>/{trajectory,theory,metrics}.nc`.
        select: `paper`, `experiment`, `cell` or keys of the specification with dots written as two
            underscores, and the value that they must have.

    Raises:
        UserError: there are no results, an unknown key, a damaged file.

    Example:
        >>> import neuralrace as nr
        >>> tree = nr.open_tree("results", paper="deep_linear", network__hidden=[16])
        >>> losses = tree["deep_linear/exact/hidden-16/trajectory"]["loss"]
        >>> float(losses.isel(time=-1).max()) < 1e-3
        True
    """
    wanted = {key.replace("__", "."): value for key, value in select.items()}
    places = {key: wanted.pop(key) for key in PLACE if key in wanted}
    nodes: dict[str, xr.Dataset] = {}
    known: set[str] = set()
    for name, cell in open_results(folder).items():
        place = dict(zip(PLACE, name.split("/"), strict=True))
        if any(place[key] != value for key, value in places.items()):
            continue
        kinds = cell.kinds[::-1]
        files = (open_lazily(cell.path(kind), kind) for kind in kinds)
        last = next(files)  # its specification is the whole one
        spec = flat(json.loads(last.attrs["spec"]))
        known |= spec.keys()
        if all(key in spec and spec[key] == value for key, value in wanted.items()):
            nodes[name] = xr.Dataset(attrs=spec)
            nodes |= {
                f"{name}/{kind}": file for kind, file in zip(kinds, [last, *files], strict=True)
            }
    if known:
        _refuse_unknown(wanted, known)
    return xr.DataTree.from_dict(nodes)


def combine(cells: Cells, kind: Kind = "metrics") -> xr.Dataset:
    """The files of a sweep as one dataset, with the swept keys as dimensions.

    Dimensions are as many keys as tell the cells apart, those of most values first; another swept
    key is a coordinate along them. Numbers are sorted, and other values are labels: `8x4` for a
    list, `none` for an empty one and in a cell that lacks the key. A combination that no cell has
    is NaN, and so is what only other cells have, such as a time or an init scale. Axes without
    labels, such as the units of a layer, are numbered from 1.

    Args:
        cells: of `open_results`: all, or a list of them.
        kind: which file of each: trajectory, theory or metrics.

    Raises:
        UserError: there are none, or two with the same specification.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> cells = results.select(paper="deep_linear", experiment="step_size")
        >>> sweep = nr.combine(cells)
        >>> sweep["discretisation_error"].dims
        ('training.learning_rate', 'init_scale', 'seed')
    """
    chosen = _listed(cells)
    datasets = [getattr(cell, kind) for cell in chosen]
    if not datasets:
        raise UserError("combine: there are no cells; choose some of open_results(...)")
    specs = _specs(chosen, kind)
    swept = sorted(_swept(specs), key=lambda key: -specs[key].nunique(dropna=False))
    dims: list[str] = []
    apart = 1
    for key in swept:
        if (found := len(specs.drop_duplicates([*dims, key]))) > apart:
            dims, apart = [*dims, key], found
    if apart < len(datasets):
        told = ", ".join(cell.name for cell in chosen)
        raise UserError(f"combine: cells of the same specification cannot be told apart: {told}")
    if not dims:
        return datasets[0]
    datasets = [
        dataset.assign_coords(
            {dim: np.arange(1, n + 1) for dim, n in dataset.sizes.items() if dim not in dataset}
        )
        for dataset in datasets
    ]
    axes = {name: axis for dataset in datasets for name, axis in dataset.coords.items()}
    joined = xr.concat(
        [dataset.assign_coords({**axes, **dataset.coords}) for dataset in datasets],
        dim="cell",
        data_vars="all",
        coords="different",
        compat="equals",
        join="outer",
        combine_attrs="drop_conflicts",
    )
    index = pd.MultiIndex.from_arrays([_axis(specs[key].tolist()) for key in dims], names=dims)
    others = {key: ("cell", specs[key]) for key in swept if key not in dims}
    joined = joined.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "cell"))
    return joined.assign_coords(others).unstack("cell").transpose(*dims, ...)


def to_frame(cells: Cells | str | Path = "results", keys: Sequence[str] = ()) -> pd.DataFrame:
    """All metrics as one tidy table, with a row for each number.

    Columns: paper, experiment, cell; each swept key, blank in experiments that do not sweep it, and
    each chosen key; metric, its coordinates, value and unit. Curves over time stay in the files.

    Args:
        cells: of `open_results`, or a results folder.
        keys: of the specification, to be columns whether or not they are swept.

    Raises:
        UserError: there are no metrics, an unknown key, a missing or damaged file.

    Example:
        >>> import neuralrace as nr
        >>> table = nr.to_frame("results", keys=["network.activation"])
        >>> errors = table[table["metric"] == "discretisation_error"]
        >>> errors = errors.query("paper == 'deep_linear' and experiment == 'step_size'")
        >>> errors.groupby("training.learning_rate")["value"].mean().is_monotonic_increasing
        True
    """
    chosen = _listed(open_results(cells) if isinstance(cells, str | Path) else cells)
    variables = [
        (row, str(name), cell.metrics.variables[name])
        for row, cell in enumerate(chosen)
        for name in cell.metrics.data_vars
        if not {"time", "snapshot"} & set(cell.metrics.variables[name].dims)
    ]
    if not variables:
        raise UserError(f"{cells}: there are no metrics. Run `snakemake --cores all metrics`.")
    specs = _specs(chosen, "metrics")
    _refuse_unknown(keys, specs.columns)
    place = pd.DataFrame([cell.name.split("/") for cell in chosen], columns=PLACE)
    experiments = specs.groupby([place["paper"], place["experiment"]])
    columns = pd.concat([rows[_swept(rows)] for _, rows in experiments])
    columns = columns.assign(**{key: specs[key] for key in keys})
    sizes = [variable.size for *_, variable in variables]
    ends = np.cumsum(sizes)
    labels: dict[str, np.ndarray] = {}
    for (row, _, variable), size, end in zip(variables, sizes, ends, strict=True):
        coords = chosen[row].metrics.variables
        for axis, dim in enumerate(map(str, variable.dims)):
            along = coords[dim].values if dim in coords else np.arange(variable.shape[axis])
            if dim not in labels:
                labels[dim] = np.full(ends[-1], np.nan, dtype=object)
            shape = [-1 if n == axis else 1 for n in range(variable.ndim)]
            labels[dim][end - size : end] = np.broadcast_to(
                along.reshape(shape), variable.shape
            ).ravel()
    cells_of = np.repeat([row for row, *_ in variables], sizes)
    table = place.join(columns.infer_objects())
    return (
        table.iloc[cells_of]
        .assign(
            metric=np.repeat([name for _, name, _ in variables], sizes),
            **{dim: pd.Series(values).infer_objects().array for dim, values in labels.items()},
            value=np.concatenate([variable.values.ravel() for *_, variable in variables]),
            units=np.repeat([variable.attrs["units"] for *_, variable in variables], sizes),
        )
        .reset_index(drop=True)
    )


def _listed(cells: Cells) -> list[CellResults]:
    return list(cells.values() if isinstance(cells, Results) else cells)


def _specs(cells: Sequence[CellResults], kind: Kind) -> pd.DataFrame:
    """What each cell asked for: a column for each dotted key, lists as in the name of a cell."""
    rows = [
        {
            key: "x".join(map(str, value)) or "none" if isinstance(value, list) else value
            for key, value in cell.entries(kind).items()
        }
        for cell in cells
    ]
    return pd.DataFrame(rows, dtype=object)


def _swept(specs: pd.DataFrame) -> list[str]:
    """Keys that differ among cells."""
    if len(specs) < 2:
        return []
    counts = {str(key): column.nunique(dropna=False) for key, column in specs.items()}
    return [key for key, count in counts.items() if key not in AXES and count > 1]


def _axis(values: Sequence[Any]) -> list[Any]:
    """Numbers where all are, else labels."""
    if {type(value) for value in values} <= {int, float} and np.isfinite(values).all():
        return list(values)
    return pd.Series(values, dtype=object).fillna("none").astype(str).tolist()


def _refuse_unknown(keys: Iterable[str], known: Iterable[str]) -> None:
    """Refuses what is no key of any specification."""
    for key in keys:
        if key not in (found := list(known)):
            raise UserError(
                f"{key!r} is no key of these specifications; {alike(key, found)}config/README.md "
                "lists them"
            )
