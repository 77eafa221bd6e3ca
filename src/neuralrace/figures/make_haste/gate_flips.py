"""How fixed the gates of ReLU networks are while they learn.

The paper (Jarvis et al., "Make Haste Slowly", sec. 6 and appendix B) takes gates to be fixed, and
its gated network has a common pathway of units that are always open. A gate here is that of one
unit on one sample. Most of what sets gates apart from the start happens before the first snapshot,
where lines begin, while weights are small. Afterwards gates flip to and fro, fewer and fewer of
them. In the end hardly any unit is open on all samples: many units together, each closed somewhere,
do what the common pathway does. Means and ranges over seeds.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("contextual", "three_contexts", "four_contexts", "five_contexts")
DOTTED = {"linestyle": style.LINES[2], "linewidth": 1.2}
BROKEN = {"linestyle": style.LINES[1], "linewidth": 1.2}
FLIPS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "gate_flip_fraction": (1, "differ from the start", {}),
    "carried_gate_flip_fraction": (1, "the same, by power", DOTTED),
    "recent_gate_flips": (2, "differ from the snapshot before", BROKEN),
}
"""First snapshot, name and line of each share of gates, by metric."""


@Figure(
    layout="aabbcc;dddeee",
    height=4.2,
    heights=(1.0, 1.1),
    cf={"e": "sec. 4"},
    reads={
        "contextual three_contexts four_contexts five_contexts": {
            "metrics": (
                "always_open_share carried_gate_flip_fraction gate_flip_fraction recent_gate_flips"
            ),
        },
        "contextual": {
            "metrics": "gate_flips_between",
        },
        "two_hidden": {
            "metrics": "carried_gate_flip_fraction gate_flip_fraction recent_gate_flips",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Measures of gate flips."""
    return [
        *(style.handle(name, color="0.3", **props) for _, name, props in FLIPS.values()),
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """One hidden layer: share of gates that are not as at the start; dotted with units by their
    power at the end, the lengths of incoming times outgoing weights. The star is the task with
    blocks of different structure, all others have hierarchies in all.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        _draw_flips(ax, cell, 1, ("gate_flip_fraction", "carried_gate_flip_fraction"), colour)
        ax.plot([], [], color=colour, label=_name(cell))
    ax.legend(loc="lower right", ncols=2, handlelength=1)
    ax.set(ylabel="share of gates that differ", ylim=(0, None))
    carried = metric(cells[0], "carried_gate_flip_fraction")
    end = float(carried.isel(layer=0, snapshot=-1).mean("seed"))
    ax.set_title(f"By power, {end:.0%} differ in the end")


def panel_b(results: Results, ax: Axes) -> None:
    """One hidden layer: share of gates that flip from one snapshot to the next, a twentieth of
    training.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        _draw_flips(ax, cell, 1, ("recent_gate_flips",), colour)
    ax.set_ylim(0, None)
    recent = metric(cells[0], "recent_gate_flips").isel(layer=0).mean("seed")
    ax.set_title(f"Flips from {float(recent[2]):.0%} to {float(recent[-1]):.0%} in a snapshot")


def panel_c(results: Results, ax: Axes) -> None:
    """Both layers of a network with two hidden layers."""
    cell = results.cell("two_hidden")
    layers = cell.get("metrics", "gate_flip_fraction")["layer"].values.tolist()
    for layer, colour in zip(layers, style.sequential(len(layers)), strict=True):
        _draw_flips(ax, cell, layer, FLIPS, colour)
        ax.plot([], [], color=colour, label=f"layer {layer}")
    ax.legend(loc="center right")
    ax.set_ylim(0, None)
    flips = metric(cell, "gate_flip_fraction").isel(snapshot=-1)
    shares = ", ".join(f"{float(share):.0%}" for share in flips.mean("seed"))
    ax.set_title(f"Two layers: {shares} in the end")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of gates that differ between any two snapshots, three contexts of different structure,
    mean over seeds. The start differs from all that follows; the longer training lasts, the wider
    is the dark band of times that agree.
    """
    cell = results.cell("contextual")
    between = metric(cell, "gate_flips_between").isel(layer=0).mean("seed")
    time = between["snapshot_flow_time"].values
    share = between.transpose("snapshot", "other_snapshot").values
    picture, bar = style.split(ax, 1, 2, width_ratios=(1, 0.05))[0]
    image = style.heat(picture, share, 0, max(0.01, np.fmax.reduce(share.ravel())))
    positions = np.linspace(0, len(time) - 1, min(5, len(time))).round().astype(int)
    names = [f"{time[position]:.0f}" for position in positions]
    picture.set_xticks(positions, names)
    picture.set_yticks(positions, names)
    picture.set(xlabel=style.FLOW_TIME, ylabel="flow time")
    ax.figure.colorbar(image, cax=bar, label="share of gates that differ")
    ax.set_title(f"Start and end differ in {float(share[0, -1]):.0%} of gates")


def panel_e(results: Results, ax: Axes) -> None:
    """Units that are open on all samples at the end, by power. Dotted is the share of units of the
    common pathway in the paper's gated network, one pathway among C + 1.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    props = {"color": style.COLOURS["relu"], "marker": "o"}
    shares = [metric(cell, "always_open_share").isel(layer=0) for cell in cells]
    means = style.point_series(ax, range(len(cells)), shares, **props)
    designed = [1 / (contextual.task(cell).contexts + 1) for cell in cells]
    ax.plot(designed, label="Jarvis et al., common pathway", **style.PAPER)
    ax.plot([], [], linestyle="", label="ReLU network", **props)
    ax.set_xticks(range(len(cells)), [_name(cell) for cell in cells])
    ax.set(ylabel="always open, by power", ylim=(-0.01, 1.2 * max(designed)))
    ax.margins(x=0.12)
    ax.legend(loc="center left", bbox_to_anchor=(0, 0.4))
    ax.set_title(f"Units that are always open: {max(means):.1%} at most")


def _name(cell: CellResults) -> str:
    """Number of contexts, with a star if their structures differ."""
    task = contextual.task(cell)
    return f"$C$ = {task.contexts}" + ("*" if len(set(task.blocks)) > 1 else "")


def _draw_flips(
    ax: Axes, cell: CellResults, layer: int, metrics: Iterable[str], colour: style.Colour
) -> None:
    """Draws shares of gates by flow time, each from its first snapshot on."""
    for name in metrics:
        first, _, props = FLIPS[name]
        late = {"snapshot": slice(first, None)}
        time = cell.metrics["snapshot_flow_time"].isel(late)
        flips = metric(cell, name).sel(layer=layer).isel(late)
        style.over_seeds(ax, time, flips, color=colour, **props)
    ax.set_xlabel(style.FLOW_TIME)
    ax.set_xlim(0, ax.dataLim.x1)
