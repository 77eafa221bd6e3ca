r"""The flow of units with Gaussian preactivations predicts bumps, from the initial weights.

Rows are conditions: single ReLU units by law of the inputs and by correlation lengths
:math:`\xi_1, \xi_2`, with ten starts each, and a network of twelve units with five starts. The
notes leave their section on predicting localisation empty; the flow is ours. It takes what a unit
receives to be Gaussian given one of the inputs, which is exact for Gaussian classes. For the longer
length at :math:`y = 1` it ends at one bump from all starts where inputs saturate, and at a flat
field where they are Gaussian. In the other order it localises late, to confined oscillations that
depend on the start, and is not reliable. Of twelve units it makes bumps that are too narrow.
Percentages are shares of units that localise.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, StrMethodFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    final_fields,
    lengths_label,
    marginal_name,
)
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

Field = Float[np.ndarray, " input"]

COLOUR = style.COLOURS["relu"]
RUNS: dict[str, Any] = {
    "color": COLOUR,
    "marker": "o",
    "linestyle": "",
    "alpha": 0.4,
    "markeredgewidth": 0,
}
FLOW: dict[str, Any] = {
    "color": "black",
    "marker": "|",
    "linestyle": "",
    "markersize": 7,
    "markeredgewidth": 0.8,
}
MISSES = 0.2
"""The flow misses a field if their cosine is less than this."""
TICKS = (1, 2, 5, 10, 20, 40)
COLUMNS = (1.18, 1.46)
"""Places of the shares of units that localise, in widths of the axes."""
HEIGHT = 0.42
"""Height of the largest weight, in rows."""


@Figure(
    layout="abc",
    height=4.0,
    widths=(1.8, 1.2, 1.6),
    cf={"a": "sec. 2.2"},
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
    """Training and the flow."""
    return [
        style.handle("training", color=COLOUR, **style.SIMULATION),
        style.handle("mean-field flow", **style.THEORY),
        style.handle("single runs", **RUNS),
        style.handle("the flow from the same weights", **FLOW),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The unit whose participation is the median, over its largest weight.

    It is moved around the ring and turned in sign so that its largest weight is in the middle and
    positive, and the flow from the same initial weights with it.
    """
    ax.set_title("The flow finds the bump of one unit")
    cells = _cells(results)
    ax = style.named_rows(ax, map(_name, cells))
    for row, cell in enumerate(cells):
        learned, flow = _typical(cell)
        ax.axhline(row, color="0.8", linewidth=0.5, zorder=0)
        positions = np.arange(1, len(learned) + 1)
        ax.plot(positions, row - HEIGHT * learned, color=COLOUR, **style.SIMULATION)
        ax.plot(positions, row - HEIGHT * flow, **style.THEORY)
        if learned @ flow < MISSES * np.linalg.norm(learned) * np.linalg.norm(flow):
            at = {"ha": "right", "va": "bottom", "fontsize": 6.5}
            ax.text(len(positions), row - 0.05, "flow misses", **at)
    ax.set(xlim=(1, len(positions)), xlabel=POSITION_LABEL)
    ax.set_xticks([1, len(positions)])
    _lay_out_rows(ax, cells)


def panel_b(results: Results, ax: Axes) -> None:
    """Participation of each run, the inverse participation ratio times the number of inputs.

    It is 1 for weights of one size; means over the units of a network.
    """
    ax.set_title("Flow too narrow for twelve units")
    ax = style.named_rows(ax, [""] * len(_cells(results)))
    for row, cell in enumerate(_cells(results)):
        for name, props in (("participation", RUNS), ("predicted_participation", FLOW)):
            at = {"solution": "mean_field"} if props is FLOW else {}
            values = metric(cell, name, **at)
            ax.plot(values, np.full(values.size, row), **props)
    ax.set(xscale="log", xlim=(0.9, 45), xlabel="participation")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.set_xticks(TICKS)
    _lay_out_rows(ax, _cells(results))


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine of the field of each run with that of the flow, mean over the units of a network.

    Beside it are the shares of units that localise in training and by the flow, means over runs.
    """
    ax.set_title(r"Flow agrees less if $\xi_1 < \xi_2$")
    ax = style.named_rows(ax, [""] * len(_cells(results)))
    for row, cell in enumerate(_cells(results)):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        ax.plot(cosine, np.full(cosine.size, row), **RUNS)
        training = metric_mean(cell, "localised_share")
        flow = metric_mean(cell, "predicted_localised_share", solution="mean_field")
        for x, share in zip(COLUMNS, (training, flow), strict=True):
            at = {"ha": "center", "va": "center", "fontsize": 6.5}
            ax.text(x, row, f"{share:.0%}", transform=ax.get_yaxis_transform(), **at)
    below: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "ha": "center",
        "va": "top",
    }
    for x, name in zip(COLUMNS, ("training", "flow"), strict=True):
        ax.annotate(name, (x, 0), (0, -5.5), fontsize=6.5, **below)
    ax.annotate("units that localise", (np.mean(COLUMNS), 0), (0, -17), **below)
    ax.axvline(1, **style.GUIDE)
    ax.set(xlim=(-0.1, 1.05), xticks=[0, 0.5, 1], xlabel="cosine with the flow")
    _lay_out_rows(ax, _cells(results))


def _cells(results: Results) -> list[CellResults]:
    """Cells of single units, and the cell of several units."""
    return [*results.cells("one_unit"), results.cells("prediction")[0]]


def _name(cell: CellResults) -> str:
    """Number of units, lengths and law of the inputs."""
    count = cell.receptive_fields.sizes["unit"]
    units = f"{count} units" if count > 1 else "one unit"
    return f"$\\xi$ = {lengths_label(cell)}, {marginal_name(cell)}\n{units}"


def _lay_out_rows(ax: Axes, cells: list[CellResults]) -> None:
    """Gives the panels the same rows."""
    ax.set_ylim(len(cells) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)


def _typical(cell: CellResults) -> tuple[Field, Field]:
    """The field of training whose participation is the median, and the flow from its start."""
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="mean_field"))
    learned, flow = (
        fields.values.reshape(-1, fields.sizes["input"]) for fields in (final_fields(cell), theory)
    )
    learned, flow = (each / np.abs(each).max(axis=1, keepdims=True) for each in (learned, flow))
    spread = (learned**4).sum(axis=1) / (learned**2).sum(axis=1) ** 2
    run = style.median_seed(xr.DataArray(spread, {"seed": np.arange(len(spread))}))
    largest = int(np.abs(learned[run]).argmax())
    sign, shift = np.sign(learned[run, largest]), learned.shape[1] // 2 - largest
    return np.roll(sign * learned[run], shift), np.roll(sign * flow[run], shift)
