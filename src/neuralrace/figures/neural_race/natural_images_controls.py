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
INPUTS = {
    "identity": "images\nas they are",
    "pixel_permutation": "pixels\npermuted",
    "rotation": "images\nrotated",
}
OUTPUTS = {"identity": "classes kept", "label_permutation": "classes renamed"}
"""Names of groups of rows, and of rows."""
TRANSFER = (r"not by {:.0f} $\tau$", "late", "soon")
"""When untrained pairs come to what trained ones learn, by the end; fewest partners first."""
LEAST = 1e-4
"""Smaller differences of errors are drawn at this value."""
SHADE: dict[str, Any] = {"color": domains.UNTRAINED["color"], "alpha": 0.2, "linewidth": 0}


@Figure(
    layout="ab",
    height=3.2,
    widths=(1.5, 1.0),
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
    """None: pairs and lines are named."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Errors at the end with 30% of pairs trained, for every kind of transformation of images, with
    classes that keep their names in all output domains or have new ones; dots are 20 seeds, bars
    Student intervals of their mean, of which those of images as they are, together, are shaded. The
    named difference between untrained pairs has such an interval, too: it is taken seed by seed,
    between means over both kinds of classes. The grey line is least squares in each input domain by
    itself, below which no linear network gets on trained pairs.
    """
    cells = sorted(results.cells("images_controls"), key=_transformations)
    _draw_controls(ax, cells)
    ax.set_title("Rotations cost untrained pairs a little more")


def panel_b(results: Results, ax: Axes) -> None:
    """Error of untrained pairs minus that of trained ones over time, by the share K/M of trained
    pairs: single runs (thin) and their median (wide), 10 runs of each. With 30% it is no smaller in
    the end than soon after the start. Where the median of 50% rises near the end, errors of trained
    pairs do so, too, for a moment. Differences below the axis, and below zero, are drawn at its
    lower end.
    """
    nearest = domains.nearest_first(results.cells("images"))[:CURVES]
    _draw_curves(ax, sorted(nearest, key=domains.partner_share))
    ax.set_title("The more pairs trained, the sooner transfer comes")


def _transformations(cell: CellResults) -> tuple[int, int]:
    """Places of the transformations of input and of output domains in the order of rows."""
    dataset = cell.spec.dataset
    return list(INPUTS).index(dataset.inputs), list(OUTPUTS).index(dataset.outputs)


def _draw_controls(ax: Axes, cells: list[CellResults]) -> None:
    """Draws errors on training images: for each condition a row of seeds, and their mean."""
    as_they_are: list[float] = []
    seeds: dict[str, list[np.ndarray]] = {}
    ax = style.named_rows(ax, [OUTPUTS[cell.spec.dataset.outputs] for cell in cells])
    for row, cell in enumerate(cells):
        for name, props in domains.PAIRS.items():
            error = cell.get("metrics", f"final_{name}_error").isel(init_scale=0)
            low, high = _draw_seeds(ax, row, error.values, props)
            if not row and name == "trained":
                place: dict[str, Any] = {"color": props["color"], "va": "bottom"}
                style.note_at(ax, "trained pairs", (0, -0.5), (4, 0), **place)
            elif not row:
                place = {"color": props["color"], "va": "center"}
                style.note_at(ax, "untrained\npairs", (float(error.max()), 0), (6, 0), **place)
            if name == "untrained":
                seeds.setdefault(cell.spec.dataset.inputs, []).append(error.values)
                as_they_are += [low, high] if cell.spec.dataset.inputs == "identity" else []
        floor = float(cell.get("metrics", "least_squares_training_error").mean())
        ax.plot([floor, floor], [row - 0.45, row + 0.45], **style.GUIDE)
    if as_they_are:
        ax.fill_betweenx([-0.9, len(cells) - 0.5], min(as_they_are), max(as_they_are), **SHADE)
    style.note_at(ax, "least squares", (0, len(cells) - 0.5), (4, -1), va="top")
    if {"identity", "rotation"} <= set(seeds):
        more = np.mean(seeds["rotation"], axis=0) - np.mean(seeds["identity"], axis=0)
        text = f"rotated minus\nas they are:\n{more.mean():.2f} ± {_half(more):.2f}"
        row = [cell.spec.dataset.inputs for cell in cells].index("rotation")
        right = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
        style.note_at(ax, text, (1, row), (0, 0), **right | {"color": SHADE["color"]})
    _name_groups(ax, cells)
    key = f"dots: seeds; bars: means with {CONFIDENCE:.0%} intervals\nshaded: images as they are"
    # Room for the named difference beside the first row of rotations.
    ax.set(xlim=(0, 1.3 * ax.dataLim.x1), xlabel=f"relative error at the end of training\n{key}")
    ax.set_ylim(len(cells), -0.9)


def _name_groups(ax: Axes, cells: list[CellResults]) -> None:
    """Names groups of rows by their inputs, left of the names of rows."""
    ax.tick_params(axis="y", length=0)
    rows: dict[str, list[int]] = {}
    for row, cell in enumerate(cells):
        rows.setdefault(cell.spec.dataset.inputs, []).append(row)
    for inputs, group in rows.items():
        first, last = group[0], group[-1]
        beside: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "color": "black"}
        beside |= {"ha": "right", "va": "center"}
        style.note_at(ax, INPUTS[inputs], (0, (first + last) / 2), (-72, 0), **beside)
        if first:
            ax.axhline(first - 0.5, **style.GUIDE | {"linewidth": 0.5})


def _draw_seeds(
    ax: Axes, row: int, error: Float[np.ndarray, " seed"], props: Mapping[str, Any]
) -> tuple[float, float]:
    """Draws a dot for each seed, the mean, and its Student interval as a bar; returns this."""
    positions = row + np.linspace(-SPREAD, SPREAD, len(error))
    ax.plot(error, positions, ".", color=props["color"], markersize=2, alpha=0.5)
    mean, half = error.mean(), _half(error)
    ax.plot([mean - half, mean + half], [row, row], color="black", linewidth=1.2)
    ax.plot([mean], [row], props["marker"], color=props["color"], markeredgecolor="black")
    return float(mean - half), float(mean + half)


def _half(values: Float[np.ndarray, " seed"]) -> float:
    """Half the width of the Student interval of a mean."""
    return float(stats.sem(values) * stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))


def _draw_curves(ax: Axes, cells: list[CellResults]) -> None:
    """Draws how much larger errors of untrained pairs are on training images, by K/M."""
    ends = []
    colours = style.sequential(len(cells), style.PURPLE)
    for number, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
        trained, untrained = (
            cell.get("trajectory", f"{name}_error").isel(init_scale=0).transpose("time", "seed")
            for name in ("trained", "untrained")
        )
        above = (untrained - trained).clip(LEAST)
        median = above.median("seed")
        ax.plot(cell.flow_time, above, color=colour, linewidth=0.6, alpha=0.4)
        ax.plot(cell.flow_time, median, color=colour)
        end = float(cell.flow_time[-1])
        share = f"{domains.partner_share(cell):.0%} of pairs:"
        ends.append((float(median[-1]), f"{share}\n{TRANSFER[number].format(end)}", colour))
    ax.set(xlabel=f"{style.FLOW_TIME}\nthin: runs; wide: their median")
    ax.set(xlim=(0, end))
    ax.set(yscale="log", ylim=(LEAST, None), ylabel="error of untrained minus trained pairs")
    label_ends(ax, ends)
