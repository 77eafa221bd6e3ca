"""Analysis across cells with xarray and pandas: `open_tree`, `combine` and `to_frame`.

Keys of a specification are dotted, such as `training.learning_rate`. A key is swept if its values
differ between cells. Keys of init scales and seeds do not count as swept, as these are axes of all
datasets.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from neuralrace.config.cell import flatten_keys
from neuralrace.config.variables import REGISTRIES, RUN_AXES, FileKind
from neuralrace.errors import UserError, did_you_mean
from neuralrace.results.cells import IDENTIFIER, CellResults, Results, cells_of, open_results
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import open_lazily
from neuralrace.training.memory import total_memory

AXES = ["init_scales", "seeds", "first_seed"]
"""Keys that determine the axes `init_scale` and `seed`."""
GIVE_CELLS = "give the result of open_results, open_tree or simulate, or a list of these"
LONGEST_LABEL = 40
"""A list with a longer label, in letters, is abbreviated to its beginning and a checksum."""
ROUNDING = {"float64": 1e-6, "float32": 1e-3}
"""Largest rounding errors after training, relative to the largest entry of a variable."""
FULL = 0.5
"""Smallest fraction of all combinations of swept values that makes a grid."""
LARGEST_TREE = 2**30
"""Most bytes of the arrays in memory when several experiments are combined."""
Cells = Results | CellResults | xr.DataTree | Iterable[Results | CellResults | xr.DataTree]
"""The result of `open_results`, `open_tree` or `simulate`, or a list of these."""


def open_tree(folder: str | Path = "results", **select: Any) -> xr.DataTree:
    """Opens the files of a results folder as one tree, without reading their arrays.

    Each file is a node `paper/experiment/cell/{trajectory,theory,metrics}`. The node of the cell
    has the specification as attributes, under dotted keys. To open a file takes about 10 ms; to
    select by paper, experiment or cell opens no other files. Arrays are read again at each use
    unless `.load()` keeps them in memory.

    Args:
        folder: folder of `<paper>/<experiment>/<cell>/{trajectory,theory,metrics}.nc`.
        **select: values of `paper`, `experiment`, `cell` or keys of the specification, with dots
            written as two underscores; see `Results.select`.

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
        last = list(files.values())[-1]  # the last file has the most complete specification
        nodes[name] = xr.Dataset(attrs=flatten_keys(json.loads(last.attrs["spec"])))
        nodes |= {f"{name}/{kind}": file for kind, file in files.items()}
    return xr.DataTree.from_dict(nodes)


