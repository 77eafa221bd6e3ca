r"""The flow of units with Gaussian preactivations predicts bumps, from the initial weights.

Single ReLU units by law of the inputs and by correlation lengths :math:`\xi_1, \xi_2`, with ten
starts each, and a network of twelve units with five starts. The notes leave their section on
predicting localisation empty; the flow is ours. It takes what a unit receives to be Gaussian given
one of the inputs, which is exact for Gaussian classes. For the longer length at :math:`y = 1` it
ends at one bump from all starts where inputs saturate, and at a flat field where they are Gaussian.
In the other order it is confined late, to a few inputs whose place depends on the start, and is not
reliable. In the network of twelve units its mean bump is a little narrower than that of training.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.datasets.marginals import Erf
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    Fields,
    centred,
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
MARKS = {
    "training, range of runs": TRAINING | {"linestyle": "-", "linewidth": 0.8},
    "flow": FLOW | {"linestyle": ""},
}
RUN = {
    "color": COLOUR,
    "alpha": 0.6,
    "marker": "o",
    "markersize": 3,
    "markeredgewidth": 0,
    "clip_on": False,
}
MEDIAN = {"color": "0.2", "marker": "|", "markersize": 13, "markeredgewidth": 1.5}
"""Marks of cosines of single runs, and of their median."""
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
"""Place of the legend of a panel with rows."""
GAP = 0.6
"""Height between single units and the network of several, in rows."""
SATURATING = 1
"""Least gain at which most inputs saturate; the fields from smaller ones are as from Gaussian."""


@Figure(
    layout="aaaab;cccdd",
    height=4.8,
    heights=(1.0, 1.45),
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
    r"""A typical unit over its largest weight, for inputs that saturate (gain 3) and Gaussian ones,
    and for both orders of lengths: that of the median cosine with the flow, of those that localise
    if most do and else of those that do not.

    It is moved around the ring and turned in sign so that its largest weight is in the middle and
    positive, and the flow from the same initial weights with it, at equal norm.
    """
    ax.set_title(r"One unit: the flow predicts best if $\xi_1 > \xi_2$")
    cells = [cell for cell in results.cells("one_unit") if not 0 < _gain(cell) < SATURATING]
    parts = style.split(ax, 1, len(cells), sharey=True)[0]
    for part, cell in zip(parts, cells, strict=True):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        localised = metric(cell, "localised_share")
        run = style.median_seed(cosine.where(localised == np.round(localised.mean())))
        learned, flow = (each[cosine["seed"].values.tolist().index(run)] for each in _both(cell))
        largest = int(np.abs(learned).argmax())
        sign, shift = np.sign(learned[largest]), len(learned) // 2 - largest
        _draw(part, *(np.roll(sign * each, shift) for each in (learned, flow)))
        part.set_title(f"{_name(cell)}\ncosine {float(cosine.sel(seed=run)):.2f}", loc="center")
    parts[0].set_ylabel("weight over largest\n(flow: equal norm)")


def panel_b(results: Results, ax: Axes) -> None:
    """The mean field of all units of the network of twelve, in training and by the flow, scaled as
    in a, each unit with its own largest weight in the middle and positive.
    """
    cell = _network(results)
    part = style.split(ax, 1)[0, 0]
    _draw(part, *(centred(each).mean(axis=0) for each in _both(cell)))
    part.set_title(f"{_name(cell)}\nmean of all", loc="center")
    ax.set_title("Similar mean fields")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of units that localise, means and ranges over runs.

    A localised unit has at most one cycle in its window. With the shorter length at y = 1 and gain
    3 nearly all flows are confined to three inputs, of alternating signs, and count as none: that
    is one cycle and a half. Eight of ten trained units end as a spike of one input.
    """
    ax.set_title("The flow misses one condition that localises")
    cells = _cells(results)
    rows = _rows(ax, [_name(cell).replace("\n", ", ") for cell in cells])
    for row, cell in zip(_places(cells), cells, strict=True):
        share = metric(cell, "predicted_localised_share", solution="mean_field")
        style.points(rows, row, metric(cell, "localised_share"), across=True, **TRAINING)
        rows.plot([float(share.mean())], [row], linestyle="", **FLOW)
    rows.set(xlim=(-0.06, 1.06), xticks=[0, 0.5, 1], xlabel="share of localised units")
    rows.legend(handles=[style.handle(name, **props) for name, props in MARKS.items()], **ABOVE)


