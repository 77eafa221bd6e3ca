"""Gates of a ReLU network over training, beside those of its gated network.

The paper (Jarvis et al., "Make Haste Slowly", sec. 4, sec. 6 and appendix B) gives the ReLU network
a gated network whose gates are constant: a common pathway, open on all samples, and a pathway for
each pair of contexts. The ReLU network has no such pathways side by side. With the first drop of
the loss nearly all of its units are open in all contexts; later most of them close in one, and
hardly any stays open on all samples. Pathways are clusters of the gates of all of training
(algorithm 1, four clusters). Lines and bands are means and ranges over ten runs, of 700 units each.
"""

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.gate_patterns import by_contexts, colour, draw_gates, kinds_of, opened_in
from neuralrace.figures.sweeps import metric, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.reln.gates import relu_gates

EXPERIMENTS = ("contextual", "three_contexts", "four_contexts", "five_contexts")
LEVELS = (1.0, 0.7, 0.3, 0.1)
"""Losses over initial loss at which gates are drawn, at the nearest snapshots, beside the end."""
EVERY = 3
"""One unit in so many is drawn."""
LEAST_BLOCK = 0.07
"""Least share of rows of a block that has a name."""
CLUSTERS = 4
DOTTED = {"linestyle": style.LINES[2], "linewidth": 1.6, "alpha": 1.0}
TEXT = {"fontsize": 6.5, "textcoords": "offset points"}