def combine(cells: Cells | str | Path, kind: FileKind = "metrics") -> xr.Dataset | xr.DataTree:
    """Combines the files of a sweep into one dataset, with the swept keys as dimensions.

    Cells of one experiment give a dataset. Cells of several experiments give a tree with the
    dataset of each at its node `paper/experiment`; an experiment of a single cell keeps its arrays
    in its file and reads them at each use. In a tree, cells that lack the file are left out.

    The keys with most values become dimensions, as many as distinguish the cells. Other swept keys
    are coordinates along them. If the cells are fewer than half of all combinations of these
    values, there is one dimension `cell` instead, with the names of the cells, and all swept keys
    are coordinates along it.

    Cells with different init scales or seeds are joined along `init_scale` and `seed`. A key that
    depends on the init scale, such as the steps that `simulate` chooses, is a coordinate along
    `init_scale`. A variable without the axis `init_scale` or `seed` is repeated along it where
    cells differ in it.

    A run that several cells contain must be equal in all of them, except for rounding; the first is
    kept.

    Numbers are sorted. Other values are labels in the order of the cells: `8x4` for a list, `none`
    for an empty list or a missing key. Combinations that no cell has are NaN, and so are entries,
    such as times, that only other cells have. Axes without labels, such as the units of a layer,
    are numbered from 1.

    Args:
        cells: the result of `open_results`, `open_tree` or `simulate`, a list of these, or a
            results folder.
        kind: kind of file: trajectory, theory or metrics.

    Raises:
        UserError: there are no cells, a cell has no such file, a shared run differs, or the arrays
            take too much memory: more than `LARGEST_TREE` in a tree, or half of what is installed
            in a dataset.

    Example:
        >>> import neuralrace as nr
        >>> results = nr.open_results("results")
        >>> sweep = nr.combine(results["deep_linear/step_size"])
        >>> sweep["discretisation_error"].dims
        ('training.learning_rate', 'init_scale', 'seed')
        >>> tree = nr.combine(results)
        >>> tree["deep_linear/step_size"].to_dataset().identical(sweep)
        True
    """
    if not isinstance(kind, str) or kind not in REGISTRIES:
        raise UserError(f"give one of {', '.join(REGISTRIES)}", key="kind", value=kind)
    titled = [(f"number {n} ({cell.name})", cell) for n, cell in enumerate(_as_list(cells), 1)]
    several = len({_experiment(cell) for _, cell in titled}) > 1
    lacking = [cell for _, cell in titled if kind not in cell.kinds]
    if lacking and not (several and len(lacking) < len(titled)):
        raise UserError(
            f"the cell {lacking[0].name} has none",
            key="kind",
            value=kind,
            remedy=f"it has {', '.join(lacking[0].kinds)}",
        )
    if len(titled) == 1:
        return getattr(titled[0][1], kind)
    members: dict[str, dict[str, CellResults]] = {}
    for title, cell in titled:
        if cell not in lacking:
            members.setdefault(_experiment(cell), {})[title] = cell
    if not several:
        return _sweep(next(iter(members.values())), kind, total_memory() // 2)
    free = LARGEST_TREE
    datasets: dict[str, xr.Dataset] = {}
    for name, each in members.items():
        datasets[name] = _sweep(each, kind, free)
        free -= datasets[name].nbytes if len(each) > 1 else 0
    return xr.DataTree.from_dict(datasets)


def _sweep(cells: Mapping[str, CellResults], kind: FileKind, most: int) -> xr.Dataset:
    """One dataset of cells of an experiment; see `combine`.

    Args:
        cells: cells by their titles in messages.
        kind: kind of file.
        most: most bytes of the dataset. A single cell may have more, as its arrays stay in its
            file.

    Raises:
        UserError: a file is missing or damaged, a shared run differs, or the dataset is larger.
    """
    first, *others = cells.values()
    if not others:
        return first.dataset(kind, lazily=True)
    datasets: list[xr.Dataset] = []
    size = 0
    for cell in cells.values():
        datasets.append(cell.dataset(kind))
        size += datasets[-1].nbytes
        _check_memory(cell, size, most)
    specs = _specifications(dataset.attrs for dataset in datasets)
    swept = sorted(_swept(specs), key=lambda key: -specs[key].nunique(dropna=False))
    along = _along_init_scales(datasets, specs.filter(swept))
    dims: list[str] = []
    points = combinations = 1
    for key in (key for key in swept if key not in along):
        if (count := len(specs.drop_duplicates([*dims, key]))) > points:
            dims, points = [*dims, key], count
            combinations *= len(specs.drop_duplicates([key]))
    is_grid = points >= FULL * combinations
    count = combinations if is_grid else points
    _check_memory(first, count * _joined_bytes(datasets), most)
    datasets = [
        _labelled(each.compute(), specs.loc[row, along]) for row, each in enumerate(datasets)
    ]
    axes = {name: axis for dataset in datasets for name, axis in dataset.coords.items()}
    groups = specs.groupby(dims, dropna=False, sort=False).ngroup() if dims else 0 * specs.index
    members: dict[int, dict[str, xr.Dataset]] = {int(group): {} for group in groups}
    for group, title, dataset in zip(groups, cells, datasets, strict=True):
        members[int(group)][title] = dataset.assign_coords({**axes, **dataset.coords})
    joined = [_join_runs(group) for group in members.values()]
    if not dims:
        return joined[0]
    sweep = _concatenate(joined, "cell", "all")
    specs = specs.drop_duplicates(dims)
    coords = {key: ("cell", specs[key]) for key in swept if key not in (*dims, *along)}
    if not is_grid:
        names = [cell.name.rpartition("/")[2] for cell in cells.values()]
        labels = {key: ("cell", _axis(specs[key].tolist())) for key in (*dims, *coords)}
        return sweep.assign_coords({"cell": [names[row] for row in specs.index]} | labels)
    index = pd.MultiIndex.from_arrays([_axis(specs[key].tolist()) for key in dims], names=dims)
    sweep = sweep.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "cell"))
    sweep = sweep.assign_coords(coords).unstack("cell").transpose(*dims, ...)
    labels = {key: index.unique(key) for key in dims if index.unique(key).dtype.kind not in "iuf"}
    return sweep.sel(labels)


def _labelled(dataset: xr.Dataset, along: pd.Series) -> xr.Dataset:
    """A dataset whose axes are all labelled, with keys that depend on the init scale along it."""
    scales = dataset.sizes["init_scale"]
    return dataset.assign_coords(
        {dim: np.arange(1, n + 1) for dim, n in dataset.sizes.items() if dim not in dataset}
        | {key: ("init_scale", [value] * scales) for key, value in along.items()}
    )


