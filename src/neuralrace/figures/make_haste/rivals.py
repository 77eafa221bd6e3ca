"""Other gates that a ReLU network could have, and how fast they learn.

On Jarvis, Klein, Rosman and Saxe, proposition 4.2 and appendix E, whose fig. 4 has the losses of
gated networks with pathways open in q = 1 and in q = 2 of three contexts, beside a common pathway.
Single contexts are late, and beside pathways of two they stay small, as the source says. What
differs: a pathway for every sample, which the proof rules out by its first singular value, is late
at first and ahead at the end; pathways by object, which the source rules out too, answer all
samples in the end; and the largest distance from the ReLU network's loss is in the first drop,
which the common pathway makes, so that it does not distinguish the families. Lines are means and
bands ranges over runs, 10 of the ReLU network and 5 of each gated network. Theory (joint modes of
all pathways) starts from the initial weights, with nothing fitted.
"""

from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.gate_patterns import COMMON
from neuralrace.figures.sweeps import draw_relative_loss, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "samples_gated": (
        "one pathway per sample",
        {"color": (0.15, 0.15, 0.15), "linewidth": 2.4, "alpha": 1.0},
    ),
    "objects_gated": (
        "one pathway per object",
        {
            "color": (0.5, 0.5, 0.5),
            "linewidth": 1.4,
            "alpha": 1.0,
            "marker": "s",
            "markersize": 4,
            "markevery": 12,
        },
    ),
}
"""Names and lines of networks with other pathways, by experiment."""
NAMES: dict[str, tuple[float, tuple[int, int], Literal["left", "right"]]] = {
    "one pathway per sample": (0.6, (6, 0), "left"),
    "one pathway per object": (0.25, (9, 4), "left"),
    "gated, $q$ = 1": (0.06, (2, 5), "left"),
    "gated, $q$ = 2": (0.028, (-6, -6), "right"),
    "ReLU network": (0.14, (10, 11), "left"),
}
"""Loss at which the name of a curve stands, its offset in points and its alignment."""
LED = "ReLU network"
"""The name with a line to its curve, as another curve lies between."""
FAMILIES: tuple[contextual.Numbers, ...] = ((2,), (1,))
LATE = 0.05
"""Loss over initial loss at which networks are compared."""
LEAST = 1e-4
"""Smallest share of power that is drawn."""


