"""XoR: the cell types of a ReLU network, the gated network they amount to, and the dynamics.

Figure 3 of Saxe, Sodhani and Lewallen (2022), in ten runs. After training from small weights the
hidden units of a ReLU network lie on the diagonals through the four points, each with a readout of
the sign of the label there. These four cell types are the pathways of a gated linear network, each
open on one example, whose closed form the losses follow. The source prints no learning rate; at our
reading of its tau units chatter about the edges of their gates and are late, by a distance that
shrinks with the step and that a fitted start takes up.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.figures.sweeps import learning_rate
from neuralrace.results.cells import CellResults, Results

LABELS: dict[int, dict[str, Any]] = {1: {"marker": "o"}, -1: {"marker": "s"}}
"""Markers of labels, and of units by the sign of their readout."""
RELU = style.COLOURS["relu"]
SPAN = 0.8
"""Position of the largest unit, as a share of the way to a corner."""
POINTS = 400
"""Number of points of a line; more would not be visible."""
UNFITTED: dict[str, Any] = {"marker": "o", "color": RELU}
FITTED: dict[str, Any] = {"marker": "D", "color": "0.35", "fillstyle": "none"}
MARKED = {"linestyle": "", "alpha": 0.8}


@Figure(
    layout="ab;cd",
    height=5.4,
    heights=(1.35, 1.0),
    cf={"a": "Fig. 3a", "b": "Fig. 3b", "c": "Fig. 3c"},
    reads={
        "xor_relu": {
            "trajectory": "loss weight_1 weight_2",
            "theory": "loss",
            "metrics": (
                "corner_cosine fitted_loss_error_sup loss_error_sup loss_half_time_over_predicted"
            ),
        },
        "xor_gated": {
            "trajectory": "",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Units by readout, gates, and theory."""
    units = [
        style.handle(f"unit, readout ${side}0$", color=RELU, linestyle="", **LABELS[sign])
        for sign, side in ((1, ">"), (-1, "<"))
    ]
    return [*units, *diagrams.gate_handles(), style.handle("theory", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """The task (large, with labels), and where the hidden units of a ReLU network point at the end
    of the run of median alignment at the smallest step: input weights times the size of the
    readout, to a scale of their own.
    """
    cell = _by_rate(results)[-1]
    data, cosine = cell.data, cell.get("metrics", "corner_cosine").isel(init_scale=0)
    over_corners = [dim for dim in cosine.dims if dim != "seed"]
    last = {"init_scale": 0, "snapshot": -1}
    encoder, readout = (
        cell.get("trajectory", f"weight_{layer}")
        .isel(last)
        .sel(seed=style.median_seed(cosine.mean(over_corners)))
        .values
        for layer in (1, 2)
    )
    unit = abs(readout).T * encoder
    unit *= SPAN / abs(unit).max()
    for corner, label in zip(data.x, np.sign(data.y[:, 0]).astype(int), strict=True):
        ax.plot(*np.stack([0 * corner, corner], axis=1), color="0.75", linewidth=0.6, zorder=0)
        shade = {"markerfacecolor": "white", "markeredgecolor": "0.2", "markersize": 17}
        ax.plot(*corner, linestyle="", **LABELS[label] | shade)
        ax.text(corner[0], corner[1], f"${label:+d}$", ha="center", va="center")
    for sign, props in LABELS.items():
        chosen = unit[np.sign(readout[0]) == sign]
        ax.plot(*chosen.T, linestyle="", markersize=4, alpha=0.5, color=RELU, **props)
    ax.set(xlabel="input 1, weight 1 (rescaled)", ylabel="input 2, weight 2 (rescaled)")
    ax.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    ax.set_aspect("equal")
    text = f"mean cosine to\nexamples: {float(cosine.mean()):.3f}"
    style.note_at(ax, text, (0, ax.get_ylim()[0]), (0, 3), ha="center")
    ax.set_title("Units lie along the four examples")


def panel_b(results: Results, ax: Axes) -> None:
    """The gated linear network that this amounts to: four pathways from inputs to output, each with
    the example that it is open on. Cells are its gates on all examples.
    """
    cell = results.cell("xor_gated")
    graph, wiring = diagrams.graph(cell), cell.gated.wiring(cell.data)
    routes = dict.fromkeys(graph.pathways, style.COLOURS["gated"])
    names = {side[0]: name for side, name in ((graph.inputs, "$x$"), (graph.outputs, "$y$"))}
    for pathway, gates in zip(graph.pathways, wiring.pathway_gates, strict=True):
        examples = [f"$({one:+.0f}, {two:+.0f})$" for one, two in cell.data.x[gates > 0]]
        names[pathway.nodes[1]] = " ".join(examples)
    diagrams.draw_network(ax, graph, routes, wiring.gates, names, units=2, shape=1.4)
    text = "cells: gates on the four examples,\nin the order of the pathways"
    middle: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center"}
    style.note_at(ax, text, (0.5, 0), (0, 0), **middle)
    ax.set_title("Four pathways, each open on one example")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss over initial loss of ten ReLU networks at the smallest (orange) and the largest step
    (grey), with the closed form of the pathways, which starts from the initial weights with nothing
    fitted, as a mean over runs. The number is the time to half of the initial loss.
    """
    cells = _by_rate(results)
    left: tuple[float, float, str] = (0.5, -5, "right")
    right: tuple[float, float, str] = (0.8, 6, "left")
    late = cells[0].get("metrics", "loss_half_time_over_predicted", solution="xor_race")
    for cell, colour, (level, gap, side) in ((cells[0], "0.55", right), (cells[-1], RELU, left)):
        loss = cell.get("trajectory", "loss").isel(init_scale=0).transpose("time", "seed")
        loss = _thinned(loss / loss.isel(time=0))
        ax.plot(_thinned(cell.flow_time), loss, color=colour, alpha=0.45, linewidth=0.9)
        edge = loss.max("seed") if side == "left" else loss.min("seed")
        at = loss["time"].values[np.flatnonzero(edge.values <= level)[:1]]
        if len(at):
            here = float(cell.flow_time.sel(time=at[0])), level
            text = {"color": colour, "ha": side, "va": "center", "fontsize": 6.5}
            rate = f"rate {learning_rate(cell):g}"
            ax.annotate(rate, here, (gap, 0), textcoords="offset points", **text)
    # Theory does not depend on the step size; the finest time axis shows it best.
    theory = cells[-1].get("theory", "loss", solution="xor_race").isel(init_scale=0).mean("seed")
    ax.plot(_thinned(cells[-1].flow_time), _thinned(theory / theory.isel(time=0)), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, style.settling_time(theory, cells[-1].flow_time) * 1.1)
    half = f"at {learning_rate(cells[0]):g}, half time\n{float(late.mean()):.2f} of theory's"
    half += "\n(thin: runs)"
    ax.text(0.03, 0.04, half, transform=ax.transAxes, fontsize=6.5)
    ax.set_title("At small steps ReLU losses follow theory")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest distance of the loss from the closed form, with nothing fitted and with the one
    initial value of the closed form fitted to each run. Markers are runs; the line has slope 1.
    """
    cells = _by_rate(results)
    rates, off = [learning_rate(cell) for cell in cells], []
    for rate, cell in zip(rates, cells, strict=True):
        unfitted = cell.get("metrics", "loss_error_sup", solution="xor_race").isel(init_scale=0)
        fitted = cell.get("metrics", "fitted_loss_error_sup").isel(init_scale=0)
        ax.plot([rate / 1.12] * unfitted.size, unfitted, **MARKED | UNFITTED)
        ax.plot([rate * 1.12] * fitted.size, fitted, **MARKED | FITTED)
        off.append(float(unfitted.mean("seed")))
    style.slope_one(ax, rates, off[-1] * rates[0] / rates[-1])
    middle = (rates[0] * rates[-1]) ** 0.5
    style.note_at(ax, "slope 1", (middle, off[-1] * middle / rates[-1]), (12, 0), va="top")
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="largest distance (initial loss)")
    order = f"unfitted theory (ten runs coincide): order {style.log_slope(rates, off):.2f}"
    handles = [(order, UNFITTED), ("theory with fitted start (ten runs)", FITTED)]
    marks = [style.handle(name, linestyle="", **props) for name, props in handles]
    ax.legend(handles=marks, loc="upper left")
    ax.set_title("Distance from the unfitted theory shrinks with step")


def _by_rate(results: Results) -> list[CellResults]:
    """ReLU networks, largest learning rate first."""
    return sorted(results.cells("xor_relu"), key=learning_rate, reverse=True)


def _thinned(curve: xr.DataArray) -> xr.DataArray:
    """A curve thinned out to about `POINTS` points."""
    return curve.isel(time=slice(None, None, max(1, curve.sizes["time"] // POINTS)))
