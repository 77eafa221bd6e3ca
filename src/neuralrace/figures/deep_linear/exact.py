"""The exact solution from random zero-balanced starts, at any width of the hidden layer.

Beyond the anonymous summary of Saxe, McClelland and Ganguli (2013), whose logistic modes need
vectors that start aligned: the exact solution of a network with one hidden layer from balanced
random weights that are not aligned with the task (Fukumizu 1998; Braun et al. 2022), for hidden
layers narrower and wider than the task. Numerically integrated gradient flow, which the summary
writes down, agrees with it to rounding; gradient descent, in proportion to the learning rate; modes
that do not interfere are a different flow.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import label_modes, learning_end
from neuralrace.figures.sweeps import learning_rate
from neuralrace.results.cells import CellResults, Results

FLOWS = {
    "exact": ("exact\nsolution\n(dot)", {"marker": "o", "markersize": 3}),
    "flow": (
        "integrated\nflow (ring)",
        {"marker": "o", "markersize": 6.5, "markerfacecolor": "none"},
    ),
    "aligned_modes": ("logistic\nmodes", {"marker": "^", "markersize": 4.5}),
}
"""Name and markers of each theory that gradient descent is compared to, by solution."""
HIGH = 0.3
"""Upper end of the axis of gaps."""
LEVELS = (0.55, 0.44, 0.33)
"""Heights at which curves are labelled, from the smallest init scale, as shares of the axis."""


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
    _modes(results, 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same with the widest hidden layer: all modes are learned."""
    _modes(results, -1, ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Training loss with the narrowest hidden layer, from all init scales.

    The run of the median loss over time from each. What the unlearned modes would explain remains
    (thin).
    """
    width = _width(_losses(results, 0, ax))
    ax.set_title(f"{width} hidden units leave a loss")


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss with the widest hidden layer."""
    width = _width(_losses(results, -1, ax))
    ax.set_title(f"{width} hidden units leave none")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest gap between the loss of gradient descent and three theories, by learning rate.

    The network has as many hidden units as outputs (5) and an init scale of 0.3. Gaps are over the
    initial loss; means and ranges over 10 runs. From the exact solution and from
    integrated flow, which differ by rounding error alone, it shrinks with the step (thin, slope
    1); from logistic modes, which are not the network's flow, it does not.
    """
    cells = sorted(results.cells("step_size"), key=learning_rate)
    rates = [learning_rate(cell) for cell in cells]
    ends: dict[str, float] = {}
    for solution, (name, props) in FLOWS.items():
        errors = [
            cell.get("metrics", "loss_error_sup", solution=solution).isel(init_scale=0)
            for cell in cells
        ]
        means = style.point_series(ax, rates, errors, color="0.2", **props)
        ends[name] = means[rates.index(max(rates))]
        if solution == "exact":
            style.slope_one(ax, rates, means[-1])
            middle, low = (len(rates) - 1) // 2, min(float(off.min()) for off in errors)
            at = (rates[middle], means[middle])
            ax.annotate("slope 1", at, (6, -9), textcoords="offset points", color="0.4")
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="largest gap to descent's loss / initial loss")
    ax.set_ylim(low / 1.5, HIGH)
    label_ends(ax, [(end, name, "0.2") for name, end in ends.items()])
    style.note(ax, "bars: range\nof 10 runs", "lower right")
    ax.set_title("Descent nears exact flow")


def _width(cell: CellResults) -> int:
    return min(cell.spec.layered.hidden)


def _widths(results: Results) -> list[CellResults]:
    """Cells from the narrowest hidden layer to the widest."""
    return sorted(results.cells("exact"), key=_width)


def _ends(results: Results) -> list[CellResults]:
    """Cells of the narrowest and of the widest hidden layer, which share their axes."""
    widths = _widths(results)
    return [widths[0], widths[-1]]


def _modes(results: Results, index: int, ax: Axes) -> None:
    """Draws the mode strengths of one of the `_ends`."""
    cell = _ends(results)[index]
    run = {"seed": _median_run(cell, 0)}
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=0).sel(run)
    solved = _solved(cell, "mode_strength", 0)
    for mode, colour in style.mode_colours(cell.strength).items():
        ax.plot(cell.flow_time, modes.sel(mode=mode), color=colour, **style.SIMULATION)
        ax.plot(cell.flow_time, solved.sel(mode=mode), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength")
    settled = [learning_end(each, _solved(each, "mode_strength", 0)) for each in _ends(results)]
    ax.set_xlim(0, max(settled))
    end = modes.isel(time=-1)
    label_modes(ax, cell.strength, end)
    target = cell.target > 0
    learned, count = int((target & (end > cell.target / 2)).sum()), int(target.sum())
    known = "all modes" if learned == count else "strongest modes only"
    ax.set_title(f"{_width(cell)} hidden units: {known}")


def _losses(results: Results, index: int, ax: Axes) -> CellResults:
    """Draws the losses of one of the `_ends` from all init scales, and returns its cell."""
    cell = _ends(results)[index]
    loss = cell.get("trajectory", "loss")
    scales = range(loss.sizes["init_scale"])
    both = [(each, _solved(each, "loss", scale)) for each in _ends(results) for scale in scales]
    end = 1.2 * max(style.settling_time(solved, each.flow_time) for each, solved in both)
    high = 1.05 * max(float(solved.max()) for _, solved in both)
    for scale, colour in enumerate(style.greys(len(scales))):
        solved = _solved(cell, "loss", scale)
        simulated = loss.isel(init_scale=scale).sel(seed=_median_run(cell, scale))
        ax.plot(cell.flow_time, simulated, color=colour, **style.SIMULATION)
        ax.plot(cell.flow_time, solved, **style.THEORY)
        level = LEVELS[scale % len(LEVELS)] * high
        at = float(np.interp(-level, -solved.values, cell.flow_time.values))
        name = f"{float(loss['init_scale'][scale]):g}"
        ax.annotate(
            name if scale else f"init scale {name}", (at, level), (0.35 * end, level), va="center",
            arrowprops={"arrowstyle": "-", "color": "0.4", "linewidth": 0.6, "shrinkB": 0},
        )  # fmt: skip
    # A margin, as the loss from the largest start falls along the axis.
    ax.set(xlabel=style.FLOW_TIME, ylabel="training loss", ylim=(0, high))
    ax.set_xlim(-0.04 * end, end)
    left = float(np.sort(cell.strength**2)[::-1][_width(cell) :].sum()) / 2
    if left:
        ax.axhline(left, **style.GUIDE)
        label_ends(ax, [(left, "unlearned\nmodes", "0.4")])
    return cell


def _solved(cell: CellResults, name: str, scale: int) -> xr.DataArray:
    """The exact solution of the median run at an init scale."""
    solved = cell.get("theory", name, solution="exact").isel(init_scale=scale)
    return solved.sel(seed=_median_run(cell, scale))


def _median_run(cell: CellResults, scale: int) -> int:
    """The seed of the run of the median loss over time, at an init scale."""
    return style.median_seed(cell.get("trajectory", "loss").isel(init_scale=scale).mean("time"))
