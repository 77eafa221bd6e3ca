"""Gates of ReLU networks change while they learn, most at first and fewer and fewer later."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
CHANGES = {
    "gate_flip_fraction": ("from the start", {}),
    "carried_gate_flip_fraction": (
        "the same, by power",
        {"linestyle": style.LINES[2], "linewidth": 1.2},
    ),
    "recent_gate_flips": (
        "from the snapshot before",
        {"linestyle": style.LINES[1], "linewidth": 1.2},
    ),
}
"""Metrics, what gates differ from, and how to draw them."""


@Figure(
    reads={
        "three_contexts four_contexts five_contexts two_hidden": {
            "metrics": "carried_gate_flip_fraction gate_flip_fraction recent_gate_flips",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Share of gates that differ from earlier, by number of contexts and by layer."""
    figure, axes = style.panels(2, height=1.75)
    one, two = axes[:, 0]
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    deep = results.cell("two_hidden")
    layers = deep.get("metrics", "gate_flip_fraction")["layer"].values
    lines = [
        (one, cell, 1, f"$C$ = {gated.task(cell).contexts}", colour)
        for cell, colour in zip(cells, style.ordered(len(cells)), strict=True)
    ]
    lines += [
        (two, deep, layer, f"layer {layer}", colour)
        for layer, colour in zip(layers, style.ordered(len(layers)), strict=True)
    ]
    for ax, cell, layer, name, colour in lines:
        time = cell.metrics["snapshot_flow_time"]
        for metric, (_, look) in CHANGES.items():
            flips = gated.smallest(cell.get("metrics", metric)).sel(layer=layer)
            style.over_seeds(ax, time, flips, color=colour, **look)
        ax.plot([], [], color=colour, label=name)
        ax.set_xlim(0, float(time[-1]))
    for ax in (one, two):
        ax.set(ylabel="share of gates\nthat differ", ylim=(0, 0.6))
        ax.legend(loc="upper right", ncols=3)
    two.set_xlabel(style.FLOW_TIME)
    style.letters(axes[:, 0], ["one hidden layer", "two hidden layers"])
    entries = [style.entry(name, color="0.3", **look) for name, look in CHANGES.values()]
    style.legend(figure, [*entries, style.BAND], columns=2)
    return figure
