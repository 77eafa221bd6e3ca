"""How many partners transfer takes among images: domains, masks and init scales.

Beyond figure 7c of Saxe, Sodhani and Lewallen (2022), on digits: rotated images, renamed classes,
linear networks, squared error. Transfer is 1 where all that trained pairs learn holds for untrained
ones; nine tenths of it are marked. Dots are single runs (10 for each share), and lines
join medians. With random masks about as many partners suffice whatever the number of domains; bands
need more of them the more domains there are, though a smaller share. Medians reach nine tenths of
the explained power at 58, 39 and 33% of 5, 10 and 20 domains, and at 29% of 100 domains of MNIST,
the source's size, which were run apart.
"""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

SWEEPS = ("images_five", "images", "images_twenty")
"""Experiments by number of domains, smallest first."""
RANDOM: dict[str, Any] = {"markerfacecolor": "white", "linestyle": style.LINES[2]}
SMALL: dict[str, Any] = {
    "color": style.categorical(4),
    "marker": "D",
    "linestyle": style.LINES[1],
}
LEAST = -0.5
"""Lower end of the axis of explained power, negative where answers are worse than zero."""
ACCURACY = "transfer, by accuracy"
NUMBER = "trained output domains, $K$"

NOTE: dict[str, Any] = {"fontsize": 6, "color": "0.4"}
"""Text at a line."""

Series = tuple[str, list[CellResults], dict[str, Any]]


@Figure(
    layout="abc",
    height=2.7,
    widths=(1.4, 1.0, 1.0),
    cf={"a": "Fig. 7b, c"},
    reads={
        "images images_five images_twenty": {
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
    """None: each panel has its own."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Power that untrained pairs explain over what trained ones do, against the share of output
    domains that are trained, which are neighbours (a band). Lines that leave the axis at
    triangles go on below, to answers worse than zero. Dotted: the 40% of the source.
    """
    series = [
        (name.replace(", band", " domains"), cells, props)
        for name, cells, props in _series(results, SWEEPS)
        if cells[0].routing.pairs.name == "band"
    ]
    _draw(ax, series, "zero_shot_ratio", domains.partner_share)
    ax.legend(loc="lower right")
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.text(domains.PAPER_SHARE + 0.015, -0.3, f"Saxe et al.:\n{domains.PAPER_SHARE:.0%}", **NOTE)
    ax.axhline(0, **style.GUIDE)
    ax.set(xlabel="trained share, $K/M$", ylim=(LEAST, 1.1), ylabel="transfer, by explained power")
    ax.set_title("More domains, smaller share")


def panel_b(results: Results, ax: Axes) -> None:
    """Accuracy above chance of untrained pairs over that of trained ones, on held-out images,
    against the number of trained output domains, for bands and for masks drawn at random.
    """
    series = _series(results, ("images", "images_random", "images_twenty"))
    _draw(ax, series, "transfer", _number)
    ax.legend(loc="lower right", title="domains and mask")
    ax.set(xlabel=NUMBER, ylabel=ACCURACY)
    ax.xaxis.set_major_locator(MultipleLocator(2))
    ax.set_title("Random masks need fewer")


def panel_c(results: Results, ax: Axes) -> None:
    """The same from two init scales, for ten domains and bands."""
    series = [
        (f"init scale {cells[0].spec.init_scales[0]:g}", cells, props | other)
        for experiment, other in (("images", {}), ("images_small_init", SMALL))
        for _, cells, props in _series(results, (experiment,))
    ]
    _draw(ax, series, "transfer", _number)
    ax.set(xlabel=NUMBER, ylabel=ACCURACY)
    ax.xaxis.set_major_locator(MultipleLocator(2))
    ax.set_title("Small weights need fewer")


def _draw(
    ax: Axes, series: Sequence[Series], metric: str, across: Callable[[CellResults], float]
) -> None:
    for name, cells, props in series:
        values = [cell.get("metrics", metric).isel(init_scale=0) for cell in cells]
        domains.draw_runs(ax, [across(cell) for cell in cells], values, props)
        ax.plot([], [], **props, label=name)
    ax.axhline(domains.FOLLOWING, **style.GUIDE)
    beside = {"ha": "left", "va": "top", "transform": ax.get_yaxis_transform()}
    ax.text(0.02, domains.FOLLOWING - 0.015, "nine tenths", **beside, **NOTE)
    ax.legend(loc="lower right")


def _series(results: Results, experiments: Sequence[str]) -> list[Series]:
    """Cells of each number of domains and kind of mask, fewest partners first, named and styled."""
    counts = [results.cells(name)[0].spec.dataset.count for name in SWEEPS]
    styles = dict(zip(counts, style.sequential_styles(len(counts)), strict=True))
    series: dict[str, Series] = {}
    for cell in (cell for name in experiments for cell in domains.by_partners(results, name)):
        count, mask = cell.spec.dataset.count, cell.routing.pairs.name
        name = f"{count}, {mask.partition('_')[0]}"
        props = styles[count] | ({} if mask == "band" else RANDOM)
        series.setdefault(name, (name, [], props))[1].append(cell)
    return list(series.values())


def _number(cell: CellResults) -> float:
    """Number K of output domains that an input domain is trained with."""
    return domains.partner_share(cell) * cell.spec.dataset.count
