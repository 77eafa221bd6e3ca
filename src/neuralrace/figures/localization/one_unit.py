r"""The flow of units with Gaussian preactivations predicts bumps, from the initial weights.

Single ReLU units by law of the inputs and by correlation lengths :math:`\xi_1, \xi_2`, with ten
starts each, and a network of twelve units with five starts. The notes leave their section on
predicting localisation empty; the flow is ours. It takes what a unit receives to be Gaussian given
one of the inputs, which is exact for Gaussian classes. For the longer length at :math:`y = 1` it
ends at one bump from all starts where inputs saturate, and at a flat field where they are Gaussian.
In the other order it localises late, to confined oscillations that depend on the start, and is not
reliable. Of twelve units it makes bumps that are too narrow. Participation is the inverse
participation ratio times the number of inputs, 1 for weights of one size and larger for narrow
fields. Percentages are shares of units that localise, means over runs.
"""

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
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

Field = Float[np.ndarray, " input"]

COLOUR = style.COLOURS["relu"]
MISSES = 0.2
"""The flow misses a field if their cosine is less than this."""
SATURATING = 1
"""Least gain at which most inputs saturate; the fields from smaller ones are as from Gaussian."""


@Figure(
    layout="ab;ac",
    height=4.4,
    widths=(1.55, 1),
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
        style.handle("mean-field flow from the same weights", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    r"""The unit whose participation is the median, over its largest weight, for inputs that
    saturate (gain 3) and Gaussian ones, and for both orders of lengths.

    It is moved around the ring and turned in sign so that its largest weight is in the middle and
    positive, and the flow from the same initial weights with it.
    """
    ax.set_title(r"The flow predicts one unit if $\xi_1 > \xi_2$")
    cells = [cell for cell in results.cells("one_unit") if not 0 < _gain(cell) < SATURATING]
    parts = style.split(ax, 2, len(cells) // 2, sharex=True, sharey=True)
    for part, cell in zip(parts.flat, cells, strict=True):
        _draw_field(part, cell)
        part.set_title(_name(cell), loc="center")
    for part in parts[-1]:
        part.set_xlabel(POSITION_LABEL)


def panel_b(results: Results, ax: Axes) -> None:
    """The same of a network of twelve units: the unit whose participation is the median."""
    cell = _network(results)
    part = style.split(ax, 1)[0, 0]
    _draw_field(part, cell)
    part.set_title(_name(cell), loc="center")
    part.set_xlabel(POSITION_LABEL)
    ax.set_title("Twelve units: the flow is too narrow")


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine of the field of each run with that of the flow, mean over the units of a network."""
    ax.set_title(r"Runs agree less if $\xi_1 < \xi_2$")
    cells = [*results.cells("one_unit"), _network(results)]
    rows = style.named_rows(ax, map(_name, cells))
    for row, cell in enumerate(cells):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        rows.axhline(row, color="0.9", linewidth=0.6, zorder=0)
        rows.plot(
            cosine, np.full(cosine.size, row), "o", color=COLOUR, alpha=0.6, markeredgewidth=0
        )
    rows.tick_params(axis="y", length=0)
    rows.set(xlim=(-0.1, 1.05), xticks=[0, 0.5, 1], xlabel="cosine with the flow")


def _network(results: Results) -> CellResults:
    """The network of several units."""
    return results.cells("prediction")[0]


def _gain(cell: CellResults) -> float:
    """The gain of the law of the inputs; 0 for Gaussian ones."""
    marginal = process(cell).marginal
    return marginal.gain if isinstance(marginal, Erf) else 0.0


def _name(cell: CellResults) -> str:
    """Lengths and law of the inputs, and the number of units if there are several."""
    count = cell.receptive_fields.sizes["unit"]
    law = "saturating" if _gain(cell) >= SATURATING else marginal_name(cell)
    return f"$\\xi$ = {lengths_label(cell)}, {law}" + (f", {count} units" if count > 1 else "")


def _draw_field(ax: Axes, cell: CellResults) -> None:
    """The typical field with the flow on top, and numbers of all runs below."""
    learned, flow = _typical(cell)
    positions = np.arange(1, len(learned) + 1)
    ax.axhline(0, color="0.8", linewidth=0.5, zorder=0)
    ax.plot(positions, learned, color=COLOUR, **style.SIMULATION)
    ax.plot(positions, flow, **style.THEORY)
    if learned @ flow < MISSES * np.linalg.norm(learned) * np.linalg.norm(flow):
        ax.text(len(positions), 0.5, "flow misses", ha="right", va="center")
    ax.set(xlim=(1, len(positions)), ylim=(-2, 1.25), yticks=[0])
    ax.set_xticks([1, len(positions)])
    at = {"solution": "mean_field"}
    width = metric_mean(cell, "participation"), metric_mean(cell, "predicted_participation", **at)
    share = (
        metric_mean(cell, "localised_share"),
        metric_mean(cell, "predicted_localised_share", **at),
    )
    note = (
        f"participation {width[0]:.1f}, flow {width[1]:.1f}\n"
        f"{share[0]:.0%} localised, flow {share[1]:.0%}"
    )
    ax.text(0.5, 0.04, note, transform=ax.transAxes, ha="center")


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
