"""Gates determined upfront in the place of those of a ReLU network.

Gates are frozen, and weights start as those of the ReLU network and follow in closed form to the
end of its training and to infinite time. Sources of gates are the ReLU network itself at the start
and at the end of training, random half-spaces, and gates made by hand. The notes say that post-hoc
a sensible gating structure can be picked that mimics a run, and ask for one that is determined
upfront. Gates of the end reach loss and fields of the run. Gates of the start, and random ones,
reach a lower loss and do not localise; those of single inputs localise, even on Gaussian inputs,
which localise no field of a ReLU network. Markers are means of five runs, and bars their ranges.
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
MATCHED: dict[str, Any] = {"color": style.COLOURS["gated"], "marker": "o", "markersize": 4.5}
LIMIT: dict[str, Any] = {"color": "0.45", "marker": "s", "fillstyle": "none"}
GAUSSIAN: dict[str, Any] = {"color": style.categorical(4), "marker": "^"}


@Figure(
    layout="abcd",
    height=3.4,
    widths=(1.25, 1.5, 1.08, 1.45),
    cf={"a": "sec. 2.2", "b": "sec. 2"},
    reads={
        "prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "frozen_fresh_loss frozen_limit_localised_share frozen_localised_share "
                "frozen_overlap frozen_loss gaussian_limit_localised_share localised_share "
                "relu_fresh_loss"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, and times of networks with frozen gates; the last is of Gaussian inputs."""
    return [
        style.handle("ReLU network", color=frozen_gates.RELU["color"], **style.SIMULATION),
        style.handle("gates of the start", **style.THEORY),
        style.handle("end of training", linestyle="", **MATCHED),
        style.handle("infinite time", linestyle="", **LIMIT),
        style.handle("infinite time, Gaussian", linestyle="", **GAUSSIAN),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """First units of the first seed at the end, each over its largest weight."""
    cell = _cell(results)
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="initial_gates"))
    line = {"color": frozen_gates.RELU["color"]} | style.SIMULATION
    draw_fields(ax, final_fields(cell).isel(seed=0).values[:UNITS], **line)
    draw_fields(ax, theory.isel(seed=0).values[:UNITS], **style.THEORY)
    ax.set(xlabel=POSITION_LABEL, ylabel="weights of five units")
    ax.set_title("Early gates: no bumps")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by source of gates; the line is the ReLU network's."""
    ax.set_title("Upfront gates may fit better")
    rows = _sources(ax, results, {"frozen_fresh_loss": MATCHED})
    rows.set_yticklabels(frozen_gates.source_names(_cell(results)).values())
    frozen_gates.draw_relu(rows, metric(_cell(results), "relu_fresh_loss"), across=True)
    rows.set(xlim=(0, None), xlabel="loss on fresh samples")
    rows.xaxis.set_major_formatter("{x:g}")
    _name_relu(rows, metric_mean(_cell(results), "relu_fresh_loss"))


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine of fields with those of the ReLU network at the end of training, mean over units."""
    ax.set_title("Final gates: same fields")
    rows = _sources(ax, results, {"frozen_overlap": MATCHED})
    rows.axvline(1, zorder=0, **frozen_gates.RELU)
    rows.set(xlim=(-0.2, 1.05), xlabel="cosine with ReLU fields")
    _name_relu(rows, 1)


def panel_d(results: Results, ax: Axes) -> None:
    """Share of units that localise, also on infinitely many Gaussian samples.

    For these there is a closed form of half-spaces, not of tilings.
    """
    ax.set_title("Single-input, final ones localise")
    metrics = {
        "frozen_localised_share": MATCHED,
        "frozen_limit_localised_share": LIMIT,
        "gaussian_limit_localised_share": GAUSSIAN,
    }
    rows = _sources(ax, results, metrics)
    frozen_gates.draw_relu(rows, metric(_cell(results), "localised_share"), across=True)
    rows.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1], xlabel="share of localised units")
    _name_relu(rows, metric_mean(_cell(results), "localised_share"))


def _cell(results: Results) -> CellResults:
    """The condition that is drawn."""
    return results.cells("prediction")[0]


def _name_relu(ax: Axes, x: int | float) -> None:
    """Names the line of the ReLU network, in the last row but one, on the side with more room."""
    left = x > sum(ax.get_xlim()) / 2
    row = sorted(ax.get_yticks())[-2:][0]
    ax.annotate(
        "ReLU\nnetwork", (x, row), (-4 if left else 4, 0), textcoords="offset points",
        ha="right" if left else "left", va="center", fontsize=6.5,
        color=frozen_gates.RELU["color"],
    )  # fmt: skip


def _sources(ax: Axes, results: Results, metrics: Mapping[str, Mapping[str, Any]]) -> Axes:
    """Draws metrics in a row for each source of gates; returns the axes of the rows."""
    cell = _cell(results)
    names = frozen_gates.source_names(cell)
    ax = style.named_rows(ax, [""] * len(names))
    ax.tick_params(axis="y", length=0)
    offsets = 0.22 * (np.arange(len(metrics)) - (len(metrics) - 1) / 2)
    for row in range(len(names)):
        ax.axhline(row, color="0.92", linewidth=0.6, zorder=0)
    for (name, props), offset in zip(metrics.items(), offsets, strict=True):
        values = [metric(cell, name, gates_from=source) for source in names]
        style.point_series(ax, np.arange(len(names)) + offset, values, across=True, **props)
        for row, each in enumerate(values):
            if each.isnull().all():
                at = {"va": "center", "fontsize": 6, "color": props["color"]}
                ax.text(0, row + offset, "no closed form", **at)
    return ax
