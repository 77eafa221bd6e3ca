"""Evaluation of measures: one value per seed, from metrics files."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.claims.spec import Crossing, Fit, Measure, Sweep, matching_cells
from neuralrace.errors import UserError
from neuralrace.results.cells import Results


def per_seed(measure: Measure, results: Results, shuffled: bool = False) -> xr.DataArray:
    """The value of a measure for each seed.

    Args:
        measure: the measure to evaluate.
        results: cells with their metrics.
        shuffled: compare each seed with the seed after it (`minus`, `over`).

    Returns:
        Values along `seed`, or one value without dimensions where the metric does not vary over
        seeds. NaN where any entry that contributes is not finite.

    Raises:
        UserError: an unknown cell, metric, dimension, label or key; several values of one seed and
            no `reduce`; different seeds to compare; too few points for a line.
    """
    arrays = [
        _selected(measure, cell, results[cell].metrics)
        for cell in matching_cells(measure.cells, list(results))
    ]
    if measure.fit:
        value = _slope(measure.fit, *_line(measure, measure.fit, arrays))
    elif measure.crossing:
        value = _crossing(measure.crossing, *_line(measure, measure.crossing, arrays))
    else:
        entries = paired([_entries(array) for array in arrays])
        value = _one(_concat(entries, "value"), measure)
    other = measure.minus or measure.over
    if other is None:
        return value
    first, second = paired([value, per_seed(other, results)])
    if shuffled and "seed" in second.dims:
        second = second.roll(seed=-1)
    return first - second if measure.minus else first / second.where(second != 0)


def paired(arrays: Sequence[xr.DataArray]) -> Sequence[xr.DataArray]:
    """The arrays, after a check that those with seeds have the same ones.

    Raises:
        UserError: their seeds differ.
    """
    seeds = {tuple(array["seed"].values.tolist()) for array in arrays if "seed" in array.dims}
    if len(seeds) > 1:
        lists = " and ".join(str(list(each)) for each in sorted(seeds))
        raise UserError(f"different seeds cannot be paired: {lists}", key="cells")
    return arrays


def _selected(measure: Measure, cell: str, dataset: xr.Dataset) -> xr.DataArray:
    """The metric of one cell at the selected labels."""
    if measure.metric not in dataset.data_vars:
        raise UserError(
            f"is not among the metrics of {cell}",
            key="metric",
            value=measure.metric,
            remedy=f"it has {', '.join(sorted(map(str, dataset.data_vars)))}",
        )
    array = dataset[measure.metric].astype(float)
    array = array.where(np.isfinite(array)).assign_attrs(spec=dataset.attrs["spec"])
    for dim, labels in measure.select.items():
        if dim not in array.dims:
            raise UserError(
                f"is no dimension of {measure.metric} of {cell}",
                key="select",
                value=dim,
                remedy=f"it has {', '.join(map(str, array.dims)) or 'none'}",
            )
        if dim not in array.coords:
            raise UserError(f"has no labels in {measure.metric} of {cell}", key="select", value=dim)
        array = array.isel({dim: [_position(array, dim, label, cell) for label in labels]})
    return array


def _position(array: xr.DataArray, dim: str, label: float | str, cell: str) -> int:
    """Position of a label along a dimension."""
    known = array[dim].values
    if isinstance(label, str) or known.dtype.kind not in "fiu":
        hits = np.flatnonzero([value == label for value in known.tolist()])
    else:
        hits = np.flatnonzero(np.isclose(known, label, rtol=1e-9, atol=0))
    if len(hits) != 1:
        raise UserError(
            f"is no label of {array.name} of {cell}",
            key=f"select.{dim}",
            value=label,
            remedy=f"use one of {', '.join(map(str, known.tolist()))}",
        )
    return int(hits[0])


def _entries(array: xr.DataArray, *keep: str) -> xr.DataArray:
    """Stacks all dimensions but `seed` and `keep` into `value`; only seeds keep their labels."""
    array = array.drop_vars([name for name in array.coords if name != "seed"])
    rest = [dim for dim in array.dims if dim not in ("seed", *keep)]
    return array.stack(value=rest, create_index=False) if rest else array.expand_dims("value")


def _one(entries: xr.DataArray, measure: Measure) -> xr.DataArray:
    """Reduces all entries to one; an undefined entry makes the result undefined."""
    if entries.sizes["value"] == 1:
        return entries.isel(value=0)
    if measure.reduce is None:
        raise UserError(
            f"{measure.metric} has {entries.sizes['value']} values for each seed here",
            key="reduce",
            remedy="select one, or reduce them by mean, max, min or median",
        )
    return entries.reduce(getattr(np, measure.reduce), "value")


def _line(
    measure: Measure, sweep: Sweep, arrays: Sequence[xr.DataArray]
) -> tuple[Float[np.ndarray, " point"], xr.DataArray]:
    """The points of all cells: x, and y along `point`."""
    points = [_points(measure, sweep, array) for array in arrays]
    x = np.concatenate([x for x, _ in points])
    y = _concat(paired([y for _, y in points]), "point")
    if len(np.unique(x)) < 2:
        raise _refused(sweep, "has one value only, and a line needs two or more")
    return x, y


def _refused(sweep: Sweep, problem: str) -> UserError:
    return UserError(problem, key=f"{type(sweep).__name__.lower()}.x", value=sweep.x)


def _points(
    measure: Measure, sweep: Sweep, array: xr.DataArray
) -> tuple[Float[np.ndarray, " point"], xr.DataArray]:
    """The points of one cell: x, and y along `point`."""
    lines = {
        str(name): str(coord.dims[0])
        for name, coord in array.coords.items()
        if coord.ndim == 1 and coord.dims != ("seed",) and coord.dtype.kind in "fiu"
    }
    if sweep.x in lines:
        y = _one(_entries(array, lines[sweep.x]), measure).rename({lines[sweep.x]: "point"})
        return array[sweep.x].values.astype(float), y
    x: Any = json.loads(array.attrs["spec"])
    for key in sweep.x.split("."):
        x = x.get(key) if isinstance(x, dict) else None
    if not isinstance(x, int | float) or isinstance(x, bool):
        raise _refused(
            sweep,
            f"is neither a numeric coordinate of {measure.metric} "
            f"({', '.join(sorted(lines)) or 'it has none'}) nor the key of a number in the "
            "specification of its cells",
        )
    return np.array([float(x)]), _one(_entries(array), measure).expand_dims("point")


def _slope(fit: Fit, x: Float[np.ndarray, " point"], y: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of y against x for each seed."""
    if fit.scale == "loglog":
        if np.any(x <= 0):
            raise _refused(fit, "is not positive everywhere, as loglog needs")
        x = np.log(x)
        y = xr.apply_ufunc(np.log, y.where(y > 0))
    dx = xr.DataArray(x - x.mean(), dims="point")
    return (y * dx).sum("point", skipna=False) / (dx**2).sum("point")


def _crossing(crossing: Crossing, x: Float[np.ndarray, " point"], y: xr.DataArray) -> xr.DataArray:
    """The x at which y first reaches the level, for each seed, by linear interpolation.

    NaN where y never reaches it, where the first point has reached it already, and where y is
    undefined at a point up to the end of the segment that crosses.
    """
    if len(np.unique(x)) < len(x):
        raise _refused(
            crossing, "has several points at one value, and a crossing needs one at each"
        )
    order = np.argsort(x)
    along, y = xr.DataArray(x[order], dims="point"), y.isel(point=order)
    distance = crossing.level - y if crossing.direction == "rising" else y - crossing.level
    # the first point that has reached the level or is undefined; argmax gives 0 where none has
    end = (~(distance > 0)).argmax("point")
    start = (end - 1).clip(min=0)
    before, after = distance.isel(point=start), distance.isel(point=end)
    share = before / (before - after).where(end > 0)
    return along.isel(point=start) * (1 - share) + along.isel(point=end) * share


def _concat(arrays: Sequence[xr.DataArray], dim: str) -> xr.DataArray:
    return xr.concat(arrays, dim, coords="minimal", compat="override", join="exact")
