"""Gates of a ReLU network over training, beside those of its gated network.

The paper (Jarvis et al., "Make Haste Slowly", sec. 4, sec. 6 and appendix B) gives the ReLU network
a gated network whose gates are constant: a common pathway, open on all samples, and a pathway for
each pair of contexts. The ReLU network has no such pathways side by side. With the first drop of
the loss nearly all of its units are open in all contexts; later most of them close in one. Pathways
are clusters of the gates of all of training (algorithm 1, four clusters). Lines and bands are means
and ranges over ten runs, of 700 units each.
"""

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.gate_patterns import by_contexts, colour, draw_gates, kinds_of, opened_in
from neuralrace.figures.sweeps import metric, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.reln.gates import relu_gates

OTHERS = ("three_contexts", "four_contexts", "five_contexts")
"""Experiments whose contexts all have hierarchies."""
LEVELS = (1.0, 0.7, 0.45, 0.1)
"""Losses over initial loss at which gates are drawn, at the nearest snapshots, beside the end."""
EVERY = 3
"""One unit in so many is drawn."""
LEAST_BLOCK = 0.07
"""Least share of rows of a block that has a name."""
CLUSTERS = 4
FLIPS = {
    "carried_gate_flip_fraction": ("differ from\nthe start", "o"),
    "recent_gate_flips": ("flip within\n1/20 of\ntraining", "^"),
}
"""Names and markers of shares of gates."""
RELU = {"color": style.COLOURS["relu"]}
FAINT = {"color": "0.78", "linewidth": 0.8, "alpha": 1.0}


@Figure(
    layout="aaa;b.c",
    height=4.9,
    widths=(1.0, 0.05, 1.0),
    heights=(1.3, 1.0),
    cf={"a": "sec. 4", "b": "sec. 4"},
    reads={
        "contextual three_contexts four_contexts five_contexts": {
            "metrics": "carried_gate_flip_fraction recent_gate_flips",
        },
        "contextual": {
            "trajectory": "loss weight_1",
            "metrics": "identified_gates identified_share loss_half_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: units and lines are labelled."""
    return []


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
        part.set(xlabel="sample,\nby context")
        part.set_title(f"flow time {time:.0f}", loc="center")
        part.set_yticks([])
    blocks = [(kind_name(k), np.flatnonzero((ends == k).all(axis=1)))
              for k in kinds_of(dataset.contexts)]  # fmt: skip
    blocks.append(("fewer", np.flatnonzero(ends.sum(axis=1) < dataset.contexts - 1)))
    named = [(rows.mean(), name) for name, rows in blocks if len(rows) > LEAST_BLOCK * len(order)]
    parts[0].set_yticks([middle for middle, _ in named], [name for _, name in named])
    parts[0].set_ylabel("hidden unit, by contexts that it\nis mostly open in at the end\n"
                        "(white: gate closed)")  # fmt: skip
    at = {"source": "training", "clusters": CLUSTERS}
    pathways, shares = (
        metric(cell, f"identified_{name}").sel(at).dropna("pathway", how="all").values
        for name in ("gates", "share")
    )
    heights = np.round(len(order) * shares / shares.sum()).astype(int)
    draw_gates(parts[-1], np.repeat(pathways.astype(bool), heights, axis=0), cell)
    parts[-1].set(xlabel="sample,\nby context")
    parts[-1].set_title("gated network", loc="center")
    parts[-1].yaxis.tick_right()
    names = map(kind_name, opened_in(pathways.astype(bool), dataset.contexts))
    parts[-1].set_yticks(np.cumsum(heights) - heights / 2, list(names))
    ax.set_title("Common units first, units of two contexts later")


def panel_b(results: Results, ax: Axes) -> None:
    """Shares of units by the contexts that they are open in, on more than half of the samples of
    each, one above the other, in the colours of a. Means over ten runs. At the dip (third column of
    a) most of the units that are no longer open in all contexts are open on exactly half of the
    samples of one, and the next modes open some of them on more.
    """
    cell = results.cell("contextual")
    weights = smallest_scale(cell.get("trajectory", "weight_1"))
    finite = weights.isel(unit_0=0, unit_1=0, drop=True).notnull()
    kinds = kinds_of(contextual.task(cell).contexts)
    time = weights["snapshot_flow_time"]
    opened = opened_in(_gates(cell, weights), kinds.shape[1])
    has = (opened[..., None, :] == kinds).all(axis=-1).mean(axis=-2)
    shares = np.concatenate([has, 1 - has.sum(axis=-1, keepdims=True)], axis=-1)
    top, ends = xr.ones_like(time, dtype=float), []
    for kind, values in zip(_all_kinds(kinds.shape[1]), np.moveaxis(shares, -1, 0), strict=True):
        bottom = top - finite.copy(data=values).where(finite).mean("seed")
        ax.fill_between(time, bottom, top, color=colour(kind), alpha=0.75, linewidth=0)
        ax.plot(time, bottom, color="white", linewidth=1.2)
        ends.append((float((bottom + top)[-1]) / 2, _words(kind), colour(kind)))
        top = bottom
    ax.set(xlabel=style.FLOW_TIME, ylim=(0, 1))
    ax.set(xlim=(0, float(time[-1])), yticks=(0, 0.5, 1))
    ax.set_ylabel("share of units, by contexts\nthat they are mostly open in")
    label_ends(ax, ends)
    ax.set_title("Units open in all contexts become rare")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of gates that differ from the start (units by their power at the end), and from the
    snapshot before, a twentieth of training. Means and ranges over ten runs; thin and grey are
    tasks of three, four and five contexts that all have hierarchies.
    """
    for cell in map(results.cell, OTHERS):
        for name in FLIPS:
            flips = _flips(cell, name).mean("seed")
            ax.plot(flips["snapshot_flow_time"], flips, **FAINT)
    ends = []
    for name, (text, marker) in FLIPS.items():
        flips = _flips(results.cell("contextual"), name)
        time, end = flips["snapshot_flow_time"], float(flips.isel(snapshot=-1).mean("seed"))
        style.over_seeds(ax, time, flips, marker=marker, markersize=3, **RELU)
        ends.append((end, text, RELU["color"]))
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of gates", ylim=(0, None))
    ax.set_xlim(0, float(time[-1]))
    ax.text(0.98, 0.46, "pale grey: hierarchies in\nthree, four and five contexts", ha="right",
            transform=ax.transAxes, fontsize=6.5, color="0.35")  # fmt: skip
    label_ends(ax, ends)
    ax.set_title("Over a quarter of gates end up changed")


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


def _words(opened: Bool[np.ndarray, " context"]) -> str:
    """`kind_name` in words."""
    name = kind_name(opened)
    return f"in {name}" if opened.any() else name


def _flips(cell: CellResults, name: str) -> xr.DataArray:
    """A share of gates from the first snapshot on at which it compares two after the start."""
    first = 2 if name == "recent_gate_flips" else 1
    return metric(cell, name).isel(layer=0, snapshot=slice(first, None))
