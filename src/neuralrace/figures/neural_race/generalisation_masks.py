"""Where untrained pairs begin to follow depends on the domains and on which pairs are trained.

Variations of figure 5c of Saxe, Sodhani and Lewallen (2022), whose share of 40% is no constant. The
more domains there are, the smaller the share that it takes, and the larger the number of partners.
Of masks with as many partners, random ones transfer a little earlier than bands, though near the
threshold seeds differ more than masks do. Small dedicated pathways beside the shared one change
little: the shared one wins the race. Errors are those of untrained pairs at the end, squared, and
relative to a network that answers zero. Dots are single runs, ten at each point, and lines join
medians; the grey line is an error of a tenth, where nine tenths are transferred.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

BAND = style.sequential_styles(3)[1]
RANDOM = {
    "color": style.categorical(4),
    "marker": "D",
    "markerfacecolor": "white",
    "linestyle": style.LINES[2],
}
COUNTS = ("generalisation_five", "generalisation", "generalisation_twenty")
"""Sweeps over partners, with five, ten and twenty domains."""
SMALL = 0.1
"""Errors up to this value are small, as in the claims."""
ERROR = "error of untrained pairs"
SHARE = "trained share, $K/M$"


@Figure(
    layout="aaabbb;ccddee",
    height=4.6,
    heights=(1.1, 1.0),
    reads={
        (
            "generalisation generalisation_five generalisation_twenty generalisation_random "
            "generalisation_parallel mask_contrast"
        ): {
            "trajectory": "",
            "metrics": "final_untrained_error",
        },
        "generalisation_parallel": {
            "metrics": "trained_pathway_share untrained_pathway_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The share of the paper, and small errors."""
    return [
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
        style.handle(f"error of {SMALL:g}: nine tenths transferred", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Errors against the share of trained partners, for three numbers of domains. Dotted: the 40%
    of the source.
    """
    _draw_counts(ax, results, domains.partner_share)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.set_xlabel(SHARE)
    ax.legend(loc="lower left")
    ax.set_title("More domains need a smaller share of partners")


def panel_b(results: Results, ax: Axes) -> None:
    """The same errors against the number of trained partners."""
    _draw_counts(ax, results, partners)
    ax.set_xlabel("trained partners, $K$")
    ax.xaxis.set_major_locator(MultipleLocator(2))
    ax.set_title("More domains need more partners")


def panel_c(results: Results, ax: Axes) -> None:
    """Errors where a band of partners is trained, and where they are drawn at random: sixty runs at
    30%, ten at the other shares.
    """
    contrast = {cell.routing.pairs.name: cell for cell in results.cells("mask_contrast")}
    for name, mask, props, shift in (
        ("generalisation", "band", BAND, -0.022),
        ("generalisation_random", "random_regular", RANDOM, 0.022),
    ):
        cells = {partners(cell): cell for cell in results.cells(name)}
        if mask in contrast:
            cells[partners(contrast[mask])] = contrast[mask]
        _draw_errors(ax, [cells[k] for k in sorted(cells)], domains.partner_share, props, shift)
        ax.plot([], [], label=mask.partition("_")[0], **props)
    ax.set_xlabel(SHARE)
    ax.legend(loc="lower left")
    ax.set_title("Random masks transfer earlier")


def panel_d(results: Results, ax: Axes) -> None:
    """Errors of runs with a small dedicated pathway for every pair beside the shared one, against
    those of the same seeds without; grey: no change. Errors below about 1e-5 grow several times.
    """
    alone = {partners(cell): cell for cell in results.cells("generalisation")}
    both = [c for c in results.cells("generalisation_parallel") if partners(c) in alone]
    for several, fill in ((True, RANDOM["color"]), (False, "white")):
        pairs = [
            (
                domains.final_error(alone[partners(cell)], "untrained"),
                domains.final_error(cell, "untrained"),
            )
            for cell in both
            if (partners(cell) > 1) == several
        ]
        style_of_runs = {"color": RANDOM["color"], "markerfacecolor": fill, "linestyle": ""}
        for without, dedicated in pairs:
            ax.plot(without, dedicated, marker="o", markersize=3, **style_of_runs)
        ax.plot([], [], marker="o", label="$K>1$" if several else "$K=1$", **style_of_runs)
    ax.axline((0.1, 0.1), (1, 1), **style.GUIDE)
    ax.set(xscale="log", yscale="log", aspect="equal")
    ax.set(xlabel="error, shared pathway alone", ylabel="with dedicated ones")
    ax.legend(loc="lower right")
    ax.set_title("Large errors change little")


def panel_e(results: Results, ax: Axes) -> None:
    """Share of the answers that dedicated pathways carry, in the squares of their maps, on trained
    and on untrained pairs.
    """
    cells = domains.by_partners(results, "generalisation_parallel")
    shares = [domains.partner_share(cell) for cell in cells]
    for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        dedicated = [
            1 - cell.get("metrics", f"{name}_pathway_share").isel(init_scale=0) for cell in cells
        ]
        domains.draw_runs(ax, shares, dedicated, props)
        ax.plot([], [], label=f"{name} pairs", **props)
    ax.legend(loc="upper right")
    ax.set(yscale="log", ylabel="dedicated share of power", xlabel=SHARE)
    ax.set_title("The shared pathway wins")


def partners(cell: CellResults) -> int:
    """Number K of output domains that each input domain is trained with."""
    return cell.routing.partners(cell.spec.dataset.count)


def _draw_counts(ax: Axes, results: Results, across: Callable[[CellResults], int | float]) -> None:
    """Draws errors for each number of domains."""
    for name, props in zip(COUNTS, style.sequential_styles(len(COUNTS)), strict=True):
        cells = domains.by_partners(results, name)
        _draw_errors(ax, cells, across, props)
        ax.plot([], [], label=f"{cells[0].spec.dataset.count} domains", **props)


def _draw_errors(
    ax: Axes,
    cells: Sequence[CellResults],
    across: Callable[[CellResults], int | float],
    props: Mapping[str, Any],
    shift: float = 0.0,
) -> None:
    """Draws final errors of untrained pairs, where there are any, on a logarithmic axis."""
    errors = [domains.final_error(cell, "untrained") for cell in cells]
    some = [(across(c), e) for c, e in zip(cells, errors, strict=True) if np.isfinite(e).any()]
    domains.draw_runs(ax, [x for x, _ in some], [error for _, error in some], props, shift)
    ax.axhline(SMALL, **style.GUIDE)
    ax.set(yscale="log", ylabel=ERROR)
