"""Modes of a task, what a network has learned of them half way, and how deep and shallow get on."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

NETWORKS = {"semantic_deep": "aligned_modes", "semantic_shallow": "shallow_modes"}
"""Experiment and its theory."""


@Figure(
    reads={
        "deep_linear/semantic_deep": {
            "trajectory": "mode_strength outputs",
            "theory": "mode_strength",
        },
        "deep_linear/semantic_shallow": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Singular value decompositions of task and network, and mode strengths against theory.

    All at the smallest init scale; network maps are means over seeds.
    """
    cells = [results.cell(experiment) for experiment in NETWORKS]
    figure = Canvas(figsize=(style.COLUMN, 5.0))
    above, below = figure.add_gridspec(2, 1, height_ratios=(1.35, 1))
    products = above.subgridspec(2, 4).subplots(squeeze=False)
    curves = below.subgridspec(2, 1).subplots(squeeze=False)[:, 0]
    when = _decompositions(figure, products, cells[0])
    ends = []
    for ax, cell, solution in zip(curves, cells, NETWORKS.values(), strict=True):
        time, at = cell.flow_time, {"init_scale": _smallest(cell)}
        strength = cell.get("trajectory", "mode_strength").isel(at)
        theory = cell.get("theory", "mode_strength", solution=solution).isel(at).mean("seed")
        for mode, colour in style.mode_colours(cell.strength).items():
            style.over_seeds(ax, time, strength.sel(mode=mode), color=colour)
            ax.plot(time, theory.sel(mode=mode), **style.THEORY)
        ax.set(ylabel="mode strength", ylim=(0, None))
        ax.sharex(curves[-1])
        ends.append(style.settled(theory, time))
    curves[0].axvline(when, color="0.3", linewidth=0.7, linestyle="--")
    curves[0].tick_params(labelbottom=False)
    curves[-1].set(xlabel=style.FLOW_TIME, xlim=(0, max(ends)))
    titles = ["task", rf"network at $t$ = {when:.3g} $\tau$", "one hidden layer", "no hidden layer"]
    style.letters([products[0, 0], products[1, 0], *curves], titles)
    entries = [*style.mode_entries(cells[0].strength), style.BAND]
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [*entries, theory], columns=3)
    return figure


def _smallest(cell: CellResults) -> int:
    return int(cell.trajectory["init_scale"].values.argmin())


def _decompositions(figure: Canvas, rows: np.ndarray, cell: CellResults) -> float:
    """Draws the decomposition of the task, and of the network when half of it is learned.

    Returns:
        That time.
    """
    data, modes = cell.data, cell.data.modes
    names = [str(mode) for mode in cell.strength["mode"].values]
    outputs = cell.get("trajectory", "outputs").isel(init_scale=_smallest(cell)).mean("seed")
    # items are one-hot, so that outputs are the columns of the map
    maps = outputs.transpose("snapshot", "output", "sample").values
    # a pair of vectors has no sign of its own: let items sum to what is not negative
    signs = np.where(modes.v.sum(0) < -1e-9, -1, 1)
    u, v, end = signs * modes.u, signs * modes.v, modes.s / modes.d
    strength = u.T @ maps @ v
    half = int(abs(np.trace(strength, axis1=-2, axis2=-1) - end.sum() / 2).argmin())
    learned = (u * end) @ v.T
    products = (
        (data.sigma_yx / data.sigma_yx.max(), np.diag(modes.s) / modes.s[0]),
        (maps[half] / learned.max(), strength[half] / end[0]),
    )
    symbols = ((r"$\Sigma^{yx}$", "$U$", "$S$", "$V^T$"), ("$W_2W_1$", "$U$", "$A(t)$", "$V^T$"))
    sides = (((), ()), (names, data.item_names))
    for axes, (total, middle), texts, (numbers, items) in zip(
        rows, products, symbols, sides, strict=True
    ):
        style.heat(axes[0], total, -1, 1, data.output_names, items)
        style.heat(axes[1], u, -1, 1, (), numbers)
        style.heat(axes[2], middle, -1, 1, names, numbers)
        shades = style.heat(axes[3], v.T, -1, 1, names, items)
        for ax, text in zip(axes, texts, strict=True):
            ax.set_xlabel(text)
        figure.colorbar(shades, ax=list(axes), ticks=(-1, 0, 1), aspect=12, pad=0.02)
    figure.align_xlabels(rows[-1])
    return float(cell.trajectory["snapshot_flow_time"][half])
