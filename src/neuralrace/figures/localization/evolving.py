"""Gates that are brought up to date at intervals lead to the ReLU network.

Between refreshes the linear gradient flow of a network with frozen gates is solved exactly, from
the initial weights of a ReLU network; at each refresh gates become those of its weights. The notes
leave their section on evolving gates empty, and propose gates that depend on time as a next step,
with a differential equation that can still be solved. It is of first order in the interval: the
grey line of slope 1 goes through the shortest interval of the shorter training. In a training in
which fields localise gates change for long, and many refreshes are needed for as many to do so.
Markers are means of five runs, and bars their ranges.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.sweeps import metric, metric_mean
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="ab",
    height=3.0,
    cf={"a": "sec. 5", "b": "sec. 2.3"},
    reads={
        "evolving": {
            "trajectory": "",
            "metrics": ("localised_share refresh_error refresh_interval refresh_localised_share"),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Lengths of training."""
    refreshed = [
        style.handle(rf"refreshed gates, after {_end(cell):.3g} $\tau$", linestyle="", **props)
        for cell, props in _shown(results)
    ]
    return [
        *refreshed,
        style.handle("slope 1", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Distance of the weights from those of the ReLU network at the end, over their norm."""
    positions: list[float] = []
    for cell, props in _shown(results):
        error = metric(cell, "refresh_error").transpose("refreshes", "seed")
        intervals = cell.get("metrics", "refresh_interval").values.tolist()
        mean = style.point_series(ax, intervals, error, **props)
        if not positions:
            style.slope_one(ax, intervals, mean[-1] * max(intervals) / min(intervals))
        positions += intervals
    first, last = np.floor(np.log10(min(positions))), np.ceil(np.log10(max(positions)))
    decades = (10 ** np.arange(first, last + 1)).tolist()
    style.loglog(ax, decades)
    ax.set(xlim=(decades[0], decades[-1]), ylim=(0.6 * ax.dataLim.minposy, None))
    ax.set(xlabel=r"flow time between refreshes ($\tau$)", ylabel="distance of weights")
    ax.set_title("Short intervals: first order in the interval")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of localised units by number of refreshes; lines are means of the ReLU network.

    Markers of the two trainings stand beside each other at each number.
    """
    levels = []
    for step, (cell, props) in enumerate(_shown(results)):
        shares = metric(cell, "refresh_localised_share").transpose("refreshes", "seed")
        numbers = shares["refreshes"].values.tolist()
        style.point_series(ax, np.arange(len(numbers)) + 0.2 * step - 0.1, shares, **props)
        level, colour = metric_mean(cell, "localised_share"), props["color"]
        ax.axhline(level, color=colour, linewidth=1.2, zorder=0)
        levels.append((level, f"ReLU network,\nafter {_end(cell):.3g} $\\tau$", colour))
    style.named_columns(ax, map(str, numbers))
    ax.set(xlabel="refreshes of the gates", ylabel="share of localised units", ylim=(-0.03, 0.6))
    label_ends(ax, levels)
    ax.set_title("Localisation takes many refreshes")


def _end(cell: CellResults) -> float:
    """Flow time at the end of training."""
    return float(cell.flow_time[-1])


def _shown(results: Results) -> list[tuple[CellResults, dict[str, Any]]]:
    """Cells with their markers, the shortest training first."""
    return style.styled(sorted(results.cells("evolving"), key=_end))
