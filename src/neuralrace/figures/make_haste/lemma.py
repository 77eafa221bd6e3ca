"""Gates on two objects in two contexts: what lemma 4.1 allows, and what there is (app. D)."""

from itertools import product

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib import colormaps
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch, Rectangle

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure
from neuralrace.reln.gates import relu_gates
from neuralrace.theory import gate_patterns

COUNTEREXAMPLE = np.array([0.5, -0.5, 1.0, 0.0])
"""Weights from two objects, then from two contexts."""
GROUPS = ("named in\nthe proof", "beyond\nthe proof", "impossible")
START = {"color": "0.6", "marker": "s", "clip_on": False}
END = {"color": style.distinct(0), "marker": "o", "clip_on": False}
FRAME = {"facecolor": "none", "edgecolor": style.distinct(3), "linewidth": 1.5}


@Figure(
    reads={
        "lemma": {
            "trajectory": "weight_1 weight_2",
        },
    }
)
def draw(results: Results) -> Canvas:
    """All patterns of gates, the units that have each of them, and what these answer.

    Raises:
        UserError: the task is another than two objects in two contexts.
    """
    cell = results.cell("lemma")
    data, dataset = cell.data, gated.task(cell)
    if (dataset.objects, dataset.contexts) != (2, 2):
        raise UserError(f"{cell.name}: patterns of gates are drawn for 2 objects in 2 contexts")
    groups = _grouped(data)
    patterns = np.concatenate(groups)
    figure = Canvas(figsize=(style.COLUMN, 4.0))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1.2, 1.2))
    pictures, units, outputs = axes
    samples = [f"{o} in {c}" for c, o in product((1, 2), repeat=2)]
    style.heat(pictures, patterns, 0, 1, columns=samples)
    for row in range(1, len(patterns)):
        pictures.axhline(row - 0.5, color="0.5", linewidth=0.5)
    shown = (data.x @ COUNTEREXAMPLE > 0).tolist()
    frame = Rectangle((-0.5, patterns.tolist().index(shown) - 0.5), len(samples), 1, **FRAME)
    pictures.add_patch(frame).set(clip_on=False, zorder=4)
    for ax in axes:
        gated.name_blocks(ax.yaxis, list(map(len, groups)), GROUPS)
        ax.tick_params(axis="y", length=0)
    for snapshot, look in ((0, START), (-1, END)):
        found, carried = _by_pattern(cell, patterns, snapshot)
        for row in range(len(patterns)):
            style.points(units, row, found.isel(pattern=row), across=True, **look)
            if snapshot:
                style.points(outputs, row, carried.isel(pattern=row), across=True, **look)
    pictures.set_xlabel("object in context")
    units.set(xlabel="share of units", xlim=(0, None))
    outputs.set(xlabel="share of output", xlim=(0, None))
    style.letters(axes, ["gates", "units", "what they carry"])
    dark, light = (colormaps[style.HEAT](value) for value in (0.0, 1.0))
    entries = [
        Patch(facecolor=light, label="open"),
        Patch(facecolor=dark, label="closed"),
        Patch(**FRAME, label="counterexample"),
        style.entry("at the start", linestyle="", **START),
        style.entry("at the end", linestyle="", **END),
    ]
    style.legend(figure, entries, columns=3)
    return figure


def _grouped(data: Data) -> list[Bool[np.ndarray, "pattern sample"]]:
    """Patterns that the lemma allows, realisable ones beyond it, and impossible ones.

    Those that are open on fewest samples come first.
    """
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
    """Shares of units, and of output on the targets that they carry, by seed and pattern.

    NaN for runs that have diverged.
    """
    data = cell.data
    encoder, readout = (
        gated.smallest(cell.get("trajectory", f"weight_{layer}")).isel(snapshot=snapshot).values
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
