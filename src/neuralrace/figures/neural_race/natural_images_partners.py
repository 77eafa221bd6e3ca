"""How many partners transfer takes among images: domains, masks and init scales.

Beyond figure 7c of Saxe, Sodhani and Lewallen (2022), on digits: rotated images, renamed classes,
linear networks, squared error. Transfer is 1 where all that trained pairs learn holds for untrained
ones. Dots are single runs, ten for each share. With random masks about as many partners suffice
whatever the number of domains; bands, whose trained domains are neighbours, need a share of them
that levels off. Medians reach 90% of the explained power at 58, 39, 33, 29 and 32% of 5,
10, 20, 40 and 100 domains, and at 29% of 100 domains of MNIST, which were run apart; 99% of it
takes 39 to 40% from 10 domains on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

SWEEPS = {
    "images_five": ("left", 0.6),
    "images": ("left", 0.3),
    "images_twenty": ("right", 0.75),
    "images_of_40": ("right", 0.1),
    "images_of_100": ("right", 0.45),
}
"""Experiments by number of domains; the end of a name that is at its line, and the height."""
ROWS = (
    ("images_twenty", "band", "20 domains, band"),
    ("images_twenty", "random_regular", "20 domains, random"),
    ("images", "band", "10 domains, band"),
    ("images_random", "random_regular", "10 domains, random"),
    ("images_small_init", "band", "10 domains, band,\ninit scale 0.01"),
)
"""Experiments, masks and names of rows."""
LEAST = -0.5
"""Lower end of the axis of explained power, negative where answers are worse than zero."""
SHARES = (0.08, 0.62)
"""Ends of the axis of shares; all lines have come to 1 on the right."""
LINES = (*style.LINES, (0, (3, 1, 1, 1, 1, 1)))
"""Lines by number of domains, as their colours are alike in grey."""
SHIFT = 0.008
"""Distance of runs of one number of domains from those of the next, at the same share."""


@Figure(
    layout="ab",
    height=2.9,
    widths=(1.1, 1.0),
    cf={"a": "Fig. 7b, c"},
    reads={
        "images images_five images_twenty images_of_*": {
            "trajectory": "",
            "metrics": "zero_shot_ratio",
        },
        "images images_random images_small_init images_twenty": {
            "trajectory": "",
            "metrics": "transfer",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines and rows are named."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Power that untrained pairs explain over what trained ones do, against the share of output
    domains that are trained, in bands: single runs, with medians joined, side by side. Open
    triangles are values below the axis, of answers worse than zero: large ones medians, whose lines
    leave the axis, small ones runs. Dotted: the 40% of the source.
    """
    styles = style.sequential_styles(len(SWEEPS), style.PURPLE)
    for place, ((name, (end, height)), props) in enumerate(
        zip(SWEEPS.items(), styles, strict=True)
    ):
        cells = _cells(results, name, "band")
        values = _values(cells, "zero_shot_ratio")
        shares = list(map(domains.partner_share, cells))
        x = [share + SHIFT * (place - len(SWEEPS) // 2) for share in shares]
        run: dict[str, Any] = {**props, "linestyle": "", "markersize": 2.8, "alpha": 0.5}
        for at, runs in zip(x, values, strict=True):
            inside = runs.values[runs.values > LEAST]
            ax.plot([at] * inside.size, inside, **run, markeredgewidth=0)
            if (runs.values <= LEAST).any():
                below: dict[str, Any] = run | style.OFF_AXIS
                ax.plot(at, LEAST, clip_on=False, **below)
        medians = values.median("seed").values
        line: dict[str, Any] = {**props, "linewidth": 1.2, "linestyle": LINES[place]}
        ax.plot(x, medians, **line)
        low = [at for at, median in zip(x, medians, strict=True) if median <= LEAST]
        off_axis: dict[str, Any] = props | style.OFF_AXIS | {"linestyle": "", "zorder": 4}
        ax.plot(low, [LEAST] * len(low), clip_on=False, **off_axis)
        beside: dict[str, Any] = {"textcoords": "offset points", "ha": end, "va": "center"}
        beside["linespacing"] = 1.1
        text = f"$M$ = {cells[0].spec.dataset.count}"
        at = min(_reached(x, medians, height), x[-1]), height
        shift = 7 if end == "left" else -5, 0
        ax.annotate(text, at, shift, color=props["color"], **beside)
    ax.axhline(domains.FOLLOWING, **style.GUIDE)
    style.note_at(ax, "90% of explained power", (SHARES[0], domains.FOLLOWING), (3, 2))
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    name = f"Saxe et al.: {domains.PAPER_SHARE:.0%}"
    style.note_at(ax, name, (domains.PAPER_SHARE, LEAST), (4, 3))
    right: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right"}
    style.note_at(
        ax,
        "$M$: number of domains\nsmall: runs\nlines: medians\nopen: below the axis",
        (1, 0),
        (-2, 22),
        **right,
    )
    ax.set_xlabel(domains.PARTNER_LABEL)
    ax.set_ylabel("explained power,\nuntrained over trained")
    ax.set(xlim=SHARES, ylim=(LEAST, 1.08))
    ax.set_yticks([LEAST, 0, 0.5, 1])
    ax.set_title("The required share levels off")


def panel_b(results: Results, ax: Axes) -> None:
    """Number of trained output domains from which transfer, here the accuracy of untrained pairs
    above chance over that of trained ones on held-out images, is 90%, on the straight line
    between numbers that were run: single runs that come to it, and medians of all. Trained domains
    are bands or drawn at random; init scales are 0.1 if not named.
    """
    rows = [(name, cells) for *at, name in ROWS if (cells := _cells(results, *at))]
    part = style.named_rows(ax, [name for name, _ in rows])
    counts = [results.cells(name)[0].spec.dataset.count for name in SWEEPS]
    styles = dict(zip(counts, style.sequential_styles(len(counts), style.PURPLE), strict=True))
    needed: list[np.ndarray] = []
    for _, cells in rows:
        numbers = [domains.partner_share(c) * c.spec.dataset.count for c in cells]
        runs = _values(cells, "transfer").transpose("seed", ...).values
        needed.append(np.array([_reached(numbers, run, domains.FOLLOWING) for run in runs]))
    part.update_datalim([(number, 0) for row in needed for number in row[np.isfinite(row)]])
    for row, (_, cells) in enumerate(rows):
        reached, median = np.sort(needed[row][np.isfinite(needed[row])]), np.median(needed[row])
        dots = styles[cells[0].spec.dataset.count] | {"markersize": 4.5, "markeredgewidth": 0}
        if reached.size:
            style.swarm(part, row, reached, 0.2, across=True, alpha=0.8, **dots)
        if np.isfinite(median):
            part.plot([median, median], [row - 0.32, row + 0.32], color="0.2", linewidth=1.2)
            part.text(median, row - 0.37, f"{median:.1f}", ha="center")
    part.xaxis.set_major_locator(MultipleLocator(1))
    part.set_xlabel(
        "trained output domains, $K$, for\n90% of the trained accuracy\n"
        "above chance (bars: medians of runs)"
    )
    ax.set_title("Random masks need fewer partners with 20 domains")


def _cells(results: Results, experiment: str, mask: str) -> list[CellResults]:
    """Cells with a kind of mask, fewest partners first."""
    cells = domains.by_partners(results, experiment)
    return [cell for cell in cells if cell.routing.pairs.name == mask]


def _values(cells: Sequence[CellResults], metric: str) -> xr.DataArray:
    """A metric, (cell, seed), at the first init scale."""
    return xr.concat([cell.get("metrics", metric).isel(init_scale=0) for cell in cells], "cell")


def _reached(x: Sequence[float], values: np.ndarray, level: float) -> float:
    """Where values first reach a level, on a straight line from those before; infinite if never."""
    at_least = np.flatnonzero(values >= level)
    if not at_least.size:
        return np.inf
    around = [max(at_least[0] - 1, 0), at_least[0]]
    return float(np.interp(level, values[around], np.take(x, around)))