def _check_memory(cell: CellResults, size: int, most: int) -> None:
    """Raises UserError if the experiment of a cell takes more memory than it may."""
    if size > most:
        raise UserError(
            f"{_experiment(cell)} takes {size / 1e9:.3g} GB of memory or more, and "
            f"{max(most, 0) / 1e9:.3g} GB are left",
            key="cells",
            remedy="select fewer cells, or read single variables by open_tree",
        )


def _joined_bytes(datasets: Iterable[xr.Dataset]) -> int:
    """Bytes of one dataset with all variables of these, and all entries of their axes."""
    variables: dict[Any, Any] = {}
    entries: dict[Any, set[Any]] = {}
    for dataset in datasets:
        variables |= dataset.variables
        for dim, size in dataset.sizes.items():
            axis = dataset.variables[dim].values if dim in dataset.variables else np.arange(size)
            entries.setdefault(dim, set()).update(axis.tolist())
    return sum(
        each.dtype.itemsize * math.prod(len(entries[dim]) for dim in each.dims)
        for each in variables.values()
    )


def to_frame(cells: Cells | str | Path = "results", keys: Sequence[str] = ()) -> pd.DataFrame:
    """All metrics as one tidy table, with a row for each number.

    Columns: paper, experiment and cell; swept keys, blank in experiments that do not sweep them;
    the keys in `keys`; metric, its coordinates, value and unit. Curves over time are left out.
    Trees of `simulate` all have the same paper, experiment and cell; swept keys distinguish them.

    Args:
        cells: the result of `open_results`, `open_tree` or `simulate`, a list of these, or a
            results folder.
        keys: keys of the specification that become columns even if they are not swept.

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
    chosen = _as_list(cells)
    keys = [keys] if isinstance(keys, str) else _items("keys", keys, "give a list of names")
    variables = [
        (row, str(name), cell.metrics.variables[name])
        for row, cell in enumerate(chosen)
        for name in cell.metrics.data_vars
        if not {"time", "snapshot"} & set(cell.metrics.variables[name].dims)
    ]
    if not variables:
        raise UserError("nothing was measured in them", key="cells", remedy="add metrics")
    specs = _specifications(cell.metrics.attrs for cell in chosen)
    for key in keys:
        if not isinstance(key, str) or key not in specs.columns:
            close = did_you_mean(str(key), specs.columns)
            raise UserError(
                "is no key of these specifications",
                key="keys",
                value=key,
                remedy=f"{close}`neuralrace keys` lists all",
            )
    identifiers = pd.DataFrame([cell.name.split("/") for cell in chosen], columns=IDENTIFIER)
    experiments = specs.groupby([identifiers["paper"], identifiers["experiment"]])
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
    rows = np.repeat([row for row, *_ in variables], sizes)
    table = identifiers.join(columns.infer_objects())
    return (
        table.iloc[rows]
        .assign(
            metric=np.repeat([name for _, name, _ in variables], sizes),
            **{dim: pd.Series(values).infer_objects().array for dim, values in labels.items()},
            value=np.concatenate([variable.values.ravel() for *_, variable in variables]),
            units=np.repeat([variable.attrs["units"] for *_, variable in variables], sizes),
        )
        .reset_index(drop=True)
    )


def _as_list(cells: Any) -> list[CellResults]:
    """All cells of a value of type `Cells` or of a results folder; at least one.

    Raises:
        UserError: the value has another type, or there are no cells.
    """
    if isinstance(cells, str | Path):
        cells = open_results(cells)
    if isinstance(cells, Results | CellResults | xr.DataTree):
        cells = [cells]
    listed: list[CellResults] = []
    for item in _items("cells", cells, GIVE_CELLS):
        if isinstance(item, xr.DataTree):
            listed += cells_of(item)
        elif isinstance(item, Results | CellResults):
            listed += item.values() if isinstance(item, Results) else [item]
        else:
            raise UserError(f"holds a {type(item).__name__}", key="cells", remedy=GIVE_CELLS)
    if not listed:
        raise UserError(
            "there are none",
            key="cells",
            remedy="give some of open_results(...) or of simulate(...)",
        )
    return listed


def _items(argument: str, values: Any, remedy: str) -> list[Any]:
    """The items of any iterable but a mapping.

    Raises:
        UserError: the value cannot be iterated over, or is a mapping.
    """
    try:
        if not isinstance(values, Mapping):
            return list(values)
    except TypeError:
        pass
    raise UserError(f"is of type {type(values).__name__}", key=argument, remedy=remedy)


def _along_init_scales(datasets: Iterable[xr.Dataset], swept: pd.DataFrame) -> list[str]:
    """Swept keys that depend on the init scale alone.

    Args:
        datasets: datasets of the cells.
        swept: swept keys as columns, cells as rows.
    """
    scales = [dataset.variables["init_scale"].values for dataset in datasets]
    rows = swept.loc[np.repeat(np.arange(len(scales)), [len(values) for values in scales])]
    values = np.concatenate(scales)
    return [
        str(key)
        for key, column in rows.items()
        if column.groupby(values).nunique(dropna=False).max() == 1
    ]


def _join_runs(members: Mapping[str, xr.Dataset], axes: Sequence[str] = RUN_AXES) -> xr.Dataset:
    """Joins cells that differ at most in their init scales and seeds along these axes.

    Args:
        members: datasets by their titles in messages.
        axes: axes along which they may differ.

    Raises:
        UserError: a run that several datasets contain differs between them.
    """
    (title, first), *others = members.items()
    if not others:
        return first
    if not axes:
        for other, dataset in others:
            differing = [str(key) for key in first.variables if not _same(first, dataset, key)]
            if differing:
                run = ", ".join(f"{axis} {first[axis].item():g}" for axis in RUN_AXES)
                raise UserError(
                    f"{title} and {other} agree in all that is swept and both have the run of "
                    f"{run}, but differ there in {', '.join(differing)}",
                    key="cells",
                    remedy="leave one out",
                )
        return first
    axis, *rest = axes
    parts = []
    for value in np.unique(np.concatenate([each[axis].values for each in members.values()])):
        having = {key: each for key, each in members.items() if value in each[axis].values}
        parts.append(_join_runs({key: e.sel({axis: [value]}) for key, e in having.items()}, rest))
    return _concatenate(parts, axis, "different")


def _same(one: xr.Dataset, other: xr.Dataset, name: Any) -> bool:
    """Whether a variable is the same in both datasets, except for rounding."""
    if name not in other.variables:
        return False
    values = one.variables[name], other.variables[name]
    if any(value.dtype.kind not in "iuf" for value in values):
        return bool(values[0].equals(values[1]))
    allowed = ROUNDING[json.loads(one.attrs["spec"]).get("precision", "float64")]
    return values[0].dims == values[1].dims and relative_difference(*values) <= allowed


def relative_difference(one: Any, other: Any) -> float:
    """Largest difference of two arrays of numbers, over the largest entry in either.

    It is infinite where shapes differ, or an entry is finite in only one of them.
    """
    a, b = (np.asarray(array, float) for array in (one, other))
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    gap = float(np.max(np.abs(a - b), initial=0))
    return gap / float(np.max(np.abs([a, b]))) if gap else 0.0


def _concatenate(parts: Sequence[xr.Dataset], dim: str, data_vars: Any) -> xr.Dataset:
    """Concatenates datasets; entries that one of them lacks are NaN."""
    return xr.concat(
        parts,
        dim=dim,
        data_vars=data_vars,
        coords="different",
        compat="equals",
        join="outer",
        combine_attrs="drop_conflicts",
    )


def _experiment(cell: CellResults) -> str:
    """The experiment of a cell, `paper/experiment`."""
    return cell.name.rpartition("/")[0]


def _specifications(attributes: Iterable[Mapping[Any, Any]]) -> pd.DataFrame:
    """The specification in the attributes of each file as a row; lists are labels.

    Columns are dotted keys.
    """
    rows = [
        {
            key: _label(value) if isinstance(value, list) else value
            for key, value in flatten_keys(json.loads(attrs["spec"])).items()
        }
        for attrs in attributes
    ]
    return pd.DataFrame(rows, dtype=object)


def _label(values: list[Any]) -> str:
    """A list as in the name of a cell; a long one, such as an array, is abbreviated."""
    label = "x".join(map(str, values)) or "none"
    if len(label) <= LONGEST_LABEL:
        return label
    return f"{label[: LONGEST_LABEL // 2]}...{fingerprint(label)[:8]}"


def _swept(specs: pd.DataFrame) -> list[str]:
    """Keys whose values differ between cells."""
    if len(specs) < 2:
        return []
    counts = {str(key): column.nunique(dropna=False) for key, column in specs.items()}
    return [key for key, count in counts.items() if key not in AXES and count > 1]


def _axis(values: Sequence[Any]) -> list[Any]:
    """Values of an axis: numbers if all are, else labels."""
    if {type(value) for value in values} <= {int, float} and np.isfinite(values).all():
        return list(values)
    return pd.Series(values, dtype=object).fillna("none").astype(str).tolist()
