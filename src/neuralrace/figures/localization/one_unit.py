r"""The flow of units with Gaussian preactivations predicts bumps, from the initial weights.

Single ReLU units by law of the inputs and by correlation lengths :math:`\xi_1, \xi_2`, with ten
starts each, and a network of twelve units with five starts. The notes leave their section on
predicting localisation empty; the flow is ours. It takes what a unit receives to be Gaussian given
one of the inputs, which is exact for Gaussian classes. For the longer length at :math:`y = 1` it
ends at one bump from all starts where inputs saturate, and at a flat field where they are Gaussian.
In the other order it localises late, to confined oscillations that depend on the start, and is not
reliable. Of twelve units it makes bumps that are too narrow.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.datasets.marginals import Erf
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    final_fields,
    lengths_label,
    marginal_name,
    process,
)
from neuralrace.figures.sweeps import metric, smallest_scale
from neuralrace.results.cells import CellResults, Results

Field = Float[np.ndarray, " input"]

COLOUR = style.COLOURS["relu"]
TRAINING = {"color": COLOUR, "marker": "o", "markersize": 4}
FLOW = {"color": "black", "marker": "D", "markersize": 6.5, "fillstyle": "none"}
"""Markers of shares; that of the flow may lie around the other."""
MARKS = {"training": TRAINING, "mean-field flow": FLOW}
MISSES = 0.2
"""The flow misses a field if their cosine is less than this."""
SATURATING = 1
"""Least gain at which most inputs saturate; the fields from smaller ones are as from Gaussian."""


@Figure(
    layout="aaaab;cccdd",
    height=3.9,
    heights=(1.1, 1.0),
    cf={"a": "sec. 2.2"},
    reads={
        "one_unit prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": ("field_overlap localised_share predicted_localised_share"),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Training and the flow."""
    return [
        style.handle("training", color=COLOUR, **style.SIMULATION),
        style.handle("mean-field flow from the same weights", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    r"""The unit whose participation is the median, over its largest weight, for inputs that
    saturate (gain 3) and Gaussian ones, and for both orders of lengths.

    It is moved around the ring and turned in sign so that its largest weight is in the middle and
    positive, and the flow from the same initial weights with it.
    """
    ax.set_title("The flow from the start predicts most fields")
    cells = [cell for cell in results.cells("one_unit") if not 0 < _gain(cell) < SATURATING]
    parts = style.split(ax, 1, len(cells))[0]
    for part, cell in zip(parts, cells, strict=True):
        _draw_field(part, cell)
    parts[0].set_ylabel("weight over largest")


def panel_b(results: Results, ax: Axes) -> None:
    """The same of a network of twelve units: the unit whose participation is the median."""
    _draw_field(style.split(ax, 1)[0, 0], _network(results))
    ax.set_title("Flow is too narrow")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of units that localise, means over runs."""
    ax.set_title("The flow misses one condition that localises")
    cells = _cells(results)
    rows = _rows(ax, [_name(cell).replace("\n", ", ") for cell in cells])
    for row, cell in enumerate(cells):
        share = metric(cell, "predicted_localised_share", solution="mean_field")
        style.points(rows, row, metric(cell, "localised_share"), across=True, **TRAINING)
        rows.plot([float(share.mean())], [row], linestyle="", **FLOW)
    rows.set(xlim=(-0.06, 1.06), xticks=[0, 0.5, 1], xlabel="share of localised units")
    handles = [style.handle(name, linestyle="", **props) for name, props in MARKS.items()]
    rows.legend(handles=handles, loc="upper center")


def panel_d(results: Results, ax: Axes) -> None:
    """Cosine of the field of each run with that of the flow, mean over the units of a network."""
    ax.set_title(r"Fields agree less if $\xi_1 < \xi_2$")
    cells = _cells(results)
    rows = _rows(ax, [""] * len(cells))
    for row, cell in enumerate(cells):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        dots = {"color": COLOUR, "alpha": 0.6, "markeredgewidth": 0, "clip_on": False}
        rows.plot(cosine, np.full(cosine.size, row), "o", **dots)
    rows.set(xlim=(0, 1), xticks=[0, 0.5, 1], xlabel="cosine of trained field and flow, each run")


def _cells(results: Results) -> list[CellResults]:
    """Single units by condition, and the network of several."""
    return [*results.cells("one_unit"), _network(results)]


def _network(results: Results) -> CellResults:
    """The network of several units."""
    return results.cells("prediction")[0]


def _rows(ax: Axes, names: Sequence[str]) -> Axes:
    """Axes with a thin line in each row."""
    rows = style.named_rows(ax, names)
    rows.tick_params(axis="y", length=0)
    for row in range(len(names)):
        rows.axhline(row, color="0.9", linewidth=0.6, zorder=0)
    return rows


def _gain(cell: CellResults) -> float:
    """The gain of the law of the inputs; 0 for Gaussian ones."""
    marginal = process(cell).marginal
    return marginal.gain if isinstance(marginal, Erf) else 0.0


def _name(cell: CellResults) -> str:
    """Lengths and law of the inputs, and the number of units if there are several."""
    count = cell.receptive_fields.sizes["unit"]
    law = "saturating" if _gain(cell) >= SATURATING else marginal_name(cell)
    return f"$\\xi$ = {lengths_label(cell)}{f', {count} units' if count > 1 else ''}\n{law}"


def _draw_field(ax: Axes, cell: CellResults) -> None:
    """The typical field with the flow on top, under the name of its condition."""
    learned, flow = _typical(cell)
    positions = np.arange(1, len(learned) + 1)
    ax.axhline(0, color="0.8", linewidth=0.5, zorder=0)
    ax.plot(positions, learned, color=COLOUR, **style.SIMULATION)
    ax.plot(positions, flow, **style.THEORY)
    if learned @ flow < MISSES * np.linalg.norm(learned) * np.linalg.norm(flow):
        ax.text(len(positions), 1, "flow\nmisses", ha="right", va="top")
    lowest = min(learned.min(), flow.min())
    ax.set(xlim=(1, len(positions)), ylim=(min(-0.2, 1.1 * lowest), 1.1), yticks=[0, 1])
    ax.set_xticks([1, len(positions)])
    ax.set_xlabel(POSITION_LABEL)
    ax.set_title(_name(cell), loc="center")


def _typical(cell: CellResults) -> tuple[Field, Field]:
    """The field of training whose participation is the median, and the flow from its start."""
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="mean_field"))
    learned, flow = (
        fields.values.reshape(-1, fields.sizes["input"]) for fields in (final_fields(cell), theory)
    )
    spread = (learned**4).sum(axis=1) / (learned**2).sum(axis=1) ** 2
    run = style.median_seed(xr.DataArray(spread, {"seed": np.arange(len(spread))}))
    learned, flow = (each[run] / np.abs(each[run]).max() for each in (learned, flow))
    largest = int(np.abs(learned).argmax())
    sign, shift = np.sign(learned[largest]), len(learned) // 2 - largest
    return np.roll(sign * learned, shift), np.roll(sign * flow, shift)
