"""Gates determined upfront in the place of those of a ReLU network.

Gates are frozen, and weights start as those of the ReLU network and follow in closed form to the
end of its training and to infinite time. Sources of gates are the ReLU network itself at the start
and at the end of training, random half-spaces, and gates made by hand. The notes say that post-hoc
a sensible gating structure can be picked that mimics a run, and ask for one that is determined
upfront. Gates of the end reach loss and fields of the run. Gates of the start, and random ones,
reach a lower loss and do not localise; those of single inputs localise, but not where the network
does, even on Gaussian inputs, which localise no field of a ReLU network. Markers are means of five
runs, and bars their ranges.
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

UNITS = 4
"""Number of units that are drawn."""
MATCHED: dict[str, Any] = {"color": style.COLOURS["gated"], "marker": "o", "markersize": 5.5}
GAUSSIAN: dict[str, Any] = {"color": "0.35", "marker": "^", "markersize": 5.5, "fillstyle": "none"}
COSINE = 1.16
"""Place of the cosines, in widths of the axes."""


@Figure(
    layout="abc",
    height=3.9,
    widths=(1.1, 1.5, 1.5),
    cf={"a": "sec. 2.2", "b": "sec. 2"},
    reads={
        "prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "frozen_fresh_loss frozen_localised_share frozen_overlap frozen_loss "
                "gaussian_limit_localised_share localised_share relu_fresh_loss"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, and networks with frozen gates."""
    return [
        style.handle("ReLU network", color=frozen_gates.RELU["color"], **style.SIMULATION),
        style.handle("gates of its start, frozen", **style.THEORY),
        style.handle("frozen gates, end of training", linestyle="", **MATCHED),
        style.handle("Gaussian inputs, infinite time", linestyle="", **GAUSSIAN),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """First units of the first seed at the end, each over its largest weight."""
    cell = _cell(results)
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="initial_gates"))
    line = {"color": frozen_gates.RELU["color"]} | style.SIMULATION
    draw_fields(ax, final_fields(cell).isel(seed=0).values[:UNITS], **line)
    draw_fields(ax, theory.isel(seed=0).values[:UNITS], **style.THEORY)
    ax.set(xlabel=POSITION_LABEL, ylabel="weights of four units")
    ax.set_title("Early gates: no bumps")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by source of gates; the line is the ReLU network's."""
    ax.set_title("Upfront gates can fit better")
    rows = _sources(ax, results, {"frozen_fresh_loss": MATCHED})
    rows.set_yticklabels(frozen_gates.source_names(_cell(results)).values())
    frozen_gates.draw_relu(rows, metric(_cell(results), "relu_fresh_loss"), across=True)
    rows.set(xlim=(0, None), xlabel="loss on fresh samples")
    rows.xaxis.set_major_formatter("{x:g}")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of units that localise, also on infinitely many Gaussian samples, for which there is a
    closed form of half-spaces, not of tilings. Numbers are cosines of fields with those of the ReLU
    network at the end of training, means over units and runs.
    """
    ax.set_title("Only final gates give the network's bumps")
    cell = _cell(results)
    metrics = {"frozen_localised_share": MATCHED, "gaussian_limit_localised_share": GAUSSIAN}
    rows = _sources(ax, results, metrics)
    frozen_gates.draw_relu(rows, metric(cell, "localised_share"), across=True)
    rows.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1], xlabel="share of localised units")
    for row, source in enumerate(frozen_gates.source_names(cell)):
        cosine = metric_mean(cell, "frozen_overlap", gates_from=source)
        number = f"{cosine:.2f}".replace("-", "\N{MINUS SIGN}")
        rows.text(COSINE, row, number, transform=rows.get_yaxis_transform(), ha="center",
                  va="center")  # fmt: skip
    rows.text(COSINE, -0.5, "cosine", transform=rows.get_yaxis_transform(), ha="center",
              va="center", color="0.3")  # fmt: skip


def _cell(results: Results) -> CellResults:
    """The condition that is drawn."""
    return results.cells("prediction")[0]


def _sources(ax: Axes, results: Results, metrics: Mapping[str, Mapping[str, Any]]) -> Axes:
    """Draws metrics in a row for each source of gates; returns the axes of the rows."""
    cell = _cell(results)
    names = frozen_gates.source_names(cell)
    ax = style.named_rows(ax, [""] * len(names))
    ax.tick_params(axis="y", length=0)
    offsets = 0.26 * (np.arange(len(metrics)) - (len(metrics) - 1) / 2)
    for row in range(len(names)):
        ax.axhline(row, color="0.92", linewidth=0.6, zorder=0)
    for (name, props), offset in zip(metrics.items(), offsets, strict=True):
        values = [metric(cell, name, gates_from=source) for source in names]
        style.point_series(ax, np.arange(len(names)) + offset, values, across=True, **props)
        for row, each in enumerate(values):
            if each.isnull().all():
                at = {"va": "center", "fontsize": 6.5, "color": props["color"]}
                ax.text(0, row + offset, "no closed form", **at)
    return ax
