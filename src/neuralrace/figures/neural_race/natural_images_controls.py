"""What rotations ask for beyond what exchangeable weights cannot see, and how transfer grows.

Beyond figure 7 of Saxe, Sodhani and Lewallen (2022), on digits in ten domains. Permuted pixels and
renamed classes leave errors as they are, since initial weights do not tell units of one domain
apart; rotations cost untrained pairs a little more. Errors are squared, on training images, and
relative to a network that answers zero.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy import stats

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results

CONFIDENCE = 0.95
SPREAD = 0.22
"""Half the height of the column of seeds of a condition, in rows."""
CURVES = 3
"""Number of cells whose learning is drawn, nearest to the share in the paper."""
INPUTS = {"identity": "as they are", "pixel_permutation": "permuted", "rotation": "rotated"}
TRANSFER = ("never", "late", "at once")
"""When untrained pairs follow, fewest partners first."""
SHADE: dict[str, Any] = {"color": domains.UNTRAINED["color"], "alpha": 0.2, "linewidth": 0}
OUTPUTS = {"identity": "own names", "label_permutation": "new names"}


@Figure(
    layout="ab",
    height=3.0,
    reads={
        "images_controls": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error least_squares_training_error",
        },
        "images": {
            "trajectory": "trained_error untrained_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs and lines."""
    return [
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.handle("least squares", **style.GUIDE),
        style.handle(f"mean, {CONFIDENCE:.0%} interval", color="black", linewidth=1.2),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Errors at the end with 30% of pairs trained, for every kind of transformation; dots are 20
    seeds, bars Student intervals of their mean, of which those of images as they are, together, are
    shaded. The grey line is least squares in each input domain by itself, below which no linear
    network gets on trained pairs.
    """
    cells = sorted(results.cells("images_controls"), key=_transformations, reverse=True)
    _draw_controls(ax, cells)
    ax.set_title("Rotations cost untrained pairs a little more")


def panel_b(results: Results, ax: Axes) -> None:
    """Untrained pairs (single runs and, broken, their median) follow the trained ones (green
    medians, which coincide) at once, late, or in part and never, by the share K/M of trained pairs;
    10 runs of each.
    """
    nearest = domains.nearest_first(results.cells("images"))[:CURVES]
    _draw_curves(ax, sorted(nearest, key=domains.partner_share))
    ax.set_title("Transfer comes at once, late or never")


def _transformations(cell: CellResults) -> tuple[str, str]:
    """Names of the transformations of input and of output domains."""
    return INPUTS[cell.spec.dataset.inputs], OUTPUTS[cell.spec.dataset.outputs]


def _draw_controls(ax: Axes, cells: list[CellResults]) -> None:
    """Draws errors on training images: for each condition a row of seeds, and their mean."""
    as_they_are: list[float] = []
    for row, cell in enumerate(cells):
        for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
            error = cell.get("metrics", f"final_{name}_error").isel(init_scale=0)
            low, high = _draw_seeds(ax, row, error.values, props)
            if name == "untrained" and cell.spec.dataset.inputs == "identity":
                as_they_are += [low, high]
        floor = float(cell.get("metrics", "least_squares_training_error").mean())
        ax.plot([floor, floor], [row - 0.45, row + 0.45], **style.GUIDE)
    if as_they_are:
        ax.axvspan(min(as_they_are), max(as_they_are), zorder=0, **SHADE)
        middle = (min(as_they_are) + max(as_they_are)) / 2
        at = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        ax.text(middle, 0.005, INPUTS["identity"], color="0.4", fontsize=6, **at)
    ax.set_yticks(range(len(cells)), ["\n".join(_transformations(cell)) for cell in cells])
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, None), xlabel="relative error at the end of training")


def _draw_seeds(
    ax: Axes, row: int, error: Float[np.ndarray, " seed"], props: Mapping[str, Any]
) -> tuple[float, float]:
    """Draws a dot for each seed, the mean, and its Student interval as a bar; returns this."""
    positions = row + np.linspace(-SPREAD, SPREAD, len(error))
    ax.plot(error, positions, ".", color=props["color"], markersize=2, alpha=0.5)
    mean = error.mean()
    half = stats.sem(error) * stats.t.ppf((1 + CONFIDENCE) / 2, len(error) - 1)
    ax.plot([mean - half, mean + half], [row, row], color="black", linewidth=1.2)
    ax.plot([mean], [row], props["marker"], color=props["color"], markeredgecolor="black")
    return float(mean - half), float(mean + half)


def _draw_curves(ax: Axes, cells: list[CellResults]) -> None:
    """Draws errors of trained and of untrained pairs on training images over time, by K/M."""
    ends = []
    for number, (cell, colour) in enumerate(zip(cells, style.sequential(len(cells)), strict=True)):
        time = cell.flow_time
        trained, untrained = (
            cell.get("trajectory", f"{name}_error").isel(init_scale=0).transpose("time", "seed")
            for name in ("trained", "untrained")
        )
        median = untrained.median("seed")
        ax.plot(time, untrained, color=colour, linewidth=0.6, alpha=0.4)
        ax.plot(time, median, color=colour, linestyle=style.LINES[1])
        on_top = {"color": domains.TRAINED["color"], "linewidth": 0.9, "zorder": 4}
        ax.plot(time, trained.median("seed"), **on_top)
        share = f"$K/M$ = {domains.partner_share(cell):.2g}"
        ends.append((float(median[-1]), f"{share}\n{TRANSFER[number]}", colour))
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, None), ylabel="relative error", ylim=(0, None))
    label_ends(ax, ends)
