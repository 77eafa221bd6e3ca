"""Gates on two objects in two contexts: what lemma 4.1 allows, and what there is.

Lemma 4.1 of Jarvis et al., "Make Haste Slowly" (appendix D), says that a hidden unit is gated by
the context alone, or open on a single sample; its proof finds gates by object alone as well and
sets them aside. Of the 16 patterns on four samples that is ten (dotted frame). Four more can be
had (shaded), as linear programming shows, such as the counterexample (framed), which has weights
(1/2, -1/2) from the objects and (1, 0) from the contexts; only the two patterns of XoR cannot.
Trained networks use patterns beyond the lemma. Means and ranges over ten runs, of 200 units each.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory import gate_patterns
from neuralrace.theory.reln.gates import relu_gates

COUNTEREXAMPLE = np.array([0.5, -0.5, 1.0, 0.0])
"""Weights from the two objects, then from the two contexts."""
GROUPS = ("Jarvis et al.,\nlemma 4.1\nand proof", "beyond\nthe lemma", "impossible")
START: dict[str, Any] = {"color": "0.5", "marker": "s", "clip_on": False}
END: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o", "clip_on": False}
OPEN = style.COLOURS["relu"]
"""Gates of the ReLU network."""
APART = 0.17
"""Distance of shares before and after training from the middle of their row."""
FRAME = {"facecolor": "none", "edgecolor": style.categorical(4), "linewidth": 1.6}
LEMMA = FRAME | {"edgecolor": style.PAPER["color"], "linestyle": style.PAPER["linestyle"]}


@Figure(
    layout="abc",
    height=3.7,
    widths=(0.95, 1.0, 1.0),
    cf={"a": "app. D"},
    reads={
        "lemma": {
            "trajectory": "weight_1 weight_2",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates, and times."""
    return [
        Patch(facecolor=OPEN, edgecolor="0.2", linewidth=0.6, label="gate open"),
        Patch(facecolor="white", edgecolor="0.2", linewidth=0.6, label="gate closed"),
        style.handle("before training", linestyle="", **START),
        style.handle("after training", linestyle="", **END),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """All patterns of gates, a row each, those open on fewest samples first in each group.

    Raises:
        UserError: the task is another than two objects in two contexts.
    """
    groups = _grouped(results.cell("lemma"))
    patterns = np.concatenate(groups)
    names = [f"{o} in {c}" for c, o in product((1, 2), repeat=2)]
    style.heat(ax, patterns, 0, 1, columns=names, cmap=ListedColormap(["white", OPEN]))
    for row in range(1, len(patterns)):
        ax.axhline(row - 0.5, color="0.5", linewidth=0.5)
    shown = (results.cell("lemma").data.x @ COUNTEREXAMPLE > 0).tolist()
    frames = (0, len(groups[0]), LEMMA), (patterns.tolist().index(shown), 1, FRAME)
    for first, rows, props in frames:
        frame = Rectangle((-0.5, first - 0.5), patterns.shape[1], rows, **props)
        ax.add_patch(frame).set(clip_on=False, zorder=4)
    contextual.name_blocks(ax.yaxis, list(map(len, groups)), GROUPS)
    ax.set_yticks([*ax.get_yticks(), first], [*GROUPS, "counter-\nexample"])
    ax.get_yticklabels()[-1].set_color(FRAME["edgecolor"])
    ax.set_xlabel("object in context")
    ax.set_title(f"{len(groups[1])} patterns beyond the lemma")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of units that have each pattern before and after training; the text is the sum beyond
    the lemma.

    Raises:
        UserError: the task is another than two objects in two contexts.
    """
    cell = results.cell("lemma")
    groups = _grouped(cell)
    beyond = []
    for snapshot, props, shift in ((0, START, -APART), (-1, END, APART)):
        units, _ = _by_pattern(cell, np.concatenate(groups), snapshot)
        beyond.append(_draw_shares(ax, list(map(len, groups)), units, props, shift))
    ax.set_xlabel("share of units")
    _write_share(ax, groups, f"{beyond[0]:.0%} → {beyond[1]:.0%}\nof units")
    ax.set_title("Many units end beyond the lemma")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of the output on the targets that units of each pattern carry in the end.

    Raises:
        UserError: the task is another than two objects in two contexts.
    """
    cell = results.cell("lemma")
    groups = _grouped(cell)
    _, outputs = _by_pattern(cell, np.concatenate(groups), -1)
    beyond = _draw_shares(ax, list(map(len, groups)), outputs, END)
    row = int(np.flatnonzero(np.concatenate(groups).all(axis=1))[0])
    always = outputs.isel(pattern=row)
    ax.annotate(f"always open: {float(always.mean()):.0%}", (float(always.min()), row), (-5, 0),
                textcoords="offset points", ha="right", va="center")  # fmt: skip
    ax.set_xlabel("share of output")
    _write_share(ax, groups, f"{beyond:.0%} of the output")
    ax.set_title("Much output is beyond the lemma")


def _draw_shares(
    ax: Axes, sizes: Sequence[int], shares: xr.DataArray, props: dict[str, Any], shift: float = 0
) -> float:
    """Draws shares in the rows of their patterns, moved down by a part of a row.

    Returns:
        The share beyond the lemma.
    """
    rows = [row + shift for row in range(shares.sizes["pattern"])]
    style.point_series(ax, rows, shares.transpose("pattern", "seed"), across=True, **props)
    ax.set_yticks([])
    ax.axhspan(sizes[0] - 0.5, sizes[0] + sizes[1] - 0.5, color="0.92", zorder=0)
    ax.set(xlim=(0, 1.05 * ax.dataLim.x1), ylim=(sum(sizes) - 0.5, -0.5))
    return float(shares.isel(pattern=slice(sizes[0], sizes[0] + sizes[1])).sum("pattern").mean())


def _write_share(ax: Axes, groups: Sequence[np.ndarray], text: str) -> None:
    """Writes a text beside the patterns beyond the lemma."""
    middle = len(groups[0]) + (len(groups[1]) - 1) / 2
    ax.text(0.98, middle, text, ha="right", va="center", transform=ax.get_yaxis_transform())


def _grouped(cell: CellResults) -> list[Bool[np.ndarray, "pattern sample"]]:
    """Patterns that the lemma allows, realisable ones beyond it, and impossible ones.

    Within a group, patterns that are open on the fewest samples come first.
    """
    dataset, data = contextual.task(cell), cell.data
    if (dataset.objects, dataset.contexts) != (2, 2):
        raise UserError("patterns of gates are drawn for 2 objects in 2 contexts", key=cell.name)
    every = np.array(list(product((False, True), repeat=len(data.x))))
    every = every[np.argsort(every.sum(axis=1), kind="stable")]
    realisable = {tuple(row) for row in gate_patterns.realisable_patterns(data.x).tolist()}
    possible = np.array([tuple(row) in realisable for row in every.tolist()])
    objects = data.x[:, : data.input_groups[0]].argmax(axis=1)
    allowed = gate_patterns.consistent_with_lemma(every, np.asarray(data.contexts), objects)
    return [every[possible & allowed], every[possible & ~allowed], every[~possible]]


def _by_pattern(
    cell: CellResults, patterns: Bool[np.ndarray, "pattern sample"], snapshot: int
) -> tuple[xr.DataArray, xr.DataArray]:
    """Shares of units and of the output that they carry, (seed, pattern); NaN if diverged."""
    data = cell.data
    encoder, readout = (
        smallest_scale(cell.get("trajectory", f"weight_{layer}")).isel(snapshot=snapshot).values
        for layer in (1, 2)
    )
    (gates,) = relu_gates([encoder, readout], data.x)
    has = (gates[:, :, None] == patterns).all(axis=-1)
    carried = np.sum(np.maximum(encoder @ data.x.T, 0) * (readout.mT @ data.y.T), axis=-1)
    shares = carried / carried.sum(axis=-1, keepdims=True)
    units = np.where(np.isfinite(shares)[..., None], has, np.nan).mean(axis=1)
    outputs = np.einsum("ru,rup->rp", shares, has)
    dims = ("seed", "pattern")
    return xr.DataArray(units, dims=dims), xr.DataArray(outputs, dims=dims)
