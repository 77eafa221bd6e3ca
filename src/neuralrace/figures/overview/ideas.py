"""Four ideas that the sources leave open: batches, tanh units, low ranks and superposition.

Mini-batches differ from full batches by an amount proportional to the learning rate (Jarvis et al.,
"Make Haste Slowly", appendix A.1, and an open question of Basu et al.): a linear network on the
semantic hierarchy of four items, from an init scale of 0.001. Without gates, a tanh network on the
same items learns the modes of a linear network until units saturate (Saxe et al., "Non-ReLU-style
Dynamics? Tanh?"): times are divided by those of the closed form from the same initial weights.
Small weights and depth pass through low ranks one after the other (Saxe et al., "Low-Rank
Dynamics"): effective rank, the exponential of the entropy of singular values, of the map of linear
networks on four modes. With tied weights and a ReLU at the output, two hidden units represent four
sparse features (notes on deep linear networks, "Toy Models of Superposition"). Ten runs each. The
sources have no such figures; sizes, rates and init scales are ours.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, PercentFormatter

from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.sparse_features import SparseFeatures
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.sweeps import dataset_of, learning_rate, smallest_scale
from neuralrace.results.cells import CellResults, Results

HIDDEN = ("no hidden layer", "one hidden layer", "two hidden layers")
"""Names of networks by their number of hidden layers."""
LARGE = {"color": "0.6", "marker": "X"}
"""Points of the largest init scale."""


@Figure(
    layout="abc;dde",
    height=4.4,
    heights=(1.0, 0.88),
    widths=(1.0, 1.0, 1.15),
    reads={
        "make_haste/batches": {"metrics": "full_batch_distance"},
        "neural_race/tanh": {"metrics": "output_half_time_over_linear"},
        "neural_race/low_rank": {
            "metrics": "half_effective_rank half_effective_rank_over_sequential",
        },
        "deep_linear/superposition": {
            "trajectory": "weight_1",
            "metrics": "explained_outputs",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines are labelled."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Largest distance between the losses of mini-batch and full-batch training at equal times,
    over the initial loss, against the learning rate. Thin: in proportion to it, through the lowest
    point.
    """
    items = len(results.cells("batches")[0].data.x)
    sizes: dict[int, list[CellResults]] = {}
    for cell in sorted(results.cells("batches"), key=learning_rate):
        sizes.setdefault(cell.spec.training.batch.samples(items), []).append(cell)
    ends = []
    ax.set(xscale="log", yscale="log")
    for (size, cells), props in _styled(sorted(sizes.items())):
        rates = [learning_rate(cell) for cell in cells]
        distances = [smallest_scale(cell.get("metrics", "full_batch_distance")) for cell in cells]
        means = style.point_series(ax, rates, distances, **props)
        ax.plot(rates, means[0] * np.divide(rates, rates[0]), **style.GUIDE)
        ends.append((means[-1], f"batch of {size}\n(of {items})", props["color"]))
    ax.autoscale_view()
    label_ends(ax, ends)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="learning rate", ylabel="largest loss difference /\ninitial loss")
    runs = distances[0].sizes["seed"]
    style.note(ax, f"bars: range\nover {runs} runs\nthin: slope 1", "upper left", color="0.35")
    ax.set_title("Batches matter less at small steps")


def panel_b(results: Results, ax: Axes) -> None:
    """Time at which outputs of tanh networks have half of each mode, over that of a linear network
    from the same weights, against the value of a property that an item has. The third and fourth
    mode are equally strong, and a line shows their mean.
    """
    cells = sorted(results.cells("tanh"), key=_target)
    targets = [_target(cell) for cell in cells]
    ratios = [smallest_scale(cell.get("metrics", "output_half_time_over_linear")) for cell in cells]
    ends = []
    ax.set(xscale="log")
    groups = {"first mode": [1], "second mode": [2], "third and\nfourth mode": [3, 4]}
    for (name, modes), props in _styled(list(groups.items())):
        values = [ratio.sel(mode=modes).mean("mode") for ratio in ratios]
        means = style.point_series(ax, targets, values, **props)
        ax.plot(targets, means, color=props["color"], linewidth=0.8)
        ends.append((means[-1], name, props["color"]))
    ax.axhline(1, **style.GUIDE)
    ax.autoscale_view()
    label_ends(ax, ends)
    ax.set_xticks(targets, [f"{target:g}" for target in targets])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="target value", ylabel="half time, tanh / linear")
    style.note(ax, f"bars: range\nover {ratios[0].sizes['seed']} runs", "upper left", color="0.35")
    ax.set_title("Large targets delay tanh networks")


