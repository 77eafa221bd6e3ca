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

import numpy as np
from matplotlib.axes import Axes

from neuralrace.datasets.marginals import Erf
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
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
LABEL: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5}
BESIDE: dict[str, Any] = {"xytext": (6, 0), "va": "center"}
BELOW: dict[str, Any] = {"xytext": (0, -9), "va": "top", "ha": "center"}
STEEP = -1.0
"""Kurtosis below which names stand beside points, which have neighbours above each other there."""
BREAK = 1.0
"""Kurtosis above which the axis is broken: none but heavy tails is there."""
KURTOSIS = r"excess kurtosis $\kappa$ of an input"


@Figure(
    layout="aa;bc",
    height=3.9,
    heights=(1.0, 1.8),
    cf={"a": "sec. 1", "b": "sec. 1"},
    reads={
        "marginals relu relu_low_gain": {
            "trajectory": "weight_1",
            "metrics": "localised_share participation_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Marginals, and ranges."""
    return [
        style.handle("erf, by gain", linestyle="", **STYLES["erf"]),
        *(
            style.handle(name.capitalize(), linestyle="", **STYLES[name])
            for name in ("ising", "gaussian", "laplace")
        ),
        style.handle("range of runs", color=COLOUR, linewidth=0.8),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    r"""A unit for each excess kurtosis :math:`\kappa`, its largest weight in the middle.

    Where two distributions have the same, that which is no erf is shown.
    """
    last = sorted(_cells(results), key=lambda cell: not isinstance(process(cell).marginal, Erf))
    shown = sorted({_rounded(cell): cell for cell in last}.items())
    near = sum(kurtosis < BREAK for kurtosis, _ in shown)
    widths = [1.0] * len(shown)
    widths[near:near] = [0.25]
    axes = style.split(ax, 1, len(widths), sharey=True, wspace=0.08, width_ratios=widths)[0]
    axes[near].remove()
    axes = np.delete(axes, near)
    for part, (kurtosis, cell) in zip(axes, shown, strict=True):
        field = final_fields(cell).isel(seed=0, unit=0).values
        draw_fields(part, centred(field[None]), color=COLOUR, linewidth=1.5)
        part.set(ylim=(-0.5, 1.15), yticks=[0, 1])
        part.tick_params(axis="x", labelbottom=part is axes[0])
        part.spines["left"].set_visible(part is axes[0])
        part.tick_params(axis="y", length=0)
        number = f"{kurtosis:.1f}".replace("-", "\N{MINUS SIGN}")
        part.set_title(f"{marginal_name(cell)}\n$\\kappa$ = {number}", loc="center")
    axes[len(axes) // 2].set_xlabel(POSITION_LABEL)
    axes[0].set_ylabel("weight")
    ax.set_title("Bumps widen from Ising to Gaussian inputs")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of units that are localised, by excess kurtosis; bars are ranges over seeds."""
    main, *_ = _draw(ax, results, "localised_share")
    main.set(ylabel="share of localised units", ylim=(-0.05, 1.1), yticks=[0, 0.5, 1])
    ax.set_title("Most units localise only at strongly negative kurtosis")


def panel_c(results: Results, ax: Axes) -> None:
    """What a bump is more than its spectrum, in the same way; names hold for both panels."""
    parts = _draw(ax, results, "participation_ratio", named=True)
    for part in parts:
        part.axhline(1, **style.GUIDE)
    at = (0, 1), (3, -9)
    style.note_at(parts[0], "explained by its spectrum", *at, xycoords=("axes fraction", "data"))
    label = "participation over\nthat of random phases"
    parts[0].set(ylabel=label, ylim=(0.5, 2.6), yticks=[1, 1.5, 2, 2.5])
    ax.set_title("Saturated inputs concentrate fields beyond their spectrum")


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


def _draw(ax: Axes, results: Results, measure: str, named: bool = False) -> list[Axes]:
    """Draws a measure of final receptive fields by kurtosis, with names at the points if `named`.

    Returns:
        The axes up to `BREAK`, and those beyond it if there are any.
    """
    cells = _cells(results)
    sides = [[c for c in cells if (process(c).marginal.kurtosis > BREAK) == far] for far in (0, 1)]
    sides = list(filter(None, sides))
    parts = style.split(
        ax, 1, len(sides), sharey=True, wspace=0, width_ratios=(6, 1)[: len(sides)]
    )[0]
    for part, members in zip(parts, sides, strict=True):
        names: dict[float, list[str]] = {}
        heights: dict[float, float] = {}
        for cell in members:
            law, at = process(cell).marginal, _rounded(cell)
            mean = style.points(part, law.kurtosis, metric(cell, measure), **STYLES[law.name])
            names.setdefault(at, []).append(marginal_name(cell))
            heights[at] = max(mean, heights.get(at, mean))
        if named:
            for at, height in heights.items():
                place = BESIDE if at < STEEP else BELOW
                part.annotate(",\n".join(names[at]), (at, height), **LABEL | place)
        part.margins(x=0.08)
    for part in parts[1:]:
        part.spines["left"].set_visible(False)
        part.tick_params(axis="y", length=0)
        part.set(xlim=(2.5, 4.5), xticks=[3])
    parts[0].set_xlabel(KURTOSIS)
    return list(parts)
