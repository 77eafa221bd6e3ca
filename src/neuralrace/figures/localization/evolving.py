"""Gates that are brought up to date at intervals lead to the ReLU network.

Between refreshes the linear gradient flow of a network with frozen gates is solved exactly, from
the initial weights of a ReLU network; at each refresh gates become those of its weights. The notes
leave their section on evolving gates empty, and propose gates that depend on time as a next step,
with a differential equation that can still be solved. It is of first order in the interval: the
grey line of slope 1 goes through the shortest interval of the shorter training. In a training in
which fields localise gates change for long, and many refreshes are needed for as many to do so.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="abc",
    height=2.5,
    cf={"a": "sec. 5", "b": "sec. 2.3"},
    reads={
        "evolving": {
            "trajectory": "",
            "metrics": (
                "localised_share participation refresh_error refresh_interval "
                "refresh_localised_share refresh_participation"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Lengths of training, and the ReLU network."""
    refreshed = [
        style.handle(rf"refreshed gates, after {_end(cell):.3g} $\tau$", linestyle="", **props)
        for cell, props in _shown(results)
    ]
    return [
        *refreshed,
        style.handle("ReLU network", **frozen_gates.RELU),
        style.handle("slope 1", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Distance of the weights from those of the ReLU network at the end, over their norm."""
    positions, orders = [], []
    for cell, props in _shown(results):
        error = metric(cell, "refresh_error").transpose("refreshes", "seed")
        intervals = cell.get("metrics", "refresh_interval").values.tolist()
        mean = style.point_series(ax, intervals, error, **props)
        if not positions:
            style.slope_one(ax, intervals, mean[-1] * max(intervals) / min(intervals))
        orders.append(np.log(mean[-2] / mean[-1]) / np.log(intervals[-2] / intervals[-1]))
        positions += intervals
    style.loglog(ax, sorted(positions)[::2])
    ax.set(xlabel=r"flow time between refreshes ($\tau$)", ylabel="distance of weights")
    ax.set_title(f"Order {orders[0]:.2f} in the interval")


def panel_b(results: Results, ax: Axes) -> None:
    """Participation, the inverse participation ratio times the number of inputs."""
    _draw(ax, results, "participation")
    ax.set_ylabel("participation")
    ax.set_title("Participation by refreshes")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of localised units, in training a line and a band over seeds."""
    ends = _draw(ax, results, "localised_share")
    ax.set(ylabel="share of localised units", ylim=(-0.03, 1))
    ax.set_title(f"{ends[-1][0]:.0%} localise, ReLU network: {ends[-1][1]:.0%}")


def _end(cell: CellResults) -> float:
    """Flow time at the end of training."""
    return float(cell.flow_time[-1])


def _shown(results: Results) -> list[tuple[CellResults, dict[str, Any]]]:
    """Cells with their markers, the shortest training first."""
    return style.styled(sorted(results.cells("evolving"), key=_end))


def _draw(ax: Axes, results: Results, name: str) -> list[tuple[float, float]]:
    """Draws a measure by number of refreshes, and of the ReLU network; returns its final values."""
    finals, levels = [], []
    for cell, props in _shown(results):
        values = metric(cell, f"refresh_{name}").transpose("refreshes", "seed")
        numbers = values["refreshes"].values.tolist()
        style.point_series(ax, range(len(numbers)), values, **props)
        level = frozen_gates.draw_relu(ax, metric(cell, name))
        levels.append((level, rf"{_end(cell):.3g} $\tau$"))
        finals.append((float(values[-1].mean()), level))
    props = {"color": frozen_gates.RELU["color"], "textcoords": "offset points"}
    for rank, (level, time) in enumerate(sorted(levels)):
        at, side = (1.0, level), "bottom" if rank else "top"  # apart even if levels are equal
        ax.annotate(time, at, (2, 0), ax.get_yaxis_transform(), va=side, **props)
    style.named_columns(ax, map(str, numbers))
    ax.set_xlabel("refreshes")
    return finals
