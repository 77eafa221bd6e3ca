r"""Receptive fields: bumps where the longer correlation length has :math:`y = 1`, waves otherwise.

Three units of all runs at the end of training, in proportion to their classes and in that order,
from all around the ring, each over its largest weight; thin lines are at zero. Columns are the
orders of the lengths :math:`\xi_1, \xi_2`, rows are gains; the bar below each is the shares of all
units by class, means over five runs. The notes have ReLU networks localise if
:math:`\xi_1 > \xi_2` and oscillate at short range otherwise, and sigmoid networks as erf networks
do. ReLU networks have no biases here; those with erf and sigmoid have, with :math:`b_2 = 0`, at
which erf networks are the other way round and sigmoid networks alike in both orders.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    class_handles,
    draw_above_shares,
    lengths_label,
    marginal_name,
)
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

UNITS = 3
WAVE = 4
"""Longest short wavelength, in inputs."""


@Figure(
    layout="abc;ddd",
    height=4.4,
    heights=(3.0, 0.75),
    widths=(1.0, 1.2, 0.85),
    cf={"a": "sec. 1", "b": "eq. 1", "c": "eq. 1", "d": "sec. 1"},
    reads={
        "relu": {
            "trajectory": "weight_1",
            "metrics": "dominant_frequency localised_share neither_share oscillating_share",
        },
        "relu_low_gain erf sigmoid": {
            "trajectory": "weight_1",
            "metrics": "localised_share neither_share oscillating_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Classes of the bars."""
    return [style.handle("bars, share of units:", linestyle=""), *class_handles()]


def panel_a(results: Results, ax: Axes) -> None:
    """ReLU networks: bumps on the left, short waves on the right, at the higher gain alone."""
    shown = {lengths_label(cell) for cell in results.cells("erf")}
    cells = [*results.cells("relu"), *results.cells("relu_low_gain")]
    _grid(ax, [cell for cell in cells if lengths_label(cell) in shown])
    ax.set_title(rf"ReLU, {marginal_name(results.cells('relu')[0])}: bumps if $\xi_1 > \xi_2$")


def panel_b(results: Results, ax: Axes) -> None:
    """The same of erf networks: the shorter length has to have :math:`y = 1`."""
    _grid(ax, results.cells("erf"))
    ax.set_title(rf"erf, {marginal_name(results.cells('relu')[0])}: bumps if $\xi_1 < \xi_2$")


def panel_c(results: Results, ax: Axes) -> None:
    """The same of sigmoid networks, which treat both orders alike."""
    _grid(ax, results.cells("sigmoid"))
    ax.set_title(f"sigmoid, {marginal_name(results.cells('relu')[0])}: bumps either way")


def panel_d(results: Results, ax: Axes) -> None:
    """Frequency of most power, means over units and runs; above the lower grey line waves
    are of short range, and the upper one is that of the shortest.
    """
    cells = results.cells("relu")
    inputs = cells[0].data.x.shape[1]
    for position, cell in enumerate(cells):
        frequency = metric(cell, "dominant_frequency")
        style.points(ax, position, frequency, color="0.25", marker="o", markersize=4.5)
    style.named_columns(ax, [rf"$\xi$ = {lengths_label(cell)}" for cell in cells])
    ax.set_xlabel(rf"correlation lengths $\xi_1, \xi_2$ (ReLU, {marginal_name(cells[0])})")
    ax.set(ylabel="cycles per ring", ylim=(-1, inputs / 2 + 1), yticks=[0, inputs / 4, inputs / 2])
    for wave in (WAVE // 2, WAVE):
        ax.axhline(inputs / wave, **style.GUIDE)
        at = {"transform": ax.get_yaxis_transform(), "va": "center", "color": "0.4"}
        ax.text(1.005, inputs / wave, f"wavelength {wave}", **at)
    ax.set_title(r"Waves are short if $\xi_1 = 1$")


def _grid(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Draws units by gain and order of the lengths, above the shares of all units by class."""
    rows = list(dict.fromkeys(map(marginal_name, cells)))
    columns = list(dict.fromkeys(map(lengths_label, cells)))
    axes = style.split(ax, len(rows), len(columns), sharex=True, sharey=True)
    for cell in cells:
        position = (rows.index(marginal_name(cell)), columns.index(lengths_label(cell)))
        draw_above_shares(axes[position], cell, UNITS)
    for row, name in zip(axes, rows, strict=True):
        row[0].set_ylabel(name)
    for part, name in zip(axes[0], columns, strict=True):
        part.set_title(rf"$\xi$ = {name}", loc="center")
    for part in axes[-1]:
        part.set_xlabel(POSITION_LABEL)
