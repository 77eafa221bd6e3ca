"""Gates that are brought up to date at intervals (sec. 2.3)."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import frozen, gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "evolving": {
            "trajectory": "",
            "metrics": (
                "localised_share participation refresh_error refresh_interval "
                "refresh_localised_share refresh_participation"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Distance from the ReLU network by interval, and localisation by number of refreshes."""
    cells = sorted(results.cells("evolving"), key=_end)
    looks: list[dict[str, Any]] = [
        {"color": colour, "marker": style.marker(index)}
        for index, colour in enumerate(style.ordered(len(cells)))
    ]
    figure = Canvas(figsize=(style.COLUMN, 2.4 + 1.25 * len(cells)))
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(1.6, len(cells)))
    distance = figure.add_subplot(upper)
    spreads, shares = (
        lower.subgridspec(len(cells), 2).subplots(sharex=True, sharey="col", squeeze=False).T
    )
    _draw_distances(distance, cells, looks)
    for cell, look, spread, share in zip(cells, looks, spreads, shares, strict=True):
        _draw_refreshes(spread, cell, "participation", look)
        _draw_refreshes(share, cell, "localised_share", look)
        spread.set_ylabel("participation")
        share.set_ylabel("share localised")
    shares[0].set_ylim(-0.03, 1)
    for ax in (spreads[-1], shares[-1]):
        ax.set_xlabel("refreshes")
    after = [rf"after {_end(cell):.3g} $\tau$" for cell in cells]
    panels = [ax for row in zip(spreads, shares, strict=True) for ax in row]
    titles = [title for title in after for _ in range(2)]
    style.letters([distance, *panels], ["distance from the ReLU network", *titles])
    entries = [
        style.entry(f"refreshed gates, {title}", linestyle="", **look)
        for title, look in zip(after, looks, strict=True)
    ]
    entries += [style.entry("ReLU network", **frozen.RELU), style.entry("slope 1", **style.GUIDE)]
    style.legend(figure, entries, columns=2)
    return figure


def _end(cell: CellResults) -> float:
    """Flow time that training takes."""
    return float(cell.flow_time[-1])


def _draw_distances(
    ax: Axes, cells: Sequence[CellResults], looks: Sequence[dict[str, Any]]
) -> None:
    """Distance of weights at the end by interval; slope 1 from the shortest interval of all."""
    places = []
    for cell, look in zip(cells, looks, strict=True):
        error = gated.smallest(cell.get("metrics", "refresh_error"))
        intervals = cell.get("metrics", "refresh_interval").values.tolist()
        for place, each in zip(intervals, error.transpose("refreshes", "seed"), strict=True):
            style.points(ax, place, each, **look)
        if not places:
            shortest = float(error.isel(refreshes=-1).mean("seed"))
            style.slope_one(ax, intervals, shortest * max(intervals) / min(intervals))
        places += intervals
    style.loglog(ax, sorted(places)[::2])
    ax.set(xlabel=r"flow time between refreshes (units of $\tau$)", ylabel="distance of weights")


def _draw_refreshes(ax: Axes, cell: CellResults, metric: str, look: dict[str, Any]) -> None:
    """A value by number of refreshes, and that of the ReLU network."""
    values = gated.smallest(cell.get("metrics", f"refresh_{metric}"))
    numbers = values["refreshes"].values.tolist()
    for place, each in enumerate(values.transpose("refreshes", "seed")):
        style.points(ax, place, each, **look)
    frozen.draw_relu(ax, gated.smallest(cell.get("metrics", metric)))
    ax.set_xticks(range(len(numbers)), map(str, numbers))
