"""Gates that are brought up to date at intervals lead to the ReLU network.

Between refreshes the linear gradient flow of a network with frozen gates is solved exactly, from
the initial weights of a ReLU network; at each refresh gates become those of its weights. The notes
leave their section on evolving gates empty, and propose gates that depend on time as a next step,
with a differential equation that can still be solved. It is of first order in the interval: the
grey line of slope 1 goes through the shortest interval of the shorter training. In the longer
training fields localise. There gates change for long, and many refreshes are needed for as many
fields to localise. Markers are means of five runs, and bars their ranges.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

COLOUR = style.COLOURS["gated"]
MARKS: tuple[dict[str, Any], ...] = (
    {"color": COLOUR, "marker": "o", "fillstyle": "none"},
    {"color": COLOUR, "marker": "s"},
)
"""Markers of trainings, the shortest first."""
BESIDE: tuple[dict[str, Any], ...] = (
    {"xytext": (4, -12), "ha": "left"},
    {"xytext": (0, 12), "ha": "right"},
)
"""Places of their names, in points from their last markers."""


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
    """Nothing: markers and lines have their names beside them."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Distance of the weights from those of the ReLU network at the end, over their norm."""
    positions: list[float] = []
    for cell, props, beside in zip(_cells(results), MARKS, BESIDE, strict=True):
        error = metric(cell, "refresh_error").transpose("refreshes", "seed")
        intervals = cell.get("metrics", "refresh_interval").values.tolist()
        mean = style.point_series(ax, intervals, error, **props)
        longest = max(zip(intervals, mean, strict=True))
        name = rf"training of {float(cell.flow_time[-1]):.3g} $\tau$"
        ax.annotate(name, longest, textcoords="offset points", fontsize=6.5, **beside)
        if not positions:
            style.slope_one(ax, intervals, mean[-1] * max(intervals) / min(intervals))
            ax.annotate("slope 1", (longest[0], mean[-1] * longest[0] / min(intervals)), (-4, 2),
                        textcoords="offset points", ha="right", fontsize=6.5,
                        color="0.4")  # fmt: skip
        positions += intervals
    first, last = np.floor(np.log10(min(positions))), np.ceil(np.log10(max(positions)))
    decades = (10 ** np.arange(first, last + 1)).tolist()
    style.loglog(ax, decades)
    ax.set(xlim=(decades[0], decades[-1]), ylim=(0.6 * ax.dataLim.minposy, None))
    ax.set(xlabel=r"flow time between refreshes ($\tau$)", ylabel="distance from the ReLU weights")
    ax.set_title("Distance shrinks linearly with short intervals")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of localised units by number of refreshes, in the longer training.

    The line is the mean of the ReLU network, and the band its range.
    """
    cell, props = _cells(results)[-1], MARKS[-1]
    shares = metric(cell, "refresh_localised_share").transpose("refreshes", "seed")
    numbers = shares["refreshes"].values.tolist()
    means = style.point_series(ax, range(len(numbers)), shares, **props)
    level = frozen_gates.draw_relu(ax, metric(cell, "localised_share"))
    style.named_columns(ax, map(str, numbers))
    within = rf"within {float(cell.flow_time[-1]):.3g} $\tau$"
    ax.set(xlabel=f"refreshes of the gates {within}", ylabel="share of localised units")
    ax.set_ylim(bottom=0)
    most = means[int(np.argmax(numbers))]
    label_ends(
        ax,
        [
            (level, "ReLU network", frozen_gates.RELU["color"]),
            (most, "refreshed gates", COLOUR),
        ],
    )
    ax.set_title("Localisation takes many refreshes")


def _cells(results: Results) -> list[CellResults]:
    """Cells by length of training, the shortest first."""
    return sorted(results.cells("evolving"), key=lambda cell: float(cell.flow_time[-1]))
