"""The same dynamics in any singular basis.

"Non-diagonal case" of the summary of Saxe, McClelland and Ganguli (2013): whatever the correlations
between inputs and outputs, learning is that of a diagonal task, seen in their singular vectors. The
same weights, stated in the singular basis, are trained on a diagonal task and on a rotated one; and
weights that are drawn independently are seen in a rotated basis, where only Gaussian ones are again
independent and of the same law.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import norm

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_strengths
from neuralrace.results.cells import CellResults, Results

MARKED = 20
"""Number of times at which runs in other bases have a marker."""
EDGES = np.linspace(-4, 4, 41)
"""Bins of weights, in units of their standard deviation."""
FLOOR = 1e-17
"""Smaller differences, which are below rounding, are drawn at this value."""


@Figure(
    layout="aaabbb;ccddee",
    height=3.9,
    heights=(1.0, 1.05),
    cf={"a": "2nd paragraph", "b": "1st paragraph", "d": "last sentence", "e": "last sentence"},
    reads={
        "rotation": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
            "metrics": "half_time",
        },
        "gaussian_start": {
            "trajectory": "weight_1 weight_2",
            "metrics": "start_correlation start_kurtosis",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes, bases, and theory."""
    first, *others = results.cells("rotation")
    bases = [
        style.handle(f"{first.spec.dataset.basis} basis", color="0.3"),
        *(
            style.handle(f"{cell.spec.dataset.basis} basis", **_mark(index))
            for index, cell in enumerate(others)
        ),
    ]
    theory = style.handle("theory", **style.THEORY)
    return [*style.mode_handles(first.strength), *bases, style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """Correlations between inputs (columns) and outputs (rows) of the tasks.

    Last, those of the rotated task in the basis of its singular vectors.
    """
    cells = results.cells("rotation")
    data = cells[-1].data
    matrices = {f"{cell.spec.dataset.basis} basis": cell.data.sigma_yx for cell in cells}
    modes = data.modes.output_basis.T @ data.sigma_yx @ data.modes.input_basis
    matrices["its singular basis"] = modes
    most = max(float(abs(matrix).max()) for matrix in matrices.values())
    frames = style.split(ax, 1, len(matrices), wspace=0.05)[0]
    for frame, (name, matrix) in zip(frames, matrices.items(), strict=True):
        shades = style.heat(frame, matrix, -most, most, aspect="equal")
        frame.set_xlabel(name)
    ax.figure.colorbar(shades, ax=frames.tolist(), label="correlation", shrink=0.8, pad=0.02)
    ax.set_title("A rotated task is diagonal in its singular basis")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths in the diagonal task (lines and bands) and in the rotated one (open marks)."""
    first, *others = results.cells("rotation")
    draw_strengths(ax, first, "aligned_modes")
    time = first.flow_time
    every = max(len(time) // MARKED, 1)
    modes = first.get("trajectory", "mode_strength").isel(init_scale=0)
    apart = []
    for index, cell in enumerate(others):
        other = cell.get("trajectory", "mode_strength").isel(init_scale=0)
        apart.append(float(abs(other - modes).max()))
        for mode, colour in style.mode_colours(first.strength).items():
            marked = other.sel(mode=mode).mean("seed")[::every]
            ax.plot(time[::every], marked, **_mark(index, colour))
    ax.set_title(f"Modes differ by {max(apart, default=0.0):.0e} at most")


def panel_c(results: Results, ax: Axes) -> None:
    """Difference of the times to half of a mode's target between the two tasks, of each seed.

    With the same weights, and with those of the next seed.
    """
    first, *others = results.cells("rotation")
    half = [cell.get("metrics", "half_time").isel(init_scale=0) for cell in (first, *others)]
    colours = style.mode_colours(first.strength)
    rows = {"same weights": half[-1], "another draw": half[-1].roll(seed=1)}
    for row, times in enumerate(rows.values()):
        off = abs(times - half[0]).clip(min=FLOOR)
        for position, (mode, colour) in enumerate(colours.items()):
            values = off.sel(mode=mode)
            spread = row + 0.2 * (position - (len(colours) - 1) / 2)
            dots: dict[str, Any] = {"linestyle": "", "marker": style.marker(position)}
            ax.plot(values, [spread] * len(values), color=colour, markersize=2.5, **dots)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xscale="log", xlabel=r"difference of half time ($\tau$)", ylim=(1.5, -0.5))
    worst = float(abs(rows["same weights"] - half[0]).max())
    ax.set_title(f"With the same weights, within {worst:.0e}")


def panel_d(results: Results, ax: Axes) -> None:
    """Distribution of first weights in the singular basis of a rotated task.

    By the law that they are drawn from; dashed, the normal density. Numbers are the kurtosis over
    that of a normal variable.
    """
    kurtoses = []
    for index, cell in enumerate(_untied(results)):
        weights = _in_modes(cell)
        weights = weights[np.isfinite(weights)]
        share, _ = np.histogram(weights / weights.std(), EDGES, density=True)
        law = cell.spec.init.name
        ax.stairs(share, EDGES, color=style.categorical(index), linewidth=1.5, label=law)
        kurtoses.append(f"{float(cell.get('metrics', 'start_kurtosis').mean()):.2f} {law}")
    fine = np.linspace(EDGES[0], EDGES[-1], 100)
    ax.plot(fine, norm.pdf(fine), **style.THEORY)
    ax.legend(loc="upper left", title="drawn from")
    ax.set(xlabel="weight (standard deviations)", ylabel="density", ylim=(0, None))
    ax.set_title(f"Kurtosis {', '.join(kurtoses)}")


def panel_e(results: Results, ax: Axes) -> None:
    """Correlations between the first weights of a hidden unit in the singular basis.

    Those from inputs come before those to outputs; over all units of a run. There are none where
    weights are drawn independently, and full ones between the layers where they are tied.
    """
    cells = [*_untied(results)[:1], *(c for c in results.cells("gaussian_start") if _tied(c))]
    frames = style.split(ax, 1, len(cells), wspace=0.05)[0]
    correlations = []
    for frame, cell in zip(frames, cells, strict=True):
        units = _in_modes(cell)[0]
        shades = style.heat(frame, np.corrcoef(units.T), -1, 1, aspect="equal")
        frame.set_xlabel(cell.spec.init.name)
        largest = float(cell.get("metrics", "start_correlation").mean())
        correlations.append(f"{largest:.2f} {cell.spec.init.name}")
    bar = {"label": "correlation", "ticks": (-1, 0, 1), "shrink": 0.8, "pad": 0.04}
    ax.figure.colorbar(shades, ax=frames.tolist(), **bar)
    ax.set_title(f"Largest: {', '.join(correlations)}")


def _mark(index: int, colour: Any = "0.3") -> dict[str, Any]:
    mark = {"linestyle": "", "marker": style.marker(index), "markerfacecolor": "white"}
    return {**mark, "color": colour, "markersize": 3, "zorder": 4}


def _tied(cell: CellResults) -> bool:
    return cell.spec.init.name == "tied"


def _untied(results: Results) -> list[CellResults]:
    """Cells whose weights are drawn independently."""
    return [cell for cell in results.cells("gaussian_start") if not _tied(cell)]


def _in_modes(cell: CellResults) -> np.ndarray:
    """First weights of each hidden unit in the singular basis, (seed, unit, weight)."""
    first, last = cell.weights()
    modes = cell.data.modes
    encoder = first[0, :, 0] @ modes.input_basis
    decoder = np.swapaxes(modes.output_basis.T @ last[0, :, 0], -2, -1)
    return np.concatenate([encoder, decoder], axis=-1)
