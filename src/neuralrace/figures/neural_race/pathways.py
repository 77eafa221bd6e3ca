"""Many domains that share one hidden layer: what they learn, when, and beyond training.

Figure 4 of Saxe, Sodhani and Lewallen (2022), panel by panel. Every input domain is routed to every
output domain through the same hidden layers, and most pairs of domains are trained. The loss falls
in stages, one for each distinct strength of the task, when theory says. All pairs train the hidden
matrix, which ends above the outer ones by the square root of the number of domains. What domains
come to share answers pairs that were never trained. The source prints neither loss nor mask nor how
its random weights are drawn: here the loss is a sum over trained pairs of means over outputs and
items, the mask a cyclic band, and initial weights are orthogonal matrices times the init scale.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, domains, style
from neuralrace.figures.sweeps import relative_loss
from neuralrace.results.cells import Results

STARTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "random start": ("pathways", "routing_race", {"color": style.COLOURS["gated"]}),
    "decoupled start": (
        "pathways_decoupled",
        "reduction_descent",
        {"color": style.categorical(9), "linewidth": 3.2, "alpha": 1, "zorder": 1},
    ),
}
"""Experiments of the starts, and the solutions that predict them."""
ROUNDING = 1e-12
"""Distances up to this share of the initial loss are rounding errors."""
RUN: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.45}
"""Lines of single runs."""
THIN: dict[str, dict[str, Any]] = {"output matrices": {"linewidth": 1.1, "alpha": 1}}
"""Lines of matrices that would hide others."""
EXPECTED = {"color": "0.2", "marker": "D", "linestyle": "", "fillstyle": "none", "zorder": 4}
EXPECTED_AT = 0.9
"""Place of these marks, as a share of the time axis."""


@Figure(
    layout="aabb;ccdd;eefg",
    height=6.2,
    widths=(0.19, 0.19, 0.31, 0.31),
    heights=(0.85, 0.95, 1.0),
    cf={
        "a": "Fig. 4a",
        "b": "Fig. 4b",
        "c": "Fig. 4c, d",
        "d": "Fig. 4e",
        "e": "Fig. 4f",
        "f": "Fig. 4g",
        "g": "Fig. 4h",
    },
    reads={
        "pathways": {
            "trajectory": "loss pair_outputs similarity singular_values",
            "theory": "loss singular_values",
            "metrics": (
                "final_similarity_across final_untrained_error hidden_over_input_over_sqrt_m "
                "loss_half_time_over_predicted"
            ),
        },
        "pathways_decoupled": {
            "trajectory": "loss",
            "theory": "loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates, theory, and bands."""
    return [*diagrams.gate_handles(), style.handle("theory", **style.THEORY), style.BAND]