@Figure(
    layout="aaa;bcd",
    height=4.75,
    widths=(1.0, 1.05, 1.0),
    heights=(1.25, 1.0),
    cf={"a": "sec. 4", "b": "sec. 4"},
    reads={
        "contextual three_contexts four_contexts five_contexts": {
            "metrics": "carried_gate_flip_fraction recent_gate_flips",
        },
        "contextual": {
            "trajectory": "loss weight_1",
            "metrics": (
                "always_open_share gate_flips_between identified_gates identified_share "
                "loss_half_time"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Colours of units, by the contexts that they are open in, and the band."""
    contexts = contextual.task(results.cell("contextual")).contexts
    common, *kinds = _all_kinds(contexts)
    first = Patch(color=colour(common), label="open in all contexts")
    return [first, *(Patch(color=colour(kind), label=kind_name(kind)) for kind in kinds)]


def panel_a(results: Results, ax: Axes) -> None:
    """Gates of one run of median speed, a row for a unit and a column for a sample, by context;
    closed gates are white. Rows are sorted by the contexts that units are open in at the end, on
    more than half of the samples of each (names of rows), and have the colour of those that they
    are open in at the time; every third unit is drawn. On the right pathways, as high as
    their share of all gates.
    """
    cell = results.cell("contextual")
    dataset, seed = contextual.task(cell), style.median_seed(metric(cell, "loss_half_time"))
    weights = smallest_scale(cell.get("trajectory", "weight_1")).sel(seed=seed)
    losses = _losses(cell, seed)
    moments = [*contextual.nearest_snapshots(losses, LEVELS), len(losses) - 1]
    gates = _gates(cell, weights.isel(snapshot=moments))
    order = by_contexts(gates[-1], dataset.contexts)[::EVERY]
    ends = opened_in(gates[-1], dataset.contexts)[order]
    parts = style.split(ax, 1, len(moments) + 1, width_ratios=[1] * len(moments) + [1.15])[0]
    times = weights["snapshot_flow_time"].values[moments]
    for part, gate, time in zip(parts, gates[:, order], times, strict=False):
        draw_gates(part, gate, cell)
        part.set_title(f"flow time {time:.0f}", loc="center")
        part.set_yticks([])
    blocks = [(kind_name(k), np.flatnonzero((ends == k).all(axis=1)))
              for k in kinds_of(dataset.contexts)]  # fmt: skip
    blocks.append(("fewer", np.flatnonzero(ends.sum(axis=1) < dataset.contexts - 1)))
    named = [(rows.mean(), name) for name, rows in blocks if len(rows) > LEAST_BLOCK * len(order)]
    parts[0].set_yticks([middle for middle, _ in named], [name for _, name in named])
    parts[0].set_ylabel("unit, by contexts at the end")
    parts[len(parts) // 2 - 1].set_xlabel("sample, by context", x=1.05)  # under the middle
    at = {"source": "training", "clusters": CLUSTERS}
    pathways, shares = (
        metric(cell, f"identified_{name}").sel(at).dropna("pathway", how="all").values
        for name in ("gates", "share")
    )
    heights = np.round(len(order) * shares / shares.sum()).astype(int)
    draw_gates(parts[-1], np.repeat(pathways.astype(bool), heights, axis=0), cell)
    parts[-1].set_title("gated network", loc="center")
    parts[-1].yaxis.tick_right()
    names = map(kind_name, opened_in(pathways.astype(bool), dataset.contexts))
    names = [f"{name}: {share:.0%}" for name, share in zip(names, shares, strict=True)]
    parts[-1].set_yticks(np.cumsum(heights) - heights / 2, names)
    ax.set_title("Common units first, units of two contexts later")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of units by the contexts that they are open in, on more than half of the samples of
    each, in the colours of a; dotted are the paper's pathways, of equal width. The text is the
    power (length of incoming times outgoing weights) of units that are open on all samples at the
    end.
    """
    cell = results.cell("contextual")
    weights = smallest_scale(cell.get("trajectory", "weight_1"))
    finite = weights.isel(unit_0=0, unit_1=0, drop=True).notnull()
    kinds = kinds_of(contextual.task(cell).contexts)
    time = weights["snapshot_flow_time"]
    opened = opened_in(_gates(cell, weights), kinds.shape[1])
    has = (opened[..., None, :] == kinds).all(axis=-1).mean(axis=-2)
    shares = np.concatenate([has, 1 - has.sum(axis=-1, keepdims=True)], axis=-1)
    ends = []
    for kind, share in zip(_all_kinds(kinds.shape[1]), np.moveaxis(shares, -1, 0), strict=True):
        share = finite.copy(data=share).where(finite)
        style.over_seeds(ax, time, share, color=colour(kind))
        ends.append((float(share.isel(snapshot=-1).mean("seed")), kind_name(kind), colour(kind)))
    ax.axhline(1 / len(kinds), **style.PAPER)
    always = float(metric(cell, "always_open_share").isel(layer=0).mean("seed"))
    text = f"open on all samples at the end:\n{always:.1%} of power"
    ax.text(0.98, 0.97, text, ha="right", va="top", transform=ax.transAxes, fontsize=6.5)
    ax.annotate(
        "Jarvis et al.:\neach pathway", (0.62, 1 / len(kinds)), (0.98, 0.5),
        ax.get_yaxis_transform(), ha="right", fontsize=6.5, color=style.PAPER["color"],
        arrowprops={"arrowstyle": "-", "color": "0.35", "linewidth": 0.5, "relpos": (0.2, 0)},
    )  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of units", ylim=(0, 1))
    ax.set_xlim(0, float(time[-1]))
    label_ends(ax, ends)
    ax.set_title("Common units become rare")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of gates that differ between any two snapshots, mean over runs."""
    cell = results.cell("contextual")
    between = metric(cell, "gate_flips_between").isel(layer=0).mean("seed")
    time = between["snapshot_flow_time"].values
    share = between.transpose("snapshot", "other_snapshot").values
    image = style.heat(ax, share, 0, max(0.01, np.fmax.reduce(share.ravel())))
    positions = np.linspace(0, len(time) - 1, min(5, len(time))).round().astype(int)
    names = [f"{time[position]:.0f}" for position in positions]
    ax.set_xticks(positions, names)
    ax.set_yticks(positions, names)
    ax.set(xlabel=style.FLOW_TIME, ylabel=style.FLOW_TIME)
    ax.figure.colorbar(image, ax=ax, label="share of gates that differ", pad=0.02, aspect=16)
    ax.set_title("Gates of the start do not last")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of gates that differ from the snapshot before, a twentieth of training, and from the
    start (dotted, with units by their power at the end). In the task of a to c the structures
    of contexts differ; in the others all contexts have hierarchies. The axis has the unit of the
    bar of c.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    for cell, shade in zip(cells, style.sequential(len(cells)), strict=True):
        _draw_flips(ax, cell, "carried_gate_flip_fraction", 1, color=shade, **DOTTED)
        _draw_flips(ax, cell, "recent_gate_flips", 2, color=shade)
        ax.plot([], [], color=shade, label=_name(cell))
    x = ax.dataLim.x1
    ends = [float(metric(cells[0], name).isel(layer=0, snapshot=-1).mean("seed"))
            for name in ("carried_gate_flip_fraction", "recent_gate_flips")]  # fmt: skip
    names = (("differ from the start", 6), ("snapshot to snapshot", 14))
    for end, (name, up) in zip(ends, names, strict=True):
        ax.annotate(f"{name}: {end:.0%}", (x, end), (0, up), ha="right", **TEXT)
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.45), ncols=2, handlelength=1)
    ax.set(xlabel=style.FLOW_TIME, ylim=(0, None), xlim=(0, x))
    ax.set_title("Flips become rare")


def _all_kinds(contexts: int) -> Bool[np.ndarray, "kind context"]:
    """`kinds_of`, and none for all others."""
    return np.concatenate([kinds_of(contexts), np.zeros((1, contexts), dtype=bool)])


def kind_name(opened: Bool[np.ndarray, " context"]) -> str:
    """The contexts that a unit or a pathway is open in."""
    if opened.all():
        return "all"
    open_in = np.flatnonzero(opened) + 1
    return ", ".join(map(str, open_in)) if len(open_in) == len(opened) - 1 else "fewer"


def _losses(cell: CellResults, seed: int) -> np.ndarray:
    """Loss over initial loss at the snapshots of a run."""
    loss = relative_loss(cell.get("trajectory", "loss")).sel(seed=seed)
    return loss.sel(time=cell.trajectory["snapshot"].values).values


def _gates(cell: CellResults, weights: xr.DataArray) -> Bool[np.ndarray, "*runs unit sample"]:
    """Gates of the first hidden layer."""
    values = weights.transpose(..., "unit_1", "unit_0").values
    return relu_gates([values, values], cell.data.x)[0]


def _name(cell: CellResults) -> str:
    """Number of contexts, and whether it is the task of the other panels."""
    task = contextual.task(cell)
    return f"$C$ = {task.contexts}" + (", as in a" if len(set(task.blocks)) > 1 else "")


def _draw_flips(ax: Axes, cell: CellResults, name: str, first: int, **props: object) -> None:
    """Draws a share of gates by flow time, from its first snapshot on."""
    late = {"snapshot": slice(first, None)}
    flips = metric(cell, name).isel(layer=0).isel(late)
    style.over_seeds(ax, flips["snapshot_flow_time"], flips, **props)
