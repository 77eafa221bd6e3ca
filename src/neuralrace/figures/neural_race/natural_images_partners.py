"""From how many partners on images transfer: by domains, by mask and by init scale."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

EXPERIMENTS = ("images", "images_five", "images_random", "images_twenty")
"""Experiments that differ in the number of domains and in which pairs are trained."""
MASKS: dict[str, dict[str, Any]] = {
    "band": {},
    "random_regular": {"markerfacecolor": "white", "linestyle": style.LINES[2]},
}
NAMES = {"band": "band", "random_regular": "random"}
SMALL = {"color": style.distinct(3), "marker": "D", "linestyle": style.LINES[1]}
LEAST = -0.5
"""Lower end of the axis: untrained pairs do worse than answering zero."""
NUMBER = "output domains trained with an input domain, $K$"

Series = tuple[str, Sequence[CellResults], dict[str, Any]]


@Figure(
    reads={
        "images images_five images_random images_small_init images_twenty": {
            "trajectory": "",
            "metrics": "transfer zero_shot_ratio",
        },
    }
)
def draw(results: Results) -> Canvas:
    """What untrained pairs have of what trained ones have, against K/M and against K."""
    series = _series(results)
    figure, axes = style.panels(3, height=1.95)
    shares, numbers, classified = axes[:, 0]
    for ax, metric, across in (
        (shares, "zero_shot_ratio", domains.partners),
        (numbers, "zero_shot_ratio", _number),
        (classified, "transfer", _number),
    ):
        for _, cells, look in series:
            values = [cell.get("metrics", metric).isel(init_scale=0) for cell in cells]
            x = [across(cell) for cell in cells]
            domains.draw_ends(ax, x, values, look)
        ax.axhline(0, **style.GUIDE)
    shares.axvline(domains.SHARE, **style.PAPER)
    shares.set_xlabel(domains.PARTNERS)
    for ax in (numbers, classified):
        ax.set_xlabel(NUMBER)
    for ax in (shares, numbers):
        ax.set(ylim=(LEAST, 1.1), ylabel="ratio of explained power")
    classified.set_ylabel("ratio of accuracy")
    titles = ["untrained over trained pairs", "the same, by number", "accuracy above chance"]
    style.letters(axes[:, 0], titles)
    stated = style.entry(f"Saxe et al.: {domains.SHARE:.0%}", **style.PAPER)
    entries = [style.entry(name, **look) for name, _, look in series]
    style.legend(figure, [*entries, style.BAND, stated], columns=2)
    return figure


def _series(results: Results) -> list[Series]:
    """Cells by number of domains and mask, fewest partners first, and those of smaller weights."""
    cells = [cell for name in EXPERIMENTS for cell in domains.by_partners(results, name)]
    counts = sorted({cell.spec.dataset.count for cell in cells})
    series: list[Series] = []
    for index, (count, colour) in enumerate(zip(counts, style.ordered(len(counts)), strict=True)):
        for mask, changed in MASKS.items():
            some = [cell for cell in cells if _kind(cell) == (count, mask)]
            if some:
                look = {"color": colour, "marker": style.marker(index)} | changed
                series.append((f"{count} domains, {NAMES[mask]}", some, look))
    small = domains.by_partners(results, "images_small_init")
    count, mask = _kind(small[0])
    scale = small[0].spec.init_scales[0]
    return [*series, (f"{count}, {NAMES[mask]}, init scale {scale:g}", small, SMALL)]


def _kind(cell: CellResults) -> tuple[int, str]:
    """Number of domains, and how trained pairs are chosen."""
    return cell.spec.dataset.count, cell.routing.pairs.name


def _number(cell: CellResults) -> float:
    """Output domains that an input domain is trained with, K."""
    return domains.partners(cell) * cell.spec.dataset.count
