r"""Weights grow first and localise later, around the mode that they have by then.

ReLU networks at the gain at which fields localise. The notes observe that :math:`w_1` grows
uniformly in size during much of its training, and that there is a phase in which it goes from
Gaussian to non-Gaussian. Here the squared length of the weights is half way long before
participation is, :math:`\sum w^4/(\sum w^2)^2` times the number of inputs, and hardly changes while
fields localise. The notes have fields localise around their mode: here most bumps stand where the
largest weight was when the length was half way, and not where it was at the start. How many
localise does not depend on the size of the weights at the start.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    draw_by_scale,
    marginal_name,
    scale_styles,
)
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import Results

CLOCK = "snapshot_flow_time"
HALF = 0.5
MODES = {
    "mode_kept": "at half\nof growth",
    "mode_kept_from_start": "at the\nstart",
    "mode_kept_by_chance": "of another\nunit",
}
"""Names of the times at which the final mode is compared."""


@Figure(
    layout="aab;cde",
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
    """Init scales."""
    return [*style.scale_handles(scale_styles(results.cells("gate_flips")[0])), style.BAND]


def panel_a(results: Results, ax: Axes) -> None:
    """Squared length and participation from start (0) to end (1), at the smallest init scale."""
    cell = results.cells("gate_flips")[0]
    power, spread = metric(cell, "field_norm_curve") ** 2, metric(cell, "participation_curve")
    for curve, name, index in (
        (power, r"growth of $|w_1|^2$", 1),
        (spread, "forming of the bump (participation)", 0),
    ):
        time = curve[CLOCK]
        line = {"color": style.categorical(index), "linestyle": style.LINES[1 - index]}
        style.over_seeds(ax, time, _way(curve), label=name, **line)
    ax.axhline(HALF, **style.GUIDE)
    times = [metric_mean(cell, name) for name in ("growth_time", "localisation_time")]
    for time in times:
        ax.plot([time, time], [0, HALF], **style.GUIDE)
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of the way")
    ax.set(xlim=(0, float(power[CLOCK][-1])), ylim=(-0.05, 1.1))
    ax.legend(loc="lower right")
    ax.set_title(
        rf"Half way: the length at {times[0]:.0f} $\tau$, the bump at {times[1]:.0f} $\tau$"
    )


def panel_b(results: Results, ax: Axes) -> None:
    """A unit of the first seed, over its largest weight; the line is at half of the growth."""
    cell = results.cells("gate_flips")[0]
    fields = smallest_scale(cell.receptive_fields).isel(seed=0)
    time = fields[CLOCK].values
    power = (fields.values**2).sum(axis=-1).mean(axis=-1)
    weights = fields.isel(unit=0).values
    shift = weights.shape[1] // 2 - int(np.abs(weights[-1]).argmax())
    largest = np.abs(weights).max(axis=1, keepdims=True)
    shape = np.roll(weights / np.where(largest > 0, largest, np.nan), shift, axis=1)
    positions = np.arange(1, shape.shape[1] + 1)
    shades = ax.pcolormesh(time, positions, shape.T, vmin=-1, vmax=1, cmap=style.SIGNED)
    grown = time[np.argmax(power >= (power[0] + power[-1]) / 2)]
    ax.axvline(grown, color="black", linewidth=0.8)
    ax.figure.colorbar(shades, ax=ax, label="weight", aspect=14)
    ax.set(xlabel=r"flow time ($\tau$)", ylabel=POSITION_LABEL)
    ax.set_title("Weights of one unit")


def panel_c(results: Results, ax: Axes) -> None:
    """Participation over time by init scale."""
    cell = results.cells("gate_flips")[0]
    curve = cell.get("metrics", "participation_curve")
    for scale, props in scale_styles(cell).items():
        style.over_seeds(ax, curve[CLOCK], curve.sel(init_scale=scale), **props)
    ax.set(xlabel=style.FLOW_TIME, ylabel="participation", xlim=(0, float(curve[CLOCK][-1])))
    end = curve.isel(snapshot=-1).mean("seed")
    ax.set_title(f"Participation ends at {float(end.min()):.1f} or more")


def panel_d(results: Results, ax: Axes) -> None:
    """Units whose mode at the end is, within a twentieth of the ring, where it was before."""
    cell = results.cells("gate_flips")[0]
    shares = []
    for position, name in enumerate(MODES):
        mark = {"color": style.categorical(0), "marker": style.marker(position), "markersize": 5}
        shares.append(style.points(ax, position, metric(cell, name), **mark))
    style.named_columns(ax, MODES.values())
    ax.set(ylim=(0, 1.05), ylabel="share that keep their mode")
    ax.set_title(f"{shares[0]:.0%} keep their mode")


def panel_e(results: Results, ax: Axes) -> None:
    """Units that are localised at the end by init scale, at both gains."""
    cells = results.cells("gate_flips")
    for cell, fill in zip(cells, ("full", "none"), strict=False):
        draw_by_scale(ax, cell, cell.get("metrics", "localised_share"), fillstyle=fill)
    style.named_columns(ax, [f"{scale:g}" for scale in scale_styles(cells[0])])
    ax.set(xlabel="init scale", ylabel="share of localised units", ylim=(-0.05, 1.05))
    ax.legend(
        handles=[
            style.handle(marginal_name(cell), linestyle="", marker="o", color="0.3", fillstyle=fill)
            for cell, fill in zip(cells, ("full", "none"), strict=False)
        ],
        loc="center right",
    )
    means = cells[0].get("metrics", "localised_share").mean("seed")
    low, high = float(means.min()), float(means.max())
    ax.set_title(f"{low:.0%} to {high:.0%} localise, whatever the start")


def _way(curve: xr.DataArray) -> xr.DataArray:
    """A curve scaled to 0 at its start and 1 at its end, in each run."""
    start, end = (curve.isel(snapshot=at, drop=True) for at in (0, -1))
    return (curve - start) / (end - start).where(end != start)
