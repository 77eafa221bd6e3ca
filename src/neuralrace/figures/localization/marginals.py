r"""Localisation goes with the excess kurtosis of a single input, which the gain sets.

ReLU networks learn from nonlinear Gaussian processes with the same correlation lengths and
different marginals: erf at gains from low, next to Gaussian, to high, next to Ising, and a Laplace
law with heavy tails. The notes have a gain that controls the degree of localisation and print no
measure of it. Here it is participation, :math:`\sum w^4/(\sum w^2)^2` times the number of inputs: 1
for weights of one size, 1.5 for a wave, and as many as there are inputs for one weight alone. Over
that of random phases with the same power spectrum it is 1 where frequencies are not arranged to a
place, and says what a bump is more than its spectrum.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.datasets.marginals import Erf
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    centred,
    draw_fields,
    final_fields,
    marginal_name,
    process,
)
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

COLOUR = style.COLOURS["relu"]
HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markersize": 6.5, "color": COLOUR}
STYLES: dict[str, dict[str, Any]] = {
    "erf": {"color": COLOUR, "marker": "o", "markersize": 4.5},
    "ising": {**HOLLOW, "marker": "s"},
    "gaussian": {**HOLLOW, "marker": "D"},
    "laplace": {**HOLLOW, "marker": "^"},
}
"""Markers of marginals; hollow markers may lie around others."""
PLACES: dict[str, tuple[tuple[int, int], str]] = {
    "erf": ((7, -2), "left"),
    "ising": ((0, -12), "center"),
    "gaussian": ((5, 8), "left"),
    "laplace": ((3, 7), "right"),
}
"""Places of names beside their points, in points, and how they are aligned."""
KURTOSIS = r"excess kurtosis $\kappa$ of an input"


@Figure(
    layout="aa;bc",
    height=3.6,
    heights=(1.0, 1.7),
    cf={"a": "sec. 1", "b": "sec. 1"},
    reads={
        "marginals relu relu_low_gain": {
            "trajectory": "weight_1",
            "metrics": "localised_share participation_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Nothing: points have their names beside them."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    r"""A unit for each excess kurtosis :math:`\kappa`, its largest weight in the middle.

    Where two distributions have the same, that which is no erf is shown.
    """
    last = sorted(_cells(results), key=lambda cell: not isinstance(process(cell).marginal, Erf))
    shown = sorted({_rounded(cell): cell for cell in last}.items())
    axes = style.split(ax, 1, len(shown), sharey=True, wspace=0.08)[0]
    for part, (kurtosis, cell) in zip(axes, shown, strict=True):
        field = final_fields(cell).isel(seed=0, unit=0).values
        draw_fields(part, centred(field[None]), color=COLOUR, linewidth=1.5)
        part.set(ylim=(-0.5, 1.15), xticks=[], yticks=[0])
        part.spines["left"].set_visible(part is axes[0])
        part.tick_params(axis="y", length=0)
        number = f"{kurtosis:.1f}".replace("-", "\N{MINUS SIGN}")
        part.set_xlabel(f"{marginal_name(cell)}\n$\\kappa$ = {number}")
    axes[0].set_ylabel("weight")
    ax.set_title("Bumps widen from Ising to Gaussian inputs")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of units that are localised, by excess kurtosis; bars are ranges over seeds.

    Dots are erf at the gains of a.
    """
    _draw(ax, results, "localised_share", (-1.5, -1.0))
    ax.set(xlabel=KURTOSIS, ylabel="share of localised units", ylim=(-0.03, 1.05))
    ax.set_title("Only strongly negative kurtosis localises")


def panel_c(results: Results, ax: Axes) -> None:
    """What a bump is more than its spectrum, in the same way."""
    ax.axhline(1, **style.GUIDE)
    at = {"ha": "right", "va": "top", "color": "0.45", "fontsize": 6.5}
    ax.text(0.99, 0.985, "random phases", transform=ax.get_yaxis_transform(), **at)
    _draw(ax, results, "participation_ratio", (-1.9, -1.0))
    ax.set(xlabel=KURTOSIS, ylabel="participation over\nthat of random phases")
    ax.set_title("Bumps beyond their spectrum need saturated inputs")


def _cells(results: Results) -> list[CellResults]:
    """Cells of the same lengths, the lowest kurtosis first."""
    swept = results.cells("marginals")
    xi = process(swept[0]).xi
    others = [*results.cells("relu"), *results.cells("relu_low_gain")]
    cells = swept + [cell for cell in others if process(cell).xi == xi]
    return sorted(cells, key=lambda cell: process(cell).marginal.kurtosis)


def _rounded(cell: CellResults) -> float:
    """Excess kurtosis of an input, as it is written."""
    return round(process(cell).marginal.kurtosis, 1) + 0.0


def _draw(ax: Axes, results: Results, measure: str, gains: tuple[float, float]) -> None:
    """Draws a measure of final receptive fields by kurtosis.

    Gains are named between two kurtoses; elsewhere points lie on each other, or nothing localises.
    """
    for cell in _cells(results):
        law = process(cell).marginal
        mean = style.points(ax, law.kurtosis, metric(cell, measure), **STYLES[law.name])
        if not isinstance(law, Erf) or gains[0] < law.kurtosis < gains[1]:
            offset, side = PLACES[law.name]
            ax.annotate(
                marginal_name(cell), (law.kurtosis, mean), offset,
                textcoords="offset points", ha=side, fontsize=6.5,
            )  # fmt: skip
