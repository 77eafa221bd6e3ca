"""Other gates that a ReLU network could have, and how fast they learn.

On Jarvis, Klein, Rosman and Saxe, proposition 4.2 and appendix E, whose fig. 4 has the losses of
gated networks with pathways open in q = 1, in q = 2, and in one and in two of three contexts, all
beside a common pathway. Single contexts are late, and beside pathways of two they stay small, as
the source says. What differs: a pathway for every sample, which the proof rules out by its first
singular value, is late at first and ahead at the end; pathways by object, which the source rules
out too, answer all samples in the end; and the largest distance from the ReLU network's loss is in
the first drop, which the common pathway makes, so that it does not tell the families apart.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, relative_loss
from neuralrace.results.cells import CellResults, Results

FAMILIES: dict[contextual.Numbers, Any] = {
    (2,): style.LINES[0],
    (1,): style.LINES[1],
    (1, 2): style.LINES[2],
}
"""Line styles of families, by q."""
OTHERS: dict[str, dict[str, Any]] = {
    "samples_gated": {"color": style.categorical(2), "marker": "D", "linestyle": style.LINES[3]},
    "objects_gated": {"color": style.categorical(5), "marker": "v", "linestyle": style.LINES[0]},
}
"""Lines of networks with a pathway for every sample and for every object, by experiment."""
NAMES = {"samples_gated": "a pathway a sample", "objects_gated": "a pathway an object"}
COMMON: dict[str, Any] = {"color": "0.35", "marker": "X"}
LATE = 0.05
"""Loss over initial loss at which networks are compared."""


@Figure(
    layout="ab;cd",
    height=3.9,
    widths=(1.25, 1.0),
    heights=(1.25, 1.0),
    cf={"a": "Fig. 4"},
    reads={
        "contextual": {"trajectory": "loss"},
        "contextual_gated": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "level_time pathway_share",
        },
        "samples_gated objects_gated": {
            "trajectory": "loss",
            "metrics": "level_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, and gated networks by their gates."""
    return [
        style.handle("ReLU network", **contextual.RELU),
        *(style.handle(name, linewidth=1.2, **props) for name, _, props in _networks(results)),
        style.BAND,
        style.handle("theory", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss as a share of its start; dashed are joint modes from the initial weights."""
    relu = results.cell("contextual")
    loss = draw_relative_loss(ax, relu, contextual.RELU)
    times = []
    for _, cell, props in _networks(results):
        line = props | {"marker": None, "linewidth": 1.2}
        theory = {"pathway_modes": style.THEORY} if "loss" in cell.theory else {}
        draw_relative_loss(ax, cell, line, theory)
        times.append(contextual.level_time(cell, LATE))
    ax.axhline(LATE, **style.GUIDE)
    style.epoch_axis(ax, relu.flow_time)
    ax.set(xlabel=style.FLOW_TIME, yscale="log", ylim=(0.008, 1.2))
    ax.set_xlim(0, style.settling_time(loss, relu.flow_time))
    two, one, *_ = times
    ax.set_title(f"Single contexts take {one / two:.2f} times as long as two to {LATE:.0%}")


def panel_b(results: Results, ax: Axes) -> None:
    """Time to shares of the initial loss over that of pathways open in two contexts."""
    networks = _networks(results)
    levels = networks[0][1].get("metrics", "level_time")["loss_level"].values
    ratios = {}
    for name, cell, props in networks:
        ratios[name] = [
            contextual.level_time(cell, level) / contextual.level_time(networks[0][1], level)
            for level in levels
        ]
        ax.plot(range(len(levels)), ratios[name], linewidth=1.2, **props)
    ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    ax.set(xlabel="loss over initial loss", ylabel="time over that of $q$ = 2")
    early, *_, late = ratios[NAMES["samples_gated"]]
    ax.set_title(
        f"By sample: {early:.2g} times to {max(levels):.0%}, {late:.2g} to {min(levels):.0%}"
    )


def panel_c(results: Results, ax: Axes) -> None:
    """Share of each pathway in the power of all, where families train together."""
    families = contextual.families(results.cells("contextual_gated"))
    cell = families[max(families, key=len)]
    share = metric(cell, "pathway_share")
    opened = contextual.gates_by_context(cell) > 0
    for position, row in enumerate(opened):
        props = COMMON if row.all() else contextual.family_props((int(row.sum()),))
        style.points(ax, position, share.isel(pathway=position), **props)
    names = [", ".join(map(str, np.flatnonzero(row) + 1)) for row in opened]
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel="contexts that a pathway is open in", ylabel="share of power", yscale="log")
    least = opened[1:].sum(axis=1).min()
    few = float(share.isel(pathway=np.flatnonzero(opened.sum(axis=1) == least)).max())
    ax.set_title(f"Trained together, pathways of $q={least}$ have up to {few:.1%} each")


def panel_d(results: Results, ax: Axes) -> None:
    """Distance of mean losses from the ReLU network's; dots are where it is largest."""
    relu = results.cell("contextual")
    time = relu.flow_time.values
    loss = relative_loss(relu.get("trajectory", "loss")).mean("seed").values
    largest = []
    for _, cell, props in _networks(results)[: len(FAMILIES)]:
        other = relative_loss(cell.get("trajectory", "loss")).mean("seed")
        off = abs(np.interp(time, cell.flow_time, other) - loss)
        line: dict[str, Any] = props | {"marker": None, "linewidth": 1.2}
        ax.plot(time, off, **line)
        at = int(off.argmax())
        ax.plot(time[at], off[at], color=props["color"], marker=props["marker"])
        largest.append(f"{off[at]:.2g} at time {time[at]:.0f}")
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, time[-1]), ylabel="distance of losses", ylim=(0, None))
    two, one, *_ = largest
    ax.set_title(f"Farthest from the ReLU network: $q=2$ by {two}, $q=1$ by {one}")


def _networks(results: Results) -> list[tuple[str, CellResults, dict[str, Any]]]:
    """Name, cell and line of each gated network; q = 2 is first."""
    families = contextual.families(results.cells("contextual_gated"))
    by_family = [
        (
            f"gated, $q$ = {contextual.family_name(numbers)}",
            families[numbers],
            contextual.family_props(numbers) | {"linestyle": line},
        )
        for numbers, line in FAMILIES.items()
        if numbers in families
    ]
    return by_family + [(NAMES[name], results.cell(name), props) for name, props in OTHERS.items()]
