"""Localisation by the kurtosis of a single input (secs. 1 and 2.2)."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markersize": 6, "color": style.distinct(3)}
LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "erf": ("erf, by gain", {"color": style.ordered(2)[0], "marker": "o"}),
    "ising": ("Ising", {**HOLLOW, "marker": "s"}),
    "gaussian": ("Gaussian", {**HOLLOW, "marker": "D"}),
    "laplace": ("Laplace", {**HOLLOW, "marker": "^"}),
}
"""Names of marginals and their looks; those around others are hollow."""
MEASURES = {
    "participation": "participation",
    "participation_ratio": "participation over\nthat of random phases",
}


@Figure(
    reads={
        "marginals relu relu_low_gain": {
            "metrics": "participation participation_ratio",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Participation and its ratio to that of random phases, against excess kurtosis."""
    swept = results.cells("marginals")
    xi = receptive.process(swept[0]).xi
    others = [*results.cells("relu"), *results.cells("relu_low_gain")]
    cells = swept + [cell for cell in others if receptive.process(cell).xi == xi]
    figure, axes = style.panels(len(MEASURES), 1, height=1.5, sharex=True)
    for ax, (measure, label) in zip(axes[:, 0], MEASURES.items(), strict=True):
        _draw_measure(ax, cells, measure)
        ax.set_ylabel(label)
    axes[1, 0].axhline(1, **style.GUIDE)
    axes[1, 0].set_xlabel("excess kurtosis of the marginal")
    style.letters(axes[:, 0], ["concentration of weights", "beyond their spectrum"])
    shown = {receptive.process(cell).marginal.name for cell in cells}
    entries = [
        style.entry(label, linestyle="", **look)
        for name, (label, look) in LOOKS.items()
        if name in shown
    ]
    theory = style.entry("random phases", **style.GUIDE)
    style.legend(figure, [*entries, theory], columns=3)
    return figure


def _draw_measure(ax: Axes, cells: list[CellResults], measure: str) -> None:
    """A measure of receptive fields at the end by kurtosis."""
    for cell in cells:
        law = receptive.process(cell).marginal
        _, look = LOOKS[law.name]
        style.points(ax, law.kurtosis, gated.smallest(cell.get("metrics", measure)), **look)
