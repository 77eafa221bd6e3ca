"""The more pairs of domains share a pathway, the sooner it learns.

Figure 5a and b of Saxe, Sodhani and Lewallen (2022): networks that solve the same routing task with
one pathway for every pair of domains, with pathways for groups of domains, or with one for all. The
more pairs share a pathway, the sooner its first mode is learned and the larger its hidden layer
ends. The time to half of the initial loss falls as one over the square root of the number of pairs
that share a pathway; the source says only that it falls.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.figures.ends import label_ends
from neuralrace.networks.gates.groups import Groups
from neuralrace.networks.gates.wiring import routing_architecture
from neuralrace.results.cells import CellResults, Results

STRONGEST = {"init_scale": 0, "layer": 1, "singular_mode": 0}
DRAWN = 4
"""Number of domains in the diagrams; fewer would not show three ways to share."""


@Figure(
    layout="aaa;b.c",
    height=4.9,
    widths=(1.25, 0.06, 1.0),
    heights=(1.15, 1.0),
    cf={"a": "Fig. 5a", "b": "Fig. 5b"},
    reads={
        "race": {
            "trajectory": "singular_values",
            "theory": "singular_values",
            "metrics": (
                "final_strength_over_target hidden_over_input_over_sqrt_m loss_half_time "
                "predicted_loss_half_time"
            ),
        },
        "race_aligned": {
            "metrics": "loss_half_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory; networks are labelled."""
    return [style.handle("theory", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Ways to share among four input domains (left) and four output domains (right): a pathway for
    every pair, for groups of two and two, and for all. Lines are the pairs, in the colour of their
    input domain. The networks of the other panels have ten domains.
    """
    sizes = [size for size in range(1, DRAWN + 1) if DRAWN % size == 0]
    dataset = results.cells("race")[0].domains
    (inputs, outputs), hidden = (dataset.inputs.shape[2], dataset.targets.shape[2]), (64, 64)
    for part, size in zip(style.split(ax, 1, len(sizes))[0], sizes, strict=True):
        families = Groups(name="groups", size=size).families(DRAWN, hidden)
        graph = routing_architecture(DRAWN, inputs, outputs, families)
        colours = dict(zip(graph.inputs, style.sequential(DRAWN), strict=True))
        routes = {pathway: colours[pathway.source] for pathway in graph.pathways}
        diagrams.draw_network(part, graph, routes, units=2 if size == 1 else 3, shape=1.25)
        part.set_title(f"$P$ = {size**2}", loc="center")
    ax.set_title("Pathways for one pair, groups, or all pairs")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest singular value of a hidden matrix: means and ranges over ten runs. Labels give P, and
    the hidden over the input singular value at the end, for which theory has the fourth root of P.
    All networks have learned the strongest mode by then.
    """
    cells = _by_sharing(results.cells("race"))
    ends, settled = [], []
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        simulated = cell.get("trajectory", "singular_values").isel(STRONGEST)
        predicted = cell.get("theory", "singular_values", solution="routing_race").isel(STRONGEST)
        style.over_seeds(ax, cell.flow_time, simulated, color=colour)
        ax.plot(cell.flow_time, predicted.mean("seed"), **style.THEORY)
        share = cell.get("metrics", "hidden_over_input_over_sqrt_m").isel(init_scale=0, mode=0)
        pairs, ratio = _sharing(cell), float(share.mean() * _sharing(cell) ** 0.25)
        label = f"$P$ = {pairs}\n{ratio:.2f} x input"
        ends.append((float(simulated.isel(time=-1).mean()), label, colour))
        settled.append(style.settling_time(simulated, cell.flow_time))
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, max(settled)))
    ax.set(ylabel="hidden singular value", ylim=(0, None))
    label_ends(ax, ends)
    learned = [cell.get("metrics", "final_strength_over_target").isel(mode=0) for cell in cells]
    least = float(min(share.min() for share in learned))
    text = f"strongest mode learned to {least:.0%}"
    ax.text(0.97, 0.83, text, transform=ax.transAxes, ha="right", fontsize=6.5)
    ax.set_title("Shared pathways learn sooner and grow larger")


def panel_c(results: Results, ax: Axes) -> None:
    """Time to half of the initial loss. Filled markers are runs from random weights, open ones from
    aligned layers of equal size, where it falls faster. Exponents are least-squares slopes.
    """
    cells = _by_sharing(results.cells("race"))
    aligned = _by_sharing(results.cells("race_aligned"))
    starts = {
        f"random start, $P^{{{_slope(cells):.2f}}}$": (cells, {"markersize": 5}),
        f"aligned start, $P^{{{_slope(aligned):.2f}}}$": (aligned, {"markerfacecolor": "white"}),
    }
    colours = dict(zip(map(_sharing, cells), style.sequential(len(cells)), strict=True))
    for name, (start, props) in starts.items():
        for cell in start:
            times = _half(cell)
            mark = {"marker": "o", "linestyle": "", "color": colours.get(_sharing(cell), "0.3")}
            ax.plot([_sharing(cell)] * times.size, times, **mark | props)
        ax.plot([], [], color="0.3", marker="o", linestyle="", label=name, **props)
    expected = [
        cell.get("metrics", "predicted_loss_half_time", solution="routing_race") for cell in cells
    ]
    ax.plot(
        [_sharing(cell) for cell in cells],
        [float(time.isel(init_scale=0).mean("seed")) for time in expected],
        **style.THEORY,
    )
    ax.legend(loc="lower left")
    pairs = [_sharing(cell) for cell in cells]
    ax.set(xscale="log", xlabel="pairs $P$ that share a pathway")
    ax.set_xticks(pairs, [str(count) for count in pairs])
    ax.set_xticks([], minor=True)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel(r"time to half the loss ($\tau$)")
    ax.set_title(r"Learning time falls as $1/\sqrt{P}$")


def _by_sharing(cells: Sequence[CellResults]) -> list[CellResults]:
    """Cells of a sweep, smallest P first."""
    return sorted(cells, key=_sharing)


def _sharing(cell: CellResults) -> int:
    """Number P of pairs of domains that share a pathway."""
    return cell.routing.families(cell.spec.dataset.count)[0].size ** 2


def _half(cell: CellResults) -> xr.DataArray:
    """Time to half of the initial loss."""
    return cell.get("metrics", "loss_half_time").isel(init_scale=0)


def _slope(cells: Sequence[CellResults]) -> float:
    """Exponent of the mean half time in P."""
    times = [float(_half(cell).mean()) for cell in cells]
    return float(np.polyfit(np.log(list(map(_sharing, cells))), np.log(times), 1)[0])