def panel_c(results: Results, ax: Axes) -> None:
    """Effective rank of the map when each mode is half learned, from the smallest init scale, and
    in grey from the largest with most hidden layers. Dashed: modes that are learned one after the
    other.
    """
    cells = sorted(results.cells("low_rank"), key=_depth)
    ends = []
    for cell, props in _styled(cells):
        end = _draw(ax, smallest_scale(_ranks(cell)), props)
        ends.append((end, HIDDEN[_depth(cell)], props["color"]))
    deepest = _ranks(cells[-1])
    sequential = deepest / cells[-1].get("metrics", "half_effective_rank_over_sequential")
    ax.plot(deepest["mode"], sequential.median(("init_scale", "seed")), **style.THEORY)
    largest = deepest.isel(init_scale=int(deepest["init_scale"].values.argmax()))
    name = f"{HIDDEN[_depth(cells[-1])]},\ninit scale {float(largest['init_scale']):g}"
    ends.append((_draw(ax, largest, LARGE), name, LARGE["color"]))
    ax.autoscale_view()
    label_ends(ax, ends)
    style.note(ax, "dashed: one\nmode at a time", "lower right", color="0.35")
    ax.set(xlabel="mode that is half learned", ylabel="effective rank")
    ax.set_title("Depth adds one rank at a time")


def panel_d(results: Results, ax: Axes) -> None:
    """Weights of the two hidden units from each feature after training, of one run: a line for each
    of six features, longest for those that are represented. Dark lines are strong targets.
    """
    cells = results.cells("superposition")
    sparse = min((c for c in cells if not _rectified(c)), key=_active)
    chosen = [
        sparse,
        *(c for c in cells if _rectified(c) and _active(c) in (_active(sparse), 1)),
    ]
    parts = style.split(ax, 1, len(chosen), sharex=True, sharey=True)[0]
    for part, cell in zip(parts, chosen, strict=True):
        vectors = cell.get("trajectory", "weight_1").isel(init_scale=0, seed=0, snapshot=-1)
        colours = style.sequential(vectors.shape[1] + 1)[:-1]
        for (x, y), colour in zip(vectors.values.T, colours, strict=True):
            part.plot([0, x], [0, y], color=colour, marker="o", markevery=[1])
        name = f"{'ReLU' if _rectified(cell) else 'linear'}, active {_active(cell):.0%}"
        part.set_title(name, loc="center")
        part.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xlabel="hidden unit 1")
        part.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    parts[0].set_ylabel("hidden unit 2")
    style.note(parts[0], "dark: strong targets", color="0.35")
    ax.set_title("Sparse features form opposite pairs")


def panel_e(results: Results, ax: Axes) -> None:
    """Features that are represented: the sum over outputs of the share of the variance of their
    targets that is explained, against the probability that a feature is active. Dashed: the two
    hidden units, the most that a linear network can represent.
    """
    groups: dict[str, list[CellResults]] = {}
    for cell in sorted(results.cells("superposition"), key=_active):
        groups.setdefault("ReLU" if _rectified(cell) else "linear", []).append(cell)
    ax.set(xscale="log")
    for (name, cells), props in _styled(sorted(groups.items())):
        active = [_active(cell) for cell in cells]
        values = [smallest_scale(cell.get("metrics", "explained_outputs")) for cell in cells]
        means = style.point_series(ax, active, values, **props)
        ax.plot(active, means, color=props["color"], linewidth=0.8)
        style.note_at(ax, name, (active[0], means[0]), (5, 5), color=props["color"])
    (hidden,) = cells[0].spec.layered.hidden
    ax.axhline(hidden, **style.THEORY)
    style.note_at(ax, "number of hidden units", (active[0], hidden), (0, -9))
    ax.set_ylim(0, len(cells[0].data.y[0]))
    ax.xaxis.set_major_formatter(PercentFormatter(1, 0))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="probability that a feature is active", ylabel="features represented")
    ax.set_title("Sparse features superpose")


def _rectified(cell: CellResults) -> bool:
    """Whether the output has a ReLU."""
    return cell.spec.layered.output == "relu"


def _active(cell: CellResults) -> float:
    """Probability that a feature is active."""
    return dataset_of(cell, SparseFeatures, "active features").active


def _ranks(cell: CellResults) -> xr.DataArray:
    """Effective rank when each mode is half learned, of modes that some runs learn."""
    return cell.get("metrics", "half_effective_rank").dropna("mode", how="all")


def _styled(items: Sequence[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Each item with its colour and marker, without the lightest shade, which is pale in grey."""
    return list(zip(items, style.sequential_styles(len(items) + 1)[:-1], strict=True))


def _draw(ax: Axes, ranks: xr.DataArray, props: Mapping[str, Any]) -> float:
    """Draws ranks, (seed, mode), with a thin line; returns the last mean."""
    modes = ranks["mode"].values.tolist()
    means = style.point_series(ax, modes, [ranks.sel(mode=mode) for mode in modes], **props)
    ax.plot(modes, means, color=props["color"], linewidth=0.8)
    return means[-1]


def _target(cell: CellResults) -> float:
    """Value of a property that an item has."""
    return dataset_of(cell, Hierarchy, "target value").scale


def _depth(cell: CellResults) -> int:
    """Number of hidden layers."""
    return len(cell.spec.layered.hidden)
