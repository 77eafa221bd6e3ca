"""Where untrained pairs begin to follow depends on the domains and on which pairs are trained.

Variations of figure 5c of Saxe, Sodhani and Lewallen (2022), whose share of 40% is no constant. The
more domains there are, the smaller the share that it takes. Of masks with as many partners, random
ones transfer a little earlier than bands, though near the threshold seeds differ more than masks
do. Small dedicated pathways beside the shared one change little: the shared one wins the race.
Errors are those of untrained pairs at the end, squared, and relative to a network that answers
zero.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

BAND = {"color": style.categorical(0), "marker": "o"}
RANDOM = {"color": style.categorical(3), "marker": "D", "linestyle": style.LINES[1]}
PARALLEL = {"color": style.categorical(4), "marker": "v", "linestyle": style.LINES[2]}
COUNTS = ("generalisation_five", "generalisation", "generalisation_twenty")
"""Sweeps over partners, with five, ten and twenty domains."""


@Figure(
    layout="abc;def",
    height=4.1,
    reads={
        (
            "generalisation generalisation_five generalisation_twenty generalisation_random "
            "generalisation_parallel"
        ): {
            "trajectory": "",
            "metrics": "final_untrained_error",
        },
        "generalisation generalisation_twenty": {
            "metrics": "zero_shot_ratio",
        },
        "generalisation_parallel": {
            "metrics": "trained_pathway_share untrained_pathway_share",
        },
        "mask_contrast": {
            "metrics": "final_untrained_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Masks, pairs, and the share that the paper names."""
    return [
        style.handle("band", **BAND),
        style.handle("random mask", **RANDOM),
        style.handle("band, dedicated pathways beside", **PARALLEL),
        style.BAND,
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Error on untrained pairs against the share of trained partners, for three numbers of
    domains.
    """
    sweeps = [domains.by_partners(results, name) for name in COUNTS]
    for cells, props in zip(sweeps, style.sequential_styles(len(sweeps)), strict=True):
        _draw_errors(ax, cells, props)
        ax.plot([], [], label=f"{cells[0].spec.dataset.count} domains", **props)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.legend(loc="upper right")
    near = [domains.nearest_first(cells)[0] for cells in sweeps]
    medians = ", ".join(f"{float(domains.untrained_error(cell).median()):.0e}" for cell in near)
    ax.set_title(f"Medians nearest to {domains.PAPER_SHARE:.0%}: {medians}")


def panel_b(results: Results, ax: Axes) -> None:
    """How much of what trained pairs learn untrained pairs follow, against the number of partners;
    the grey line is nine tenths, where they count as following.
    """
    thresholds = []
    for name, props in zip(COUNTS[1:], style.sequential_styles(len(COUNTS))[1:], strict=True):
        cells = domains.by_partners(results, name)
        partners = [float(_partners(cell)) for cell in cells]
        ratios = [cell.get("metrics", "zero_shot_ratio").isel(init_scale=0) for cell in cells]
        domains.draw_line(ax, partners, ratios, props)
        thresholds.append(domains.transfer_threshold(partners, ratios))
        ax.plot([], [], label=f"{cells[0].spec.dataset.count} domains", **props)
    ax.axhline(domains.FOLLOWING, **style.GUIDE)
    ax.legend(loc="lower right")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="trained partners $K$", ylabel="zero-shot ratio")
    ax.set_title(f"Median runs follow from $K$ = {', '.join(thresholds)} on")


def panel_c(results: Results, ax: Axes) -> None:
    """Error on untrained pairs where a band of partners is trained, and where they are drawn at
    random.
    """
    for name, props in (("generalisation", BAND), ("generalisation_random", RANDOM)):
        _draw_errors(ax, domains.by_partners(results, name), props)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    near = {
        mask: float(domains.untrained_error(domains.nearest_first(results.cells(name))[0]).median())
        for mask, name in (("band", "generalisation"), ("random", "generalisation_random"))
    }
    medians = ", ".join(f"{mask} {median:.0e}" for mask, median in near.items())
    ax.set_title(f"Medians nearest to {domains.PAPER_SHARE:.0%}: {medians}")


def panel_d(results: Results, ax: Axes) -> None:
    """The same where few partners are trained, run by run, with medians (bars)."""
    styles = {"band": BAND, "random_regular": RANDOM}
    cells = {cell.routing.pairs.name: cell for cell in results.cells("mask_contrast")}
    medians = []
    for position, (name, cell) in enumerate(sorted(cells.items())):
        props = styles[name]
        errors = domains.untrained_error(cell)
        dots = {"color": props["color"], "marker": props["marker"], "markersize": 2.2}
        medians.append(style.single_runs(ax, position, errors, 0.35, **dots))
    ax.set_xticks(range(len(cells)), [name.partition("_")[0] for name in sorted(cells)])
    ax.set(
        yscale="log",
        ylabel="relative error",
        xlabel=f"mask, {_partners(cell)} of {cell.spec.dataset.count} partners",
    )
    values = " and ".join(f"{median:.2g}" for median in medians)
    ax.set_title(f"Medians {values} over {errors.sizes['seed']} seeds")


def panel_e(results: Results, ax: Axes) -> None:
    """Error on untrained pairs with and without a small dedicated pathway for every pair beside
    the shared one. The number is the largest change of a run.
    """
    without = domains.by_partners(results, "generalisation")
    dedicated = domains.by_partners(results, "generalisation_parallel")
    _draw_errors(ax, without, BAND)
    _draw_errors(ax, dedicated, PARALLEL)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    alone = {_partners(cell): domains.untrained_error(cell) for cell in without}
    apart = [
        float(abs(domains.untrained_error(cell) - alone[_partners(cell)]).max())
        for cell in dedicated
        if _partners(cell) in alone and _partners(cell) > 1
    ]
    ax.set_title(f"With dedicated pathways within {max(apart, default=np.nan):.2g}, $K>1$")


def panel_f(results: Results, ax: Axes) -> None:
    """Share of the answers that dedicated pathways carry, in the squares of their maps, on trained
    and on untrained pairs.
    """
    cells = domains.by_partners(results, "generalisation_parallel")
    for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        dedicated = [
            1 - cell.get("metrics", f"{name}_pathway_share").isel(init_scale=0) for cell in cells
        ]
        domains.draw_by_partners(ax, cells, dedicated, props)
        ax.plot([], [], label=f"{name} pairs", **props)
    ax.legend(loc="upper right")
    ax.set(yscale="log", ylabel="dedicated share of power", xlabel="trained share, $K/M$")
    near = domains.nearest_first(cells)[0]
    own = 1 - float(near.get("metrics", "trained_pathway_share").mean())
    ax.set_title(f"Dedicated share at {domains.partner_share(near):.0%}: {own:.0e}")


def _partners(cell: CellResults) -> int:
    """Number K of output domains that each input domain is trained with."""
    return cell.routing.partners(cell.spec.dataset.count)


def _draw_errors(ax: Axes, cells: Sequence[CellResults], props: Mapping[str, Any]) -> None:
    """Draws the final error of untrained pairs against K/M."""
    domains.draw_by_partners(ax, cells, [domains.untrained_error(cell) for cell in cells], props)
    ax.set(yscale="log", ylabel="relative error", xlabel="trained share, $K/M$")
