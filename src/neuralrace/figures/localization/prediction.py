"""Gates determined upfront in the place of those of a ReLU network.

Gates are frozen, and weights start as those of the ReLU network and follow in closed form to the
end of its training (dots) and to infinite time (squares). Sources of gates are the ReLU network
itself at the start and at the end of training, random half-spaces, and gates made by hand. The
notes say that post-hoc a sensible gating structure can be picked that mimics a run, and ask for one
that is determined upfront. Gates of the end reach loss and fields of the run. Gates of the start,
and random ones, reach a lower loss and do not localise; those of single inputs localise, even on
Gaussian inputs (triangles), which localise no field of a ReLU network.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.receptive_fields import POSITION_LABEL, draw_fields, final_fields
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

UNITS = 5
"""Number of units that are drawn."""
MATCHED: dict[str, Any] = {"color": "black", "marker": "o"}
LIMIT: dict[str, Any] = {"color": "0.5", "marker": "s", "fillstyle": "none"}
GAUSSIAN: dict[str, Any] = {"color": style.categorical(4), "marker": "^"}


@Figure(
    layout="abc;ade",
    height=3.9,
    widths=(0.8, 1.0, 1.0),
    cf={"a": "sec. 2.2", "d": "sec. 2.2"},
    reads={
        "prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "frozen_fresh_loss frozen_limit_fresh_loss frozen_limit_localised_share "
                "frozen_limit_participation frozen_localised_share frozen_loss frozen_overlap "
                "frozen_participation gaussian_limit_localised_share localised_share "
                "participation relu_fresh_loss"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, and times of networks with frozen gates."""
    return [
        style.handle("ReLU network", **frozen_gates.RELU),
        style.handle("frozen gates, end of training", linestyle="", **MATCHED),
        style.handle("infinite time", linestyle="", **LIMIT),
        style.handle("infinite time, Gaussian inputs", linestyle="", **GAUSSIAN),
        style.handle("gates of the start", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """First units of the first seed at the end, each over its largest weight."""
    cell = _cell(results)
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="initial_gates"))
    draw_fields(ax, final_fields(cell).isel(seed=0).values[:UNITS], **frozen_gates.RELU)
    draw_fields(ax, theory.isel(seed=0).values[:UNITS], **style.THEORY)
    ax.set(xlabel=POSITION_LABEL, ylabel="weights of the first units")
    ax.set_title("Gates of the start")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by source of gates; the line is the ReLU network's."""
    cell = _cell(results)
    rows = _sources(ax, cell, {"frozen_fresh_loss": MATCHED, "frozen_limit_fresh_loss": LIMIT})
    relu = frozen_gates.draw_relu(rows, metric(cell, "relu_fresh_loss"), across=True)
    rows.set(xlim=(0, None), xlabel="loss on fresh samples")
    over = float(metric(cell, "frozen_fresh_loss").mean("seed").min()) / relu
    ax.set_title(f"Least: {over:.2f} of the ReLU network's")


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine of fields with those of the ReLU network at the end of training, mean over units."""
    cell = _cell(results)
    rows = _sources(ax, cell, {"frozen_overlap": MATCHED})
    rows.axvline(1, zorder=0, **frozen_gates.RELU)
    rows.set(xlim=(-0.2, 1.05), xlabel="cosine with ReLU fields")
    trained = metric_mean(cell, "frozen_overlap", gates_from="trained")
    ax.set_title(f"Gates of its end: cosine {trained:.2f}")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of units that localise, also on infinitely many Gaussian samples."""
    cell = _cell(results)
    metrics = {
        "frozen_localised_share": MATCHED,
        "frozen_limit_localised_share": LIMIT,
        "gaussian_limit_localised_share": GAUSSIAN,
    }
    rows = _sources(ax, cell, metrics)
    frozen_gates.draw_relu(rows, metric(cell, "localised_share"), across=True)
    rows.set(xlim=(-0.04, 1.04), xlabel="share of localised units")
    upfront = metric_mean(cell, "frozen_localised_share", gates_from="initial")
    ax.set_title(f"Gates of the start: {upfront:.0%} localise")


def panel_e(results: Results, ax: Axes) -> None:
    """Participation, the inverse participation ratio times the number of inputs."""
    cell = _cell(results)
    metrics = {"frozen_participation": MATCHED, "frozen_limit_participation": LIMIT}
    rows = _sources(ax, cell, metrics)
    relu = frozen_gates.draw_relu(rows, metric(cell, "participation"), across=True)
    rows.set(xlim=(0, None), xlabel="participation")
    ax.set_title(f"Participation of the ReLU network: {relu:.1f}")


def _cell(results: Results) -> CellResults:
    """The condition that is drawn."""
    return results.cells("prediction")[0]


def _sources(ax: Axes, cell: CellResults, metrics: Mapping[str, Mapping[str, Any]]) -> Axes:
    """Draws metrics by source of gates, in named rows; returns the axes of the rows."""
    names = frozen_gates.source_names(cell)
    ax = style.named_rows(ax, names.values())
    offsets = 0.24 * (np.arange(len(metrics)) - (len(metrics) - 1) / 2)
    for (name, props), offset in zip(metrics.items(), offsets, strict=True):
        values = [metric(cell, name, gates_from=source) for source in names]
        style.point_series(ax, np.arange(len(names)) + offset, values, across=True, **props)
    return ax
