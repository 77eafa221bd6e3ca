"""Where untrained pairs begin to follow depends on the domains and on which pairs are trained.

Variations of figure 5c of Saxe, Sodhani and Lewallen (2022), whose share of 40% is no constant. The
more domains there are, the smaller the share that it takes, and the larger the number of partners.
Of masks with as many partners, random ones transfer a little earlier than bands, though near the
threshold seeds differ more than masks do. Of small dedicated pathways beside the shared one little
is left in the end: the shared one wins the race. Errors are those of untrained pairs at the end,
squared, and relative to a network that answers zero. Faint markers are single runs, ten at each
point, and lines join medians; the grey line is an error of a tenth, where nine tenths are
transferred.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results

MASKS = {
    "band": ("generalisation", style.sequential_styles(3, style.PURPLE)[1]),
    "random": (
        "generalisation_random",
        {"color": "0.25", "marker": "D", "markerfacecolor": "white"},
    ),
}
"""Sweeps over partners and line styles of masks, of ten domains."""
COUNTS = ("generalisation_five", "generalisation", "generalisation_twenty")
"""Sweeps over partners, with five, ten and twenty domains."""
SMALL = 0.1
"""Errors up to this value are small, as in the claims."""
ERROR = "relative error, untrained pairs"
SHARE = "trained share, $K/M$"
SHIFT = 0.012
"""Distance of dots from their share: random masks on the right, bands on the left."""


@Figure(
    layout="ab;cd",
    height=4.4,
    reads={
        (
            "generalisation generalisation_five generalisation_twenty generalisation_random "
            "mask_contrast"
        ): {
            "trajectory": "",
            "metrics": "final_untrained_error",
        },
        "generalisation_parallel": {
            "trajectory": "",
            "metrics": "trained_pathway_share untrained_pathway_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines are named."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Errors against the share of trained partners, for three numbers of domains: 5 and 10 come to
    a tenth at about the same share. Dotted: the 40% of the source.
    """
    _draw_counts(ax, results, domains.partner_share, SHIFT)
    domains.draw_paper_share(ax)
    ax.set_xlabel(SHARE)
    ax.set_title("20 domains need a smaller share")


def panel_b(results: Results, ax: Axes) -> None:
    """The same errors against the number of trained partners."""
    _draw_counts(ax, results, partners, SHIFT * 10)
    ax.set_xlabel("trained partners, $K$")
    ax.xaxis.set_major_locator(MultipleLocator(2))
    inside = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    style.note_at(ax, "faint: runs\nlines: medians", (1, 0.72), (-1, 0), **inside)
    ax.set_title("More domains need more partners")


def panel_c(results: Results, ax: Axes) -> None:
    """Errors where a band of partners is trained, and where they are drawn at random: sixty runs at
    30%, ten at the other shares.
    """
    for (mask, (name, props)), shift in zip(MASKS.items(), (-SHIFT, SHIFT), strict=True):
        many = [c for c in results.cells("mask_contrast") if c.routing.pairs.name.startswith(mask)]
        cells = {partners(cell): cell for cell in (*results.cells(name), *many)}
        _draw_errors(ax, [cells[k] for k in sorted(cells)], domains.partner_share, props, shift)
        ax.plot([], [], label=f"{mask} mask", **props)
    ax.set_xlabel(SHARE)
    _draw_small(ax)
    ax.legend(loc="lower left")
    ax.set_title("At 30%, random masks transfer better")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of the answers that small dedicated pathways, one for every pair beside the shared one,
    carry at the end, in the squares of their maps, on trained and on untrained pairs.
    """
    cells = domains.by_partners(results, "generalisation_parallel")
    shares = [domains.partner_share(cell) for cell in cells]
    for name, props in domains.PAIRS.items():
        dedicated = [
            1 - cell.get("metrics", f"{name}_pathway_share").isel(init_scale=0) for cell in cells
        ]
        domains.draw_runs(ax, shares, dedicated, props)
    ax.legend(handles=domains.handles(), loc="upper right")
    ax.set(yscale="log", ylabel="share of answers carried\nby dedicated pathways", xlabel=SHARE)
    ax.set_title("The shared pathway wins")


def _draw_small(ax: Axes) -> None:
    """The level of a small error, with its name."""
    ax.axhline(SMALL, **style.GUIDE)
    style.name_level(ax, SMALL, "a tenth")


def partners(cell: CellResults) -> int:
    """Number K of output domains that each input domain is trained with."""
    return cell.routing.partners(cell.spec.dataset.count)


def _draw_counts(
    ax: Axes, results: Results, across: Callable[[CellResults], int | float], shift: float
) -> None:
    """Draws errors for each number of domains, named at the ends, with dots `shift` apart."""
    styles = style.sequential_styles(len(COUNTS), style.PURPLE)
    ends = []
    for place, (name, props) in enumerate(zip(COUNTS, styles, strict=True), -1):
        cells = domains.by_partners(results, name)
        x, errors = _draw_errors(ax, cells, across, props, shift * place)
        name = f"{cells[0].spec.dataset.count} domains"
        ends.append((x[-1], float(errors[-1].median()), name, props["color"]))
    _draw_small(ax)
    low, high = ax.get_ylim()
    ax.set_ylim(low / 5, high * 2)  # room for names
    right = max(x for x, *_ in ends)
    label_ends(ax, [(y, name, colour) for x, y, name, colour in ends if x == right])
    # Other lines are named below their ends, in rows, as ends may be close.
    inner = sorted((end for end in ends if end[0] < right), key=lambda end: -end[0])
    for row, (x, _, name, colour) in enumerate(inner):
        below = {"xycoords": ax.get_xaxis_transform(), "ha": "center", "color": colour}
        style.note_at(ax, name, (x, 0), (0, 3 + 9 * row), **below)


def _draw_errors(
    ax: Axes,
    cells: Sequence[CellResults],
    across: Callable[[CellResults], int | float],
    props: Mapping[str, Any],
    shift: float = 0.0,
) -> tuple[list[int | float], list[xr.DataArray]]:
    """Draws final errors of untrained pairs, where there are any, on a logarithmic axis.

    Returns:
        Positions and errors, (seed), of the cells that have some.
    """
    errors = [domains.final_error(cell, "untrained") for cell in cells]
    some = [(across(c), e) for c, e in zip(cells, errors, strict=True) if np.isfinite(e).any()]
    x, errors = [x for x, _ in some], [error for _, error in some]
    domains.draw_runs(ax, x, errors, props, shift)
    ax.set(yscale="log", ylabel=ERROR)
    return x, errors
