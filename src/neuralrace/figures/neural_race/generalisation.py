"""From how many trained partners on untrained pairs of domains follow.

Figure 5c of Saxe, Sodhani and Lewallen (2022): error at the end of training of trained and of
untrained pairs of domains, against the share of output domains that each input domain is trained
with. With few partners training fits its own pairs and says nothing about the others; with more,
the shared solution wins and untrained pairs follow. The dotted line is the share that the source
names. On a logarithmic axis the error goes on falling past it: there is no sharp threshold, and
what sets the share apart is that no single run fails. Errors are squared, and relative to a network
that answers zero.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

SMALL = 0.1
"""An error that the claims count as small."""


@Figure(
    layout="abc",
    height=2.5,
    widths=(1.15, 1.15, 1.0),
    cf={"a": "Fig. 5c", "b": "Fig. 5c"},
    reads={
        "generalisation": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
        "mask_contrast": {
            "metrics": "final_untrained_error",
        },
    },
)
def legend(results: Results) -> Sequence[Artist]:
    """Trained and untrained pairs, and the share that the paper names."""
    return [
        style.entry("trained pairs", **domains.TRAINED),
        style.entry("untrained pairs", **domains.UNTRAINED),
        style.BAND,
        style.entry(f"Saxe et al.: {domains.SHARE:.0%}", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Errors as the source draws them: means over seeds with their range."""
    cells = domains.by_partners(results, "generalisation")
    _errors(ax, cells)
    ax.set_ylim(0, None)
    ends = [float(domains.untrained(cell).mean()) for cell in cells]
    small = [domains.partners(cell) for cell, end in zip(cells, ends, strict=True) if end <= SMALL]
    from_ = f"is small from {min(small):.0%} on" if small else f"falls to {min(ends):.1g}"
    ax.set_title(f"Mean error on untrained pairs {from_}")


def panel_b(results: Results, ax: Axes) -> None:
    """The same on a logarithmic axis; errors below 1e-8 are drawn at it."""
    cells = domains.by_partners(results, "generalisation")
    _errors(ax, cells)
    ax.set(yscale="log")
    trained = max(float(cell.get("metrics", "final_trained_error").max()) for cell in cells)
    ax.set_title(f"Trained pairs are learned, to {trained:.0e} at worst")


def panel_c(results: Results, ax: Axes) -> None:
    """Single runs around the share that the source names, and their medians (bars); sixty of them
    at 30%. The line is an error of a tenth.
    """
    sweep = domains.by_partners(results, "generalisation")
    near = domains.nearest_first(sweep)[:3]
    many = [c for c in results.cells("mask_contrast") if c.routing.pairs.name == "band"]
    shown = {round(domains.partners(cell), 3): cell for cell in (*near, *many)}
    medians = {}
    for place, (share, cell) in enumerate(sorted(shown.items())):
        errors = np.sort(domains.untrained(cell).values)
        across = place + np.linspace(-0.3, 0.3, len(errors))
        look = {"color": domains.UNTRAINED["color"], "marker": domains.UNTRAINED["marker"]}
        ax.plot(across, errors, linestyle="", markersize=2, **look)
        medians[share] = float(np.nanmedian(errors))
        ax.plot([place - 0.35, place + 0.35], [medians[share]] * 2, color="0.2", linewidth=1.2)
    ax.axhline(SMALL, **style.GUIDE)
    ax.set_xticks(range(len(shown)), [f"{share:.0%}" for share in sorted(shown)])
    ax.set(yscale="log", ylabel="relative error, run by run", xlabel="trained share, $K/M$")
    told = (many or list(shown.values()))[0]
    share, worst = domains.partners(told), float(domains.untrained(told).max())
    median = medians[round(share, 3)]
    ax.set_title(f"At {share:.0%} the median is {median:.2g}, the worst {worst:.2g}")


def _errors(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Of trained and of untrained pairs, and where the paper puts the threshold."""
    for name, look in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        errors = [cell.get("metrics", f"final_{name}_error").isel(init_scale=0) for cell in cells]
        domains.draw_by_partners(ax, cells, [e.clip(min=domains.FLOOR) for e in errors], look)
    ax.axvline(domains.SHARE, **style.PAPER)
    ax.set(ylabel="relative error", xlabel=domains.PARTNERS)
