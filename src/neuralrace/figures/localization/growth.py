r"""Weights grow first and localise later, around the mode that they have by then.

ReLU networks at the gain at which fields localise. The notes observe that :math:`w_1` grows
uniformly in size during much of its training, and that there is a phase in which it goes from
Gaussian to non-Gaussian. Here the squared length of the weights is half way long before
participation is, :math:`\sum w^4/(\sum w^2)^2` times the number of inputs, and hardly changes while
fields localise. The notes have fields localise around their mode: here most bumps stand where the
largest weight was when the length was half way, and not where it was at the start. How many
localise does not depend on the size of the weights at the start. Lines are means of five runs, and
bands their ranges.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    scale_styles,
)
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import Results

CLOCK = "snapshot_flow_time"
HALF = 0.5
MODES = {
    "mode_kept": "mode at half\nof growth",
    "mode_kept_from_start": "mode at\nthe start",
    "mode_kept_by_chance": "by chance: mode\nof another unit",
}
"""Names of the times at which the final mode is compared."""


@Figure(
    layout="aaaabb;cccddd",
    height=3.9,
    cf={"a": "sec. 2.1", "b": "sec. 2.1", "d": "sec. 2.1"},
    reads={
        "gate_flips": {
            "trajectory": "weight_1",
            "metrics": (
                "field_norm_curve growth_time localisation_time localised_share mode_kept "
                "mode_kept_by_chance mode_kept_from_start participation_curve"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Nothing: panels have their own."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Squared length and participation from start (0) to end (1), at the smallest init scale."""
    cell = results.cells("gate_flips")[0]
    power, spread = metric(cell, "field_norm_curve") ** 2, metric(cell, "participation_curve")
    for curve, name, colour, at in (
        (power, r"growth of $|w_1|^2$", "0.4", (0.12, 1.03)),
        (spread, "forming of the bump (participation)", style.COLOURS["relu"], (0.42, 0.55)),
    ):
        time = curve[CLOCK]
        style.over_seeds(ax, time, _way(curve), color=colour)
        ax.text(*at, name, color=colour, va="bottom", transform=ax.get_yaxis_transform())
    ax.axhline(HALF, **style.GUIDE)
    at = {"ha": "right", "va": "top", "color": "0.4", "fontsize": 6.5}
    ax.text(0.99, HALF - 0.02, "half of the way", transform=ax.get_yaxis_transform(), **at)
    times = [metric_mean(cell, name) for name in ("growth_time", "localisation_time")]
    for time in filter(np.isfinite, times):
        ax.plot([time, time], [0, HALF], **style.GUIDE)
        at = {"textcoords": "offset points", "fontsize": 6.5}
        ax.annotate(rf"{float(f'{time:.2g}'):g} $\tau$", (time, HALF), (4, -9), **at)
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of the way")
    ax.set(xlim=(0, float(power[CLOCK][-1])), ylim=(-0.05, 1.2), yticks=np.linspace(0, 1, 6))
    style.note(ax, "bands: range of runs", "lower right", color="0.4")
    ax.set_title("Weights grow long before fields localise")


def panel_b(results: Results, ax: Axes) -> None:
    """A unit of the first seed, over its largest weight, with a sign that makes its bump positive.

    The line is where the squared length of this run is half way, as on average in a.
    """
    cell = results.cells("gate_flips")[0]
    fields = smallest_scale(cell.receptive_fields).isel(seed=0)
    time = fields[CLOCK].values
    weights = fields.isel(unit=0).values
    shift = weights.shape[1] // 2 - int(np.abs(weights[-1]).argmax())
    sign = np.sign(weights[-1, np.abs(weights[-1]).argmax()])
    largest = sign * np.abs(weights).max(axis=1, keepdims=True)
    shape = np.roll(weights / np.where(largest != 0, largest, np.nan), shift, axis=1)
    positions = np.arange(1, shape.shape[1] + 1)
    shades = ax.pcolormesh(time, positions, shape.T, vmin=-1, vmax=1, cmap=style.SIGNED)
    grown = float(metric(cell, "growth_time").isel(seed=0))
    if np.isfinite(grown):
        ax.axvline(grown, color="black", linewidth=0.8)
        ax.annotate("half grown", (grown, positions[-1]), (3, -9), textcoords="offset points",
                    fontsize=6.5)  # fmt: skip
    ax.figure.colorbar(shades, ax=ax, label="weight", aspect=14)
    ax.set(xlabel=r"flow time ($\tau$)", ylabel=POSITION_LABEL)
    ax.set_title("One unit's bump stays put")


def panel_c(results: Results, ax: Axes) -> None:
    """Participation over time by init scale, with the share of units that localise."""
    cell = results.cells("gate_flips")[0]
    curve = cell.get("metrics", "participation_curve")
    localised = cell.get("metrics", "localised_share").mean("seed")
    for scale, props in scale_styles(cell).items():
        share = f"{scale:g}, {float(localised.sel(init_scale=scale)):.0%} localise"
        style.over_seeds(ax, curve[CLOCK], curve.sel(init_scale=scale), label=share, **props)
    ax.set(
        xlabel=style.FLOW_TIME,
        ylabel="participation (1 if flat)",
        xlim=(0, float(curve[CLOCK][-1])),
    )
    ax.legend(title="init scale", loc="lower right", alignment="left")
    ax.set_title("All starts end alike")


def panel_d(results: Results, ax: Axes) -> None:
    """Units whose mode at the end is, within a twentieth of the ring, where it was before: at the
    first snapshot with half of the growth, or at the start.

    Dots are single runs, and bars their medians.
    """
    cell = results.cells("gate_flips")[0]
    style.named_columns(ax, MODES.values())
    ax.set(ylim=(0, 1.05), ylabel="share of bumps there")
    dots = {"color": style.COLOURS["relu"], "marker": "o", "alpha": 0.6}
    for position, name in enumerate(MODES):
        style.single_runs(ax, position, metric(cell, name), 0.12, **dots)
    marks = [
        style.handle("one run", linestyle="", **dots),
        style.handle("median", color="0.2", linewidth=1.2),
    ]
    ax.legend(handles=marks, loc="upper right")
    ax.set_title("Bumps form where the grown weights peak")


def _way(curve: xr.DataArray) -> xr.DataArray:
    """A curve scaled to 0 at its start and 1 at its end, in each run."""
    start, end = (curve.isel(snapshot=at, drop=True) for at in (0, -1))
    return (curve - start) / (end - start).where(end != start)
