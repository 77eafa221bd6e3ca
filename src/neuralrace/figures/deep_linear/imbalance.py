"""Negative control: the exact solution needs a balanced start.

The exact solution holds where the layers start balanced. Here the last layer starts larger and the
first one smaller, by the exponential of half the imbalance each, with the map that both compute
unchanged. The further from balance, the further the solution is from gradient flow, past what the
step size of gradient descent accounts for; so that agreement elsewhere is not a matter of course.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

EDGE = 1e-3
"""Lower end of the axis of the largest errors."""
DESCENT = {"color": "0.35", "marker": "_", "markersize": 11, "markeredgewidth": 1.2}
BELOW: dict[str, Any] = style.OFF_AXIS | {"linestyle": ""}
"""Marker of errors below the lower end."""


@Figure(
    layout="abc",
    height=2.6,
    reads={
        "imbalance": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "approximation_error discretisation_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Lines and markers."""
    theory = style.handle("exact solution for balance", **style.THEORY)
    descent = style.handle("gradient descent", linestyle="", **DESCENT)
    return [style.BAND, theory, descent, style.handle("below the axis", color="0.3", **BELOW)]


def panel_a(results: Results, ax: Axes) -> None:
    """Training loss from each start, and the solution that takes the start for balanced."""
    ends = []
    for cell, props in _styles(results):
        loss = cell.get("trajectory", "loss").isel(init_scale=0)
        exact = cell.get("theory", "loss", solution="exact").isel(init_scale=0).mean("seed")
        name = f"{_imbalance(cell):g}"
        style.over_seeds(ax, cell.flow_time, loss, color=props["color"], label=name)
        ax.plot(cell.flow_time, exact, **style.THEORY)
        ends.append(style.settling_time(exact, cell.flow_time))
    ax.legend(title="imbalance", loc="upper right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="training loss", xlim=(0, max(ends)), ylim=(0, None))
    furthest, _ = _styles(results)[-1]
    ax.set_title(f"From imbalance {_imbalance(furthest):g}, off by {_largest(furthest):.1%}")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss by the solution less that of gradient flow, over the initial loss.

    Nothing but rounding from the balanced start, and the more the further from balance.
    """
    ends = []
    for cell, props in _styles(results):
        flow = cell.get("theory", "loss", solution="flow").isel(init_scale=0)
        exact = cell.get("theory", "loss", solution="exact").isel(init_scale=0)
        ends.append(style.settling_time(flow, cell.flow_time))
        off = (exact - flow) / flow.isel(time=0)
        style.over_seeds(ax, cell.flow_time, off, color=props["color"])
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, max(ends)), ylabel="solution less flow (initial loss)")
    balanced, _ = _styles(results)[0]
    ax.set_title(f"From imbalance {_imbalance(balanced):g}, off by {_largest(balanced):.0e}")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest distance between solution and flow, by imbalance.

    Beside it, that of gradient descent from flow.
    """
    ratios = []
    for cell, props in _styles(results):
        off = cell.get("metrics", "approximation_error", solution="exact").isel(init_scale=0)
        descent = cell.get("metrics", "discretisation_error").isel(init_scale=0)
        style.points(ax, _imbalance(cell), descent, **DESCENT)
        if float(off.max()) > EDGE:
            style.points(ax, _imbalance(cell), off, **props)
        else:
            ax.plot(_imbalance(cell), 1.15 * EDGE, **props | BELOW)
        ratios.append(float((off / descent).mean()))
    ax.set(yscale="log", ylim=(EDGE, 0.1), xlabel="imbalance of the start")
    ax.set_ylabel("largest distance (initial loss)")
    ax.set_title(f"Last, {ratios[-1]:.0f} times as far as descent")


def _largest(cell: CellResults) -> float:
    """Largest distance of the solution from gradient flow, the mean over seeds."""
    return float(cell.get("metrics", "approximation_error", solution="exact").mean())


def _imbalance(cell: CellResults) -> float:
    return cell.spec.init.imbalance


def _styles(results: Results) -> list[tuple[CellResults, dict[str, Any]]]:
    """Cells with colour and marker, smallest imbalance first."""
    cells = sorted(results.cells("imbalance"), key=_imbalance)
    return list(zip(cells, style.sequential_styles(len(cells)), strict=True))