@Figure(
    layout="aa;bc",
    height=4.4,
    heights=(1.25, 1.0),
    cf={"a": "Fig. 4"},
    reads={
        "contextual": {"trajectory": "loss"},
        "contextual_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
            "metrics": "level_time",
        },
        "samples_gated objects_gated": {
            "trajectory": "loss",
            "metrics": "level_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory; lines have names."""
    return [style.handle("theory, joint modes of all pathways", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss as a share of its start; dashed is theory. Numbers are times to the grey line over that
    of the family q = 2.
    """
    relu = results.cell("contextual")
    loss = draw_relative_loss(ax, relu, {"color": style.COLOURS["relu"]})
    networks = _networks(results)
    first = contextual.level_time(networks[0][1], LATE)
    ax.axhline(LATE, **style.GUIDE)
    ratios: dict[str, float] = {}
    for name, cell, props in networks:
        theory = {"pathway_modes": style.THEORY} if "loss" in cell.theory else {}
        draw_relative_loss(ax, cell, props, theory)
        time = contextual.level_time(cell, LATE)
        mark: dict[str, Any] = {"marker": "o"} | dict(props)
        ax.plot(time, LATE, zorder=4, **mark)
        ratios[f"{time / first:.2f}"] = time
        curve = relative_loss(cell.get("trajectory", "loss")).mean("seed")
        _name_curve(ax, name, cell, curve, props["color"])
    _name_curve(ax, "ReLU network", relu, loss.mean("seed"), style.COLOURS["relu"])
    for text, time in ratios.items():
        ax.annotate(text, (time, LATE), (-2, -8), textcoords="offset points", ha="right")
    ax.annotate(f"time to {LATE:.0%}, over that of $q$ = 2:", (0.005, LATE), (0, -3),
                ax.get_yaxis_transform(), "offset points", color="0.4", va="top")  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, yscale="log", ylim=(0.008, 1.2))
    ax.set_xlim(0, 1.05 * style.settling_time(loss, relu.flow_time))
    ax.set_title("One pathway per sample begins last, ends first")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of each pathway in the power (squared maps) of all, where pathways of one and of two
    contexts train together beside a common one.
    """
    families = contextual.families(results.cells("contextual_gated"))
    cell = families[max(families, key=len)]
    simulated, theory = (
        smallest_scale(values) ** 2
        for values in (
            cell.get("trajectory", "pathway_values"),
            cell.get("theory", "pathway_values", solution="pathway_modes"),
        )
    )
    shares = [p / p.sum("pathway") for p in (v.sum("pathway_mode") for v in (simulated, theory))]
    for index, opened in enumerate(contextual.gates_by_context(cell) > 0):
        family = (int(opened.sum()),)
        shade = COMMON if opened.all() else contextual.family_props(family)["color"]
        simulation, predicted = (share.isel(pathway=index) for share in shares)
        style.over_seeds(ax, cell.flow_time, simulation, color=shade)
        ax.plot(cell.flow_time, predicted.mean("seed"), **style.THEORY)
    end = float(cell.flow_time[-1])
    names = [("common pathway", 0.55, COMMON)]
    numbers = (contextual.gates_by_context(cell) > 0).sum(axis=1).tolist()
    for number, height in ((2, 0.06), (1, 0.01)):
        text = f"{numbers.count(number)} pathways of $q$ = {number}"
        names.append((text, height, contextual.family_props((number,))["color"]))
    for text, height, shade in names:
        ax.text(end, height, text, ha="right", va="bottom", color=shade)
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of power", yscale="log", ylim=(LEAST, 2))
    ax.set_xlim(0, end)
    ax.set_title("Trained in one network, single contexts stay small")


def panel_c(results: Results, ax: Axes) -> None:
    """Distance of mean losses, over their start, from the ReLU network's."""
    relu = results.cell("contextual")
    time = relu.flow_time.values
    loss = relative_loss(relu.get("trajectory", "loss")).mean("seed").values
    networks = _networks(results)[: len(FAMILIES)]
    for (_, cell, props), numbers, up in zip(networks, FAMILIES, (0.13, 0.5), strict=True):
        other = relative_loss(cell.get("trajectory", "loss")).mean("seed")
        off = abs(np.interp(time, cell.flow_time, other) - loss)
        ax.plot(time, off, **style.SIMULATION | props)
        ax.text(0.5, up, f"$q$ = {contextual.family_name(numbers)}", color=props["color"],
                transform=ax.transAxes)  # fmt: skip
    peak = int(off.argmax())
    left = peak < len(off) / 2
    ax.annotate("first drop: the common pathway's", (time[peak], off[peak]), (6 if left else -6, 0),
                textcoords="offset points", ha="left" if left else "right", va="top",
                fontsize=6.5)  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, time[-1]), ylim=(0, None))
    ax.set_ylabel("distance of loss\nfrom the ReLU network's")
    ax.set_title("Both families coincide in the first drop")


def _name_curve(
    ax: Axes, name: str, cell: CellResults, loss: xr.DataArray, colour: style.Colour
) -> None:
    """Writes the name of a network beside its loss."""
    level, offset, side = NAMES[name]
    reached = np.flatnonzero(loss.values <= level)
    time = float(cell.flow_time[reached[0]]) if len(reached) else 0.0
    fine = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
    ax.annotate(name, (time, level), offset, textcoords="offset points", ha=side, va="center",
                color=colour, arrowprops=fine if name == LED else None)  # fmt: skip


def _networks(results: Results) -> list[tuple[str, CellResults, dict[str, Any]]]:
    """Name, cell and colour of each gated network; q = 2 is first."""
    families = contextual.families(results.cells("contextual_gated"))
    by_family = [
        (
            f"gated, $q$ = {contextual.family_name(numbers)}",
            families[numbers],
            {"color": contextual.family_props(numbers)["color"]},
        )
        for numbers in FAMILIES
    ]
    return by_family + [
        (name, results.cell(experiment), props) for experiment, (name, props) in OTHERS.items()
    ]
