"""ReLU networks on the contextual task, and the gated networks that are compared with them.

The task has C contexts. A family of gated networks is named by the number q of contexts that each
of its context pathways is open in. All panels show the smallest init scale.
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
from neuralrace.figures.sweeps import (
    cannot_draw,
    dataset_of,
    metric,
    relative_loss,
    smallest_scale,
)
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.networks.graph import Graph
from neuralrace.results.cells import CellResults

Numbers = tuple[int, ...]
"""The numbers q of contexts that the context pathways of a family are open in."""

RELU = {"color": style.COLOURS["relu"], "linewidth": 4.0}
RELN = {"color": style.COLOURS["gated"], "linewidth": 2.2}
"""The rectified linear network, a gated network with q = C - 1."""
FINE_LINE = {
    "color": "black",
    "linewidth": 0.4,
    "path_effects": [Stroke(linewidth=1.0, foreground="white"), Normal()],
}
"""Lines between blocks of matrices with small pixels."""
FAMILY_COLOURS = (4, 0, 2, 5)
"""Indices of the categorical colours of the families q = 1, 2, 3, ..."""
DIFFERENCE_STEP = 0.05
"""The scale of differences of outputs is a multiple of this."""
SAME_MODE = 0.1
"""Modes whose singular values differ by less than this share of the largest are drawn as one."""
LEARNED = 1e-2
"""Modes that end below this share of the largest singular value are not drawn."""


def task(cell: CellResults) -> Contextual:
    """The contextual task of a cell.

    Raises:
        UserError: the cell has another dataset.
    """
    return dataset_of(cell, Contextual, "contexts")


def open_in(network: object, name: str) -> Numbers:
    """The numbers q of contexts that the context pathways of a network are open in.

    Args:
        network: a gated network, with gates by context.
        name: name of the network, for the message.

    Raises:
        UserError: a network without gates by context.
    """
    if not isinstance(network, Gated) or not isinstance(network.gates, Contexts):
        raise UserError("the network has no pathways that are open by context to draw", key=name)
    return network.gates.open_in


def families(cells: Iterable[CellResults]) -> dict[Numbers, CellResults]:
    """Cells of a sweep over gates by family, smallest q first."""
    return _sorted({open_in(cell.spec.network, cell.name): cell for cell in cells})


def reln(cells: Iterable[CellResults]) -> CellResults:
    """The rectified linear network of a sweep over gates: pathways open in all contexts but one."""
    by_family = families(cells)
    contexts = task(next(iter(by_family.values()))).contexts
    return by_family[contexts - 1,]


def candidate_names(cell: CellResults) -> dict[Numbers, str]:
    """Names of the candidates of a ReLU network by family, smallest q first."""
    # Only the specification in the metrics file has candidates; that of a trajectory does not.
    spec = Cell.model_validate_json(cell.metrics.attrs["spec"])
    return _sorted({
        open_in(network, f"{cell.name}: candidate {name}"): name
        for name, network in spec.candidates.items()
    })  # fmt: skip


def _sorted(by_family: dict[Numbers, Any]) -> dict[Numbers, Any]:
    return dict(sorted(by_family.items(), key=lambda item: (len(item[0]), item[0])))


def family_name(numbers: Numbers) -> str:
    """The number q of a family, or all its numbers."""
    return " and ".join(map(str, numbers))


def family_props(numbers: Numbers) -> dict[str, Any]:
    """Colour and marker of a family, the same in all figures."""
    number, *others = numbers
    if others:
        return {"color": style.categorical(9), "marker": "^"}
    index = number - 1
    colour = style.categorical(FAMILY_COLOURS[index % len(FAMILY_COLOURS)])
    return {"color": colour, "marker": style.marker(index)}


def pathway_gates(cell: CellResults) -> Float[np.ndarray, "pathway sample"]:
    """Gates of a gated network; the common pathway is open on every sample.

    Raises:
        UserError: a network without pathways.
    """
    network = cell.spec.network
    if not isinstance(network, Gated | Graph):
        raise cannot_draw(cell, "network", "gates of pathways")
    return network.wiring(cell.data).pathway_gates


def gates_by_context(cell: CellResults) -> Float[np.ndarray, "pathway context"]:
    """The share of objects on which each pathway is open, in each context."""
    gates, dataset = pathway_gates(cell), task(cell)
    return gates.reshape(len(gates), dataset.contexts, dataset.objects).mean(axis=2)


def draw_singular_values(ax: Axes, cell: CellResults, pathways: Sequence[int]) -> None:
    """Singular values of the maps of pathways, with theory on top.

    Modes that are close together in theory are drawn as one: the mean and the band are over these
    modes, runs and pathways. Stronger modes are darker.
    """
    values = smallest_scale(cell.get("trajectory", "pathway_values")).isel(pathway=pathways)
    theory = smallest_scale(cell.get("theory", "pathway_values", solution="pathway_modes"))
    groups = mode_groups(theory.isel(pathway=pathways).mean(["seed", "pathway"]))
    for group, colour in zip(groups, style.sequential(len(groups)), strict=True):
        line = values.isel(pathway_mode=group)
        line = line.stack(run=("seed", "pathway", "pathway_mode"), create_index=False)
        line = line.drop_vars(["seed", "pathway", "pathway_mode"], errors="ignore")
        style.over_seeds(ax, cell.flow_time, line.rename(run="seed"), color=colour)
        curve = theory.isel(pathway=pathways, pathway_mode=group)
        ax.plot(cell.flow_time, curve.mean(["seed", "pathway", "pathway_mode"]), **style.THEORY)


def mode_groups(curves: xr.DataArray) -> list[list[int]]:
    """Indices of learned modes, grouped by curves that are close at all times.

    Args:
        curves: singular values, `(time, pathway_mode)`.
    """
    most = float(curves.max())
    ends = curves.isel(time=-1)
    groups: list[list[int]] = []
    for mode in np.flatnonzero(ends > LEARNED * ends.max()).tolist():
        distance = abs(curves - curves.isel(pathway_mode=mode)).max("time")
        near = [group for group in groups if distance[group[0]] < SAME_MODE * most]
        if near:
            near[0].append(mode)
        else:
            groups.append([mode])
    return groups


def opening_label(gates: Float[np.ndarray, " sample"], dataset: Contextual) -> str:
    """The contexts that a pathway is open in, in words."""
    opened = gates.reshape(dataset.contexts, dataset.objects).any(axis=1)
    if opened.all():
        return "common"
    return "open in " + ", ".join(map(str, np.flatnonzero(opened) + 1))


def snapshots(
    cell: CellResults, seed: int, scale: float | None = None
) -> tuple[Float[np.ndarray, " snapshot"], Float[np.ndarray, "snapshot sample output"]]:
    """Loss over initial loss, and outputs, at the snapshots of one run.

    Args:
        cell: the cell.
        seed: of the run.
        scale: init scale of the run, or one near it; the smallest when absent.
    """
    if scale is None:
        scale = float(cell.trajectory["init_scale"].min())
    outputs, loss = (
        cell.get("trajectory", name).sel(seed=seed).sel(init_scale=scale, method="nearest")
        for name in ("outputs", "loss")
    )
    loss = loss / loss.isel(time=0, drop=True)
    return loss.sel(time=outputs["snapshot"].values).values, outputs.values


def first_seed(cell: CellResults) -> int:
    """Seed of the first run that did not diverge."""
    return int(relative_loss(cell.get("trajectory", "loss")).dropna("seed")["seed"][0])


def typical_seed(cell: CellResults) -> int:
    """Seed of the run whose loss is closest to the mean of all runs that did not diverge."""
    loss = relative_loss(cell.get("trajectory", "loss")).dropna("seed")
    return int(((loss - loss.mean("seed")) ** 2).sum("time").idxmin("seed"))


def nearest_snapshots(losses: Float[np.ndarray, " snapshot"], levels: Sequence[float]) -> list[int]:
    """Indices of the snapshots whose losses are nearest to levels, by their ratios."""
    return [int(abs(np.log(losses / level)).argmin()) for level in levels]


def moment_at_loss(level: float, losses: Float[np.ndarray, " snapshot"]) -> float:
    """Where a loss is first reached, as an index of snapshots, interpolated linearly."""
    falling = np.minimum.accumulate(losses)
    return float(np.interp(-level, -falling, np.arange(len(losses))))


def outputs_at_loss(
    level: float,
    losses: Float[np.ndarray, " snapshot"],
    outputs: Float[np.ndarray, "snapshot sample output"],
) -> Float[np.ndarray, "sample output"]:
    """Outputs at a loss, interpolated linearly between two snapshots."""
    position = moment_at_loss(level, losses)
    before = min(int(position), len(losses) - 2)
    share = position - before
    return (1 - share) * outputs[before] + share * outputs[before + 1]


def draw_outputs(
    ax: Axes,
    relu_run: tuple[CellResults, int],
    reln_run: tuple[CellResults, int],
    levels: Sequence[float],
    scale: float | None = None,
) -> None:
    """Outputs of a ReLU network, of a gated network at the same losses, and their difference.

    Rows are samples, by context. Columns are properties, those that hold in all contexts first.
    Differences are of the ReLU network less the gated one; the largest is at their colour bar.

    Args:
        ax: axes of a panel, which are split into three rows and a column for each level.
        relu_run: the ReLU network, and the seed of its run.
        reln_run: the gated network, and the seed of its run; its outputs are interpolated.
        levels: losses over initial loss; the nearest snapshots of the ReLU network are drawn.
        scale: init scale of both runs, as in `snapshots`.
    """
    losses, outputs = snapshots(*relu_run, scale)
    moments = nearest_snapshots(losses, levels)
    gated = snapshots(*reln_run, scale)
    pairs = [(outputs[m], outputs_at_loss(losses[m], *gated)) for m in moments]
    draw_pairs(ax, relu_run[0], pairs, [f"loss {losses[m]:.2f}" for m in moments])


def draw_pairs(
    ax: Axes,
    cell: CellResults,
    pairs: Sequence[tuple[Float[np.ndarray, "sample output"], Float[np.ndarray, "sample output"]]],
    titles: Sequence[str],
) -> None:
    """Outputs of a ReLU network, of a gated network, and their difference; see `draw_outputs`.

    Args:
        ax: axes of a panel.
        cell: the ReLU network.
        pairs: outputs of both networks, for each column.
        titles: titles of the columns.
    """
    dataset, targets = task(cell), cell.data.y
    most = max(float(abs(one - other).max()) for one, other in pairs)
    least, highest = float(targets.min()), float(targets.max())
    limit = DIFFERENCE_STEP * (most // DIFFERENCE_STEP + 1)
    grid = style.split(ax, 3, len(pairs), sharex=True, sharey=True)
    for column, title, pair in zip(grid.T, titles, pairs, strict=True):
        for part, matrix in zip(column[:2], pair, strict=True):
            shades = style.heat(part, matrix, least, highest)
        differences = style.heat(column[2], pair[0] - pair[1], -limit, limit)
        column[0].set_title(title, loc="center")
    blocks = block_sizes(dataset)
    names = ["all", *map(str, range(1, len(blocks)))]
    contexts = [f"context {number}" for number in range(1, dataset.contexts + 1)]
    for part in grid.flat:
        name_blocks(part.xaxis, blocks, names, FINE_LINE)
        name_blocks(part.yaxis, [dataset.objects] * dataset.contexts, contexts, FINE_LINE)
        part.label_outer()
    for part, name in zip(grid[:, 0], ("ReLU", "gated", "difference"), strict=True):
        part.set_ylabel(name)
    # Centred below all columns: with an even number of them, below the gap in the middle.
    grid[2, (len(pairs) - 1) // 2].set_xlabel(
        "properties that hold in all contexts, or in one",
        x=0.5 if len(pairs) % 2 else 1.02,
    )
    ax.figure.colorbar(shades, ax=list(grid[:2].flat), label="output", aspect=16, pad=0.02)
    bar = ax.figure.colorbar(differences, ax=list(grid[2]), aspect=8, pad=0.02)
    bar.set_ticks((-limit, 0, limit))
    bar.set_label(f"ReLU − gated\n(largest {most:.2f})")


def block_sizes(dataset: Contextual) -> list[int]:
    """Number of properties in each block of targets."""
    return [len(properties(structure, dataset.objects)) for structure in dataset.blocks]


def name_blocks(
    axis: Axis, sizes: Sequence[int], names: Sequence[str], line_props: Mapping[str, Any] = EDGE
) -> None:
    """Names of blocks along one axis of a matrix, and lines between them."""
    ends = np.cumsum(sizes)
    axis.set_ticks(ends - (np.asarray(sizes) + 1) / 2, names)
    line = axis.axes.axvline if axis is axis.axes.xaxis else axis.axes.axhline
    for end in ends[:-1]:
        line(end - 0.5, **line_props)


def name_contexts(axis: Axis, dataset: Contextual, line_props: Mapping[str, Any] = EDGE) -> None:
    """Numbers of the contexts along an axis of samples, and lines between them."""
    names = [str(context) for context in range(1, dataset.contexts + 1)]
    name_blocks(axis, [dataset.objects] * dataset.contexts, names, line_props)


def level_time(cell: CellResults, level: float) -> float:
    """Flow time at which the loss reaches a share of the initial loss, the mean over seeds."""
    return float(metric(cell, "level_time").sel(loss_level=level).mean("seed"))
