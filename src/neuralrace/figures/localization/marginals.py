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

HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markersize": 6, "color": style.categorical(1)}
STYLES: dict[str, dict[str, Any]] = {
    "erf": {"color": style.COLOURS["relu"], "marker": "o", "markersize": 4.5},
    "ising": {**HOLLOW, "marker": "s"},
    "gaussian": {**HOLLOW, "marker": "D"},
    "laplace": {**HOLLOW, "marker": "^"},
}
"""Markers of marginals; hollow markers may lie around others."""
PLACES: dict[str, tuple[tuple[int, int], str]] = {
    "ising": ((0, -12), "center"),
    "gaussian": ((5, 8), "left"),
    "laplace": ((3, 7), "right"),
}
"""Places of names beside their points, in points, and how they are aligned."""
KURTOSIS = "excess kurtosis of an input"


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
    """A unit for each marginal, its largest weight in the middle; numbers are excess kurtoses."""
    cells = _cells(results)
    axes = style.split(ax, 1, len(cells), sharey=True, wspace=0.08)[0]
    for row, cell in zip(axes, cells, strict=True):
        field = final_fields(cell).isel(seed=0, unit=0).values
        colour = STYLES[process(cell).marginal.name]["color"]
        draw_fields(row, centred(field[None]), color=colour, linewidth=1.5)
        row.set_xticks([])
        kurtosis = f"{round(process(cell).marginal.kurtosis, 1) + 0.0:.1f}"
        row.set_yticks([0])
        row.set_xlabel(f"{marginal_name(cell)}\n{kurtosis.replace('-', '$-$')}")
    axes[0].set_ylabel("weight")
    ax.set_title("Bumps widen from Ising to Gaussian inputs")


def panel_b(results: Results, ax: Axes) -> None:
    """What a bump is more than its spectrum, by excess kurtosis; bars are ranges over seeds.

    Dots are erf at the gains of a, of which those that localise are named.
    """
    ax.axhline(1, **style.GUIDE)
    at = {"ha": "right", "va": "top", "color": "0.45", "fontsize": 6.5}
    ax.text(0.99, 0.985, "random phases", transform=ax.get_yaxis_transform(), **at)
    _draw(ax, results, "participation_ratio")
    for cell in _cells(results):
        law = process(cell).marginal
        if isinstance(law, Erf) and -1.9 < law.kurtosis < -1:
            point = law.kurtosis, float(metric(cell, "participation_ratio").mean("seed"))
            _label(ax, marginal_name(cell), point, (6, -2), "left")
    ax.set(xlabel=KURTOSIS, ylabel="participation over\nthat of random phases")
    ax.set_title("Bumps beyond their spectrum need saturated inputs")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of units that are localised."""
    _draw(ax, results, "localised_share")
    ax.set(xlabel=KURTOSIS, ylabel="share of localised units", ylim=(-0.03, 1.05))
    ax.set_title("Negative excess kurtosis localises, positive does not")


def _cells(results: Results) -> list[CellResults]:
    """Cells of the same lengths, the lowest kurtosis first."""
    swept = results.cells("marginals")
    xi = process(swept[0]).xi
    others = [*results.cells("relu"), *results.cells("relu_low_gain")]
    cells = swept + [cell for cell in others if process(cell).xi == xi]
    return sorted(cells, key=lambda cell: process(cell).marginal.kurtosis)


def _draw(ax: Axes, results: Results, measure: str) -> None:
    """Draws a measure of final receptive fields by kurtosis."""
    for cell in _cells(results):
        law = process(cell).marginal
        mean = style.points(ax, law.kurtosis, metric(cell, measure), **STYLES[law.name])
        if law.name in PLACES:
            _label(ax, marginal_name(cell), (law.kurtosis, mean), *PLACES[law.name])


def _label(
    ax: Axes, text: str, point: tuple[float, float], offset: tuple[int, int], side: str
) -> None:
    """Text beside a point."""
    ax.annotate(text, point, offset, textcoords="offset points", ha=side, fontsize=6.5)
