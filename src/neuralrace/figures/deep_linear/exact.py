"""The exact solution from random zero-balanced starts, at any width of the hidden layer.

Beyond the summary, whose logistic modes need vectors that start aligned: the exact solution of a
network with one hidden layer from balanced random weights that are not aligned with the task
(Fukumizu 1998; Braun et al. 2022), for hidden layers narrower and wider than the task. Numerically
integrated gradient flow, which the summary writes down, agrees with it to rounding; gradient
descent, in proportion to the learning rate; modes that do not interfere are a different flow.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import label_modes, learning_end
from neuralrace.figures.sweeps import learning_rate
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="abe;cde",
    height=4.2,
    widths=(1, 1, 1.2),
    cf={"e": "setup"},
    reads={
        "exact": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
        "step_size": {"metrics": "loss_error_sup"},
    },
)
def legend(results: Results) -> style.Handles:
    """Single runs and theory."""
    runs = style.handle("simulation: fastest, median, slowest run", color="0.3", **style.SIMULATION)
    return [runs, style.handle("exact solution", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths with the narrowest hidden layer, from the smallest start.

    Of 10 runs, those of the least, median and largest loss over time. As many modes are learned as
    there are hidden units.
    """
    _modes(_widths(results)[0], ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same with the widest hidden layer: all modes are learned."""
    _modes(_widths(results)[-1], ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Training loss with the narrowest hidden layer, from all init scales.

    The same three runs of each scale. What the unlearned modes would explain remains (thin).
    """
    _losses(_widths(results)[0], ax)
    ax.set_title("The loss of unlearned modes remains")


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss with the widest hidden layer."""
    _losses(_widths(results)[-1], ax)
    ax.set_title("Wide layers leave no loss")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of gradient descent from three theories, by learning rate.

    Means and ranges over 10 runs. From the exact solution and from integrated flow, which differ by
    rounding error alone, it shrinks with the step (thin, slope 1); from logistic modes, which are
    not the network's flow, it does not. The number is the slope of the exact solution.
    """
    cells = sorted(results.cells("step_size"), key=learning_rate)
    rates = [learning_rate(cell) for cell in cells]
    styles = {
        "exact": ("exact solution", style.categorical(0), "o"),
        "flow": ("integrated flow", style.categorical(1), "x"),
        "aligned_modes": ("logistic modes", style.categorical(2), "^"),
    }
    errors: dict[str, list[xr.DataArray]] = {}
    for solution, (name, colour, mark) in styles.items():
        errors[solution] = [
            cell.get("metrics", "loss_error_sup", solution=solution).isel(init_scale=0)
            for cell in cells
        ]
        style.point_series(ax, rates, errors[solution], color=colour, marker=mark, label=name)
    means = [float(off.mean()) for off in errors["exact"]]
    style.slope_one(ax, rates, means[-1])
    style.loglog(ax, rates)
    ax.legend(loc="upper left")
    ax.set(xlabel="learning rate", ylabel="distance of descent (initial loss)")
    note = f"slope {style.log_slope(rates, means):.2f}"
    ax.text(
        1.06 * rates[len(rates) // 2], 0.75 * means[len(rates) // 2], note, va="top", fontsize=6.5
    )
    ax.set_title("Errors fall with the step")


def _width(cell: CellResults) -> int:
    return min(cell.spec.layered.hidden)


def _widths(results: Results) -> list[CellResults]:
    """Cells from the narrowest hidden layer to the widest."""
    return sorted(results.cells("exact"), key=_width)


def _modes(cell: CellResults, ax: Axes) -> None:
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=0)
    solved = cell.get("theory", "mode_strength", solution="exact").isel(init_scale=0)
    runs = _runs(cell, 0)
    for mode, colour in style.mode_colours(cell.strength).items():
        for run in runs:
            for curves, line in ((modes, style.SIMULATION), (solved, style.THEORY)):
                curve = curves.sel(mode=mode).isel(seed=run)
                ax.plot(cell.flow_time, curve, **{"color": colour, **line})
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength")
    ax.set_xlim(0, learning_end(cell, solved))
    end = modes.isel(time=-1).mean("seed")
    label_modes(ax, cell.strength, end)
    target = cell.target > 0
    learned, count = int((target & (end > cell.target / 2)).sum()), int(target.sum())
    known = "all modes" if learned == count else "strong modes"
    ax.set_title(f"{_width(cell)} hidden units learn {known}")


def _losses(cell: CellResults, ax: Axes) -> None:
    loss = cell.get("trajectory", "loss")
    exact = cell.get("theory", "loss", solution="exact")
    scales = loss["init_scale"].values
    for index, colour in enumerate(style.sequential(len(scales))):
        for label, run in zip([f"{scales[index]:g}", None, None], _runs(cell, index), strict=True):
            at = {"init_scale": index, "seed": run}
            line = style.SIMULATION | {"color": colour, "label": label}
            ax.plot(cell.flow_time, loss.isel(at), **line)
            ax.plot(cell.flow_time, exact.isel(at), **style.THEORY)
    left = float(np.sort(cell.strength**2)[::-1][_width(cell) :].sum()) / 2
    ax.axhline(left, **style.GUIDE)
    ax.set(xlabel=style.FLOW_TIME, ylabel="training loss", ylim=(0, None))
    ax.set_xlim(0, style.settling_time(exact.mean("seed"), cell.flow_time))
    ax.legend(title="init scale", loc="upper right")


def _runs(cell: CellResults, scale: int) -> list[int]:
    """Indices of the runs of the least, median and largest loss over time, at an init scale."""
    ranked = cell.get("trajectory", "loss").isel(init_scale=scale).mean("time").argsort().values
    return [int(ranked[0]), int(ranked[len(ranked) // 2]), int(ranked[-1])]