def panel_a(results: Results, ax: Axes) -> None:
    """The network. Each domain is a bank of units; one input and one output gate are open at a
    time, and the hidden layers always.
    """
    cell = results.cell("pathways")
    graph, count = diagrams.graph(cell), cell.spec.dataset.count
    trained = [p for p in graph.pathways if domains.mask(cell)[domains.domains_of(p)]]
    shown = trained[len(trained) // 3]
    gates = {name: [float(name in shown.nodes)] for name in (*graph.inputs, *graph.outputs)}
    sides = zip(("input", "output"), (graph.inputs, graph.outputs), strict=True)
    labels = {
        name: text
        for side, (first, *_, last) in sides
        for name, text in ((first, f"{side} 1"), (last, str(count)))
    }
    diagrams.draw_network(
        ax, graph, {shown: style.COLOURS["gated"]}, gates, labels, units=3, shape=1.6
    )
    below: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center"}
    style.note_at(ax, "dotted: closed", (0.5, 0.2), (0, 0), **below)
    ax.set_title("Gates open one input and one output")


def panel_b(results: Results, ax: Axes) -> None:
    """The same network as pathways, one line each; numbers say how many flow through a matrix."""
    graph = diagrams.graph(results.cell("pathways"))
    routes = dict.fromkeys(graph.pathways, style.COLOURS["gated"])
    through = {n: sum(n in pathway.edges for pathway in routes) for n in range(len(graph.edges))}
    ends = {
        graph.inputs[0]: graph.outgoing[graph.inputs[0]][0],
        graph.outputs[0]: graph.incoming[graph.outputs[0]][0],
    }
    labels = {name: f"{through[n]} pathways" for name, n in ends.items()}
    for n, edge in enumerate(graph.edges):
        if {*edge} <= {*graph.hidden}:
            labels[graph.edge_name(n)] = str(through[n])
    diagrams.draw_network(ax, graph, routes, labels=labels, units=3, shape=1.6)
    ax.set_title("All pathways share the hidden matrix")


def panel_c(results: Results, ax: Axes) -> None:
    """What each pair of domains has to learn, a hierarchy of items, in the shades of panel g; and
    which pairs are trained. The others are never seen.
    """
    cell = results.cell("pathways")
    targets = cell.domains.targets[0].T
    units, items = ([str(n) for n in range(1, count + 1)] for count in targets.shape)
    task, pairs = style.split(ax, 1, 2, width_ratios=(0.9, 1))[0]
    shades = style.heat(task, targets, float(targets.min()), float(targets.max()), units, items)
    ax.figure.colorbar(shades, ax=task, aspect=20, pad=0.04)
    task.set(xlabel="item", ylabel="output unit")
    task.set_title("target of a pair", loc="center")
    domains.draw_mask(pairs, cell)
    pairs.set_title("trained pairs: dark", loc="center")
    ax.set_title("A hierarchy for some of the pairs")


def panel_d(results: Results, ax: Axes) -> None:
    """Loss over initial loss, ten runs of each start (those of the decoupled one coincide), and
    theory; below, how much they differ from it. Theory of a random start is the gradient flow of
    the reduction, from an aligned start derived from the weights, with nothing fitted; that of a
    decoupled start is the reduction by the steps of the simulation, which differs from it by a
    rounding error, here called zero, and is not drawn. The number is the time to half of the
    initial loss.
    """
    time = results.cell("pathways").flow_time
    whole, off = style.split(ax, 2, height_ratios=(1.6, 1), sharex=True)[:, 0]
    for name, (experiment, solution, props) in STARTS.items():
        cell = results.cell(experiment)
        loss = relative_loss(cell.get("trajectory", "loss")).transpose("time", "seed")
        predicted = relative_loss(cell.get("theory", "loss", solution=solution))
        whole.plot(cell.flow_time, loss, **RUN | props)
        apart = loss - predicted.transpose("time", "seed")
        off.plot(cell.flow_time, apart, **RUN | props)
        exact = float(abs(apart).max()) < ROUNDING
        text = f"{name}: zero" if exact else name
        look = {"color": props["color"], "xycoords": "axes fraction", "va": "top"}
        aligned, line = ("left", 0) if name == "random start" else ("right", 1)
        style.note_at(off, text, (0.99 if line else 0.2, 0.95), (0, 0), ha=aligned, **look)
        whole.plot([], [], **RUN | props, label=name)
        if not exact:
            whole.plot(cell.flow_time, predicted.mean("seed"), label="its theory", **style.THEORY)
    ratio = results.cell("pathways").get(
        "metrics", "loss_half_time_over_predicted", solution="routing_race"
    )
    text = f"half time from random\nstarts: {float(ratio.mean()):.2f} of theory's"
    whole.text(0.97, 0.95, text, transform=whole.transAxes, ha="right", va="top", fontsize=6.5)
    off.set(xlabel=style.FLOW_TIME, xlim=(0, float(time[-1])), ylabel="loss minus\ntheory")
    whole.set(ylabel="loss over\ninitial loss", ylim=(0, None))
    whole.legend(loc="upper left", bbox_to_anchor=(0.32, 1.05), labelspacing=0.3)
    ax.set_title("Losses fall in stages")


def panel_e(results: Results, ax: Axes) -> None:
    """Singular values of the matrices from a random start, mode by mode, means and ranges over
    runs, with theory. Those of input and output matrices coincide; output matrices are the thin
    lines. Diamonds are where the square root of the number of domains, times those of the input
    matrices, puts those of the hidden matrix.
    """
    cell = results.cell("pathways")
    simulated = cell.get("trajectory", "singular_values").isel(init_scale=0)
    predicted = cell.get("theory", "singular_values", solution="routing_race").isel(init_scale=0)
    modes = list(style.mode_colours(cell.strength))
    for layer, (name, props) in enumerate(domains.LAYERS.items()):
        for mode in modes:
            values = simulated.isel(layer=layer).sel(singular_mode=mode)
            if name in THIN:
                ax.plot(cell.flow_time, values.mean("seed"), **props | THIN[name])
            else:
                style.over_seeds(ax, cell.flow_time, values, **props)
            theory = predicted.isel(layer=layer).sel(singular_mode=mode).mean("seed")
            ax.plot(cell.flow_time, theory, **style.THEORY)
    size = cell.routing.families(cell.spec.dataset.count)[0].size
    ends = simulated.isel(time=-1).sel(singular_mode=modes).mean("seed")
    root, last = rf"$\sqrt{{{size}}}$", float(cell.flow_time[-1])
    ax.plot([EXPECTED_AT * last] * len(modes), ends.isel(layer=0) * size**0.5, **EXPECTED)
    ax.plot([], [], **EXPECTED, label=f"{root} = {size**0.5:.2f} times input")
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, last))
    ax.set(ylabel="singular value", ylim=(0, 1.25 * float(simulated.max())))
    ratio = float(cell.get("metrics", "hidden_over_input_over_sqrt_m").mean()) * size**0.5
    ax.locator_params(axis="y", nbins=6)  # whatever the height, which the layout changes
    text = f"hidden: {ratio:.2f} times input"
    right: dict[str, Any] = {"ha": "right", "color": domains.LAYERS["hidden matrix"]["color"]}
    style.note_at(ax, text, (1, 1), (0, -1), xycoords="axes fraction", va="top", **right)
    for name, up in (("output matrices", 4), ("input matrices", 13)):
        text = f"{name.split()[0]} ({'thin' if name in THIN else 'wide'})"
        right["color"] = domains.LAYERS[name]["color"]
        style.note_at(ax, text, (1, 0), (-2, up), xycoords="axes fraction", **right)
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.95))
    ax.set_title(f"Hidden values are {root} times the input's")


