"""The exact solution from random zero-balanced starts, at any width of the hidden layer.

Beyond the summary, whose logistic modes need vectors that start aligned: the exact solution of a
network with one hidden layer from balanced random weights that are not aligned with the task
(Fukumizu 1998; Braun et al. 2022), for hidden layers narrower and wider than the task. Numerically
integrated gradient flow, which the summary writes down, agrees with it to rounding; gradient
descent, in proportion to the learning rate; modes that do not interfere are a different flow.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import label_modes, learning_end
from neuralrace.figures.sweeps import learning_rate
from neuralrace.results.cells import CellResults, Results

FLOWS = {
    "exact": ("exact solution", {"marker": "o", "markersize": 3}),
    "flow": ("integrated flow", {"marker": "o", "markersize": 6.5, "markerfacecolor": "none"}),
    "aligned_modes": ("logistic modes", {"marker": "^", "markersize": 4.5}),
}
"""Name and markers of each theory that gradient descent is compared to, by solution."""


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
    """Simulation and theory."""
    run = style.handle("gradient descent, median run", color="0.3", **style.SIMULATION)
    return [run, style.handle("exact solution", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths with the narrowest hidden layer, from the smallest start.

    Of 10 runs, that of the median loss over time. As many modes are learned as there are hidden
    units.
    """
    _modes(_widths(results)[0], ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same with the widest hidden layer: all modes are learned."""
    _modes(_widths(results)[-1], ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Training loss with the narrowest hidden layer, from all init scales.

    The run of the median loss over time from each. What the unlearned modes would explain remains
    (thin).
    """
    cell = _widths(results)[0]
    _losses(cell, ax)
    ax.set_title(f"{_width(cell)} hidden units leave a loss")


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss with the widest hidden layer."""
    cell = _widths(results)[-1]
    _losses(cell, ax)
    ax.set_title(f"{_width(cell)} hidden units leave none")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of gradient descent from three theories, by learning rate.

    Over the initial loss; means and ranges over 10 runs. From the exact solution and from
    integrated flow, which differ by rounding error alone, it shrinks with the step (thin, slope
    1); from logistic modes, which are not the network's flow, it does not.
    """
    cells = sorted(results.cells("step_size"), key=learning_rate)
    rates = [learning_rate(cell) for cell in cells]
    for solution, (name, props) in FLOWS.items():
        errors = [
            cell.get("metrics", "loss_error_sup", solution=solution).isel(init_scale=0)
            for cell in cells
        ]
        means = style.point_series(ax, rates, errors, color="0.2", label=name, **props)
        if solution == "exact":
            style.slope_one(ax, rates, means[-1])
            middle, low = len(rates) // 2, min(float(off.min()) for off in errors)
            at = (rates[middle], means[middle])
            ax.annotate("slope 1", at, (6, -9), textcoords="offset points", color="0.4")
    style.loglog(ax, rates)
    ax.legend(loc="upper left", handlelength=1)
    ax.set(xlabel="learning rate", ylabel="largest distance of losses (initial loss)")
    ax.set_ylim(low / 1.5, None)
    ax.set_title("Descent nears exact flow")


def _width(cell: CellResults) -> int:
    return min(cell.spec.layered.hidden)


def _widths(results: Results) -> list[CellResults]:
    """Cells from the narrowest hidden layer to the widest."""
    return sorted(results.cells("exact"), key=_width)


def _modes(cell: CellResults, ax: Axes) -> None:
    run = {"seed": _median_run(cell, 0)}
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=0).sel(run)
    solved = cell.get("theory", "mode_strength", solution="exact").isel(init_scale=0).sel(run)
    for mode, colour in style.mode_colours(cell.strength).items():
        ax.plot(cell.flow_time, modes.sel(mode=mode), color=colour, **style.SIMULATION)
        ax.plot(cell.flow_time, solved.sel(mode=mode), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength")
    ax.set_xlim(0, learning_end(cell, solved))
    end = modes.isel(time=-1)
    label_modes(ax, cell.strength, end)
    target = cell.target > 0
    learned, count = int((target & (end > cell.target / 2)).sum()), int(target.sum())
    known = "all modes" if learned == count else "the strongest modes"
    ax.set_title(f"{_width(cell)} hidden units learn {known}")


def _losses(cell: CellResults, ax: Axes) -> None:
    loss = cell.get("trajectory", "loss")
    exact = cell.get("theory", "loss", solution="exact")
    scales = loss["init_scale"].values
    ends = []
    for index, colour in enumerate(style.greys(len(scales))):
        run = {"seed": _median_run(cell, index)}
        simulated, solved = (curves.isel(init_scale=index).sel(run) for curves in (loss, exact))
        line = style.SIMULATION | {"color": colour, "label": f"{scales[index]:g}"}
        ax.plot(cell.flow_time, simulated, **line)
        ax.plot(cell.flow_time, solved, **style.THEORY)
        ends.append(style.settling_time(solved, cell.flow_time))
    left = float(np.sort(cell.strength**2)[::-1][_width(cell) :].sum()) / 2
    ax.set(
        xlabel=style.FLOW_TIME, ylabel="training loss", ylim=(0, None), xlim=(0, 1.4 * max(ends))
    )
    if left:
        ax.axhline(left, **style.GUIDE)
        label_ends(ax, [(left, "unlearned\nmodes", "0.4")])
    ax.legend(title="init scale", loc="upper right")


def _median_run(cell: CellResults, scale: int) -> int:
    """The seed of the run of the median loss over time, at an init scale."""
    return style.median_seed(cell.get("trajectory", "loss").isel(init_scale=scale).mean("time"))
