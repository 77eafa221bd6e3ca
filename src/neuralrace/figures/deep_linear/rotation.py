"""The same dynamics in any singular basis.

"Non-diagonal case" of an anonymous summary of Saxe, McClelland and Ganguli (2013): whatever the
correlations between inputs and outputs, learning is that of a diagonal task, seen in their singular
vectors. The same weights, stated in the singular basis, are trained on a diagonal task and on a
rotated one; and weights that are drawn independently are seen in a rotated basis, where only
Gaussian ones are again independent and of the same law.
"""

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import norm

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_strengths, label_modes
from neuralrace.results.cells import CellResults, Results

MARKED = 20
"""Number of times at which runs in other bases have a marker."""
EDGES = np.linspace(-4, 4, 41)
"""Bins of weights, in units of their standard deviation."""
COLOURS = (style.categorical(0), style.readable(style.categorical(1)))
"""Colours of the distributions that weights are drawn from."""
PLACES = ((0.75, 0.375), (1.6, 0.2))
"""Places of their names."""
OPEN = {"marker": "o", "linestyle": "", "markerfacecolor": "white", "markersize": 3.5, "zorder": 4}
"""Marks of the rotated task."""


@Figure(
    layout="aaaaabbb;ccccdddd",
    height=4.4,
    heights=(1, 1.2),
    cf={"a": "2nd paragraph", "b": "1st paragraph", "c": "last sentence", "d": "last sentence"},
    reads={
        "rotation": {"trajectory": "mode_strength", "theory": "mode_strength"},
        "gaussian_start": {
            "trajectory": "weight_1 weight_2",
            "metrics": "start_correlation start_kurtosis",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Tasks and theory."""
    return [
        style.handle("diagonal task", color="0.3", **style.SIMULATION),
        style.handle("rotated task, same weights", color="0.3", **OPEN),
        style.BAND,
        style.handle("closed form", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Correlations between inputs (columns) and outputs (rows) of the tasks.

    Last, those of the rotated task in the basis of its singular vectors.
    """
    first, last = _tasks(results)
    modes = last.data.modes
    matrices = {
        "diagonal task": first.data.sigma_yx,
        "rotated task": last.data.sigma_yx,
        "in its singular basis": modes.output_basis.T @ last.data.sigma_yx @ modes.input_basis,
    }
    most = max(float(abs(matrix).max()) for matrix in matrices.values())
    frames = style.split(ax, 1, len(matrices), wspace=0.05)[0]
    for frame, (name, matrix) in zip(frames, matrices.items(), strict=True):
        shades = style.heat(frame, matrix.round(9), -most, most)
        frame.spines[["top", "right"]].set_visible(True)
        frame.set_title(name, loc="center")
        frame.set_xlabel("input mode" if name.startswith("in ") else "input")
    frames[0].set_ylabel("output")
    frames[-1].set_ylabel("output mode")
    bar = ax.figure.colorbar(shades, ax=frames.tolist(), ticks=(-most, 0, most), pad=0.04)
    bar.ax.set_xlabel("correlation")
    ax.set_title("A rotated task is diagonal in its basis")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths in the diagonal task (lines, ranges over 10 runs) and in the rotated one.

    Both tasks start from the same weights in their singular bases, and differ by rounding error at
    any time; the bands show how far other draws of the weights are.
    """
    first, last = _tasks(results)
    draw_strengths(ax, first, "aligned_modes")
    label_modes(ax, first.strength)
    every = slice(None, None, max(len(first.flow_time) // MARKED, 1))
    rotated = last.get("trajectory", "mode_strength").isel(init_scale=0).mean("seed")
    for mode, colour in style.mode_colours(first.strength).items():
        ax.plot(first.flow_time[every], rotated.sel(mode=mode)[every], color=colour, **OPEN)
    ax.set_title("Both are learned alike")


def panel_c(results: Results, ax: Axes) -> None:
    """Distribution of first weights in the singular basis of a rotated task.

    By the distribution that they are drawn from, all units and runs together; dashed, the normal
    density. The excess kurtosis, which is zero of normal weights, is the mean over runs.
    """
    for index, cell in enumerate(_untied(results)):
        weights = _in_modes(cell)
        weights = weights[np.isfinite(weights)]
        share, _ = np.histogram(weights / weights.std(), EDGES, density=True)
        excess = round(3 * float(cell.get("metrics", "start_kurtosis").mean()) - 3, 2)
        kurtosis = f"{excess + 0:.2f}".replace("-", "\u2212")
        line = {"color": COLOURS[index], "linewidth": 2.5 - 1.3 * index, "alpha": 0.7}
        ax.stairs(share, EDGES, **line)
        text = {"color": COLOURS[index], "va": "center"}
        ax.text(*PLACES[index], f"drawn {cell.spec.init.name}:\nexcess kurtosis {kurtosis}", **text)
    fine = np.linspace(EDGES[0], EDGES[-1], 100)
    ax.plot(fine, norm.pdf(fine), **style.THEORY)
    ax.text(-0.9, 0.36, "normal\ndensity", ha="right", va="center")
    ax.set(
        xlabel="weight (standard deviations)", ylabel="density", xlim=(-4.2, 5.6), ylim=(0, 0.45)
    )
    ax.set_yticks((0, 0.2, 0.4))
    ax.set_title("Rotated normal weights stay normal")


def panel_d(results: Results, ax: Axes) -> None:
    """Sizes of correlations between first weights of a hidden unit, in the singular basis.

    Encoder weights, from input modes, come before decoder weights, to output modes; over all units,
    mean over runs. There are none where weights are drawn independently, but for the chance
    of the draw, and full ones between the layers where they are tied. The number is the largest off
    the diagonal.
    """
    cells = [*_untied(results)[:1], *(c for c in results.cells("gaussian_start") if _tied(c))]
    frames = style.split(ax, 1, len(cells), wspace=0.05)[0]
    for frame, cell in zip(frames, cells, strict=True):
        sizes = np.mean([abs(np.corrcoef(units.T)) for units in _in_modes(cell)], axis=0)
        count = len(sizes) // 2
        names = [f"{side} {mode + 1}" for side in ("in", "out") for mode in range(count)]
        # From -1, so that zero is white as in a.
        shades = style.heat(frame, sizes, -1, 1, names if frame is frames[0] else (), names)
        frame.spines[["top", "right"]].set_visible(True)
        drawn = "tied: in = out" if _tied(cell) else "normal, independent"
        largest = float(cell.get("metrics", "start_correlation").mean())
        frame.set_title(f"{drawn}\nlargest off diagonal: {largest:.2f}", loc="center")
        frame.set_xlabel("in: encoder, out: decoder")
    frames[0].set_ylabel("weight of a mode")
    bar = {"label": "|correlation|", "ticks": (0, 1), "pad": 0.03}
    ax.figure.colorbar(shades, ax=frames.tolist(), **bar).ax.set_ylim(0, 1)
    ax.set_title("Independent normal weights stay independent")


def _tasks(results: Results) -> tuple[CellResults, CellResults]:
    """The diagonal and the rotated task."""
    first, *others = results.cells("rotation")
    return first, others[-1] if others else first


def _tied(cell: CellResults) -> bool:
    return cell.spec.init.name == "tied"


def _untied(results: Results) -> list[CellResults]:
    """Cells whose weights are drawn independently."""
    return [cell for cell in results.cells("gaussian_start") if not _tied(cell)]


def _in_modes(cell: CellResults) -> np.ndarray:
    """First weights of each hidden unit from and to modes of the task, (seed, unit, weight)."""
    first, last = cell.weights()
    u, v = cell.data.modes.u, cell.data.modes.v
    return np.concatenate([first[0, :, 0] @ v, np.swapaxes(u.T @ last[0, :, 0], -2, -1)], axis=-1)
