"""ReLU networks of the contextual task beside the gated networks that may stand for them.

The task has C contexts; families of gated networks differ in the numbers q of contexts that their
context pathways are open in. All is drawn at the smallest init scale.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patheffects import Normal, Stroke

from neuralrace.datasets.contextual import Contextual, properties
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.figures.domains import EDGE
from neuralrace.figures.networks import draw_network, graph
from neuralrace.gates.contexts import Contexts
from neuralrace.networks.gated import Gated
from neuralrace.records.results import CellResults
from neuralrace.spec import Cell

RELU = {"color": style.COLOURS["relu"], "linewidth": 2.4}
TWIN = {"color": style.COLOURS["gated"], "linewidth": 1.2}
"""The gated network that the paper has a ReLU network amount to, q = C - 1."""
FINE = {
    "color": "black",
    "linewidth": 0.4,
    "path_effects": [Stroke(linewidth=1.0, foreground="white"), Normal()],
}
"""Lines between blocks in pictures with small pixels."""
FAMILIES = (4, 0, 2, 5)
"""Colours of families that are open in 1, 2, 3, ... contexts, as `distinct` numbers them."""
TOGETHER = 0.05
"""Share of the largest singular value within which theory is drawn once for several modes."""
LEARNED = 1e-2
"""Share of the largest singular value below which a pathway has no mode."""


def task(cell: CellResults) -> Contextual:
    """The task of a cell.

    Raises:
        UserError: it is another one.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, Contextual):
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no contexts to draw")
    return dataset


def open_in(network: object, name: str) -> tuple[int, ...]:
    """Numbers q of contexts that the context pathways of a network are open in.

    Args:
        network: a gated network, with gates by context.
        name: what to call it if it is not.

    Raises:
        UserError: it is not.
    """
    if not isinstance(network, Gated) or not isinstance(network.gates, Contexts):
        raise UserError(f"{name}: the network has no pathways that are open by context to draw")
    return network.gates.open_in


def families(cells: Iterable[CellResults]) -> dict[tuple[int, ...], CellResults]:
    """Cells of a sweep over gates by the numbers q of contexts, smallest q first."""
    found = {open_in(cell.spec.network, cell.name): cell for cell in cells}
    return dict(sorted(found.items(), key=lambda each: (len(each[0]), each[0])))


def candidates(cell: CellResults) -> dict[tuple[int, ...], str]:
    """Names of the candidates of a ReLU network by the numbers q, smallest q first."""
    # trajectories know nothing of candidates
    spec = Cell.model_validate_json(cell.metrics.attrs["spec"])
    found = {
        open_in(network, f"{cell.name}: candidate {name}"): name
        for name, network in spec.candidates.items()
    }
    return dict(sorted(found.items(), key=lambda each: (len(each[0]), each[0])))


def family(numbers: tuple[int, ...]) -> str:
    """What to call a family: q, or all of them."""
    return " and ".join(map(str, numbers))


def family_look(numbers: tuple[int, ...]) -> dict[str, Any]:
    """Colour and marker of a family, the same in all figures."""
    if len(numbers) > 1:
        return {"color": style.distinct(9), "marker": "^"}
    place = numbers[0] - 1
    colour = style.distinct(FAMILIES[place % len(FAMILIES)])
    return {"color": colour, "marker": style.marker(place)}


def relative(loss: xr.DataArray) -> xr.DataArray:
    """Loss over initial loss of the runs of one init scale, free of its normalisation."""
    loss = smallest(loss)
    return loss / loss.isel(time=0, drop=True)


def smallest(values: xr.DataArray) -> xr.DataArray:
    """Values of the runs of the smallest init scale."""
    return values.isel(init_scale=int(values["init_scale"].values.argmin()), drop=True)


def pathway_gates(cell: CellResults) -> Float[np.ndarray, "pathway sample"]:
    """Gates of a gated network; the common pathway is the one that is open on every sample.

    Raises:
        UserError: it is another network.
    """
    network = cell.spec.network
    if not isinstance(network, Gated):
        raise UserError(f"{cell.name}: network {network.name!r} has no gates of pathways to draw")
    return network.wiring(cell.data).pathway_gates


def draw_values(
    ax: Axes, cell: CellResults, pathways: Sequence[int], look: Mapping[str, Any] | None = None
) -> None:
    """Singular values of the maps of pathways, each mode over all of them, theory on top.

    Colours run over the modes that are learned, unless `look` has a colour for all.
    """
    values = smallest(cell.get("trajectory", "pathway_values")).isel(pathway=pathways)
    theory = smallest(cell.get("theory", "pathway_values", solution="pathway_modes"))
    theory = theory.isel(pathway=pathways).mean(["seed", "pathway"])
    ends, drawn = theory.isel(time=-1), None
    learned = np.flatnonzero(ends > LEARNED * ends.max())
    for mode, colour in zip(learned, style.ordered(len(learned)), strict=True):
        # seeds and pathways of one kind are draws alike
        line = values.isel(pathway_mode=mode).stack(run=("seed", "pathway"), create_index=False)
        line = line.drop_vars("seed").rename(run="seed")
        style.over_seeds(ax, cell.flow_time, line, **{"color": colour} | dict(look or {}))
        curve = theory.isel(pathway_mode=mode)
        if drawn is None or abs(curve - drawn).max() > TOGETHER * ends.max():
            ax.plot(cell.flow_time, curve, **style.THEORY)
            drawn = curve


