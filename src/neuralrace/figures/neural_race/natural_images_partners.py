"""From how many partners on images transfer: by domains, by mask and by init scale.

Rotated images, renamed classes, linear networks, squared error. Ratios are 1 where all that was
learned transfers, and negative where untrained pairs do worse than answering zero; the axes of a
and b end at -0.5. Titles tell from where on medians are above nine tenths (grey), for each number
of domains in turn. Random masks need about as many partners whatever the number of domains, bands
more of them the more domains there are, and smaller initial weights fewer. Markers are means, bars
ranges over seeds.
"""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("images", "images_five", "images_random", "images_twenty")
"""Experiments that differ in the number of domains and in which pairs are trained."""
MASKS: dict[str, dict[str, Any]] = {
    "band": {},
    "random_regular": {"markerfacecolor": "white", "linestyle": style.LINES[2]},
}
NAMES = {"band": "band", "random_regular": "random"}
SMALL = {"color": style.categorical(3), "marker": "D", "linestyle": style.LINES[1]}
LEAST = -0.5
"""Lower end of the axis of ratios, which are negative if untrained pairs do worse than zero."""
NUMBER = "trained output domains, $K$"

Series = tuple[str, Sequence[CellResults], dict[str, Any]]


@Figure(
    layout="abc",
    height=2.7,
    cf={"a": "Fig. 7c"},
    reads={
        "images images_five images_random images_small_init images_twenty": {
            "trajectory": "",
            "metrics": "transfer zero_shot_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Numbers of domains and masks, and the share in the paper."""
    handles = [style.handle(name, **props) for name, _, props in _series(results)]
    stated = style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER)
    return [*handles, style.BAND, stated]


def panel_a(results: Results, ax: Axes) -> None:
    """Power that untrained pairs explain over what trained ones do, against K/M."""
    _draw(ax, results, "zero_shot_ratio", domains.partner_share)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.set(xlabel="$K/M$", ylim=(LEAST, 1.1), ylabel="ratio of explained power")
    band, _ = _following(results, "zero_shot_ratio", domains.partner_share)
    ax.set_title(f"By share, bands follow from $K/M$ = {band} on")


def panel_b(results: Results, ax: Axes) -> None:
    """The same against K, the number of output domains that an input domain is trained with."""
    _draw(ax, results, "zero_shot_ratio", _number)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel=NUMBER, ylim=(LEAST, 1.1), ylabel="ratio of explained power")
    band, random = _following(results, "zero_shot_ratio", _number)
    ax.set_title(f"By number, random masks from $K$ = {random} on, bands from {band}")


def panel_c(results: Results, ax: Axes) -> None:
    """The same of accuracy above chance on images held out."""
    _draw(ax, results, "transfer", _number)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel=NUMBER, ylabel="ratio of accuracy")
    band, random = _following(results, "transfer", _number)
    ax.set_title(f"In accuracy, random masks from $K$ = {random} on, bands from {band}")


def _draw(ax: Axes, results: Results, metric: str, across: Callable[[CellResults], float]) -> None:
    for _, cells, props in _series(results):
        values = [cell.get("metrics", metric).isel(init_scale=0) for cell in cells]
        domains.draw_line(ax, [across(cell) for cell in cells], values, props)
    for height in (0, domains.FOLLOWING):
        ax.axhline(height, **style.GUIDE)


def _following(
    results: Results, metric: str, across: Callable[[CellResults], float]
) -> tuple[str, ...]:
    """Thresholds from which untrained pairs follow, for each number of domains, by mask."""
    thresholds: dict[str, list[str]] = {mask: [] for mask in MASKS}
    for _, cells, props in _series(results):
        if props is not SMALL:
            values = [cell.get("metrics", metric) for cell in cells]
            least = domains.transfer_threshold([across(cell) for cell in cells], values)
            thresholds[cells[0].routing.pairs.name].append(least)
    return tuple(", ".join(values) for values in thresholds.values())


def _series(results: Results) -> list[Series]:
    """Cells by number of domains and mask, fewest partners first; the last have smaller weights."""
    cells = [cell for name in EXPERIMENTS for cell in domains.by_partners(results, name)]
    counts = sorted({cell.spec.dataset.count for cell in cells})
    series: list[Series] = []
    for count, props in zip(counts, style.sequential_styles(len(counts)), strict=True):
        for mask, mask_props in MASKS.items():
            group = [cell for cell in cells if _kind(cell) == (count, mask)]
            if group:
                series.append((f"{count} domains, {NAMES[mask]}", group, props | mask_props))
    small = domains.by_partners(results, "images_small_init")
    count, mask = _kind(small[0])
    scale = small[0].spec.init_scales[0]
    return [*series, (f"{count}, {NAMES[mask]}, init scale {scale:g}", small, SMALL)]


def _kind(cell: CellResults) -> tuple[int, str]:
    """Number of domains, and name of the mask."""
    return cell.spec.dataset.count, cell.routing.pairs.name


def _number(cell: CellResults) -> float:
    """Number K of output domains that an input domain is trained with."""
    return domains.partner_share(cell) * cell.spec.dataset.count
