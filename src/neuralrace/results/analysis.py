"""Analysis across cells, with xarray and pandas: of a results folder, or of `simulate`.

A key of a specification is dotted, such as `training.learning_rate`. It is swept where it differs
among cells, but for those that say which init scales and seeds there are: these are axes already.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from neuralrace.errors import UserError, did_you_mean
from neuralrace.config.variables import RUN_AXES, REGISTRIES, FileKind
from neuralrace.results.files import open_lazily
from neuralrace.results.cells import IDENTIFIER, CellResults, Results, cells_of, open_results
from neuralrace.config.cell import flatten_keys

AXES = ["init_scales", "seeds", "first_seed"]
"""Keys whose values are those of the axes `init_scale` and `seed`."""

GIVE = "give what open_results, open_tree or simulate gives, or a list of these"
LONGEST = 40
"""Letters of a list in a label, at most; a longer one is its beginning and a checksum."""

ROUNDING = {"float64": 1e-6, "float32": 1e-3}
"""What rounding may grow to during training, relative to the largest entry of a variable."""

Cells = Results | CellResults | xr.DataTree | Iterable[Results | CellResults | xr.DataTree]
"""What `open_results`, `open_tree` or `simulate` gives, or a list of these."""


def open_tree(folder: str | Path = "results", **select: Any) -> xr.DataTree:
    """The files of a results folder as one tree, without reading their arrays.

    A node for each file, `paper/experiment/cell/{trajectory,theory,metrics}`. The node of the cell
    has its specification as attributes, under dotted keys. Every file is opened, which takes about
    10 ms: to select by paper, experiment or cell opens no others. An array is read whenever it is
    used, and not kept; `.load()` keeps it.

    Args:
        folder: holds `<paper>/<experiment>/<cell>/{trajectory,theory,metrics}.nc`.
        **select: `paper`, `experiment`, `cell` or keys of the specification with dots written as
            two underscores, and the value that they must have, as of `Results.select`.

    Raises:
        UserError: there are no results, an unknown key, a value that no cell has, a damaged file.

    Example:
        >>> import neuralrace as nr
        >>> tree = nr.open_tree("results", paper="deep_linear", network__hidden=[16])
        >>> losses = tree["deep_linear/exact/hidden-16/trajectory"]["loss"]
        >>> float(losses.isel(time=-1).max()) < 1e-3
        True
    """
    nodes: dict[str, xr.Dataset] = {}
    for name, cell in open_results(folder).select(**select).items():
        files = {kind: open_lazily(cell.path(kind), kind) for kind in cell.kinds}
        last = list(files.values())[-1]  # its specification is the whole one
        nodes[name] = xr.Dataset(attrs=flatten_keys(json.loads(last.attrs["spec"])))
        nodes |= {f"{name}/{kind}": file for kind, file in files.items()}
    return xr.DataTree.from_dict(nodes)


def combine(cells: Cells | str | Path, kind: FileKind = "metrics") -> xr.Dataset:
    """The files of a sweep as one dataset, with the swept keys as dimensions.

    Dimensions are as many keys as distinguish the cells, those of most values first; another swept
    key is a coordinate along them. Cells that differ in their init scales or seeds are joined along
    `init_scale` and `seed`, and a key that follows from the init scale, such as the steps that
    `simulate` chooses, is a coordinate along `init_scale`. A run that several cells have must be
    the same in all of them, but for rounding; that of the first counts. What is measured over all
    seeds or scales of a cell together, without such an axis, stands at each of them where cells
    differ in it.

    Numbers are sorted, and other values are labels: `8x4` for a list, `none` for an empty one and
    in a cell that lacks the key. A combination that no cell has is NaN, and so is what only other
    cells have, such as a time. Axes without labels, such as the units of a layer, are numbered
    from 1.

    Args:
        cells: of `open_results`, `open_tree` or `simulate`: all, or a list of them; or a results
            folder.
        kind: which file of each: trajectory, theory or metrics.

    Raises:
        UserError: there are none, a cell has no such file, or a run that cells share differs.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> cells = results.select(paper="deep_linear", experiment="step_size")
        >>> sweep = nr.combine(cells)
        >>> sweep["discretisation_error"].dims
        ('training.learning_rate', 'init_scale', 'seed')
    """
    if not isinstance(kind, str) or kind not in REGISTRIES:
        raise UserError(f"kind: {kind!r}: give one of {', '.join(REGISTRIES)}")
    chosen = _listed(cells)
    if not chosen:
        raise UserError("cells: there are none; give some of open_results(...) or of simulate(...)")
    for cell in chosen:
        if kind not in cell.kinds:
            raise UserError(
                f"kind: {kind!r}: the cell {cell.name} has none; it has {', '.join(cell.kinds)}"
            )
    datasets = [getattr(cell, kind) for cell in chosen]
    if len(datasets) == 1:
        return datasets[0]
    specs = _specs(chosen, kind)
    swept = sorted(_swept(specs), key=lambda key: -specs[key].nunique(dropna=False))
    datasets, along = _of_init_scales(datasets, specs.filter(swept))
    dims: list[str] = []
    apart = 1
    for key in (key for key in swept if key not in along):
        if (found := len(specs.drop_duplicates([*dims, key]))) > apart:
            dims, apart = [*dims, key], found
    axes = {name: axis for dataset in datasets for name, axis in dataset.coords.items()}
    groups = specs.groupby(dims, dropna=False, sort=False).ngroup() if dims else 0 * specs.index
    members: dict[int, dict[str, xr.Dataset]] = {int(group): {} for group in groups}
    for number, (cell, dataset) in enumerate(zip(chosen, datasets, strict=True)):
        called = f"number {number + 1} ({cell.name})"
        members[int(groups[number])][called] = dataset.assign_coords({**axes, **dataset.coords})
    joined = [_of_runs(each) for each in members.values()]
    if not dims:
        return joined[0]
    specs = specs.drop_duplicates(dims)
    index = pd.MultiIndex.from_arrays([_axis(specs[key].tolist()) for key in dims], names=dims)
    others = {key: ("cell", specs[key]) for key in swept if key not in (*dims, *along)}
    sweep = _concatenated(joined, "cell", "all")
    sweep = sweep.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "cell"))
    return sweep.assign_coords(others).unstack("cell").transpose(*dims, ...)


def to_frame(cells: Cells | str | Path = "results", keys: Sequence[str] = ()) -> pd.DataFrame:
    """All metrics as one tidy table, with a row for each number.

    Columns: paper, experiment, cell; each swept key, blank in experiments that do not sweep it, and
    each chosen key; metric, its coordinates, value and unit. Curves over time stay in the files.
    Trees of `simulate` all have the same paper, experiment and cell: swept keys distinguish them.

    Args:
        cells: of `open_results`, `open_tree` or `simulate`: all, or a list of them; or a results
            folder.
        keys: of the specification, to be columns whether or not they are swept.

    Raises:
        UserError: there are no cells, an unknown key, a missing or damaged file.

    Example:
        >>> import neuralrace as nr
        >>> table = nr.to_frame("results", keys=["network.activation"])
        >>> errors = table[table["metric"] == "discretisation_error"]
        >>> errors = errors.query("paper == 'deep_linear' and experiment == 'step_size'")
        >>> errors.groupby("training.learning_rate")["value"].mean().is_monotonic_increasing
        True
    """
    chosen = _listed(cells)
    if not chosen:
        raise UserError("cells: there are none; give some of open_results(...) or of simulate(...)")
    keys = [keys] if isinstance(keys, str) else _items("keys", keys, "give a list of names")
    variables = [
        (row, str(name), cell.metrics.variables[name])
        for row, cell in enumerate(chosen)
        for name in cell.metrics.data_vars
        if not {"time", "snapshot"} & set(cell.metrics.variables[name].dims)
    ]
    if not variables:
        raise UserError("cells: nothing was measured in them; add metrics")
    specs = _specs(chosen, "metrics")
    _refuse_unknown(keys, specs.columns)
    place = pd.DataFrame([cell.name.split("/") for cell in chosen], columns=IDENTIFIER)
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


def _listed(cells: Any) -> list[CellResults]:
    """The cells of all that `Cells` may be, or of a results folder.

    Raises:
        UserError: something else.
    """
    if isinstance(cells, str | Path):
        cells = open_results(cells)
    if isinstance(cells, Results | CellResults | xr.DataTree):
        cells = [cells]
    listed: list[CellResults] = []
    for each in _items("cells", cells, GIVE):
        if isinstance(each, xr.DataTree):
            listed += cells_of(each)
        elif isinstance(each, Results | CellResults):
            listed += each.values() if isinstance(each, Results) else [each]
        else:
            raise UserError(f"cells: holds a {type(each).__name__}: {GIVE}")
    return listed


def _items(name: str, values: Any, remedy: str) -> list[Any]:
    """What is in a list, or in anything like it that is no mapping.

    Raises:
        UserError: it is no list.
    """
    try:
        if not isinstance(values, Mapping):
            return list(values)
    except TypeError:
        pass
    raise UserError(f"{name}: {type(values).__name__}: {remedy}")


def _of_init_scales(
    datasets: Sequence[xr.Dataset], swept: pd.DataFrame
) -> tuple[list[xr.Dataset], list[str]]:
    """Datasets with swept keys that follow from the init scale along it, and which these are.

    Axes without labels are numbered.
    """
    scales = [dataset["init_scale"].values for dataset in datasets]
    rows = swept.loc[np.repeat(np.arange(len(datasets)), [len(each) for each in scales])]
    values = np.concatenate(scales)
    along = [
        str(key)
        for key, column in rows.items()
        if column.groupby(values).nunique(dropna=False).max() == 1
    ]
    numbered = [
        dataset.assign_coords(
            {dim: np.arange(1, n + 1) for dim, n in dataset.sizes.items() if dim not in dataset}
            | {key: ("init_scale", [swept.loc[row, key]] * len(scales[row])) for key in along}
        )
        for row, dataset in enumerate(datasets)
    ]
    return numbered, along


def _of_runs(members: Mapping[str, xr.Dataset], axes: Sequence[str] = RUN_AXES) -> xr.Dataset:
    """Cells that differ in their init scales and seeds at most, as one dataset along these.

    Args:
        members: files by what they are called in a message.
        axes: what they may differ in.

    Raises:
        UserError: a run that several have is not the same in all of them.
    """
    (name, first), *others = members.items()
    if not others:
        return first
    if not axes:
        for other, dataset in others:
            differing = [str(key) for key in first.variables if not _same(first, dataset, key)]
            if differing:
                run = ", ".join(f"{axis} {first[axis].item():g}" for axis in RUN_AXES)
                raise UserError(
                    f"cells: {name} and {other} agree in all that is swept and both have the run "
                    f"of {run}, but differ there in {', '.join(differing)}; leave one out"
                )
        return first
    axis, *rest = axes
    parts = []
    for value in np.unique(np.concatenate([each[axis].values for each in members.values()])):
        having = {key: each for key, each in members.items() if value in each[axis].values}
        parts.append(_of_runs({key: e.sel({axis: [value]}) for key, e in having.items()}, rest))
    return _concatenated(parts, axis, "different")


def _same(one: xr.Dataset, other: xr.Dataset, name: Any) -> bool:
    """Whether a variable is the same in both, but for what rounding explains."""
    if name not in other.variables:
        return False
    values = one.variables[name], other.variables[name]
    if any(value.dtype.kind not in "iuf" for value in values):
        return bool(values[0].equals(values[1]))
    allowed = ROUNDING[json.loads(one.attrs["spec"]).get("precision", "float64")]
    return values[0].dims == values[1].dims and relative_difference(*values) <= allowed


def relative_difference(one: Any, other: Any) -> float:
    """Largest difference over the largest entry, in either; infinite where only one is finite.

    Args:
        one: numbers, an array of NumPy or xarray.
        other: likewise.
    """
    a, b = (np.asarray(each, float) for each in (one, other))
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    gap = float(np.max(np.abs(a - b), initial=0))
    return gap / float(np.max(np.abs([a, b]))) if gap else 0.0


def _concatenated(parts: Sequence[xr.Dataset], dim: str, data_vars: Any) -> xr.Dataset:
    """Datasets along a dimension; where one lacks something that another has, it is NaN."""
    return xr.concat(
        parts,
        dim=dim,
        data_vars=data_vars,
        coords="different",
        compat="equals",
        join="outer",
        combine_attrs="drop_conflicts",
    )


def _specs(cells: Sequence[CellResults], kind: FileKind) -> pd.DataFrame:
    """What each cell asked for: a column for each dotted key, lists as labels."""
    rows = [
        {
            key: _label(value) if isinstance(value, list) else value
            for key, value in cell.entries(kind).items()
        }
        for cell in cells
    ]
    return pd.DataFrame(rows, dtype=object)


def _label(values: list[Any]) -> str:
    """A list as in the name of a cell; a long one, such as an array, by its checksum."""
    label = "x".join(map(str, values)) or "none"
    if len(label) <= LONGEST:
        return label
    return f"{label[: LONGEST // 2]}...{hashlib.sha256(label.encode()).hexdigest()[:8]}"


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


def _refuse_unknown(keys: Iterable[Any], known: Iterable[str]) -> None:
    """Refuses what is no key of any specification."""
    names = list(known)
    for key in keys:
        if not isinstance(key, str) or key not in names:
            raise UserError(
                f"{key!r} is no key of these specifications; {did_you_mean(str(key), names)}"
                "config/README.md lists them"
            )
