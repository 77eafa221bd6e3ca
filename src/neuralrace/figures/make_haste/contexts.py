"""Three, four and five contexts: ReLU networks and their rectified linear networks (fig. 5)."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

CONTEXTS = {"three_contexts": 3, "four_contexts": 4, "five_contexts": 5}
"""Experiments, and their numbers of contexts C."""
ROWS = (
    "loss over\ninitial loss",
    "common pathway\nsingular value",
    "context pathways\nsingular value",
)


@Figure(
    reads={
        "three_contexts four_contexts five_contexts": {
            "trajectory": "loss",
        },
        "three_contexts_gated four_contexts_gated five_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Losses of both networks and two closed forms; singular values of all pathways."""
    figure, axes = style.panels(3, len(CONTEXTS), height=1.4, sharey="row")
    for (losses, *values), (experiment, contexts) in zip(axes.T, CONTEXTS.items(), strict=True):
        twin = gated.families(results.cells(f"{experiment}_gated"))[contexts - 1,]
        loss = _draw_losses(losses, results.cell(experiment), twin)
        everywhere = gated.pathway_gates(twin).all(axis=1)
        for ax, kind in zip(values, (everywhere, ~everywhere), strict=True):
            gated.draw_values(ax, twin, np.flatnonzero(kind).tolist())
        end = style.settled(loss, twin.flow_time)
        for ax in (losses, *values):
            ax.set_xlim(0, end)
    for ax, name in zip(axes[:, 0], ROWS, strict=True):
        ax.set(ylabel=name, ylim=(0, None))
    figure.supxlabel(style.FLOW_TIME, fontsize=style.SHEET["axes.labelsize"])
    style.letters(axes[0], [f"$C$ = {contexts}" for contexts in CONTEXTS.values()])
    entries = [
        style.entry("ReLU network", **gated.RELU),
        style.entry("gated, $q = C - 1$", **gated.TWIN),
        style.entry("theory", **style.THEORY),
        style.entry("Jarvis et al., closed form", **style.PAPER),
    ]
    style.legend(figure, [*entries, style.BAND], columns=2)
    return figure


def _draw_losses(ax: Axes, relu: CellResults, twin: CellResults) -> xr.DataArray:
    """Loss of both networks, closed forms on top; returns the loss of the ReLU network."""
    losses = [gated.relative(cell.get("trajectory", "loss")) for cell in (relu, twin)]
    for cell, loss, look in zip((relu, twin), losses, (gated.RELU, gated.TWIN), strict=True):
        style.over_seeds(ax, cell.flow_time, loss, **look)
    for solution, look in (("staged_modes", style.PAPER), ("head_start", style.THEORY)):
        theory = gated.relative(twin.get("theory", "loss", solution=solution))
        ax.plot(twin.flow_time, theory.mean("seed"), **look)
    return losses[0]
