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
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import (
    draw_strengths,
    draw_task,
    equal_modes,
)
from neuralrace.figures.sweeps import smallest_scale, smallest_scale_index
from neuralrace.results.cells import CellResults, Results

STAGES = 5
"""Number of snapshots that are drawn."""
FIRST = 1 / 3
"""The first of them, as a share of the time of learning; before, outputs are near zero."""


@Figure(
    layout="aa;bc",
    height=4.3,
    heights=(1.15, 1),
    widths=(2.4, 1),
    cf={"a": "Fig. 7", "c": "Eq. 7"},
    reads={
        "semantic_deep": {
            "trajectory": "loss mode_strength outputs",
            "theory": "mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Lines of panel c."""
    simulation = style.handle("simulation", color="0.3", **style.SIMULATION)
    return [simulation, style.BAND, style.handle("closed form", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """The task, correlations of items and properties, and the modes that it splits into.

    Property vectors, singular values and item vectors. The first mode is what all items share, the
    second tells animals from plants, the last ones the animals, and the plants, from each other.
    Correlations are over the variance of inputs. Singular values are written on grey.
    """
    draw_task(ax, results.cell("semantic_deep"))
    ax.set_title("Singular modes are distinctions, from broad to narrow")


def panel_b(results: Results, ax: Axes) -> None:
    """Outputs of the network for each item at stages of learning.

    Means over 10 runs from the smallest init scale. What all items share comes first, properties of
    single items last.
    """
    cell = results.cell("semantic_deep")
    outputs = smallest_scale(cell.get("trajectory", "outputs")).mean("seed")
    data = cell.data
    frames = style.split(ax, 1, len(_stages(cell)), wspace=0.08)[0]
    for frame, (stage, time) in zip(frames, _stages(cell).items(), strict=True):
        rows = data.output_names if frame is frames[0] else ()
        shades = style.heat(frame, outputs[stage].values.T, -1, 1, rows, data.item_names)
        frame.set_title(rf"$t$ = {time:.3g} $\tau$", loc="center")
        frame.spines[["top", "right"]].set_visible(True)
    ax.figure.colorbar(shades, ax=frames.tolist(), ticks=(-1, 0, 1), pad=0.02, label="output")
    ax.set_title("A network learns broad distinctions first")


def panel_c(results: Results, ax: Axes) -> None:
    """Mode strengths in the same runs; thin lines are the stages."""
    cell = results.cell("semantic_deep")
    draw_strengths(ax, cell, "aligned_modes", smallest_scale_index(cell))
    for time in _stages(cell).values():
        ax.axvline(time, **style.GUIDE)
    stages = [0, *_stages(cell).values()]
    ax.set_xticks(stages, [f"{time:.3g}" for time in stages])
    style.note(ax, "lines:\ntimes\nof b", "upper left", color="0.4")
    ends, colours = [], style.mode_colours(cell.strength)
    for group in equal_modes(cell.strength.values):
        modes = [int(cell.strength["mode"][index]) for index in group]
        name = f"mode{'s' * (len(modes) > 1)} {', '.join(map(str, modes))}"
        # the last mode of equal ones is drawn on top
        ends.append((float(cell.target.sel(mode=modes[-1])), name, colours[modes[-1]]))
    label_ends(ax, ends)
    ax.set_title("Each mode follows its closed form")


def _stages(cell: CellResults) -> dict[int, float]:
    """Flow times of the snapshots that are drawn, by index."""
    times: xr.DataArray = cell.trajectory["snapshot_flow_time"]
    loss = smallest_scale(cell.get("trajectory", "loss"))
    last = min(
        int(np.searchsorted(times, style.settling_time(loss, cell.flow_time))), times.size - 1
    )
    chosen = np.unique(np.linspace(FIRST * last, last, STAGES).round().astype(int))
    return {int(stage): float(times[stage]) for stage in chosen}
