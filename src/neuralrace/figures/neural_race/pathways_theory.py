"""How closely many domains that share one hidden layer follow theory.

The network of figure 4 of Saxe, Sodhani and Lewallen (2022), measured. Pairs of domains that are
never trained follow those that are. From a decoupled start the simulation is the reduction, to
rounding, once both take the same steps; from its gradient flow it differs by a distance of first
order in the step. From random weights modes are learned when theory says, the stronger ones more
closely. By its own clock the hidden matrix is no faster than the outer ones: it grows the square
root of the number of domains times as fast, and as much further.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.sweeps import learning_rate, relative_loss
from neuralrace.results.cells import CellResults, Results

ROUNDING = {"color": style.categorical(0), "linestyle": style.LINES[2]}
EPSILON = float(np.finfo(float).eps)
"""Smaller distances are drawn at this value, the precision of the arithmetic."""


@Figure(
    layout="abc;def",
    height=3.9,
    cf={"b": "Fig. 4e", "d": "Fig. 4f", "e": "Fig. 4f", "f": "Fig. 4b"},
    reads={
        "pathways": {
            "trajectory": "singular_values trained_error untrained_error",
            "theory": "",
            "metrics": "half_time_over_theory hidden_over_input_speed value_error_mean",
        },
        "pathways_decoupled pathways_step_size": {
            "trajectory": "loss",
            "theory": "loss",
        },
        "pathways_step_size": {
            "metrics": "loss_error_mean",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs, layers and steps."""
    finer = _by_step(results)
    pairs = [
        style.handle("trained pairs", **domains.TRAINED | {"marker": None}),
        style.handle("untrained pairs", **domains.UNTRAINED | {"marker": None}),
    ]
    layers = [style.handle(name, **props) for name, props in domains.LAYERS.items()]
    flows = [
        style.handle(rf"flow, step {_step(cell):.2g} $\tau$", color=colour)
        for cell, colour in zip(finer, style.sequential(len(finer)), strict=True)
    ]
    same = style.handle("same steps", **ROUNDING)
    return [*pairs, *layers, *flows, same, style.BAND, style.handle("theory", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Squared error over that of answering zero, of pairs of domains that are trained and of pairs
    that are not.
    """
    cell = results.cell("pathways")
    domains.draw_errors(ax, cell)
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    end = float(cell.get("trajectory", "untrained_error").isel(time=-1).mean())
    ax.set_title(f"Untrained pairs end at an error of {end:.1g}")


def panel_b(results: Results, ax: Axes) -> None:
    """Distance of the loss from the reduction, over initial loss, from a decoupled start: as a
    gradient flow, for three sizes of steps (largest on top), and under the same steps (dotted,
    rounding).
    """
    finer = _by_step(results)
    decoupled = results.cell("pathways_decoupled")
    lines = [
        (cell, "reduction", {"color": colour})
        for cell, colour in zip(finer, style.sequential(len(finer)), strict=True)
    ]
    most = 0.0
    for cell, solution, props in [*lines, (decoupled, "reduction_descent", ROUNDING)]:
        predicted = relative_loss(cell.get("theory", "loss", solution=solution))
        off = abs(relative_loss(cell.get("trajectory", "loss")) - predicted)
        most = float(off.max())
        style.over_seeds(ax, cell.flow_time, off.clip(min=EPSILON), **props)
    style.epoch_axis(ax, decoupled.flow_time)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(decoupled.flow_time[-1])))
    ax.set(yscale="log", ylabel="distance (initial loss)")
    ax.set_title(f"Same steps: at most {most:.0e} apart")


def panel_c(results: Results, ax: Axes) -> None:
    """The same distance from the flow, a mean over training, against the step; the line has slope
    1.
    """
    finer = _by_step(results)
    steps = [_step(cell) for cell in finer]
    off = [
        cell.get("metrics", "loss_error_mean", solution="reduction").isel(init_scale=0)
        for cell in finer
    ]
    for step, distance, colour in zip(steps, off, style.sequential(len(finer)), strict=True):
        style.points(ax, step, distance, color=colour, marker="o")
    means = [float(distance.mean()) for distance in off]
    style.loglog(ax, steps)
    style.slope_one(ax, steps, means[0])
    ax.set(xlabel=r"step (units of $\tau$)", ylabel="mean distance (initial loss)")
    slope = style.log_slope(steps, means)
    ax.set_title(f"Distance from the flow: order {slope:.2f} in the step")


def panel_d(results: Results, ax: Axes) -> None:
    """When each mode is half learned, over when theory says, against the singular value of the
    mode; equal ones stand side by side. Markers are seeds.
    """
    cell = results.cell("pathways")
    ratio = cell.get("metrics", "half_time_over_theory", solution="routing_race")
    modes = style.mode_colours(cell.strength)
    for mode, colour in modes.items():
        values = ratio.isel(init_scale=0).sel(mode=mode)
        ax.plot([mode] * values.size, values, "o", color=colour, alpha=0.6)
    ax.axhline(1, **style.THEORY)
    _name_modes(ax, cell)
    ax.set(ylabel="half time over theory's")
    two = float(abs(ratio.sel(mode=list(modes)[:2]) - 1).max())
    ax.set_title(f"First two modes within {two:.0%} of theory in every run")


def panel_e(results: Results, ax: Axes) -> None:
    """Distance of singular values from theory, a mean over training over their final size, by
    layer and mode.
    """
    cell = results.cell("pathways")
    error = cell.get("metrics", "value_error_mean", solution="routing_race").isel(init_scale=0)
    modes = list(style.mode_colours(cell.strength))
    for layer, props in enumerate(domains.LAYERS.values()):
        for mode in modes:
            at = mode + 0.2 * (layer - (len(domains.LAYERS) - 1) / 2)
            mark = {"color": props["color"], "marker": style.marker(layer)}
            style.points(ax, at, error.isel(layer=layer).sel(mode=mode), **mark)
    _name_modes(ax, cell)
    ax.set(ylabel="distance (final value)", ylim=(0, None))
    mean = float(error.sel(mode=modes).mean())
    ax.set_title(f"Values are {mean:.0%} from theory, on average")


def panel_f(results: Results, ax: Axes) -> None:
    """Singular values of input and hidden matrices over their final ones: the curves of a mode
    coincide. The number is how many times as fast those of the hidden matrix grow at their
    fastest.
    """
    cell = results.cell("pathways")
    values = cell.get("trajectory", "singular_values").isel(init_scale=0)
    for layer, (name, props) in enumerate(domains.LAYERS.items()):
        if name == "output matrices":
            continue
        for mode in style.mode_colours(cell.strength):
            own = values.isel(layer=layer).sel(singular_mode=mode)
            line = {"linewidth": 1.1} if layer else {"linewidth": 2.4}
            share = own / own.isel(time=-1)
            style.over_seeds(ax, cell.flow_time, share, **props | line)
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    ax.set(ylabel="share of final value", ylim=(0, None))
    faster = float(cell.get("metrics", "hidden_over_input_speed").mean())
    ax.set_title(f"Hidden values grow {faster:.2f} times as fast")


def _by_step(results: Results) -> list[CellResults]:
    """Cells of the sweep over learning rates, the largest first."""
    cells = results.cells("pathways_step_size")
    return sorted(cells, key=learning_rate, reverse=True)


def _step(cell: CellResults) -> float:
    """Flow time of a step."""
    return float(cell.flow_time[-1] / cell.flow_time["time"][-1])


def _name_modes(ax: Axes, cell: CellResults) -> None:
    modes = list(style.mode_colours(cell.strength))
    names = [f"{float(cell.strength.sel(mode=mode)):.3g}" for mode in modes]
    ax.set_xticks(modes, names)
    ax.set(xlabel="singular value $s$ of the mode", xlim=(modes[0] - 0.6, modes[-1] + 0.6))
