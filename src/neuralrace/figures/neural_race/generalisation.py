"""From how many trained partners on untrained pairs of domains follow.

Figure 5c of Saxe, Sodhani and Lewallen (2022): error at the end of training of trained and of
untrained pairs of domains, against the share of output domains that each input domain is trained
with. With few partners training fits its own pairs and says nothing about the others; with more,
the shared solution wins and untrained pairs follow. On a logarithmic axis the error goes on falling
past the 40% that the source names: there is no sharp threshold, and what sets the share apart is
that no single run fails. Errors are squared, and relative to a network that answers zero.
"""

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import Results

SMALL = 0.1
"""Errors up to this value are small, as in the claims."""
SHIFT = 0.008
"""Distance of dots from their share: untrained pairs on the right, trained ones on the left."""


@Figure(
    layout="ab",
    height=2.9,
    cf={"a": "Fig. 5c", "b": "Fig. 5c"},
    reads={
        "generalisation": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
        "mask_contrast": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Trained and untrained pairs."""
    return domains.handles()


def panel_a(results: Results, ax: Axes) -> None:
    """Errors as the source draws them: means over ten seeds, with ranges as bars."""
    domains.draw_errors(ax, domains.by_partners(results, "generalisation"))
    ax.axhline(1, **style.GUIDE)
    style.name_level(ax, 1, "answering zero")
    inside = {"xycoords": "axes fraction", "ha": "right"}
    style.note_at(ax, "markers: means\nbars: ranges", (1, 0.25), (-1, 0), **inside)
    ax.set_ylim(top=max(1.5, ax.get_ylim()[1]))
    ax.yaxis.set_major_locator(MultipleLocator(0.5))
    ax.set_title("Untrained pairs are answered from 40% on")


def panel_b(results: Results, ax: Axes) -> None:
    """The same run by run (faint), with medians, on a logarithmic axis: ten runs at each share and
    sixty at 30%.
    """
    many = [c for c in results.cells("mask_contrast") if c.routing.pairs.name == "band"]
    cells = {
        round(domains.partner_share(cell), 3): cell
        for cell in (*results.cells("generalisation"), *many)
    }
    shares = sorted(cells)
    for (name, props), shift in zip(domains.PAIRS.items(), (-SHIFT, SHIFT), strict=True):
        errors = [domains.final_error(cells[share], name) for share in shares]
        domains.draw_runs(ax, shares, errors, props, shift)
    ax.axhline(SMALL, **style.GUIDE)
    style.name_level(ax, SMALL, "a tenth: failure above")
    inside = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    style.note_at(ax, "faint: runs\nlines: medians", (1, 0.76), (-1, 0), **inside)
    domains.draw_paper_share(ax)
    ax.set(yscale="log", ylabel="relative error", xlabel=domains.PARTNER_LABEL)
    ax.set_ylim(top=max(5, ax.get_ylim()[1]))
    ax.set_title("From 40% on no single run fails")
