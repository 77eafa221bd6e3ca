"""Gates that are brought up to date at intervals lead to the ReLU network.

Between refreshes the linear gradient flow of a network with frozen gates is solved exactly, from
the initial weights of a ReLU network; at each refresh gates become those of its weights. The notes
leave their section on evolving gates empty, and propose gates that depend on time as a next step,
with a differential equation that can still be solved. It is of first order in the interval: the
grey line of slope 1 goes through the shortest interval of the shorter training. In the longer
training fields begin to localise. There gates change for long, and many refreshes are needed for as
many fields to localise. Markers are means of five runs, bars their ranges, and thin lines single
runs.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

COLOUR = style.COLOURS["gated"]
MARKS: tuple[dict[str, Any], ...] = (
    {"color": COLOUR, "marker": "o", "fillstyle": "none"},
    {"color": COLOUR, "marker": "s"},
)
"""Markers of trainings, the shortest first; a smaller run may have fewer trainings."""
NETWORK = style.COLOURS["relu"]
RUN: dict[str, Any] = {
    "color": "0.6",
    "linewidth": 0.8,
    "marker": ".",
    "markersize": 5,
    "markevery": [-1],
    "zorder": 1,
}
"""Line of the runs from one seed, with a dot for the ReLU network at its end."""


@Figure(
    layout="ab",
    height=2.8,
    cf={"a": "sec. 5", "b": "sec. 2.3"},
    reads={
        "evolving": {
            "trajectory": "",
            "metrics": ("localised_share refresh_error refresh_interval refresh_localised_share"),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Nothing: panels have their own."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Distance of the weights from those of the ReLU network at the end, over their norm."""
    positions: list[float] = []
    for cell, props in zip(_cells(results), MARKS, strict=False):
        error = metric(cell, "refresh_error").transpose("refreshes", "seed")
        intervals = cell.get("metrics", "refresh_interval").values.tolist()
        mean = style.point_series(ax, intervals, error, **props)
        if not positions:
            style.slope_one(ax, intervals, mean[-1] * max(intervals) / min(intervals))
            end = max(intervals), mean[-1] * max(intervals) / min(intervals)
            ax.annotate("slope 1", end, (-4, 2),
                        textcoords="offset points", ha="right", fontsize=6.5,
                        color="0.4")  # fmt: skip
        positions += intervals
    first, last = np.floor(np.log10(min(positions))), np.ceil(np.log10(max(positions)))
    decades = (10 ** np.arange(first, last + 1)).tolist()
    style.loglog(ax, decades)
    ax.set(xlim=(decades[0], decades[-1]), ylim=(0.6 * ax.dataLim.minposy, None))
    ax.set(xlabel=r"flow time between refreshes ($\tau$)", ylabel="distance from the ReLU weights")
    handles = [
        style.handle(f"{_length(cell)}, range of runs", linewidth=0.8, **props)
        for cell, props in zip(_cells(results), MARKS, strict=False)
    ]
    ax.legend(handles=handles, loc="lower right")
    ax.set_title("Distance shrinks linearly with short intervals")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of localised units by number of refreshes, in the longer training.

    Markers are means over runs. Lines join runs from the same weights, with any number of refreshes
    and with the gates of the ReLU network, which change at every step.
    """
    cell = _cells(results)[-1]
    refreshed = metric(cell, "refresh_localised_share").transpose("refreshes", "seed")
    numbers = refreshed["refreshes"].values.tolist()
    network = metric(cell, "localised_share")
    shares = np.vstack([refreshed.values, network.values])
    ax.plot(np.arange(len(shares)), shares, **RUN)
    ax.plot(np.arange(len(numbers)), refreshed.mean("seed"), linestyle="", **MARKS[-1])
    ax.plot([len(numbers)], [float(network.mean())], linestyle="", marker="D", color=NETWORK)
    style.named_columns(ax, [*map(str, numbers), "ReLU\nnetwork"])
    ax.set(xlabel=f"refreshes of the gates in a {_length(cell)}", ylabel="share of localised units")
    ax.margins(y=0.3)  # room for the legend
    ax.set_ylim(bottom=0)
    marks = [
        style.handle("refreshed gates, mean", linestyle="", **MARKS[-1]),
        style.handle("ReLU networks, mean", linestyle="", marker="D", color=NETWORK),
        style.handle("runs of one seed", **RUN),
    ]
    ax.legend(handles=marks, loc="upper left")
    ax.set_title("More refreshes, more localised units")


def _length(cell: CellResults) -> str:
    """Length of a training."""
    return rf"training of {float(cell.flow_time[-1]):.3g} $\tau$"


def _cells(results: Results) -> list[CellResults]:
    """Cells by length of training, the shortest first."""
    return sorted(results.cells("evolving"), key=lambda cell: float(cell.flow_time[-1]))