def draw_pathways(ax: Axes, cell: CellResults) -> None:
    """The network of pathways, each in a colour, with gates by context."""
    dataset, gates = task(cell), pathway_gates(cell)
    drawn = graph(cell)
    colours = ["0.35", *map(style.distinct, range(1, len(gates)))]
    nodes = [pathway.nodes[1] for pathway in drawn.pathways]
    opened = gates.reshape(len(gates), dataset.contexts, dataset.objects).mean(axis=2)
    names = [opening(row, dataset) for row in gates]
    draw_network(
        ax,
        drawn,
        dict(zip(drawn.pathways, colours, strict=True)),
        dict(zip(nodes, opened, strict=True)),
        {drawn.inputs[0]: "object,\ncontext", drawn.outputs[0]: "properties"}
        | dict(zip(nodes, names, strict=True)),
    )


def opening(gates: Float[np.ndarray, " sample"], dataset: Contextual) -> str:
    """Which contexts a pathway is open in, in words."""
    opened = gates.reshape(dataset.contexts, dataset.objects).any(axis=1)
    if opened.all():
        return "common"
    return "open in " + ", ".join(map(str, np.flatnonzero(opened) + 1))


def snapshots(
    cell: CellResults, run: int = 0
) -> tuple[Float[np.ndarray, " snapshot"], Float[np.ndarray, "snapshot sample output"]]:
    """Loss over initial loss at snapshots, and outputs, of one of the runs that did not diverge."""
    loss = relative(cell.get("trajectory", "loss")).dropna("seed").isel(seed=run)
    outputs = smallest(cell.get("trajectory", "outputs")).sel(seed=loss["seed"])
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


def draw_outputs(
    ax: Axes, cell: CellResults, twin: CellResults, moments: Sequence[int], run: int = 0
) -> float:
    """Outputs of a ReLU network, of a gated one at the same losses, and their difference.

    Rows are samples, context after context; columns are properties, those of all contexts first.

    Args:
        ax: a panel, which is split into three rows and a column for each moment.
        cell: the ReLU network.
        twin: the gated network, of which the first run is shown, between its nearest snapshots.
        moments: snapshots of the ReLU network.
        run: of the ReLU network that is shown, of those that did not diverge.

    Returns:
        the largest difference of an output.
    """
    dataset, targets = task(cell), cell.data.y
    losses, outputs = snapshots(cell, run)
    pairs = [(outputs[m], at_loss(losses[m], *snapshots(twin))) for m in moments]
    most = max(float(abs(one - other).max()) for one, other in pairs)
    grid = style.split(ax, 3, len(moments), sharex=True, sharey=True)
    for column, moment, (one, other) in zip(grid.T, moments, pairs, strict=True):
        for each, shown in zip(column[:2], (one, other), strict=True):
            shades = style.heat(each, shown, targets.min(), targets.max())
        differences = style.heat(column[2], one - other, -most, most)
        column[0].set_title(f"loss {losses[moment]:.2f}", loc="center")
    blocks = block_sizes(dataset)
    names = ["all", *map(str, range(1, len(blocks)))]
    for each in grid.flat:
        name_blocks(each.xaxis, blocks, names, FINE)
        name_contexts(each.yaxis, dataset, FINE)
        each.label_outer()
    for each, name in zip(grid[:, 0], ("ReLU", "gated", "difference"), strict=True):
        each.set_ylabel(f"{name}\ncontext")
    grid[2, len(moments) // 2].set_xlabel("properties that hold in all contexts, or in one")
    ax.get_figure().colorbar(shades, ax=list(grid[:2].flat), label="output", aspect=16, pad=0.02)
    ax.get_figure().colorbar(differences, ax=list(grid[2]), aspect=8, pad=0.02)
    return most


def block_sizes(dataset: Contextual) -> list[int]:
    """Number of properties in each block of targets."""
    return [len(properties(structure, dataset.objects)) for structure in dataset.blocks]


def name_blocks(
    axis: Axis,
    sizes: Sequence[int],
    names: Sequence[str],
    edge: Mapping[str, Any] = EDGE,
) -> None:
    """Names of blocks along one axis of a picture, and lines between them."""
    ends = np.cumsum(sizes)
    axis.set_ticks(ends - (np.asarray(sizes) + 1) / 2, names)
    line = axis.axes.axvline if axis is axis.axes.xaxis else axis.axes.axhline
    for end in ends[:-1]:
        line(end - 0.5, **edge)


def name_contexts(axis: Axis, dataset: Contextual, edge: Mapping[str, Any] = EDGE) -> None:
    """Numbers of the contexts along an axis of samples, and lines between them."""
    names = [str(context) for context in range(1, dataset.contexts + 1)]
    name_blocks(axis, [dataset.objects] * dataset.contexts, names, edge)
