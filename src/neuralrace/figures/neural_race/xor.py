"""XoR: the cell types of a ReLU network, the gated network they amount to, and the dynamics.

Figure 3 of Saxe, Sodhani and Lewallen (2022). After training from small weights the hidden units of
a ReLU network lie on the diagonals through the four points, each with a readout of the sign of the
label there. These four cell types are the pathways of a gated linear network, each open on one
example, whose closed form the losses follow. The source prints no learning rate; at our reading of
its tau units chatter about the edges of their gates and are late, by a distance that shrinks with
the step and that a fitted start takes up.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.figures.sweeps import learning_rate
from neuralrace.results.cells import CellResults, Results

LABELS: dict[int, dict[str, Any]] = {
    1: {"color": style.categorical(3), "marker": "o"},
    -1: {"color": style.categorical(0), "marker": "s"},
}
"""Markers of labels, and of units by the sign of their readout."""
SPAN = 0.8
"""Position of the largest unit, as a share of the way to a corner."""
POINTS = 400
"""Number of points of a line; more would not be visible."""
UNFITTED: dict[str, Any] = {"marker": "o"}
FITTED: dict[str, Any] = {"marker": "D", "fillstyle": "none"}


@Figure(
    layout="abcd",
    height=2.6,
    widths=(1.0, 1.25, 1.1, 1.0),
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
    """Labels, gates, and losses by learning rate."""
    cells = _by_rate(results)
    colours = style.sequential(len(cells))
    signs = [
        style.handle(f"label, readout ${sign:+d}$", linestyle="", **props)
        for sign, props in LABELS.items()
    ]
    rates = [
        style.handle(f"learning rate {learning_rate(cells[index]):g}", color=colours[index])
        for index in sorted({0, len(cells) - 1})
    ]
    theory = style.handle("theory", **style.THEORY)
    return [*signs, *diagrams.gate_handles(), *rates, style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """The task (large), and where the hidden units of a ReLU network point at the end of one run
    at the finest step: input weights times the size of the readout, to a scale of their own.
    """
    cell = _by_rate(results)[-1]
    data = cell.data
    last = {"init_scale": 0, "seed": 0, "snapshot": -1}
    encoder, readout = (
        cell.get("trajectory", f"weight_{layer}").isel(last).values for layer in (1, 2)
    )
    unit = abs(readout).T * encoder
    unit *= SPAN / abs(unit).max()
    for corner in data.x:
        ax.plot(*np.stack([0 * corner, corner], axis=1), color="0.75", linewidth=0.6, zorder=0)
    for sign, props in LABELS.items():
        corners = data.x[np.sign(data.y[:, 0]) == sign]
        ax.plot(*corners.T, linestyle="", markersize=8, **props)
        chosen = unit[np.sign(readout[0]) == sign]
        ax.plot(*chosen.T, linestyle="", markersize=3, alpha=0.5, **props)
    ax.set(xlabel="input 1, weight 1", ylabel="input 2, weight 2", aspect="equal")
    ax.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    cosine = float(cell.get("metrics", "corner_cosine").mean())
    ax.set_title(f"Cosine to the examples: {cosine:.3f}")


def panel_b(results: Results, ax: Axes) -> None:
    """The gated linear network that this amounts to: four pathways from inputs to output, and
    their gates, a cell for each example.
    """
    cell = results.cell("xor_gated")
    graph, wiring = diagrams.graph(cell), cell.gated.wiring(cell.data)
    signs = np.sign((wiring.pathway_gates @ cell.data.y)[:, 0])
    routes = {
        pathway: LABELS[int(sign)]["color"]
        for pathway, sign in zip(graph.pathways, signs, strict=True)
    }
    names = {side[0]: name for side, name in ((graph.inputs, "$x$"), (graph.outputs, "$y$"))}
    diagrams.draw_network(ax, graph, routes, wiring.gates, names, shape=1.4)
    ax.set_title(f"{len(routes)} pathways, each open on one example")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss over initial loss of the ReLU network, with the closed form of the pathways, which
    starts from the initial weights with nothing fitted.
    """
    cells = _by_rate(results)
    colours = style.sequential(len(cells))
    for index in sorted({0, len(cells) - 1}):
        cell = cells[index]
        loss = cell.get("trajectory", "loss").isel(init_scale=0)
        loss = _thinned(loss / loss.isel(time=0))
        style.over_seeds(ax, _thinned(cell.flow_time), loss, color=colours[index])
    # Theory does not depend on the step size; the finest time axis shows it best.
    theory = cells[-1].get("theory", "loss", solution="xor_race").isel(init_scale=0).mean("seed")
    ax.plot(_thinned(cells[-1].flow_time), _thinned(theory / theory.isel(time=0)), **style.THEORY)
    style.epoch_axis(ax, cells[0].flow_time)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, style.settling_time(theory, cells[-1].flow_time) * 1.1)
    late = cells[0].get("metrics", "loss_half_time_over_predicted", solution="xor_race")
    rate = learning_rate(cells[0])
    ax.set_title(f"At rate {rate:g} half time is {float(late.mean()):.2f} of theory's")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest distance of the loss from the closed form, with nothing fitted and with the one
    initial value of the closed form fitted to each run; the line has slope 1.
    """
    cells = _by_rate(results)
    rates, off = [learning_rate(cell) for cell in cells], []
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        unfitted = cell.get("metrics", "loss_error_sup", solution="xor_race").isel(init_scale=0)
        fitted = cell.get("metrics", "fitted_loss_error_sup").isel(init_scale=0)
        style.points(ax, learning_rate(cell), unfitted, color=colour, **UNFITTED)
        style.points(ax, learning_rate(cell), fitted, color=colour, **FITTED)
        off.append(float(unfitted.mean("seed")))
    style.slope_one(ax, rates, off[-1] * rates[0] / rates[-1])
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="largest distance (initial loss)")
    handles = [("nothing fitted", UNFITTED), ("start fitted", FITTED)]
    marks = [style.handle(name, color="0.3", linestyle="", **props) for name, props in handles]
    ax.legend(handles=marks, loc="lower right")
    ax.set_title(f"Distance: order {style.log_slope(rates, off):.2f}")


def _by_rate(results: Results) -> list[CellResults]:
    """ReLU networks, largest learning rate first."""
    return sorted(results.cells("xor_relu"), key=learning_rate, reverse=True)


def _thinned(curve: xr.DataArray) -> xr.DataArray:
    """A curve thinned out to about `POINTS` points."""
    return curve.isel(time=slice(None, None, max(1, curve.sizes["time"] // POINTS)))
