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
STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "erf": ("erf, by gain", {"color": style.COLOURS["relu"], "marker": "o", "markersize": 4.5}),
    "ising": ("Ising", {**HOLLOW, "marker": "s"}),
    "gaussian": ("Gaussian", {**HOLLOW, "marker": "D"}),
    "laplace": ("Laplace", {**HOLLOW, "marker": "^"}),
}
"""Names and markers of marginals; hollow markers may lie around others."""
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
    """Distributions of single inputs."""
    shown = {process(cell).marginal.name for cell in _cells(results)}
    laws = [
        style.handle(label, linestyle="", **props)
        for name, (label, props) in STYLES.items()
        if name in shown
    ]
    return [*laws, style.handle("random phases", **style.GUIDE)]


def panel_a(results: Results, ax: Axes) -> None:
    """A unit for each marginal, its largest weight in the middle; numbers are excess kurtoses."""
    cells = _cells(results)
    axes = style.split(ax, 1, len(cells), sharey=True, wspace=0.08)[0]
    for row, cell in zip(axes, cells, strict=True):
        field = final_fields(cell).isel(seed=0, unit=0).values
        colour = STYLES[process(cell).marginal.name][1]["color"]
        draw_fields(row, centred(field[None]), color=colour, linewidth=1.5)
        row.set_xticks([])
        kurtosis = f"{round(process(cell).marginal.kurtosis, 1) + 0.0:.1f}"
        row.set_xlabel(f"{marginal_name(cell)}\n{kurtosis.replace('-', '$-$')}")
    ax.set_title("Bumps widen from Ising to Gaussian inputs")


def panel_b(results: Results, ax: Axes) -> None:
    """What a bump is more than its spectrum, by excess kurtosis; bars are ranges over seeds."""
    ax.axhline(1, **style.GUIDE)
    _draw(ax, results, "participation_ratio")
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
        style.points(ax, law.kurtosis, metric(cell, measure), **STYLES[law.name][1])
