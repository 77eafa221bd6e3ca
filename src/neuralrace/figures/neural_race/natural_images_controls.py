"""Transfer among images: initial weights, losses, ReLUs and transformations.

Panel d of figure 7 of Saxe, Sodhani and Lewallen (2022), and what is beyond it, on digits in ten
domains and held-out images unless a panel says otherwise. Learning rates and lengths of training
differ by init scale, whose law is ours. Trained pairs above the line of ridge regression have not
come to their end. Permuted pixels and renamed classes leave errors as they are, since initial
weights do not tell units of one domain apart; rotations cost untrained pairs a little more. Markers
are means and bars ranges over seeds: 5 by init scale, 10 by share.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy import stats

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.neural_race.natural_images import (
    PAIRS,
    RIDGE,
    draw_pairs,
    frame_shares,
    misclassified,
)
from neuralrace.results.cells import CellResults, Results

CONFIDENCE = 0.95
SPREAD = 0.22
"""Half the height of the column of seeds of a condition, in rows."""
INPUTS = {"identity": "as they are", "pixel_permutation": "pixels permuted", "rotation": "rotated"}
OUTPUTS = {"identity": "own names", "label_permutation": "classes renamed"}
SCALES = {
    "images_init_scale": "squared error, linear",
    "images_init_scale_cross_entropy": "cross-entropy, linear",
    "images_init_scale_relu": "cross-entropy, ReLU",
}
"""Experiments by init scale, with the loss and the units."""
ACTIVATIONS = {"linear": "linear", "relu": "ReLU"}


@Figure(
    layout="aaaa;bbcc",
    height=4.6,
    cf={"a": "Fig. 7d"},
    reads={
        "images": {
            "trajectory": "",
            "metrics": "ridge_misclassified",
        },
        (
            "images_init_scale images_init_scale_cross_entropy images_init_scale_relu "
            "images_cross_entropy"
        ): {
            "trajectory": "",
            "metrics": "final_trained_misclassified final_untrained_misclassified",
        },
        "images_controls": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error least_squares_training_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs and lines."""
    return [
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.handle("ridge regression", **RIDGE),
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Share of images misclassified against the init scale, with 40% of pairs trained: from small
    weights untrained pairs follow, from large ones trained pairs alone are learned.
    """
    squared = results.cells("images_init_scale")[0]
    baseline = _same_images(squared, results.cells("images"))
    parts = style.split(ax, 1, len(SCALES), sharex=True, sharey=True)[0]
    for part, (experiment, name) in zip(parts, SCALES.items(), strict=True):
        cells = results.cells(experiment)
        _draw_by_scale(part, cells)
        frame_shares(part, baseline)
        part.set_title(name, loc="center")
        part.set(xscale="log", xlabel="init scale")
    parts[0].annotate(
        "chance", (0.02, 0.9), (0, 2), ("axes fraction", "data"), "offset points",
        fontsize=6, color="0.4",
    )  # fmt: skip
    ax.set_title("Transfer is lost from large initial weights")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of images misclassified against the share of trained pairs, after training on
    cross-entropy, by linear networks and by networks with ReLUs in both hidden layers.
    """
    parts = style.split(ax, 1, len(ACTIVATIONS), sharex=True, sharey=True)[0]
    cells = domains.by_partners(results, "images_cross_entropy")
    for part, (activation, name) in zip(parts, ACTIVATIONS.items(), strict=True):
        draw_pairs(part, misclassified, [c for c in cells if c.routing.activation == activation])
        frame_shares(part, results.cells("images")[0])
        part.set_title(name, loc="center")
        part.set_xlabel("trained share, $K/M$")
    ax.set_title("With cross-entropy, half of the pairs suffice")


def panel_c(results: Results, ax: Axes) -> None:
    """Squared errors on training images with 30% of pairs trained, for each kind of transformation.
    Dots are 20 seeds, bars 95% Student intervals of their mean; the grey line is least squares in
    each input domain by itself, below which no linear network gets on trained pairs.
    """
    cells = sorted(results.cells("images_controls"), key=_transformations, reverse=True)
    _draw_controls(ax, cells)
    ax.set_title("Rotations cost untrained pairs a little more")


def _transformations(cell: CellResults) -> tuple[str, str]:
    """Names of the transformations of input and of output domains."""
    return INPUTS[cell.spec.dataset.inputs], OUTPUTS[cell.spec.dataset.outputs]


def _draw_by_scale(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Draws what trained and untrained pairs misclassify against the init scale."""
    for name, props in PAIRS.items():
        values = xr.concat([misclassified(cell, name) for cell in cells], "init_scale")
        values = values.sortby("init_scale")
        domains.draw_line(ax, values["init_scale"].values.tolist(), list(values), props)


def _draw_controls(ax: Axes, cells: list[CellResults]) -> None:
    """Draws errors on training images: for each condition a row of seeds, and their mean."""
    for row, cell in enumerate(cells):
        for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
            error = cell.get("metrics", f"final_{name}_error").isel(init_scale=0)
            _draw_seeds(ax, row, error.values, props)
        floor = float(cell.get("metrics", "least_squares_training_error").mean())
        ax.plot([floor, floor], [row - 0.45, row + 0.45], **style.GUIDE)
    ax.set_yticks(range(len(cells)), ["\n".join(_transformations(cell)) for cell in cells])
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, None), xlabel="squared error over that of answering zero")


def _draw_seeds(
    ax: Axes, row: int, error: Float[np.ndarray, " seed"], props: Mapping[str, Any]
) -> None:
    """Draws a dot for each seed, the mean, and its Student interval as a bar."""
    positions = row + np.linspace(-SPREAD, SPREAD, len(error))
    ax.plot(error, positions, ".", color=props["color"], markersize=2, alpha=0.5)
    mean = error.mean()
    half = stats.sem(error) * stats.t.ppf((1 + CONFIDENCE) / 2, len(error) - 1)
    ax.plot([mean - half, mean + half], [row, row], color="black", linewidth=1.2)
    ax.plot([mean], [row], props["marker"], color=props["color"], markeredgecolor="black")


def _same_images(cell: CellResults, baselines: Iterable[CellResults]) -> CellResults:
    """The baseline with the dataset of a cell.

    Raises:
        UserError: no baseline has this dataset.
    """
    for baseline in baselines:
        if baseline.spec.dataset == cell.spec.dataset:
            return baseline
    raise UserError(
        "the experiment images has another dataset, so there is no ridge regression to draw",
        key=cell.name,
        remedy="give both the same dataset in config/",
    )
