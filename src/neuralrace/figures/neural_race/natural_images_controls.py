"""What rotations ask for beyond what exchangeable weights cannot see, and how transfer grows.

On training images, beyond the figure of the paper. Permuted pixels and renamed classes leave errors
as they are, since initial weights do not tell units of one domain apart; rotations cost untrained
pairs a little more.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy import stats

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

CONFIDENCE = 0.95
SPREAD = 0.22
"""Half the height of the column of seeds of a condition, in rows."""
CURVES = 3
"""Number of cells whose learning is drawn, nearest to the share in the paper."""
INPUTS = {"identity": "as they are", "pixel_permutation": "pixels permuted", "rotation": "rotated"}
OUTPUTS = {"identity": "own names", "label_permutation": "classes renamed"}


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
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Errors at the end for every kind of transformation; dots are seeds, bars Student intervals.

    Numbers are means by what is done to inputs. The grey line is least squares in each input domain
    by itself, below which no linear network gets on trained pairs.
    """
    cells = sorted(results.cells("images_controls"), key=_transformations, reverse=True)
    _draw_controls(ax, cells)
    means = []
    for inputs, name in INPUTS.items():
        group = [cell for cell in cells if cell.spec.dataset.inputs == inputs]
        if group:
            mean = np.mean([float(domains.untrained_error(cell).mean()) for cell in group])
            means.append(f"{name} {mean:.2f}")
    ax.set_title(f"Untrained pairs, {domains.share_label(cells[0])}: {', '.join(means)}")


def panel_b(results: Results, ax: Axes) -> None:
    """Untrained pairs follow the trained ones at once, late, or in part and never, by K/M.

    Lines are means, bands ranges over seeds, and trained pairs coincide.
    """
    nearest = domains.nearest_first(results.cells("images"))[:CURVES]
    cells = sorted(nearest, key=domains.partner_share)
    _draw_curves(ax, cells)
    ends = [
        [float(cell.get("trajectory", f"{pairs}_error").isel(time=-1).mean()) for cell in cells]
        for pairs in ("untrained", "trained")
    ]
    ratios = ", ".join(f"{one / other:.2f}" for one, other in zip(*ends, strict=True))
    ax.set_title(f"Untrained pairs end at {ratios} times the error of trained ones")


def _transformations(cell: CellResults) -> tuple[str, str]:
    """Names of the transformations of input and of output domains."""
    return INPUTS[cell.spec.dataset.inputs], OUTPUTS[cell.spec.dataset.outputs]


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
    ax.set(xlim=(0, None), xlabel="relative error at the end of training")


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


def _draw_curves(ax: Axes, cells: list[CellResults]) -> None:
    """Draws errors of trained and untrained pairs on training images over time, by K/M."""
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        for name, line in (("trained", style.LINES[0]), ("untrained", style.LINES[1])):
            error = cell.get("trajectory", f"{name}_error").isel(init_scale=0)
            style.over_seeds(ax, cell.flow_time, error, color=colour, linestyle=line)
        ax.plot([], [], color=colour, label=f"$K/M$ = {domains.partner_share(cell):.2g}")
    style.epoch_axis(ax, cells[0].flow_time)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, None), ylabel="relative error", ylim=(0, None))
    ax.legend(loc="lower right", ncols=CURVES)