def panel_d(results: Results, ax: Axes) -> None:
    """Cosine of the field of each run with that of the flow, mean over the units of a network.

    Runs of nearly the same cosine stand above each other.
    """
    ax.set_title(r"One unit: fields agree less if $\xi_1 < \xi_2$")
    cells = _cells(results)
    rows = _rows(ax, [""] * len(cells))
    rows.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1], xlabel="cosine of trained field and flow")
    for row, cell in zip(_places(cells), cells, strict=True):
        cosine = metric(cell, "field_overlap", solution="mean_field")
        runs = np.sort(cosine.dropna("seed"))
        if runs.size:
            style.swarm(rows, row, runs, 0.35, across=True, **RUN)
        rows.plot([float(cosine.median())], [row], linestyle="", zorder=1, **MEDIAN)
    handles = [
        style.handle("one run", linestyle="", **RUN),
        style.handle("median", linestyle="", **MEDIAN),
    ]
    rows.legend(handles=handles, **ABOVE)


def _cells(results: Results) -> list[CellResults]:
    """Single units by condition, and the network of several."""
    return [*results.cells("one_unit"), _network(results)]


def _network(results: Results) -> CellResults:
    """The network of several units."""
    return results.cells("prediction")[0]


def _places(rows: Sequence[object]) -> list[float]:
    """Heights of rows; the last one, the network of several units, stands apart."""
    return [*map(float, range(len(rows) - 1)), len(rows) - 1 + GAP]


def _rows(ax: Axes, names: Sequence[str]) -> Axes:
    """Axes with a thin line in each row, of which the last one stands apart."""
    rows, places = style.named_rows(ax, names), _places(names)
    rows.set_yticks(places, names)
    rows.set_ylim(bottom=places[-1] + 0.6)
    rows.tick_params(axis="y", length=0)
    for place in places:
        rows.axhline(place, color="0.9", linewidth=0.6, zorder=0)
    return rows


def _gain(cell: CellResults) -> float:
    """The gain of the law of the inputs; 0 for Gaussian ones."""
    marginal = process(cell).marginal
    return marginal.gain if isinstance(marginal, Erf) else 0.0


def _name(cell: CellResults) -> str:
    """Lengths and law of the inputs, and the number of units if there are several."""
    count = cell.receptive_fields.sizes["unit"]
    units = f", {count} units" if count > 1 else ""
    return f"$\\xi$ = {lengths_label(cell)}{units}\n{marginal_name(cell)}"


def _draw(ax: Axes, learned: Field, flow: Field) -> None:
    """A field, with the flow on top."""
    positions = np.arange(1, len(learned) + 1)
    ax.axhline(0, color="0.8", linewidth=0.5, zorder=0)
    ax.plot(positions, learned, color=COLOUR, **style.SIMULATION)
    ax.plot(positions, flow, **style.THEORY)
    ax.set(xlim=(1, len(positions)), xticks=[1, len(positions)], yticks=[-1, 0, 1])
    ax.set_xlabel(POSITION_LABEL)


def _both(cell: CellResults) -> tuple[Fields, Fields]:
    """Fields of training over their largest weights, and of the flow at equal norms."""
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="mean_field"))
    learned, flow = (
        each.values.reshape(-1, each.sizes["input"]) for each in (final_fields(cell), theory)
    )
    learned = learned / np.abs(learned).max(axis=1, keepdims=True)
    norm, flow_norm = (np.linalg.norm(each, axis=1, keepdims=True) for each in (learned, flow))
    return learned, flow * norm / flow_norm
