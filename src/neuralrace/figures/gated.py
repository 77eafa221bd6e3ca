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

from neuralrace.config.cell import Cell
from neuralrace.datasets.contextual import Contextual, properties
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.figures.domains import EDGE
from neuralrace.figures.networks import draw_network, graph
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.results.cells import CellResults

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
TOGETHER = 0.1
"""Share of the largest singular value within which modes are drawn as one."""
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
    number, *others = numbers
    if others:
        return {"color": style.distinct(9), "marker": "^"}
    place = number - 1
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


def draw_values(ax: Axes, cell: CellResults, pathways: Sequence[int]) -> None:
    """Singular values of the maps of pathways, theory on top.

    Modes that theory has close together are drawn as one, in means and bands over them, runs and
    pathways: those of one kind are draws alike. Shades are ordered by strength.
    """
    values = smallest(cell.get("trajectory", "pathway_values")).isel(pathway=pathways)
    theory = smallest(cell.get("theory", "pathway_values", solution="pathway_modes"))
    groups = alike(theory.isel(pathway=pathways).mean(["seed", "pathway"]))
    for group, colour in zip(groups, style.ordered(len(groups)), strict=True):
        line = values.isel(pathway_mode=group)
        line = line.stack(run=("seed", "pathway", "pathway_mode"), create_index=False)
        line = line.drop_vars(["seed", "pathway", "pathway_mode"], errors="ignore")
        style.over_seeds(ax, cell.flow_time, line.rename(run="seed"), color=colour)
        curve = theory.isel(pathway=pathways, pathway_mode=group)
        ax.plot(cell.flow_time, curve.mean(["seed", "pathway", "pathway_mode"]), **style.THEORY)


def alike(curves: xr.DataArray) -> list[list[int]]:
    """Numbers of learned modes in groups that stay within a share of the largest value.

    Args:
        curves: singular values, `(time, pathway_mode)`.
    """
    most = float(curves.max())
    ends = curves.isel(time=-1)
    groups: list[list[int]] = []
    for mode in np.flatnonzero(ends > LEARNED * ends.max()).tolist():
        off = abs(curves - curves.isel(pathway_mode=mode)).max("time")
        near = [group for group in groups if off[group[0]] < TOGETHER * most]
        if near:
            near[0].append(mode)
        else:
            groups.append([mode])
    return groups


def draw_pathways(ax: Axes, cell: CellResults, shape: float) -> None:
    """The network of pathways, each in a colour, with gates from the first to the last context.

    Args:
        ax: where to.
        cell: of a gated network of the task.
        shape: width over height of the drawing.
    """
    dataset, gates = task(cell), pathway_gates(cell)
    drawn = graph(cell)
    colours = ["0.35", *map(style.distinct, range(1, len(gates)))]
    opened = gates.reshape(len(gates), dataset.contexts, dataset.objects).mean(axis=2)
    nodes = [pathway.nodes[1] for pathway in drawn.pathways]
    draw_network(
        ax,
        drawn,
        dict(zip(drawn.pathways, colours, strict=True)),
        dict(zip(nodes, opened, strict=True)),
        {drawn.inputs[0]: "object,\ncontext", drawn.outputs[0]: "properties"},
        shape=shape,
    )


def opening(gates: Float[np.ndarray, " sample"], dataset: Contextual) -> str:
    """Which contexts a pathway is open in, in words."""
    opened = gates.reshape(dataset.contexts, dataset.objects).any(axis=1)
    if opened.all():
        return "common"
    return "open in " + ", ".join(map(str, np.flatnonzero(opened) + 1))


def snapshots(
    cell: CellResults, seed: int
) -> tuple[Float[np.ndarray, " snapshot"], Float[np.ndarray, "snapshot sample output"]]:
    """Loss over initial loss at snapshots, and outputs, of one run."""
    outputs = smallest(cell.get("trajectory", "outputs")).sel(seed=seed)
    loss = relative(cell.get("trajectory", "loss")).sel(seed=seed)
    return loss.sel(time=outputs["snapshot"].values).values, outputs.values


def first(cell: CellResults) -> int:
    """Seed of the first run that did not diverge."""
    return int(relative(cell.get("trajectory", "loss")).dropna("seed")["seed"][0])


def typical(cell: CellResults) -> int:
    """Seed of the run whose loss is closest to the mean of all that did not diverge."""
    loss = relative(cell.get("trajectory", "loss")).dropna("seed")
    return int(((loss - loss.mean("seed")) ** 2).sum("time").idxmin("seed"))


def nearest(losses: Float[np.ndarray, " snapshot"], levels: Sequence[float]) -> list[int]:
    """Snapshots whose losses are nearest to levels, by their ratios."""
    return [int(abs(np.log(losses / level)).argmin()) for level in levels]


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
    ax: Axes,
    relu: tuple[CellResults, int],
    twin: tuple[CellResults, int],
    levels: Sequence[float],
) -> float:
    """Outputs of a ReLU network, of a gated one at the same losses, and their difference.

    Rows are samples, context after context; columns are properties, those of all contexts first.

    Args:
        ax: a panel, which is split into three rows and a column for each level.
        relu: the ReLU network and the seed of the run that is shown.
        twin: the gated network and the seed of its run, shown between its nearest snapshots.
        levels: losses over initial loss; the ReLU network's nearest snapshots are shown.

    Returns:
        the largest difference of an output.
    """
    cell, _ = relu
    dataset, targets = task(cell), cell.data.y
    losses, outputs = snapshots(*relu)
    moments = nearest(losses, levels)
    pairs = [(outputs[m], at_loss(losses[m], *snapshots(*twin))) for m in moments]
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
        each.set_ylabel(name)
    grid[2, len(moments) // 2].set_xlabel("properties that hold in all contexts, or in one")
    ax.figure.colorbar(shades, ax=list(grid[:2].flat), label="output", aspect=16, pad=0.02)
    ax.figure.colorbar(differences, ax=list(grid[2]), aspect=8, pad=0.02)
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


def level_time(cell: CellResults, level: float) -> float:
    """Flow time to a share of the initial loss, mean over seeds."""
    times = smallest(cell.get("metrics", "level_time"))
    return float(times.sel(loss_level=level).mean("seed"))
