"""What networks learn from: samples of either class, and how inputs go together (sec. 1)."""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.errors import UserError
from neuralrace.figures import receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

SHOWN = 2
"""Samples of each class."""
CLASSES: tuple[dict[str, Any], ...] = (
    {"color": style.ordered(2)[0], "marker": "o"},
    {"color": style.ordered(2)[1], "marker": "s"},
)


@Figure(
    reads={
        "relu relu_low_gain single_pulse": {
            "trajectory": "",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Samples and second moments of the nonlinear Gaussian process at two gains, and of pulses."""
    cells = [results.cells(name)[0] for name in ("relu", "relu_low_gain", "single_pulse")]
    figure = Canvas(figsize=(style.COLUMN, 3.6))
    axes = figure.subplots(3, len(cells), height_ratios=[1, 1, 1.3], squeeze=False)
    for column, cell in zip(axes.T, cells, strict=True):
        *samples, moments = column
        x, y = cell.data.x, cell.data.y[:, 0]
        law = cell.spec.dataset.mixture()
        if law is None:
            raise UserError(f"{cell.name}: dataset {cell.spec.dataset.name!r} has no law to draw")
        for ax, target, look in zip(samples, law.targets, CLASSES, strict=True):
            _draw_samples(ax, x[y == target], look)
        for target, closed, look in zip(law.targets, law.covariances, CLASSES, strict=True):
            measured = around_ring(x[y == target])
            distance = np.arange(len(measured))
            moments.plot(distance, measured, linestyle="", markersize=2.4, **look)
            moments.plot(distance, closed[0, : len(distance)], **style.THEORY)
        moments.set_xlabel("distance $d$")
    for row, name in enumerate(("class one", "class two")):
        axes[row, 0].set_ylabel(f"{name}\n$x_i$")
    axes[2, 0].set_ylabel(r"$\langle x_i x_{i+d} \rangle$")
    axes[1, 1].set_xlabel(receptive.PLACE)
    style.letters(axes[0], [_title(cell) for cell in cells])
    entries = [
        style.entry(f"samples, class {name}", linestyle="", **look)
        for name, look in zip(("one", "two"), CLASSES, strict=True)
    ]
    style.legend(figure, [*entries, style.entry("closed form", **style.THEORY)], columns=3)
    return figure


def around_ring(x: Float[np.ndarray, "sample input"]) -> Float[np.ndarray, " distance"]:
    """Mean of x_i x_(i + d) over samples and places i, for distances d to half of the ring."""
    power = np.abs(np.fft.fft(x)) ** 2
    inputs = x.shape[1]
    return np.fft.ifft(power.mean(axis=0)).real[: inputs // 2 + 1] / inputs


def _title(cell: CellResults) -> str:
    """What the data of a cell are."""
    if cell.spec.dataset.name == "single_pulse":
        return "single pulse"
    return receptive.marginal(cell)


def _draw_samples(ax: Axes, x: Float[np.ndarray, "sample input"], look: dict[str, Any]) -> None:
    """The first sample of those given, and one half way through them."""
    places = np.arange(1, x.shape[1] + 1)
    for number, line in zip(range(SHOWN), style.LINES, strict=False):
        sample = x[number * len(x) // SHOWN]
        ax.plot(places, sample, color=look["color"], linestyle=line, linewidth=0.9)
    ax.set_xticks([1, len(places)])
