"""Modules that modalities and tasks share: a gated linear network and its reduction.

A network in the manner of figure 1 of Saxe, Sodhani and Lewallen (2022): modalities and tasks share
a hidden module, with a skip edge from one modality to one task, and gates that open by context,
both modalities together in the last one. It is smaller than the source's, so that every pathway can
be followed. Singular values of every weight matrix and losses follow the neural race reduction,
which starts from the same aligned weights. Gradient descent differs from gradient flow by a
distance of first order in the step. Lines are means over ten runs, whose range is narrower than
the lines.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.sweeps import cannot_draw, smallest_scale
from neuralrace.networks.graph import Graph
from neuralrace.results.cells import CellResults, Results

ROUNDING = 1e-12
"""Distances up to this share of the initial loss are rounding errors."""


@Figure(
    layout="aab;aac;ddd",
    height=4.9,
    widths=(1.0, 1.0, 1.1),
    heights=(0.5, 0.5, 0.95),
    cf={"a": "Fig. 1", "d": "Gradient Flow Reduction"},
    reads={
        "contexts": {
            "trajectory": "loss singular_values",
            "theory": "loss singular_values",
        },
        "contexts_step_size": {
            "trajectory": "loss",
            "theory": "loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates, and the reduction."""
    return [*diagrams.gate_handles(), style.handle("reduction", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """The network. Each coloured line is a pathway from a modality to a task, in the order of the
    key; cells at a node are its gates in the numbered contexts.
    """
    cell = results.cell("contexts")
    network = cell.spec.network
    if not isinstance(network, Graph) or not network.gates:
        raise cannot_draw(cell, "network", "graph with gates")
    labels = {
        name: f"{kind} {name}\n{network.nodes[name]} units"
        for kind, names in (("modality", network.inputs), ("task", network.outputs))
        for name in names
    }
    labels |= {name: f"{name} module\n{network.nodes[name]} units" for name in network.hidden}
    # Further apart than those of ordered things, as lines are side by side.
    colours = style.GREEN(np.linspace(0, 0.9, len(network.pathways)))[:, :3].tolist()
    routes = dict(zip(network.pathways, map(tuple, colours), strict=True))
    diagrams.draw_network(ax, network, routes, network.gates, labels, shape=1.75, numbered=True)
    lines = []
    for context in range(len(next(iter(network.gates.values())))):
        ends = (
            " and ".join(n for n in names if n not in network.gates or network.gates[n][context])
            for names in (network.inputs, network.outputs)
        )
        lines.append(f"context {context + 1}: {' to '.join(ends)}")
    ax.text(0.98, 0.02, "\n".join(lines), ha="right", fontsize=6.5, color="0.3")
    names = {r" $\to$ ".join(pathway.nodes): colour for pathway, colour in routes.items()}
    handles = [style.handle(name, color=colour) for name, colour in names.items()]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 0.21), labelspacing=0.25)
    ax.set_title("Modalities and tasks share a module")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss over initial loss from two scales of initial weights. With the same clock, flow against
    flow and descent against descent, network and reduction differ by rounding.
    """
    cell = results.cell("contexts")
    loss = cell.get("trajectory", "loss")
    reduced = cell.get("theory", "loss", solution="reduction").mean("seed").expand_dims("seed")
    loss, reduced = (curve / curve.isel(time=0) for curve in (loss, reduced))
    _clock(ax, cell)
    ax.set(ylabel="relative loss", ylim=(0, 1))
    scales = sorted(loss["init_scale"].values)
    for scale, colour in zip(scales, _scale_colours(cell), strict=True):
        at = {"init_scale": scale}
        style.over_seeds(ax, cell.flow_time, loss.sel(at), color=colour)
        ax.plot(cell.flow_time, reduced.sel(at).mean("seed"), **style.THEORY)
        last = scale == scales[-1]
        level = 0.35 if last else 0.5
        reached = int((loss.sel(at).mean("seed") < level).argmax("time"))
        text = f"{scale:g}" if last else f"init scale {scale:g}"
        place = {"color": colour, "ha": "right" if last else "left", "va": "top"}
        beside = (-6 if last else 6, 0)
        style.note_at(ax, text, (float(cell.flow_time[reached]), level), beside, **place)
    same = max(
        float(_distance(cell, one, other).max())
        for one, other in (("gated_flow", "reduction"), (None, "reduction_descent"))
    )
    text = "with equal steps " + ("they coincide" if same < ROUNDING else f"{same:.0e} apart")
    style.note_at(ax, text, (1, 0.97), (0, 0), xycoords="axes fraction", ha="right", va="top")
    ax.set_title("The loss follows the reduction")


def panel_c(results: Results, ax: Axes) -> None:
    """Distance of the loss of gradient descent from that of the gradient flow of the path sum, over
    the initial loss, at two steps: the largest over runs, from the smaller weights.
    """
    cell, finer = results.cell("contexts"), results.cell("contexts_step_size")
    ends = []
    for run, label, colour in ((cell, "step", "0.15"), (finer, "half\nthe step", "0.5")):
        largest = _distance(run, None, "gated_flow")
        ax.plot(run.flow_time, largest.where(largest > 0), color=colour)
        ends.append((float(largest.isel(time=-1)), label, colour))
    _clock(ax, cell)
    ax.set(yscale="log", ylabel="loss: distance from\ngradient flow")
    label_ends(ax, ends)
    ax.set_title("Half the step, half the distance")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest (dark) and smallest singular value of each weight matrix, from the smaller weights.
    They are ordered by size, so that modes change places where curves have kinks.
    """
    cell = results.cell("contexts")
    network = cell.spec.network
    simulated = smallest_scale(cell.get("trajectory", "singular_values"))
    reduced = smallest_scale(cell.get("theory", "singular_values", solution="reduction"))
    axes = style.split(ax, 1, simulated.sizes["layer"], sharex=True, sharey=True)[0]
    ends = []
    for layer, part in enumerate(axes):
        ends = []
        for mode, name, colour in zip(
            (0, -1), ("largest", "smallest"), style.sequential(2), strict=True
        ):
            at = {"layer": layer, "singular_mode": mode}
            style.over_seeds(part, cell.flow_time, simulated.isel(at), color=colour)
            part.plot(cell.flow_time, reduced.isel(at).mean("seed"), **style.THEORY)
            ends.append((float(simulated.isel(at).isel(time=-1).mean()), name, colour))
        _clock(part, cell)
        part.tick_params(labelleft=layer == 0)
        source, target = network.edges[layer]
        part.set_title(rf"{source} $\rightarrow$ {target}", loc="center")
    axes[0].set(ylabel="singular value", ylim=(0, None))
    label_ends(axes[-1], ends)
    off = float(abs(simulated - reduced).max() / reduced.max())
    text = f"all matrices: within {off:.1%} of the largest value"
    style.note_at(ax, text, (1, 1), (0, 4), xycoords="axes fraction", ha="right")
    ax.set_title("Singular values of every matrix follow the reduction")


def _scale_colours(cell: CellResults) -> list[style.Colour]:
    """Colours of init scales, smallest first; those of modes are of another hue."""
    return style.sequential(len(cell.spec.init_scales), style.PURPLE)


def _distance(run: CellResults, one: str | None, other: str) -> xr.DataArray:
    """Largest distance of two losses over runs, over the initial loss, (time).

    `one` is a solution, or None for training.
    """
    loss = run.get("trajectory", "loss")
    first = loss if one is None else run.get("theory", "loss", solution=one)
    distance = abs(first - run.get("theory", "loss", solution=other)) / loss.isel(time=0)
    return smallest_scale(distance).max("seed")


def _clock(ax: Axes, cell: CellResults) -> None:
    """A logarithmic axis of flow time."""
    time = cell.flow_time
    ax.set(xscale="log", xlim=(time[1], time[-1]), xlabel=r"flow time ($\tau$)")
    ax.xaxis.set_minor_formatter(NullFormatter())
