"""How many clusters of gates it takes to imitate a ReLU network.

Gated networks with the pathways of k clusters are trained as the ReLU network is (Jarvis et al.,
"Make Haste Slowly", appendix B, fig. 9: eight objects in three contexts of different structure).
The error falls to an elbow at four clusters, the common pathway and one for every pair of contexts;
more clusters gain little. As a control, gates of the start alone do worse, though they are alike in
kind. Gates that leave a sample without an open pathway make no network and are left out. Means and
ranges over three runs; the distance of losses is ours.
"""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

SOURCES = {
    "training": {"label": "gates of all of training", "color": style.categorical(0), "marker": "o"},
    "start": {
        "label": "gates of the start",
        "color": "0.6",
        "marker": "^",
        "linestyle": style.LINES[1],
        "linewidth": 1.2,
    },
}
"""Lines by the time that gates are from."""
DESIGNED = {"color": style.categorical(5), "linewidth": 1.2, "linestyle": style.LINES[3]}


@Figure(
    layout="ab",
    height=2.5,
    cf={"a": "Fig. 9"},
    reads={
        "contextual": {
            "metrics": "elbow identification_gap identification_mse imitation_gap",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Sources of gates, and the paper's network."""
    handles = [style.handle(**props) for props in SOURCES.values()]
    return [*handles, style.handle("pathways as designed", **DESIGNED), style.BAND]


def panel_a(results: Results, ax: Axes) -> None:
    """Mean squared distance of outputs from those of the ReLU network at equal times, over samples,
    properties and training. The ring is the elbow: the fewest clusters with at most twice the least
    error.
    """
    cell = results.cell("contextual")
    elbow = metric(cell, "elbow", source="training").max("run")
    errors = _by_clusters(ax, cell, "identification_mse")
    for count in errors["clusters"].values[errors["clusters"] == elbow]:
        error = float(errors.sel(clusters=count).mean("run"))
        ax.plot(count, error, "o", color="black", markerfacecolor="none", markersize=9)
    ax.set(yscale="log", ylabel="mean squared error of outputs")
    ax.set_title(f"Error has its elbow at {float(elbow):.0f} clusters")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest distance of the losses at equal times, over the initial loss. The line across is the
    network that the paper designs by hand, a common pathway beside pathways open in all contexts
    but one (mean, range over seeds).
    """
    cell = results.cell("contextual")
    name = contextual.candidate_names(cell)[contextual.task(cell).contexts - 1,]
    designed = metric(cell, "imitation_gap", candidate=name)
    _by_clusters(ax, cell, "identification_gap")
    low, high = float(designed.min()), float(designed.max())
    ax.axhspan(low, high, color=DESIGNED["color"], alpha=0.15, linewidth=0)
    ax.axhline(float(designed.mean()), **DESIGNED)
    ax.set(ylabel="distance of losses (initial loss)", ylim=(0, None))
    ax.set_title("By the loss, early gates do as well")


def _by_clusters(ax: Axes, cell: CellResults, name: str) -> xr.DataArray:
    """Draws a distance by number of clusters and run; returns that of gates of all of training."""
    for source, props in SOURCES.items():
        values = metric(cell, name, source=source).rename(run="seed")
        style.over_seeds(ax, values["clusters"], values, **props)
    ax.set_xlabel("number of clusters $k$")
    return metric(cell, name, source="training")
