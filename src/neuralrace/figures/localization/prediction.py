"""Gates determined upfront in the place of those of a ReLU network.

Gates are frozen, and weights start as those of the ReLU network and follow in closed form to the
end of its training. Sources of gates are the ReLU network itself at the start
and at the end of training, random half-spaces, and gates made by hand. The notes say that post-hoc
a sensible gating structure can be picked that mimics a run, and ask for one that is determined
upfront. Gates of the end reach loss and fields of the run. Gates of the start, and random ones,
reach a lower loss and do not localise; those of single inputs reach a lower loss and localise, but
not where the network does. Markers are means of five runs, and bars their ranges; the band is the
range of the network.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.receptive_fields import POSITION_LABEL, draw_fields, final_fields
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

COLOUR = frozen_gates.RELU["color"]
UNITS = 4
"""Number of units that are drawn."""
FROZEN: dict[str, Any] = {
    "color": style.COLOURS["gated"],
    "marker": "o",
    "markersize": 5.5,
    "clip_on": False,
}
"""Markers of networks with frozen gates."""
COSINE = 1.22
"""Place of the cosines, in widths of the axes."""
HEAD = -0.5
"""Place of the heads of columns, in rows."""
HEADING: dict[str, Any] = {"color": "0.4", "va": "center", "fontsize": 6.5, "linespacing": 1.1}


@Figure(
    layout="abc",
    height=3.9,
    widths=(1.25, 1.4, 1.55),
    cf={"a": "sec. 2.2", "b": "sec. 2"},
    reads={
        "prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "frozen_fresh_loss frozen_localised_share frozen_overlap frozen_loss "
                "localised_share relu_fresh_loss"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, and networks with frozen gates."""
    return [
        style.handle("ReLU network", color=COLOUR, **style.SIMULATION),
        Patch(color=COLOUR, alpha=0.2, linewidth=0, label="its range over runs"),
        style.handle("its gates at the start, frozen", **style.THEORY),
        style.handle("frozen gates, range of runs", linewidth=0.8, **FROZEN),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """First units of the first seed at the end, each over its largest weight; the dashed line is
    the closed form with the gates of the start. The scale on the left is that of the first unit.
    """
    cell = _cell(results)
    theory = smallest_scale(cell.get("theory", "receptive_fields", solution="initial_gates"))
    line = {"color": COLOUR} | style.SIMULATION
    draw_fields(ax, final_fields(cell).isel(seed=0).values[:UNITS], **line)
    draw_fields(ax, theory.isel(seed=0).values[:UNITS], **style.THEORY)
    ax.set(xlabel=POSITION_LABEL, ylabel="weight over largest, four units", yticks=[-1, 0, 1])
    ax.set_title("Early gates: no clean bumps")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by source of gates; the line is the ReLU network's."""
    ax.set_title("Some frozen gates fit better")
    rows = _sources(ax, results, "frozen_fresh_loss")
    rows.set_yticklabels(frozen_gates.source_names(_cell(results)).values())
    rows.text(-0.03, HEAD, "gates of", transform=rows.get_yaxis_transform(), ha="right", **HEADING)
    frozen_gates.draw_relu(rows, metric(_cell(results), "relu_fresh_loss"), across=True)
    rows.set(xlim=(0, None), xlabel="loss on fresh samples")
    rows.xaxis.set_major_formatter("{x:g}")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of units that localise. Numbers are cosines of fields with those of the ReLU network at
    the end of training, means over units and runs.
    """
    ax.set_title("Only final gates give its bumps")
    cell = _cell(results)
    rows = _sources(ax, results, "frozen_localised_share")
    frozen_gates.draw_relu(rows, metric(cell, "localised_share"), across=True)
    rows.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1], xlabel="share of localised units")
    for row, source in enumerate(frozen_gates.source_names(cell)):
        cosine = metric_mean(cell, "frozen_overlap", gates_from=source)
        number = f"{cosine:.2f}".replace("-", "\N{MINUS SIGN}")
        rows.text(COSINE, row, number, transform=rows.get_yaxis_transform(), ha="center",
                  va="center")  # fmt: skip
    rows.text(COSINE, HEAD, "cosine with\nReLU fields", transform=rows.get_yaxis_transform(),
              ha="center", **HEADING)  # fmt: skip


def _cell(results: Results) -> CellResults:
    """The condition that is drawn."""
    return results.cells("prediction")[0]


def _sources(ax: Axes, results: Results, name: str) -> Axes:
    """Draws a metric in a row for each source of gates; returns the axes of the rows."""
    cell = _cell(results)
    sources = frozen_gates.source_names(cell)
    ax = style.named_rows(ax, [""] * len(sources))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(top=HEAD - 0.3)
    for row, source in enumerate(sources):
        ax.axhline(row, color="0.92", linewidth=0.6, zorder=0)
        style.points(ax, row, metric(cell, name, gates_from=source), across=True, **FROZEN)
    return ax
