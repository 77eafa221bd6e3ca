"""The semantic hierarchy: its modes, and what a network makes of them over time.

After figure 7 of Jarvis, Klein, Rosman and Saxe, whose appendix reviews the theory: four items and
seven properties on a binary tree. The singular value decomposition of the task finds what all items
share, animals against plants, and the contrasts within each class; a deep linear network acquires
these distinctions from broad to narrow. The two contrasts have one singular value, so their vectors
are one choice of basis, and each pair of vectors is determined up to its sign.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_strengths
from neuralrace.figures.sweeps import smallest_scale, smallest_scale_index
from neuralrace.results.cells import CellResults, Results

STAGES = 5
"""Number of snapshots that are drawn, from the first to the end of learning."""


@Figure(
    layout="abcd;eeef",
    height=4.1,
    widths=(1.0, 1.1, 1.0, 1.25),
    cf={"a": "Fig. 7", "b": "Fig. 7", "c": "Fig. 7", "d": "Fig. 7", "f": "Eq. 7"},
    reads={
        "semantic_deep": {
            "trajectory": "loss mode_strength outputs",
            "theory": "mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes of panel f by singular value, and theory."""
    theory = style.handle("closed form", **style.THEORY)
    return [*style.mode_handles(results.cell("semantic_deep").strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """The task: which property (rows) each item (columns) has."""
    data = results.cell("semantic_deep").data
    style.heat(ax, data.y.T, 0, 1, data.output_names, data.item_names)
    ax.set_title(f"{data.y.shape[1]} properties of {data.y.shape[0]} items")


def panel_b(results: Results, ax: Axes) -> None:
    """Property vectors of the modes, in columns.

    Orange and blue are properties of either sign, such as to move and to have roots.
    """
    data = results.cell("semantic_deep").data
    u, _ = _vectors(results)
    style.heat(ax, u, -1, 1, data.output_names, _names(u.shape[1]))
    ax.set_xlabel("mode")
    ax.set_title("Property vectors $U$")


def panel_c(results: Results, ax: Axes) -> None:
    """Singular values of the modes."""
    s = results.cell("semantic_deep").strength.values
    ax.barh(range(len(s)), s, color=style.sequential(len(s)))
    ax.set_yticks(range(len(s)), _names(len(s)))
    ax.invert_yaxis()
    ax.set(xlabel="singular value $s$", ylabel="mode")
    ax.set_title(f"Broad is stronger: {s[0] / s[-1]:.1f} times")


def panel_d(results: Results, ax: Axes) -> None:
    """Item vectors of the modes, in rows.

    The second tells animals from plants, the last ones the plants, and the animals, from each
    other.
    """
    data = results.cell("semantic_deep").data
    _, v = _vectors(results)
    shades = style.heat(ax, v.T, -1, 1, _names(v.shape[1]), data.item_names)
    ax.figure.colorbar(shades, ax=ax, ticks=(-1, 0, 1), label="entry of a vector")
    ax.set_title("Item vectors $V$")


def panel_e(results: Results, ax: Axes) -> None:
    """Outputs of the network for each item at stages of learning.

    Means over seeds from the smallest init scale. What all items share comes first, properties of
    single items last.
    """
    cell = results.cell("semantic_deep")
    outputs = smallest_scale(cell.get("trajectory", "outputs")).mean("seed")
    data = cell.data
    frames = style.split(ax, 1, len(_stages(cell)), wspace=0.08)[0]
    for frame, (stage, time) in zip(frames, _stages(cell).items(), strict=True):
        rows = data.output_names if frame is frames[0] else ()
        shades = style.heat(frame, outputs[stage].values.T, 0, 1, rows, data.item_names)
        frame.set_title(rf"$t$ = {time:.3g} $\tau$", loc="center")
    ax.figure.colorbar(shades, ax=frames.tolist(), label="target, output", ticks=(0, 1), pad=0.02)
    ax.set_title("A network learns distinctions from broad to narrow")


def panel_f(results: Results, ax: Axes) -> None:
    """Mode strengths in the same runs; thin lines are the stages."""
    cell = results.cell("semantic_deep")
    draw_strengths(ax, cell, "aligned_modes", smallest_scale_index(cell))
    for time in _stages(cell).values():
        ax.axvline(time, **style.GUIDE)
    solved = cell.get("theory", "mode_strength", solution="aligned_modes")
    distance = smallest_scale(abs(cell.get("trajectory", "mode_strength") - solved))
    off = distance.max() / abs(cell.target).max()
    ax.set_title(f"Modes are within {float(off):.0%} of the closed form")


def _names(count: int) -> list[str]:
    return [str(mode) for mode in range(1, count + 1)]


def _vectors(results: Results) -> tuple[np.ndarray, np.ndarray]:
    """Property and item vectors of the modes, in columns."""
    modes = results.cell("semantic_deep").data.modes
    # A pair of vectors is determined up to its sign: the first entry that is not 0 is positive.
    first = (abs(modes.v) > 1e-9).argmax(axis=0)
    signs = np.sign(modes.v[first, np.arange(modes.v.shape[1])])
    return signs * modes.u, signs * modes.v


def _stages(cell: CellResults) -> dict[int, float]:
    """Flow times of the snapshots that are drawn, by index."""
    times: xr.DataArray = cell.trajectory["snapshot_flow_time"]
    loss = smallest_scale(cell.get("trajectory", "loss"))
    last = min(
        int(np.searchsorted(times, style.settling_time(loss, cell.flow_time))), times.size - 1
    )
    chosen = np.unique(np.linspace(0, last, STAGES).round().astype(int))
    return {int(stage): float(times[stage]) for stage in chosen}
