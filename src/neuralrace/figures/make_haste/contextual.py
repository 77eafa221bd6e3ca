"""Eight objects in three contexts: a ReLU network and its rectified linear network (fig. 4a, b)."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.image import AxesImage

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

SHARES = (0.5, 0.2, 0.05)
"""Losses over initial loss near which outputs are shown."""


@Figure(
    reads={
        "contextual": {
            "trajectory": "loss outputs",
            "theory": "candidate_loss",
            "metrics": "imitation_loss",
        },
        "contextual_gated": {
            "trajectory": "loss outputs pathway_values",
            "theory": "pathway_values",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Loss against trained and predicted gated networks, pathways, and outputs at equal loss.

    Outputs are those of one run each.
    """
    cell = results.cell("contextual")
    networks = gated.families(results.cells("contextual_gated"))
    twin = networks[gated.task(cell).contexts - 1,]
    figure = Canvas(figsize=(style.COLUMN, 6.8))
    rows = figure.add_gridspec(3, 1, height_ratios=(1.2, 1.1, 2))
    losses = figure.add_subplot(rows[0])
    values = rows[1].subgridspec(1, 2).subplots(sharey=True, squeeze=False)[0]
    pictures = rows[2].subgridspec(3, len(SHARES)).subplots(sharey=True, squeeze=False)

    _draw_losses(losses, cell)
    _draw_pathways(values, twin)
    shades, differences = _draw_outputs(pictures, cell, twin)
    figure.colorbar(shades, ax=pictures[:2], label="output", aspect=20)
    figure.colorbar(differences, ax=pictures[2], label="output", aspect=9)
    titles = ["loss", "common pathway", "context pathways", pictures[0, 0].get_title(loc="left")]
    style.letters([losses, *values, pictures[0, 0]], titles)
    theory = style.entry("theory of the gated", **style.THEORY)
    entries = losses.get_legend_handles_labels()[0]
    style.legend(figure, [*entries, style.BAND, theory], columns=2)
    return figure


def _draw_losses(ax: Axes, cell: CellResults) -> None:
    """Loss of a ReLU network and of its trained candidates, the theory of one on top."""
    loss = gated.relative(cell.get("trajectory", "loss"))
    style.over_seeds(ax, cell.flow_time, loss, label="ReLU network", **gated.RELU)
    initial = gated.smallest(cell.get("trajectory", "loss")).isel(time=0, drop=True)
    twin = (gated.task(cell).contexts - 1,)
    others = iter(gated.OTHERS)
    names = gated.candidates(cell)
    for numbers, name in names.items():
        imitation = gated.smallest(cell.get("metrics", "imitation_loss", candidate=name))
        look = gated.TWIN if numbers == twin else next(others)
        label = f"gated, $q$ = {gated.family(numbers)}"
        style.over_seeds(ax, cell.flow_time, imitation / initial, label=label, **look)
    theory = gated.smallest(cell.get("theory", "candidate_loss", candidate=names[twin]))
    ax.plot(cell.flow_time, (theory / initial).mean("seed"), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over\ninitial loss", ylim=(0, None))
    ax.set_xlim(0, style.settled(loss, cell.flow_time))
    style.epochs(ax, cell.flow_time)


def _draw_pathways(axes: np.ndarray, cell: CellResults) -> None:
    """Singular values of the common pathway, and of each context pathway in a colour of its own."""
    dataset, gates = gated.task(cell), gated.pathway_gates(cell)
    everywhere = gates.all(axis=1)
    for ax, is_common in zip(axes, (True, False), strict=True):
        pathways = np.flatnonzero(everywhere == is_common).tolist()
        for pathway, colour in zip(pathways, style.ordered(len(pathways)), strict=True):
            gated.draw_values(ax, cell, [pathway], {} if is_common else {"color": colour})
            opened = gates[pathway].reshape(dataset.contexts, dataset.objects).any(axis=1)
            contexts = np.flatnonzero(opened) + 1
            ax.plot([], [], color=colour, label=", ".join(map(str, contexts)))
        ax.set(xlim=(0, float(cell.flow_time[-1])), ylim=(0, 3.5))
        ax.set_xlabel(r"flow time (units of $\tau$)")
    axes[0].set_ylabel("singular value")
    axes[1].legend(
        title="open in contexts",
        title_fontsize="medium",
        loc="upper left",
        ncols=3,
        handlelength=0.9,
        columnspacing=0.8,
    )


def _draw_outputs(
    axes: np.ndarray, cell: CellResults, twin: CellResults
) -> tuple[AxesImage, AxesImage]:
    """Outputs of both networks at the same losses, and their difference."""
    losses, outputs = _first(cell)
    other_losses, other_outputs = _first(twin)
    targets = cell.data.y
    moments = [int(abs(np.log(losses / share)).argmin()) for share in SHARES]
    pairs = [(outputs[m], at_loss(losses[m], other_losses, other_outputs)) for m in moments]
    most = max(float(abs(one - other).max()) for one, other in pairs)
    for column, moment, (one, other) in zip(axes.T, moments, pairs, strict=True):
        for ax, shown in zip(column[:2], (one, other), strict=True):
            shades = style.heat(ax, shown, targets.min(), targets.max())
        differences = style.heat(column[2], one - other, -most, most)
        column[0].set_title(f"loss {losses[moment]:.2f}")
    for ax, name in zip(axes[:, 0], ("ReLU", "gated", "difference"), strict=True):
        ax.set_ylabel(name + "\ncontext")
    dataset = gated.task(cell)
    blocks = gated.block_sizes(dataset)
    names = ["all", *map(str, range(1, len(blocks)))]
    for ax in axes.flat:
        gated.name_blocks(ax.xaxis, blocks, names, gated.FINE)
        gated.name_contexts(ax.yaxis, dataset, gated.FINE)
    axes[2, 1].set_xlabel("properties that hold in all contexts, or in one")
    return shades, differences


def _first(cell: CellResults) -> tuple[Float[np.ndarray, " snapshot"], np.ndarray]:
    """Loss over initial loss at snapshots, and outputs, of the first run that did not diverge."""
    loss = gated.relative(cell.get("trajectory", "loss")).dropna("seed").isel(seed=0)
    outputs = gated.smallest(cell.get("trajectory", "outputs")).sel(seed=loss["seed"])
    return loss.sel(time=outputs["snapshot"].values).values, outputs.values


def at_loss(
    level: float,
    losses: Float[np.ndarray, " snapshot"],
    outputs: Float[np.ndarray, "snapshot sample output"],
) -> Float[np.ndarray, "sample output"]:
    """Outputs at a loss, linearly between the two snapshots about it."""
    falling = np.minimum.accumulate(losses)
    place = np.interp(-level, -falling, np.arange(len(losses)))
    before = min(int(place), len(losses) - 2)
    share = place - before
    return (1 - share) * outputs[before] + share * outputs[before + 1]
