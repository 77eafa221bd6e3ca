"""Any architecture graph: a gated deep linear network with contexts, and its reduction.

A network in the manner of figure 1 of Saxe, Sodhani and Lewallen (2022), made of modules that
inputs and outputs share: a skip edge, and gates that open by context, both inputs together in the
last one. Singular values of every weight matrix and losses lie under those of the neural race
reduction, which starts from the same aligned weights. Gradient descent differs from gradient flow
by a distance of first order in the step; with the same clock, flow against flow or descent against
descent, network and reduction agree up to the tolerance of the integrator or to rounding.
"""

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.figures.sweeps import cannot_draw, smallest_scale
from neuralrace.networks.graph import Graph
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="aac;bbd",
    height=4.0,
    widths=(1.0, 1.0, 1.15),
    cf={"a": "Fig. 1", "b": "Gradient Flow Reduction", "d": "Gradient Flow Reduction"},
    reads={
        "contexts": {
            "trajectory": "loss singular_values",
            "theory": "loss singular_values",
        },
        "contexts contexts_step_size": {
            "metrics": "discretisation_error",
        },
        "contexts_step_size": {
            "trajectory": "loss",
            "theory": "loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates, singular values, and the reduction."""
    values = [
        style.handle(f"{name} singular value", color=colour)
        for name, colour in zip(("largest", "smallest"), style.sequential(2), strict=True)
    ]
    theory = style.handle("reduction", **style.THEORY)
    return [*diagrams.gate_handles(), *values, style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """The network, nodes with their numbers of units. Each line is a pathway; cells at a node are
    its gates in the contexts, first to last.
    """
    cell = results.cell("contexts")
    network = cell.spec.network
    if not isinstance(network, Graph) or not network.gates:
        raise cannot_draw(cell, "network", "graph with gates")
    labels = {name: f"{name}\n{units}" for name, units in network.nodes.items()}
    labels |= {name: f"{name}, {network.nodes[name]}" for name in network.hidden}
    routes = {path: style.categorical(index) for index, path in enumerate(network.pathways)}
    diagrams.draw_network(ax, network, routes, network.gates, labels, shape=2.6)
    contexts = len(next(iter(network.gates.values())))
    ax.set_title(
        f"{len(routes)} pathways through {len(network.edges)} matrices, {contexts} contexts"
    )


def panel_b(results: Results, ax: Axes) -> None:
    """Largest and smallest singular value of each weight matrix at the smaller init scale. They are
    ordered by size, so that modes change places where curves have kinks.
    """
    cell = results.cell("contexts")
    network = cell.spec.network
    simulated = smallest_scale(cell.get("trajectory", "singular_values"))
    reduced = smallest_scale(cell.get("theory", "singular_values", solution="reduction"))
    axes = style.split(ax, 1, simulated.sizes["layer"], sharex=True, sharey=True)[0]
    for layer, part in enumerate(axes):
        for mode, colour in zip((0, -1), style.sequential(2), strict=True):
            at = {"layer": layer, "singular_mode": mode}
            style.over_seeds(part, cell.flow_time, simulated.isel(at), color=colour)
            part.plot(cell.flow_time, reduced.isel(at).mean("seed"), **style.THEORY)
        _clock(part, cell)
        part.tick_params(labelleft=layer == 0)
        source, target = network.edges[layer]
        part.set_title(rf"{source} $\rightarrow$ {target}", loc="center")
    axes[0].set(ylabel="singular value", ylim=(0, None))
    off = float(abs(simulated - reduced).max() / reduced.max())
    ax.set_title(f"Singular values within {off:.1%} of the reduction's")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss over initial loss at all init scales."""
    cell = results.cell("contexts")
    loss = cell.get("trajectory", "loss")
    reduced = cell.get("theory", "loss", solution="reduction").mean("seed").expand_dims("seed")
    loss, reduced = (curve / curve.isel(time=0) for curve in (loss, reduced))
    style.over_scales(ax, cell.flow_time, loss, reduced)
    _clock(ax, cell)
    ax.set(ylabel="loss over initial loss", ylim=(0, None))
    ax.legend(title="init scale", loc="lower left")
    ends = loss.isel(time=-1).mean("seed")
    ax.set_title(f"The loss falls to {float(ends.max()):.1g} of the initial one")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest distances over seeds between losses, over initial loss, at the smaller init scale:
    of gradient descent from the gradient flow of the path sum at two steps, and of network from
    reduction with the same clock. The number is that of the distances from the flow, means over
    training.
    """
    cell, finer = results.cell("contexts"), results.cell("contexts_step_size")
    pairs = {
        "descent, flow": (cell, None, "gated_flow"),
        "the same, half the step": (finer, None, "gated_flow"),
        "flow, reduced flow": (cell, "gated_flow", "reduction"),
        "descent, reduced descent": (cell, None, "reduction_descent"),
    }
    for index, (name, (run, one, other)) in enumerate(pairs.items()):
        loss = run.get("trajectory", "loss")
        first = loss if one is None else run.get("theory", "loss", solution=one)
        distance = abs(first - run.get("theory", "loss", solution=other)) / loss.isel(time=0)
        largest = smallest_scale(distance).max("seed")
        props = {
            "color": style.categorical(index),
            "linestyle": style.LINES[index],
            "linewidth": 1.2,
        }
        ax.plot(run.flow_time, largest.where(largest > 0), label=name, **props)
    _clock(ax, cell)
    ax.set(yscale="log", ylabel="distance (initial loss)")
    ax.legend(loc="center left", fontsize=6)
    half, whole = (float(c.get("metrics", "discretisation_error").mean()) for c in (finer, cell))
    ax.set_title(f"Half the step: {half / whole:.2f} of the distance from the flow")


def _clock(ax: Axes, cell: CellResults) -> None:
    """A logarithmic axis of flow time."""
    time = cell.flow_time
    ax.set(xscale="log", xlim=(time[1], time[-1]), xlabel=r"flow time ($\tau$)")
    ax.xaxis.set_minor_formatter(NullFormatter())
