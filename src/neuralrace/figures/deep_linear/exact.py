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
from neuralrace.figures.modes import draw_strengths
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results

FLOOR = 1e-16
"""Smaller errors, which are rounding, are drawn at this value."""


@Figure(
    layout="abc;def",
    height=3.9,
    cf={"f": "General setup"},
    reads={
        "exact": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
            "metrics": "approximation_error",
        },
        "step_size": {
            "metrics": "discretisation_error approximation_error loss_error_sup",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes of panels a and b, and theory."""
    theory = style.handle("exact solution", **style.THEORY)
    return [*style.mode_handles(_widths(results)[0].strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths with the narrowest hidden layer, from the smallest start.

    As many modes are learned as there are hidden units. In one seed the second mode waits long,
    hence the band.
    """
    _modes(_widths(results)[0], ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same with the widest hidden layer: all modes are learned."""
    _modes(_widths(results)[-1], ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Largest distance of a loss from integrated gradient flow, over the initial loss, by run.

    Of the exact solution at each hidden width, of gradient descent at the finest step, and of
    logistic modes, which do not interfere.
    """
    fine = finest(results, "step_size")
    rows = {
        f"exact, {_width(cell)} hidden": cell.get(
            "metrics", "approximation_error", solution="exact"
        )
        for cell in _widths(results)
    }
    rows["gradient descent"] = fine.get("metrics", "discretisation_error")
    rows["logistic modes"] = fine.get("metrics", "approximation_error", solution="aligned_modes")
    for row, values in enumerate(rows.values()):
        flat = np.sort(values.values, axis=None).clip(min=FLOOR)
        spread = row + np.linspace(-0.25, 0.25, len(flat))
        props = {"color": style.categorical(0), "linestyle": "", "marker": "o", "markersize": 2}
        ax.plot(flat, spread, **props)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="distance from flow (initial loss)", xlim=(FLOOR / 3, 1))
    worst = max(float(error.max()) for name, error in rows.items() if name.startswith("exact"))
    ax.set_title(f"Solution and flow agree to {worst:.0e}")


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss with the narrowest hidden layer, from all init scales.

    What the unlearned modes would explain remains.
    """
    _losses(_widths(results)[0], ax)


def panel_e(results: Results, ax: Axes) -> None:
    """Training loss with the widest hidden layer."""
    _losses(_widths(results)[-1], ax)


def panel_f(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of gradient descent from three theories, by learning rate.

    From the exact solution and from integrated flow it shrinks with the step (thin, slope 1); from
    logistic modes, which are not the network's flow, it does not.
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
    ax.set_ylim(top=10 * ax.get_ylim()[1])  # room for the legend
    ax.legend(loc="upper left")
    ax.set(xlabel="learning rate", ylabel="distance of descent\n(initial loss)")
    ax.set_title(f"Slope {style.log_slope(rates, means):.2f}: first order in the step")


def _width(cell: CellResults) -> int:
    return min(cell.spec.layered.hidden)


def _widths(results: Results) -> list[CellResults]:
    """Cells from the narrowest hidden layer to the widest."""
    return sorted(results.cells("exact"), key=_width)


def _modes(cell: CellResults, ax: Axes) -> None:
    draw_strengths(ax, cell, "exact")
    end = cell.get("trajectory", "mode_strength").isel(init_scale=0, time=-1).mean("seed")
    target = cell.target > 0
    learned, count = int((target & (end > cell.target / 2)).sum()), int(target.sum())
    ax.set_title(f"{_width(cell)} hidden units: {learned} of {count} modes")


def _losses(cell: CellResults, ax: Axes) -> None:
    loss = cell.get("trajectory", "loss")
    exact = cell.get("theory", "loss", solution="exact")
    style.over_scales(ax, cell.flow_time, loss, exact)
    ax.legend(title="init scale", loc="upper right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="training loss", ylim=(0, None))
    ax.set_xlim(0, style.settling_time(exact.mean("seed"), cell.flow_time))
    left = float(loss.isel(time=-1).mean() / loss.isel(time=0).mean())
    ax.set_title(f"{_width(cell)} hidden units: {left:.0%} of the loss is left")
