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
from neuralrace.figures import style
from neuralrace.figures.pathway_sharing import (
    by_sharing,
    colours_of,
    draw_network,
    draw_race,
    sharing,
)
from neuralrace.results.cells import CellResults, Results

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
            "metrics": "hidden_over_input_over_sqrt_m loss_half_time predicted_loss_half_time",
        },
        "race_aligned": {
            "metrics": "loss_half_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: it stands in panel b."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Ways to share among four input domains (left) and four output domains (right): a pathway for
    every pair, for groups of two and two, and for all. Lines are the pairs. The networks of the
    other panels have ten domains, and the colours of those that share in the same way.
    """
    sizes = [size for size in range(1, DRAWN + 1) if DRAWN % size == 0]
    cells = results.cells("race")
    for part, size in zip(style.split(ax, 1, len(sizes))[0], sizes, strict=True):
        draw_network(part, cells, DRAWN, size, units=2 if size == 1 else 3, shape=1.25)
        part.set_title(f"$P$ = {size**2}{': all' if size == DRAWN else ''}", loc="center")
    text = f"{DRAWN} domains drawn; {cells[0].domains.count} below"
    style.note_at(ax, text, (1, 1), (0, 4), xycoords="axes fraction", ha="right")
    ax.set_title("Pathways for one pair, groups, or all pairs")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest singular value of a hidden matrix: means and ranges over ten runs. Labels give P, and
    the hidden over the input singular value at the end, for which theory has the fourth root of P.
    """
    draw_race(ax, results, _name)
    key = [style.handle("theory", **style.THEORY), style.BAND]
    ax.legend(handles=key, ncols=2, loc="upper right", bbox_to_anchor=(1, 0.9))
    ax.set_title("Shared pathways learn sooner and grow larger")


def panel_c(results: Results, ax: Axes) -> None:
    """Time to half of the initial loss. Filled markers are runs from random weights, open ones from
    aligned layers of equal size, where it falls faster. Exponents are least-squares slopes.
    """
    cells = by_sharing(results.cells("race"))
    aligned = by_sharing(results.cells("race_aligned"))
    starts = {
        f"random start, $P^{{{_slope(cells):.2f}}}$": (cells, {"markersize": 5}),
        f"aligned start, $P^{{{_slope(aligned):.2f}}}$": (aligned, {"markerfacecolor": "white"}),
    }
    colours = colours_of(cells)
    for name, (start, props) in starts.items():
        for cell in start:
            times = _half(cell)
            mark = {"marker": "o", "linestyle": "", "color": colours.get(sharing(cell), "0.3")}
            ax.plot([sharing(cell)] * times.size, times, **mark | props)
        ax.plot([], [], color="0.3", marker="o", linestyle="", label=name, **props)
    expected = [
        cell.get("metrics", "predicted_loss_half_time", solution="routing_race") for cell in cells
    ]
    ax.plot(
        [sharing(cell) for cell in cells],
        [float(time.isel(init_scale=0).mean("seed")) for time in expected],
        **style.THEORY,
    )
    ax.plot([], [], label="theory, random start", **style.THEORY)
    ax.legend(loc="lower left")
    pairs = [sharing(cell) for cell in cells]
    ax.set(xscale="log", xlabel="pairs $P$ that share a pathway")
    ax.set_xticks(pairs, [str(count) for count in pairs])
    ax.set_xticks([], minor=True)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel(r"time to half the loss ($\tau$)")
    ax.set_title(r"From random starts, time falls as $1/\sqrt{P}$")


def _name(cell: CellResults) -> str:
    """Number P, whether that is all, and the hidden over the input singular value at the end."""
    share = cell.get("metrics", "hidden_over_input_over_sqrt_m").isel(init_scale=0, mode=0)
    ratio = float(share.mean() * sharing(cell) ** 0.25)
    every = ": all" * (sharing(cell) == cell.domains.count**2)
    return f"$P$ = {sharing(cell)}{every}\n{ratio:.2f} × input"


def _half(cell: CellResults) -> xr.DataArray:
    """Time to half of the initial loss."""
    return cell.get("metrics", "loss_half_time").isel(init_scale=0)


def _slope(cells: Sequence[CellResults]) -> float:
    """Exponent of the mean half time in P."""
    times = [float(_half(cell).mean()) for cell in cells]
    return float(np.polyfit(np.log(list(map(sharing, cells))), np.log(times), 1)[0])
