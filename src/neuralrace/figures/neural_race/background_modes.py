"""Modes of a task, learned one by one with a hidden layer and all at once without.

The background of Saxe, Sodhani, Lewallen (2022). The input-output correlation of a semantic
hierarchy is a sum of modes, each of which links a property vector to an item vector. A network with
one hidden layer learns them one after the other; without, all follow one exponential. The
closed forms have nothing fitted. Lines are means over ten runs at the smallest init scale, bands
their range; modes of equal singular value are one line, their mean.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import draw_decomposition, equal_modes, signed_vectors
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import CellResults, Results

DEEP, SHALLOW = ("semantic_deep", "aligned_modes"), ("semantic_shallow", "shallow_modes")
"""Experiments, and labels of their solutions."""


@Figure(
    layout="aac;bbd",
    height=4.0,
    widths=(1.15, 1.15, 1.0),
    cf={"a": "Background A", "b": "Background B", "c": "Background C", "d": "Background D"},
    reads={
        "deep_linear/semantic_deep": {
            "trajectory": "mode_strength outputs",
            "theory": "mode_strength",
        },
        "deep_linear/semantic_shallow": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: it stands in panel d."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Singular value decomposition of the task, over the variance of inputs.

    Singular values are written on grey.
    """
    cell = results.cell(DEEP[0])
    u, v = signed_vectors(cell)
    values = cell.target.values  # singular values over the variance of inputs
    total = cell.data.sigma_yx * values[0] / cell.data.modes.s[0]
    matrices = (total, u, np.diag(values), v.T)
    _draw(ax, cell, matrices, (r"$\Sigma^{yx}$ / variance", "S"))
    ax.set_title("The task is a sum of modes")


def panel_b(results: Results, ax: Axes) -> None:
    """What the network has of them midway: its map in the same basis.

    Of the recorded times it is the one at which the sum of strengths is nearest to half of its end;
    mode 2 is past its own half then. The map is the mean over runs. Strengths are written on grey.
    """
    cell = results.cell(DEEP[0])
    maps, strength, _ = _midway(cell)
    u, v = signed_vectors(cell)
    matrices = (maps, u, strength, v.T)
    _draw(ax, cell, matrices, ("$W_2W_1$", "A(t)"))
    ax.set_title("Midway, the strongest modes come first")


def panel_c(results: Results, ax: Axes) -> None:
    """Strengths of the modes with one hidden layer; the grey line is the time of **b**."""
    _curves(ax, results, *DEEP)
    when = _midway(results.cell(DEEP[0]))[2]
    ax.axvline(when, **style.GUIDE)
    style.note_at(
        ax, "time of b", (when, 0.82), (3, 0), xycoords=ax.get_xaxis_transform(), va="top"
    )
    ax.set_title("One hidden layer: in stages")


def panel_d(results: Results, ax: Axes) -> None:
    """Strengths of the modes without a hidden layer, over the same time."""
    _curves(ax, results, *SHALLOW)
    key = [style.handle("closed form", **style.THEORY), style.BAND]
    ax.legend(handles=key, loc="lower right")
    ax.set_title("No hidden layer: all at once")


def _draw(
    ax: Axes, cell: CellResults, matrices: Sequence[np.ndarray], symbols: tuple[str, str]
) -> None:
    """A map and its factors, with numbers of modes in the colours of their curves.

    Args:
        ax: axes of a panel, which are split.
        cell: a cell of the task.
        matrices: the map, output vectors, strengths and item vectors.
        symbols: names of the map and of the strengths.
    """
    left, strength = symbols
    titles = (left, r"$=\ U$", rf"$\times\ {strength}$", r"$\times\ V^T$")
    axes = draw_decomposition(ax, cell, matrices, titles)
    vectors, values, items = axes[1:]
    groups = equal_modes(cell.data.modes.s)
    colours = {
        mode: colour
        for group, colour in zip(groups, style.sequential(len(groups)), strict=True)
        for mode in group
    }
    for axis in (vectors.xaxis, values.xaxis, values.yaxis, items.yaxis):
        for mode, tick in enumerate(axis.get_ticklabels()):
            tick.set(color=colours[mode], fontweight="bold")


def _curves(ax: Axes, results: Results, experiment: str, solution: str) -> None:
    cell, deep = results.cell(experiment), results.cell(DEEP[0])
    modes = smallest_scale(cell.get("trajectory", "mode_strength"))
    closed = smallest_scale(cell.get("theory", "mode_strength", solution=solution)).mean("seed")
    groups, ends = equal_modes(cell.data.modes.s), []
    for group, colour in zip(groups, style.sequential(len(groups)), strict=True):
        curve = modes.isel(mode=group).mean("mode")
        style.over_seeds(ax, cell.flow_time, curve, color=colour)
        ax.plot(cell.flow_time, closed.isel(mode=group).mean("mode"), **style.THEORY)
        numbers = ", ".join(str(mode + 1) for mode in group)
        label = f"mode{'s' if len(group) > 1 else ''} {numbers}"
        ends.append((float(curve.isel(time=-1).mean()), label, colour))
    slowest = smallest_scale(deep.get("theory", "mode_strength", solution=DEEP[1]))
    ax.set(xlim=(0, style.settling_time(slowest, deep.flow_time)), ylim=(0, None))
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength")
    label_ends(ax, ends)


def _midway(cell: CellResults) -> tuple[np.ndarray, np.ndarray, float]:
    """The network when about half is learned.

    Returns:
        Its map, the map in the basis of the modes, and the flow time.
    """
    u, v = signed_vectors(cell)
    outputs = smallest_scale(cell.get("trajectory", "outputs")).mean("seed")
    # Inputs are one-hot, so the outputs of the items are the columns of the map.
    maps = outputs.transpose("snapshot", "output", "sample").values
    strength, end = u.T @ maps @ v, cell.data.modes.s / cell.data.modes.d
    half = int(abs(np.trace(strength, axis1=-2, axis2=-1) - end.sum() / 2).argmin())
    return maps[half], strength[half], float(cell.trajectory["snapshot_flow_time"][half])
