"""How many clusters of gates it takes to imitate a ReLU network.

Gated networks with the pathways of k clusters are trained as the ReLU network is (Jarvis et al.,
"Make Haste Slowly", appendix B, fig. 9: eight objects in three contexts of different structure).
The error falls to an elbow at four clusters, the common pathway and one for every pair of contexts;
more clusters gain little. As a control, gates of the start alone do worse, though they are alike in
kind. Gates that leave a sample without an open pathway make no network and are left out. By the
distance of losses, a measure of ours, gates of the start do as well from four clusters on.
"""

from itertools import pairwise

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.gate_patterns import colour, kinds_of, opened_in
from neuralrace.figures.sweeps import metric
from neuralrace.metrics.relu.gate_identification import ELBOW
from neuralrace.results.cells import CellResults, Results

SOURCES = {
    "training": {"color": style.COLOURS["gated"], "marker": "o", "markersize": 5},
    "start": {"color": "0.5", "marker": "^", "linewidth": 1.0, "alpha": 1.0},
}
"""Lines by the time that gates are from."""
NAMES = {"training": "gates of all\nof training", "start": "gates of\nthe start"}
NOTE = {"fontsize": 6.5, "color": "0.35"}
STEEP = 1.5
"""Ratio of errors above which a line has its number below, as other lines are above it."""
HALF, REACH = 0.36, 0.5
"""Half the width of a pattern of gates, and of a number of clusters along the axis."""


@Figure(
    layout="a;b",
    width=4.6,
    height=3.9,
    heights=(1.45, 1.0),
    cf={"a": "Fig. 9"},
    reads={
        "contextual": {
            "metrics": "elbow identification_mse identified_gates",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines are labelled."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Mean squared distance of outputs from those of the ReLU network at equal times, over samples,
    properties and training, the mean of three runs, whose ranges are within the lines. The ring is
    the elbow: the fewest clusters with at most twice the least error (shaded). Numbers: by how much
    a cluster more divides the error.
    """
    cell = results.cell("contextual")
    elbow = float(metric(cell, "elbow", source="training").max("run"))
    ends = []
    for source, props in SOURCES.items():
        values = _errors(cell, source).rename(run="seed")
        style.over_seeds(ax, values["clusters"], values, **props)
        end = float(values.mean("seed").dropna("clusters")[-1])
        ends.append((end, NAMES[source], props["color"]))
    errors = _errors(cell, "training").mean("run")
    counts = errors["clusters"].values
    least = float(errors.min())
    ax.axhspan(least, ELBOW * least, color="0.92", zorder=0)
    place = (counts[0] - REACH + 0.08, least * ELBOW**0.5)
    ax.text(*place, f"up to {ELBOW:g} times the least", va="center", **NOTE)
    for before, count in pairwise(counts):
        high, low = (float(errors.sel(clusters=k)) for k in (before, count))
        middle = ((before + count) / 2, (high * low) ** 0.5)
        steep = high / low > STEEP
        ax.annotate(f"÷{high / low:.1f}", middle, (-3, -10) if steep else (0, 4),
                    textcoords="offset points", ha="right" if steep else "center",
                    **NOTE)  # fmt: skip
    for count in counts[counts == elbow]:
        error = float(errors.sel(clusters=count))
        ax.plot(count, error, "o", color="black", markerfacecolor="none", markersize=11)
        ax.annotate("elbow: fewest\nwithin the band", (count, error), (-2, 16),
                    textcoords="offset points", fontsize=NOTE["fontsize"])  # fmt: skip
    ax.set(yscale="log", ylabel="mean squared error of outputs", xlabel="number of clusters $k$")
    _frame(ax, counts)
    label_ends(ax, ends)
    ax.set_title(f"The error has its elbow at {elbow:.0f} clusters")


def panel_b(results: Results, ax: Axes) -> None:
    """The pathways of these clusters: a row for each, with samples by context from left to right,
    in colour where it is open. Names are those of the largest number of clusters. Framed: the
    pathways of the paper's gated network.
    """
    cell = results.cell("contextual")
    counts = _errors(cell, "training")["clusters"].values
    contexts = contextual.task(cell).contexts
    designed, title = set(map(tuple, kinds_of(contexts))), "Pathways of all numbers of clusters"
    for count in counts:
        gates = metric(cell, "identified_gates", source="training").sel(clusters=count)
        gates = gates.dropna("pathway", how="all").values.astype(bool)
        opened = opened_in(gates, contexts)
        colours = np.array([colour(row) for row in opened])
        shades = np.where(gates[..., None], colours[:, None], 0.95)
        rows = len(gates)
        extent = (count - HALF, count + HALF, rows, 0)
        ax.text(count, -0.25, f"$k$ = {count}", ha="center", va="bottom", fontsize=6.5)
        ax.imshow(shades, aspect="auto", interpolation="nearest", extent=extent)
        for row in range(1, rows):
            ax.plot(extent[:2], [row, row], color="white", linewidth=1.2)
        for edge in np.linspace(*extent[:2], contexts + 1)[1:-1]:
            ax.plot([edge, edge], [0, rows], color="white", linewidth=1.2)
        if rows == len(designed) and set(map(tuple, opened)) == designed:
            title = f"{rows} clusters are the paper's pathways"
            corner = (count - HALF - 0.05, -0.12)
            frame = {"fill": False, "edgecolor": "black", "linewidth": 1.0}
            ax.add_patch(Rectangle(corner, 2 * HALF + 0.1, rows + 0.24, **frame))
    _frame(ax, counts)
    ax.text(counts[0] - HALF, len(opened), "colour: open\npale: closed", va="bottom", **NOTE)
    names = [", ".join(map(str, np.flatnonzero(row) + 1)) or "none" for row in opened]
    ax.set_yticks(np.arange(len(names)) + 0.5, [f"open in {name}" for name in names])
    ax.yaxis.tick_right()
    ax.set(ylim=(counts[-1] + 0.2, -1.1), ylabel="pathway")
    ax.yaxis.set_label_position("left")
    places = np.arange(contexts) - (contexts - 1) / 2
    ticks = counts[:, None] + places * 2 * HALF / contexts
    ax.set_xticks(ticks.ravel(), [str(n + 1) for _ in counts for n in range(contexts)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("samples, by context")
    ax.set_title(title)


def _errors(cell: CellResults, source: str) -> xr.DataArray:
    """Error by number of clusters and run."""
    return metric(cell, "identification_mse", source=source)


def _frame(ax: Axes, counts: np.ndarray) -> None:
    ax.set_xlim(counts[0] - REACH, counts[-1] + REACH)
    ax.set_xticks(counts)
