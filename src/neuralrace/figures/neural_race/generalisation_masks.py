"""Where untrained pairs begin to follow depends on the domains and on which pairs are trained."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

BAND = {"color": style.distinct(0), "marker": "o"}
FEWER = {"color": style.distinct(1), "marker": "^", "linestyle": style.LINES[1]}
MORE = {"color": style.distinct(2), "marker": "s", "linestyle": style.LINES[3]}
RANDOM = {"color": style.distinct(3), "marker": "D", "linestyle": style.LINES[1]}
PARALLEL = {"color": style.distinct(4), "marker": "v", "linestyle": style.LINES[2]}


@Figure(
    reads={
        (
            "generalisation generalisation_five generalisation_twenty generalisation_random "
            "generalisation_parallel"
        ): {
            "trajectory": "",
            "metrics": "final_untrained_error",
        },
        "generalisation_parallel": {
            "metrics": "trained_pathway_share untrained_pathway_share",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Untrained error against K/M by domains and by mask; what dedicated pathways answer."""
    band = domains.by_partners(results, "generalisation")
    random = domains.by_partners(results, "generalisation_random")
    parallel = domains.by_partners(results, "generalisation_parallel")
    figure, axes = style.panels(3, height=1.95, sharex=True)
    counts, masks, shares = axes[:, 0]
    for name, look in (
        ("generalisation_five", FEWER),
        ("generalisation", BAND),
        ("generalisation_twenty", MORE),
    ):
        cells = domains.by_partners(results, name)
        _draw_errors(counts, cells, f"{cells[0].spec.dataset.count} domains", look)
    _draw_errors(masks, band, "band", BAND)
    _draw_errors(masks, random, "random", RANDOM)
    _draw_errors(masks, parallel, "dedicated beside", PARALLEL)
    for ax in (counts, masks):
        ax.axvline(domains.SHARE, **style.PAPER)
        ax.legend(loc="upper right")

    for name, look in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        dedicated = [
            1 - cell.get("metrics", f"{name}_pathway_share").isel(init_scale=0) for cell in parallel
        ]
        domains.draw_by_partners(shares, parallel, dedicated, look)
        shares.plot([], [], label=f"{name} pairs", **look)
    shares.legend(loc="upper right")
    shares.set(yscale="log", ylabel="share of power", xlabel=domains.PARTNERS)
    titles = ["untrained pairs by domains", "untrained pairs by mask", "dedicated pathways, band"]
    style.letters(axes[:, 0], titles)
    stated = style.entry(f"Saxe et al.: {domains.SHARE:.0%}", **style.PAPER)
    style.legend(figure, [style.BAND, stated], columns=2)
    return figure


def _draw_errors(ax: Axes, cells: Sequence[CellResults], name: str, look: dict) -> None:
    """Error of untrained pairs at the end, against K/M."""
    errors = [cell.get("metrics", "final_untrained_error").isel(init_scale=0) for cell in cells]
    domains.draw_by_partners(ax, cells, errors, look)
    ax.plot([], [], label=name, **look)
    ax.set(yscale="log", ylabel="relative error")
