r"""The best gates that were found overlap, and gates that change have one Fourier basis.

Half-spaces and tilings are optimised on the least-squares loss of eq. 12, from the same random
directions: four pathways on a ring of 16, correlation lengths 2 and 1. Where gates are as few as
two pathways on three spins, all 32,896 tables were tried: the best overlap, and the best tiling has
about ten times their excess loss. Gates of ReLU networks couple pathways less, and lose more. On
the right, the gate of each unit is the half-space of the mean receptive field, moved to the unit,
and changes during training: equations by frequency of the joint shift are compared with descent on
samples. A ReLU network of shifted units is such a network. Eight runs each; the notes have no such
figures.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

RUN: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4, "alpha": 0.7}
GATED: dict[str, Any] = RUN | {"color": style.COLOURS["gated"]}
RELU: dict[str, Any] = RUN | {"color": style.COLOURS["relu"]}
SPREAD = 0.02
"""Half the width of the column of tilings, whose precision is diagonal."""
GATES: dict[str, tuple[str, dict[str, Any]]] = {
    "random half-spaces": ("random half-spaces", GATED | {"fillstyle": "none"}),
    "descended half-spaces": ("optimised half-spaces", GATED),
    "random tiling": ("random tilings", GATED | {"marker": "s", "fillstyle": "none"}),
    "descended tiling": ("optimised tilings", GATED | {"marker": "s"}),
    "trained": ("trained ReLU network", RELU | {"marker": "*", "markersize": 7}),
}
"""Names and markers by the source of the gates."""
ROWS: dict[str, tuple[str, int | None]] = {
    "gates frozen\nat the start": ("shared_gates_error", 1),
    "gates refreshed\nhalf as often": ("shared_gates_error", 5),
    "gates refreshed\nat the same times": ("shared_gates_error", 10),
    "ReLU network,\nshifted units": ("shifted_relu_error", None),
    "ReLU network,\nunrelated units": ("relu_error", None),
}
"""Metric and number of refreshes by the name of a row."""


@Figure(
    layout="ab",
    height=2.8,
    cf={"a": "sec. 3.3", "b": "sec. 5"},
    reads={
        "few_units": {
            "metrics": "descended_loss descended_diagonality relu_error shared_gates_error "
            "shifted_relu_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates of the left panel."""
    return [style.handle(name, **props) for name, props in GATES.values()]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by the share of the squared precision that couples pathways.

    Markers are single runs; those of tilings, whose share is 0, stand beside each other.
    """
    cell = _cell(results)
    for source, (_, props) in GATES.items():
        share = metric(cell, "descended_diagonality", gates_from=source)
        loss = metric(cell, "descended_loss", gates_from=source)
        aside = SPREAD if source.endswith("tiling") else 0.0
        ax.plot(share + np.linspace(-aside, aside, share.size), loss, **props)
    (pathways,), inputs = cell.spec.layered.hidden, cell.data.x.shape[1]
    text = f"$K$ = {pathways} pathways,\n$L$ = {inputs} inputs\ntilings: 0%, side by side"
    style.note(ax, text, "lower left", color="0.35")
    ax.set(xlabel="share of squared precision between pathways", ylabel="loss on fresh samples")
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_title("The best gates we found overlap")


def panel_b(results: Results, ax: Axes) -> None:
    """Distance of the weights at the end from those of the simulation, over their norm.

    Dots are single runs.
    """
    ax.set_title("Equations by frequency are exact for shifted gates")
    ax = style.named_rows(ax, ROWS)
    ax.set(xscale="log", xlim=(1e-16, 10), xlabel="relative distance from simulated weights")
    for row, (name, refreshes) in enumerate(ROWS.values()):
        errors = metric(_cell(results), name)
        errors = errors if refreshes is None else errors.sel(refreshes=refreshes)
        ax.plot(errors, [row] * errors.size, **RUN, color="0.3")


def _cell(results: Results) -> CellResults:
    (cell,) = results.cells("few_units")
    return cell
