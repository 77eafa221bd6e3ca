"""A deep and a shallow linear network on a semantic hierarchy, for reference (fig. 7)."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.datasets import Data
from neuralrace.figures import gated, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

NETWORKS = {"semantic_deep": "aligned_modes", "semantic_shallow": "shallow_modes"}
"""Experiment and its theory."""


@Figure(
    reads={
        "deep_linear/semantic_deep deep_linear/semantic_shallow": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Decomposition of the task, and mode strengths and loss of both networks against theory.

    All at the smallest init scale.
    """
    cells = [results.cell(experiment) for experiment in NETWORKS]
    figure = Canvas(figsize=(style.COLUMN, 4.3))
    above, below = figure.add_gridspec(2, 1, height_ratios=(1, 1.9))
    products = above.subgridspec(1, 4).subplots(squeeze=False)[0]
    curves = below.subgridspec(2, 2).subplots(sharex=True, squeeze=False)
    _draw_decomposition(figure, products, cells[0].data)
    ends = []
    for column, cell, solution in zip(curves.T, cells, NETWORKS.values(), strict=True):
        time = cell.flow_time
        strength = gated.smallest(cell.get("trajectory", "mode_strength"))
        theory = gated.smallest(cell.get("theory", "mode_strength", solution=solution))
        theory = theory.mean("seed")
        for mode, colour in style.mode_colours(cell.strength).items():
            style.over_seeds(column[0], time, strength.sel(mode=mode), color=colour)
            column[0].plot(time, theory.sel(mode=mode), **style.THEORY)
        loss = gated.relative(cell.get("trajectory", "loss"))
        style.over_seeds(column[1], time, loss, color="0.6")
        predicted = gated.relative(cell.get("theory", "loss", solution=solution))
        column[1].plot(time, predicted.mean("seed"), **style.THEORY)
        ends.append(style.settled(theory, time))
    for row, name in zip(curves, ("mode strength", "loss over\ninitial loss"), strict=True):
        row[0].set_ylabel(name)
        for ax in row:
            ax.set_ylim(0, 1.05 * max(ax.dataLim.y1 for ax in row))
    curves[0, 0].set_xlim(0, max(ends))
    figure.supxlabel(style.FLOW_TIME, fontsize="medium")
    titles = [r"$\Sigma^{yx}$", "one hidden layer", "no hidden layer", "its loss", "its loss"]
    style.letters([products[0], *curves.flat], titles)
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [*style.mode_entries(cells[0].strength), style.BAND, theory], columns=3)
    return figure


def _draw_decomposition(figure: Canvas, axes: np.ndarray, data: Data) -> None:
    """Correlation of inputs and outputs, and its singular vectors and values.

    Matrices other than the orthogonal ones are shares of their largest entries.
    """
    modes = data.modes
    # a pair of vectors has no sign of its own: let items sum to what is not negative
    signs = np.where(modes.v.sum(0) < -1e-9, -1, 1)
    u, v = signs * modes.u, signs * modes.v
    names = [str(number) for number in range(1, len(modes.s) + 1)]
    total, middle = data.sigma_yx / data.sigma_yx.max(), np.diag(modes.s) / modes.s[0]
    style.heat(axes[0], total, -1, 1, data.output_names, data.item_names)
    style.heat(axes[1], u, -1, 1, (), names)
    style.heat(axes[2], middle, -1, 1, names, names)
    shades = style.heat(axes[3], v.T, -1, 1, names, data.item_names)
    for ax, text in zip(axes[1:], ("$U$", "$S$", "$V^T$"), strict=True):
        ax.set_title(text)
    figure.colorbar(shades, ax=list(axes), ticks=(-1, 0, 1), aspect=12, pad=0.02)
