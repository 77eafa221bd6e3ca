"""Objects in contexts: inputs, targets, and the gates of three families of pathways (fig. 3)."""

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from neuralrace.datasets import Data
from neuralrace.datasets.contextual import Contextual
from neuralrace.figures import gated, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "contextual_gated": {
            "trajectory": "",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Samples along x, context after context: inputs, targets, and gates by family."""
    networks = gated.families(results.cells("contextual_gated"))
    cell = next(iter(networks.values()))
    data, dataset = cell.data, gated.task(cell)
    gates = [gated.pathway_gates(each) for each in networks.values()]
    figure = Canvas(figsize=(style.COLUMN, 5.6))
    # rows of gates are as tall as is needed to name them
    heights = [1.0, 2.3, *(0.13 * len(each) for each in gates)]
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    inputs, targets, *pathways = axes
    style.heat(inputs, data.x.T, 0, 1)
    gated.name_blocks(inputs.yaxis, data.input_groups, ("object", "context"))
    inputs.set_ylabel("input")
    style.heat(targets, data.y.T, 0, 1)
    gated.name_blocks(targets.yaxis, *_properties(dataset))
    targets.set_ylabel("property")
    for ax, each in zip(pathways, gates, strict=True):
        style.heat(ax, each, 0, 1, rows=_open_in(each, data))
        for row in range(1, len(each)):
            ax.axhline(row - 0.5, color="0.5", linewidth=0.5)
        ax.set_ylabel("open in")
    for ax in axes:
        gated.name_contexts(ax.xaxis, dataset)
    axes[-1].set_xlabel("context, each with all objects")
    titles = ["inputs", "targets", *(f"gates, $q$ = {gated.family(q)}" for q in networks)]
    style.letters(axes, titles)
    dark, light = (colormaps[style.HEAT](value) for value in (0.0, 1.0))
    shades = [Patch(facecolor=light, label="1, open"), Patch(facecolor=dark, label="0, closed")]
    style.legend(figure, shades, columns=2)
    return figure


def _properties(dataset: Contextual) -> tuple[list[int], list[str]]:
    """Sizes and names of the blocks of targets."""
    places = ("always", *(f"in {context}" for context in range(1, dataset.contexts + 1)))
    kinds = [structure.replace("_", "-") for structure in dataset.blocks]
    names = [f"{place}:\n{kind}" for place, kind in zip(places, kinds, strict=True)]
    return gated.block_sizes(dataset), names


def _open_in(gates: Float[np.ndarray, "pathway sample"], data: Data) -> list[str]:
    """Numbers of the contexts that each pathway is open in."""
    contexts = np.asarray(data.contexts)
    return [", ".join(map(str, np.unique(contexts[row > 0]) + 1)) for row in gates]
