"""The flow of units with Gaussian preactivations predicts bumps, from the initial weights.

Single ReLU units, and a network of twelve, beside the flow from the same weights (dashed). Fields
of all seeds are moved around the ring and turned in sign so that their largest weight is in the
middle and positive, which lifts noise there too; lines are means, bands ranges over seeds. The
notes leave their section on
predicting localisation empty; the flow is ours. It takes what a unit receives to be Gaussian given
one of the inputs, which is exact for Gaussian classes. For the longer length at :math:`y = 1` it
ends at one bump from all starts where inputs saturate, and at a flat field where they are Gaussian.
In the other order it localises late, to confined oscillations that depend on the start, and is not
reliable. Of twelve units it makes bumps that are too narrow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    Fields,
    centred,
    final_fields,
    lengths_label,
    marginal_name,
)
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

START = {"color": "0.4", "marker": "x"}
"""Marker of frozen gates of the start."""
FLOW = {"color": "black", "marker": "|", "markersize": 9}
TICKS = (1, 2, 5, 10, 20, 40)


@Figure(
    layout="aaaabbbbcc;dddeeeefff",
    height=4.1,
    cf={"a": "sec. 2.2", "c": "sec. 2.2"},
    reads={
        "one_unit prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "field_overlap localised_share participation predicted_localised_share "
                "predicted_participation"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Conditions, by distribution of the inputs and number of units."""
    return [
        *(style.handle(kind, linestyle="", **props) for kind, props in _styles(results).items()),
        style.BAND,
        style.handle("mean-field flow", **style.THEORY),
        style.handle("gates of the start", linestyle="", **START),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """A single unit whose longer length has :math:`y = 1`, by law of the inputs."""
    _single(results, ax, 0)


def panel_b(results: Results, ax: Axes) -> None:
    """The same in the other order, where fields depend on their start."""
    _single(results, ax, -1)


def panel_c(results: Results, ax: Axes) -> None:
    """All units of the network of twelve."""
    cell = results.cells("prediction")[0]
    _fields(ax, cell, _styles(results)[_kind(cell)]["color"])
    ax.set_xlabel(POSITION_LABEL)
    ax.set_title(f"$K$ = {cell.receptive_fields.sizes['unit']}")


def panel_d(results: Results, ax: Axes) -> None:
    """Participation of each run against that of its flow; hollow markers are of the other order."""
    styles, orders = _styles(results), _orders(results)
    for cell in _cells(results):
        hollow = orders.index(lengths_label(cell)) > 0
        ax.plot(
            *_participation(cell),
            linestyle="",
            fillstyle="none" if hollow else "full",
            **styles[_kind(cell)],
        )
    ends = [0.9, 1.2 * max(2.0, ax.dataLim.x1, ax.dataLim.y1)]
    ax.plot(ends, ends, **style.GUIDE)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ticks = [tick for tick in TICKS if tick < ends[1]]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([], minor=True)
        axis.set_ticks(ticks, map(str, ticks))
    ax.set(xlabel="participation by the flow", ylabel="participation by training")
    cell = results.cells("prediction")[0]
    flow, trained = (float(values.mean("seed")) for values in _participation(cell))
    ax.set_title(
        f"$K$ = {cell.receptive_fields.sizes['unit']}: {flow:.1f} by the flow, {trained:.1f}"
    )


def panel_e(results: Results, ax: Axes) -> None:
    """Share of localised units in training (hollow), by the flow, and by gates of the start."""
    cells, styles = _cells(results), _styles(results)
    rows = _rows(ax, cells)
    for row, cell in enumerate(cells):
        flow = metric(cell, "predicted_localised_share", solution="mean_field")
        hollow = {**styles[_kind(cell)], "markersize": 6.5, "fillstyle": "none"}
        style.points(rows, row, metric(cell, "localised_share"), across=True, **hollow)
        style.points(rows, row, flow, across=True, **FLOW)
    start = metric(cells[-1], "predicted_localised_share", solution="initial_gates")
    style.points(rows, len(cells) - 0.7, start, across=True, **START)
    rows.set(xlim=(-0.08, 1.08), xlabel="share of localised units")
    share = metric_mean(cells[0], "predicted_localised_share", solution="mean_field")
    ax.set_title(f"Flow of one unit: {share:.0%} localise, {marginal_name(cells[0])}")


def panel_f(results: Results, ax: Axes) -> None:
    """Cosine of fields of training with those of the flow from the same weights."""
    cells, styles = _cells(results), _styles(results)
    rows = _rows(ax, cells)
    means = []
    for row, cell in enumerate(cells):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        means.append(style.points(rows, row, cosine, across=True, **styles[_kind(cell)]))
    rows.axvline(1, **style.GUIDE)
    rows.set(xlim=(-1.05, 1.1), xlabel="cosine, mean over units")
    ax.set_title(f"Cosines of {np.nanmin(means):.2f} to {np.nanmax(means):.2f}")


def _participation(cell: CellResults) -> tuple[xr.DataArray, xr.DataArray]:
    """Participation by the flow and by training, (seed)."""
    flow = metric(cell, "predicted_participation", solution="mean_field")
    return flow, metric(cell, "participation")


def _cells(results: Results) -> list[CellResults]:
    """Cells of single units, and the cell of several units."""
    return [*results.cells("one_unit"), results.cells("prediction")[0]]


def _orders(results: Results) -> list[str]:
    """Pairs of correlation lengths, in the order of the cells."""
    return list(dict.fromkeys(map(lengths_label, _cells(results))))


def _kind(cell: CellResults) -> str:
    """Number of units and distribution of the inputs."""
    return f"$K$ = {cell.receptive_fields.sizes['unit']}, {marginal_name(cell)}"


def _styles(results: Results) -> dict[str, dict[str, Any]]:
    """Colour and marker of each condition, in either order of the lengths."""
    return dict(style.styled(list(dict.fromkeys(map(_kind, _cells(results))))))


def _aligned(fields: xr.DataArray) -> Fields:
    """Fields of all units and seeds over their largest weight, which is in the middle."""
    stacked = fields.values.reshape(-1, fields.sizes["input"])
    stacked = stacked[np.isfinite(stacked).all(axis=1)]
    return centred(stacked / np.abs(stacked).max(axis=1, keepdims=True))


def _fields(ax: Axes, cell: CellResults, colour: Any) -> None:
    """Draws the mean and range of trained fields over units and seeds, and the mean of the flow."""
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="mean_field"))
    learned, flow = _aligned(final_fields(cell)), _aligned(theory)
    positions = np.arange(1, flow.shape[1] + 1)
    ax.axhline(0, **style.GUIDE | {"linewidth": 0.5})
    if len(learned):
        low, high = learned.min(axis=0), learned.max(axis=0)
        ax.fill_between(positions, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(positions, learned.mean(axis=0), color=colour)
    ax.plot(positions, flow.mean(axis=0), **style.THEORY)
    ax.set(xlim=(1, len(positions)), ylim=(-1.1, 1.15))
    ax.set_xticks([1, len(positions)])
    ax.set_yticks([-1, 0, 1])


def _single(results: Results, ax: Axes, order: int) -> None:
    """Draws single units of one order of the lengths, by distribution of the inputs."""
    lengths = _orders(results)[order]
    cells = [cell for cell in results.cells("one_unit") if lengths_label(cell) == lengths]
    for part, cell in zip(style.split(ax, 1, len(cells), sharey=True)[0], cells, strict=True):
        _fields(part, cell, _styles(results)[_kind(cell)]["color"])
        part.set_xlabel(marginal_name(cell))
    ax.set_title(rf"One unit, $\xi$ = {lengths}")


def _rows(ax: Axes, cells: Sequence[CellResults]) -> Axes:
    """Axes with a named row for each condition."""
    names = [f"{marginal_name(cell)}; {lengths_label(cell)}" for cell in cells]
    names[-1] = f"$K$ = {cells[-1].receptive_fields.sizes['unit']}, {names[-1]}"
    return style.named_rows(ax, names)
