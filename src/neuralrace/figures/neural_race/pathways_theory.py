"""How closely many domains that share one hidden layer follow theory.

The network of figure 4 of Saxe, Sodhani and Lewallen (2022), measured in ten runs. From a decoupled
start the simulation is the reduction, to rounding, once both take the same steps; from its gradient
flow it differs by a distance of first order in the step. From random weights modes are learned
about when theory says; the times of stronger ones vary less from run to run. By its own clock the
hidden matrix is no faster than the outer ones: it grows the square root of the number of domains
times as fast, and as much further.
"""

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.sweeps import learning_rate, relative_loss
from neuralrace.results.cells import CellResults, Results

ROUNDING = 1e-12
"""Distances up to this share of the initial loss are rounding errors."""
LEAST = 1e-7
"""Smaller distances from the flow are not drawn."""


@Figure(
    layout="ab;cd",
    height=4.6,
    cf={"a": "Fig. 4e", "b": "Fig. 4f", "c": "Fig. 4f", "d": "Fig. 4b"},
    reads={
        "pathways": {
            "trajectory": "singular_values",
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
    """None: it stands in the panels."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Distance of the loss from the gradient flow of the reduction, over initial loss, from a
    decoupled start and for three sizes of steps. The order is the slope of its mean over training
    in the step. With the same steps, simulation and reduction differ by the error that is named.
    """
    finer = sorted(results.cells("pathways_step_size"), key=learning_rate, reverse=True)
    for cell, colour in zip(finer, style.greys(len(finer)), strict=True):
        off = _distance(cell, "reduction").max("seed")
        label = rf"{_step(cell):.2g} $\tau$"
        ax.plot(cell.flow_time, off.where(off > LEAST), color=colour, linewidth=1.4, label=label)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, 1.05 * ax.dataLim.x1))
    ax.set(yscale="log", ylabel="distance of losses (initial loss)", ylim=(LEAST, 1))
    ax.legend(title="step", loc="lower center", bbox_to_anchor=(0.76, 0))
    means = [
        float(cell.get("metrics", "loss_error_mean", solution="reduction").mean()) for cell in finer
    ]
    same = float(_distance(results.cell("pathways_decoupled"), "reduction_descent").max())
    text = (
        "decoupled start (b to d: random ones):\n"
        f"distance $\\propto$ step$^{{{style.log_slope([*map(_step, finer)], means):.2f}}}$\n"
        "with equal steps, network\n"
        f"and reduction {'coincide' if same < ROUNDING else f'differ by {same:.0e}'}"
    )
    style.note(ax, text)
    ax.set_title("Smaller steps are closer to the flow")


def panel_b(results: Results, ax: Axes) -> None:
    """When each mode is half learned from random weights, over when theory says, against the
    singular value of the mode; equal ones stand side by side. Dots are runs, bars medians.
    """
    cell = results.cell("pathways")
    ratio = cell.get("metrics", "half_time_over_theory", solution="routing_race")
    modes = style.mode_colours(cell.strength)
    values = ratio.isel(init_scale=0).sel(mode=list(modes))
    ax.update_datalim([(1, float(end)) for end in (values.min(), values.max())])
    ax.axhline(1, **style.THEORY)
    style.note_at(ax, "theory", (0, 1), (3, -3), xycoords=ax.get_yaxis_transform(), va="top")
    corner: dict[str, Any] = {"xycoords": "axes fraction", "va": "top"}
    style.note_at(ax, "dots: runs, bars: medians", (0, 1), (3, 0), **corner)
    for mode, colour in modes.items():
        dots = {"marker": "o", "color": colour, "alpha": 0.7}
        if (learned := values.sel(mode=mode).dropna("seed")).size:
            style.single_runs(ax, mode, learned, 0.25, **dots)
    two = list(modes)[:2]
    off, middle = abs(values.sel(mode=two) - 1).max(), sum(two) / len(two)
    inside, (left, right) = ax.get_xaxis_transform(), (two[0] - 0.35, two[-1] + 0.35)
    bracket = ([left, left, right, right], [0.23, 0.2, 0.2, 0.23])
    ax.plot(*bracket, color="0.3", linewidth=0.8, transform=inside)
    text = "strong modes, all runs"
    ax.text(middle, 0.1, text, transform=inside, ha="center", fontsize=6.5)
    _name_modes(ax, cell)
    ax.set(ylabel="half time over theory's")
    ax.set_title(f"Strong modes are learned within {float(off):.0%} of theory")


def panel_c(results: Results, ax: Axes) -> None:
    """Distance of singular values from theory, a mean over training over their final size, by
    layer and mode, from random weights: means and ranges over runs.
    """
    cell = results.cell("pathways")
    error = cell.get("metrics", "value_error_mean", solution="routing_race").isel(init_scale=0)
    modes = list(style.mode_colours(cell.strength))
    for layer, props in enumerate(domains.LAYERS.values()):
        for mode in modes:
            at = mode + 0.2 * (layer - (len(domains.LAYERS) - 1) / 2)
            mark = {"color": props["color"], "marker": style.marker(layer), "markersize": 5}
            style.points(ax, at, error.isel(layer=layer).sel(mode=mode), **mark)
    marks = [
        style.handle(name, linestyle="", marker=style.marker(layer), **props)
        for layer, (name, props) in enumerate(domains.LAYERS.items())
    ]
    ax.legend(handles=marks, loc="upper left", bbox_to_anchor=(0, 0.78))
    _name_modes(ax, cell)
    ax.set(ylabel="distance from theory (final value)", ylim=(0, None))
    average = float(error.sel(mode=modes).mean())
    text = f"mean over layers\nand modes: {average:.0%}\n(bars: ranges)"
    ax.text(0.03, 0.97, text, transform=ax.transAxes, va="top", fontsize=6.5)
    ax.set_title("Theory is closer for larger singular values")


def panel_d(results: Results, ax: Axes) -> None:
    """Singular values of input and hidden matrices over their final ones, from random weights:
    means over runs. The number is how many times as fast those of the hidden matrix grow at their
    fastest, a mean over modes and runs.
    """
    cell = results.cell("pathways")
    values = cell.get("trajectory", "singular_values").isel(init_scale=0)
    early = {"time": 3 * values.sizes["time"] // 8}
    for layer, (name, up) in enumerate({"input matrices": 5, "hidden matrix": -5}.items()):
        props = domains.LAYERS[name]
        for number, mode in enumerate(style.mode_colours(cell.strength), start=1):
            own = values.isel(layer=layer).sel(singular_mode=mode)
            share = (own / own.isel(time=-1)).mean("seed")
            line: dict[str, Any] = {"linewidth": 1.2} if layer else style.SIMULATION
            ax.plot(cell.flow_time, share, **props | line)
            level = 0.95 - 0.1 * number  # each at its own height, as modes may be learned together
            reached = cell.flow_time.values[share.values >= level][:1]
            if layer and reached.size:
                text = "mode\n1" if number == 1 else str(number)
                style.note_at(ax, text, (float(reached[0]), level), va="center")
        # the last mode is the slowest
        at = float(cell.flow_time[early["time"]]), float(share[early])
        place = {"ha": "center", "va": "bottom" if up > 0 else "top"}
        style.note_at(ax, name.split()[0], at, (0, up), color=props["color"], **place)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    ax.set(ylabel="share of final value", ylim=(0, None))
    faster = float(cell.get("metrics", "hidden_over_input_speed").mean())
    count = cell.spec.dataset.count
    root = rf"$\sqrt{{{count}}}$ = {count**0.5:.2f}"
    text = f"before scaling,\nhidden values grow\n{faster:.2f} times as fast\n({root})"
    ax.text(0.97, 0.06, text, transform=ax.transAxes, ha="right", fontsize=6.5)
    ax.set_title("Layers are half-way at the same time")


def _distance(cell: CellResults, solution: str) -> xr.DataArray:
    """Distance of the loss from a solution, over the initial loss, (seed, time)."""
    predicted = relative_loss(cell.get("theory", "loss", solution=solution))
    return abs(relative_loss(cell.get("trajectory", "loss")) - predicted)


def _step(cell: CellResults) -> float:
    """Flow time of a step."""
    return float(cell.flow_time[-1] / cell.flow_time["time"][-1])


def _name_modes(ax: Axes, cell: CellResults) -> None:
    modes = list(style.mode_colours(cell.strength))
    names = [
        f"mode {place}\n$s$ = {float(cell.strength.sel(mode=mode)):.3g}"
        for place, mode in enumerate(modes, start=1)
    ]
    ax.set_xticks(modes, names)
    ax.set(xlim=(modes[0] - 0.6, modes[-1] + 0.6))
