"""Frozen gates against the closed form, as the notes have it and as it holds.

Gated networks whose gates overlap, are exclusive, or are redundant, with a copy of each: the three
cases that the notes set out to test. The closed form starts from the same weights, with nothing
fitted. Equation 7 of the notes lacks the readout's 1/K in the second moments, so that its weights
end elsewhere; equations 30 and 31 drop half of the difference of two redundant units, which stays
as it was. With both restored what is left is the error of the steps, of first order in the learning
rate, and only rounding error with the power of the step in the place of the exponential. Each
exclusive pathway ends at least squares on the samples that open it, but for rounding error, and far
from least squares on all samples or on those of the next gate. Redundant gates leave half of all
directions of the weights where they are. About half of the modes of all gates start below their
end, for which eq. 9 has no real C. Runs are from five starts, and losses those of the smallest
learning rate, closest to gradient flow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import learning_rate, metric, smallest_scale
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.networks.gates.tiling import Tiling
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.printed_equations import written_weights

COLOUR = style.COLOURS["gated"]
DOT: dict[str, Any] = {"color": COLOUR, "marker": "o"}
"""Marker of corrected equations."""
PRINTED: dict[str, Any] = {
    "color": style.PAPER["color"],
    "marker": "x",
    "markersize": 5,
    "markeredgewidth": 1.3,
}
"""Marker of equations as printed in the notes."""
SIZES = {3.0: -0.2, 4.5: 0.0, 6.0: 0.2}
"""Sizes of markers by learning rate, the smallest first, and their places in a row."""


@Figure(
    layout="abc;ddd",
    height=4.2,
    heights=(1.0, 1.05),
    cf={"a": "sec. 4.1", "b": "sec. 4.2", "c": "sec. 4.3", "d": "eqs. 7, 24, 30, 31"},
    reads={
        "closed_forms": {
            "trajectory": "loss pathway_maps",
            "theory": "loss",
            "metrics": "corrected_error written_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Training, the closed form, and the notes."""
    return [
        style.handle("training", color=COLOUR, **style.SIMULATION),
        style.handle("corrected closed form, with the factor 1/K", **style.THEORY),
        style.handle("notes, eq. 7 as printed: ends elsewhere", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss of gates that overlap, random half-spaces; mean and range of five runs."""
    _loss(results, ax, 0)


def panel_b(results: Results, ax: Axes) -> None:
    """Loss of exclusive gates, of which one is open at a time; mean and range of five runs."""
    _loss(results, ax, 1)


def panel_c(results: Results, ax: Axes) -> None:
    """Loss of redundant gates, two copies of each; mean and range of five runs."""
    _loss(results, ax, -1)


def panel_d(results: Results, ax: Axes) -> None:
    """Distance of the weights at the end from an equation, over their norm, means of five runs.

    Crosses are equations as printed, dots are corrected ones. The larger the dot, the larger the
    step: the distance of corrected equations halves with it.
    """
    schemes = _by_scheme(results)
    equations = {name: _equations(cells[0]) for name, cells in schemes.items()}
    rows = [(name, equation) for name in schemes for equation in equations[name]]
    ax.set_title("Printed equations miss the weights, corrected ones hold")
    ax = style.named_rows(ax, [f"  {name.lower()}, eq. {equation}" for name, equation in rows])
    for row, (name, equation) in enumerate(rows):
        ax.axhline(row, color="0.92", linewidth=0.6, zorder=0)
        for (size, shift), cell in zip(SIZES.items(), schemes[name], strict=False):
            distance = metric(cell, "corrected_error").sel(equation=equation)
            style.points(ax, row + shift, distance, across=True, **DOT | {"markersize": size})
        distance = metric(schemes[name][0], "written_error").sel(equation=equation)
        style.points(ax, row, distance, across=True, **PRINTED)
    ax.set(xscale="log", xlim=(1e-5, 3), xlabel="relative distance of weights at the end")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(handles=_marks(next(iter(schemes.values()))), loc="upper center")


def written_loss(cell: CellResults) -> Float[np.ndarray, "seed time"]:
    """Loss by eq. 7 of the notes, from the initial weights of the smallest init scale."""
    data, gating = cell.data, frozen_gates.gates(cell)
    network = FrozenGates.from_samples(data.x, data.y[:, 0], gating.gates(data))
    start = smallest_scale(cell.receptive_fields).isel(snapshot=0).values
    a = network.a.reshape(2 * (network.b.size,))
    paths = [
        written_weights(
            cell.flow_time.values, network.b.ravel(), a, len(network.b), run.ravel()
        ).reshape(-1, *run.shape)
        for run in start.astype(float)
    ]
    return cell.spec.training.loss.factor(len(data.x)) * network.loss(np.stack(paths))


def _by_scheme(results: Results) -> dict[str, list[CellResults]]:
    """Cells by kind of gates, smallest learning rate first."""
    by_scheme: dict[str, list[CellResults]] = {}
    for cell in results.cells("closed_forms"):
        by_scheme.setdefault(_kind(cell), []).append(cell)
    return {name: sorted(cells, key=learning_rate) for name, cells in by_scheme.items()}


def _kind(cell: CellResults) -> str:
    """What the notes call the gates of a cell."""
    gating = frozen_gates.gates(cell)
    if isinstance(gating, HalfSpace) and gating.copies > 1:
        return "Redundant"
    return "Exclusive" if isinstance(gating, Tiling) else "Overlapping"


def _equations(cell: CellResults) -> list[str]:
    """Equations of the notes on the gates of a cell."""
    known: xr.DataArray = metric(cell, "corrected_error").dropna("equation", how="all")
    return known["equation"].values.tolist()


def _marks(cells: Sequence[CellResults]) -> list[Artist]:
    """Legend handles of corrected equations by learning rate, of printed ones, and of ranges."""
    corrected = [
        style.handle(
            rf"corrected, steps of {learning_rate(cell):g} $\tau$",
            linestyle="",
            **DOT | {"markersize": size},
        )
        for size, cell in zip(SIZES, cells, strict=False)
    ]
    return [
        *corrected,
        style.handle("as printed", linestyle="", **PRINTED),
        style.handle("range of runs", color=COLOUR, linewidth=0.8),
    ]


def _loss(results: Results, ax: Axes, index: int) -> None:
    """Draws the loss of training, its closed form, and the loss by eq. 7 of the notes."""
    name, cells = list(_by_scheme(results).items())[index]
    cell = cells[0]
    loss = smallest_scale(cell.get("trajectory", "loss"))
    theory = smallest_scale(cell.get("theory", "loss", solution="frozen_gates"))
    style.over_seeds(ax, cell.flow_time, loss, color=COLOUR)
    ax.plot(cell.flow_time, theory.mean("seed"), **style.THEORY)
    ax.plot(cell.flow_time, written_loss(cell).mean(axis=0), **style.PAPER)
    ax.set(xlim=(0, style.settling_time(loss, cell.flow_time)), ylim=(0, 0.4))
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss" if index == 0 else "")
    ax.locator_params(axis="y", nbins=4)
    ax.set_title(f"{name}: correction holds")