def panel_f(results: Results, ax: Axes) -> None:
    """Cosines between the representations of all items of all input domains in the first hidden
    layer, at the end of one run: the pattern of one domain repeats in all. The number is a mean
    over runs.
    """
    cell = results.cell("pathways")
    cosine = float(cell.get("metrics", "final_similarity_across").mean())
    part = style.split(ax, 1)[0, 0]
    shades = domains.draw_similarity(part, cell)
    part.set_title(f"same item, two domains: {cosine:.2f}", loc="center")
    ax.figure.colorbar(shades, ax=part, label="cosine", ticks=(-1, 0, 1), aspect=24, pad=0.03)
    ax.set_title("One shared representation")


def panel_g(results: Results, ax: Axes) -> None:
    """Outputs of all pairs of domains at the end of one run, items across and output units up in
    each; pairs outside the frames were never trained. The number is the squared error of those
    over that of answering zero, a mean over runs.
    """
    cell = results.cell("pathways")
    part = style.split(ax, 1)[0, 0]
    shades = domains.draw_outputs(part, cell)
    error = float(cell.get("metrics", "final_untrained_error").mean())
    part.set_title(f"error of untrained: {100 * error:.1g}%", loc="center")
    part.set_xlabel("input domain (framed: trained)")
    ax.figure.colorbar(shades, ax=part, label="output", extend="both", aspect=24, pad=0.03)
    ax.set_title("All pairs succeed")
