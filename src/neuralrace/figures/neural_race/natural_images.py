"""Natural images through many transformations, with permuted labels.

Figure 7 of Saxe, Sodhani and Lewallen (2022): each of M input domains turns the images by an angle
of its own, each output domain asks for their classes in an order of its own, and an input domain is
trained with K output domains. The networks are linear and learn by squared error; errors are those
of images that were held out. Digits stand for the images of the source, in ten domains and in as
many as it has: 40 for CIFAR (b), 100 for MNIST (c). Among 40 and 100 domains, shares above 40%
were not run. Where sets of photographs are configured, they are drawn in their place.
Markers are means and bars ranges over seeds (10 for digits, 5 for MNIST,
2 for CIFAR-10, whose images are read from JPEG copies). At the source's size of its panel c (MNIST,
100 domains, 10,000 tasks; run apart, on a GPU) untrained pairs explain at least 0.987 of what
trained ones do from 40% of pairs on, in each of eight runs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from neuralrace.datasets.images import CLASSES
from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.image_errors import (
    PAIRS,
    draw_pairs,
    draw_ridge,
    frame_shares,
    misclassified,
)
from neuralrace.results.cells import CellResults, Results

SETS = {
    "digits": "digits",
    "mnist": "MNIST (Fig. 7c)",
    "cifar10": "CIFAR-10 (Fig. 7b)",
    "cifar10_files": "CIFAR-10 (Fig. 7b)",
}
"""Usual names of image sets, with the panel of the source."""
STAND_IN = "digits"
"""Image set that is left out where there are photographs."""
FEATURES = {
    "pixels": "pixels",
    "principal_components": "components",
    "random_convolutions": "convolutions",
}
"""Names of features, the inputs of networks."""
SHOWN, STRIDES = 3, 5
"""Largest number of input domains, and of output domains, that are drawn, and of strides to all."""
EXAMPLE = 1
"""Class of the image that is drawn: a digit that is seen to turn in few pixels, or a car."""
PITCH, CELL = 2.4, 0.23
"""Distance of rows, and width of an output unit, in widths of an image."""
UNITS = 2.8
"""Left end of the output units, in widths of an image."""
RIDGE = 0.82
"""Place of the name of ridge regression, as a share of the axis: right of the 40%, also where three
parts share the width."""
ERRORS = (0.5, 1, 2)
LINES: dict[str, dict[str, Any]] = {
    "untrained": {"linewidth": 0.6},
    "trained": {"linewidth": 1.6, "zorder": 3},
}
"""Lines between domains."""


@Figure(
    layout="ab;ac",
    height=4.0,
    widths=(1.0, 1.35),
    cf={"a": "Fig. 7a", "b": "Fig. 7", "c": "Fig. 7"},
    reads={
        "images images_of_* images_cifar_*": {
            "trajectory": "held_out_trained_error held_out_untrained_error",
            "metrics": (
                "ridge_held_out_error ridge_misclassified "
                "final_trained_misclassified final_untrained_misclassified"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs."""
    return domains.handles()


def panel_a(results: Results, ax: Axes) -> None:
    """An image as some input domains turn it, and the output unit that stands for its class in some
    output domains. Lines are pairs of these domains, at the share of trained pairs nearest to 40%.
    """
    cell = domains.nearest_first(image_sets(results)[0])[0]
    chosen = _chosen_domains(cell)
    rows = -PITCH * np.arange(len(chosen))
    _draw_images(ax, cell, chosen, rows)
    _draw_labels(ax, cell, chosen, rows)
    trained = domains.mask(cell)
    for one, left in zip(chosen, rows, strict=True):
        for other, right in zip(chosen, rows, strict=True):
            name = "trained" if trained[one, other] else "untrained"
            line: dict[str, Any] = PAIRS[name] | LINES[name] | {"marker": None}
            ax.plot([1.1, UNITS - 0.1], [left, right], **line)
    text = f"{len(chosen)} of {len(trained)} domains on either side"
    middle = (UNITS + CLASSES * CELL) / 2
    ax.text(middle, rows[-1] - 0.75, text, ha="center", va="top", fontsize=6.5)
    ax.set(xlim=(-0.8, UNITS + CLASSES * CELL + 0.05), ylim=(rows[-1] - 1.1, 1.1), aspect="equal")
    ax.set_axis_off()
    ax.set_anchor("NW")
    ax.set_title("Rotated images, permuted labels")


def panel_b(results: Results, ax: Axes) -> None:
    """Squared error over that of answering zero, against the share of trained pairs, on a
    logarithmic axis, with ridge regression in each input domain by itself.
    """
    parts = _parts(results, ax)
    first = parts[0][0]
    for part, cells in parts:
        draw_pairs(part, held_out_error, cells)
        ridge = float(cells[0].get("metrics", "ridge_held_out_error").mean())
        draw_ridge(part, ridge, part is first, RIDGE)
        part.axhline(1, **style.GUIDE)
        part.set(yscale="log", ylim=(0.7 * ridge, 3))
        part.set_yticks(ERRORS, map(str, ERRORS))
        part.set_yticks([], minor=True)
        part.set_title(_set_name(cells[0]), loc="center")
    first.set_ylabel("relative error, held out")
    style.name_level(first, 1, "zero\noutput")
    domains.name_paper_share(first, "\n")
    ax.set_title("Untrained pairs match trained ones at 40%")


def panel_c(results: Results, ax: Axes) -> None:
    """Share of the images that are misclassified, in the same runs, below those of panel b."""
    parts = _parts(results, ax)
    first = parts[0][0]
    for part, cells in parts:
        draw_pairs(part, misclassified, cells)
        frame_shares(part, cells[0], part is first, RIDGE)
    first.set_ylabel("error rate")
    parts[len(parts) // 2][0].set_xlabel(f"{domains.PARTNER_LABEL} (bars: range over runs)")
    ax.set_title("Untrained pairs also classify equally well at 40%")


def image_sets(results: Results) -> list[list[CellResults]]:
    """Cells of each image set, number of domains and kind of features, fewest partners first.

    Digits are left out where there are photographs.
    """
    names = dict.fromkeys(cell.name.split("/")[1] for cell in results.values())
    sets = [
        domains.by_partners(results, name)
        for name in names
        if name == "images" or name.startswith(("images_of_", "images_cifar_"))
    ]
    sets.sort(key=lambda cells: cells[0].spec.dataset.count)
    photographs = [cells for cells in sets if cells[0].spec.dataset.images.name != STAND_IN]
    return photographs or sets


def held_out_error(cell: CellResults, pairs: str) -> xr.DataArray:
    """Squared error of pairs (trained or untrained) on held-out images at the end of training."""
    return cell.get("trajectory", f"held_out_{pairs}_error").isel(time=-1, drop=True)


def _parts(results: Results, ax: Axes) -> list[tuple[Axes, list[CellResults]]]:
    """Axes for each image set, side by side, with its cells."""
    sets = image_sets(results)
    parts = style.split(ax, 1, len(sets), sharex=True, sharey=True)[0]
    return list(zip(parts, sets, strict=True))


def _set_name(cell: CellResults) -> str:
    """Image set, features if they are not the pixels of the stand-in, and number of domains."""
    dataset = cell.spec.dataset
    name = f"{SETS.get(dataset.images.name, dataset.images.name)}"
    if dataset.images.name != STAND_IN:
        name += f"\n{FEATURES[dataset.features.name]}"
    return f"{name}, $M$ = {dataset.count}"


def _chosen_domains(cell: CellResults) -> list[int]:
    """Indices of the first few of evenly spaced domains."""
    count = cell.spec.dataset.count
    return sorted({count * number // STRIDES for number in range(SHOWN)})


def _draw_images(ax: Axes, cell: CellResults, chosen: Sequence[int], rows: np.ndarray) -> None:
    """Draws an image as input domains transform it, from 0 to the largest pixel."""
    images, dataset = cell.image_domains, cell.spec.dataset
    pixels = images.images.pixels[images.images.labels == EXAMPLE][0]
    for domain, middle in zip(chosen, rows, strict=True):
        shown = np.sum(images.tap_weights[domain] * pixels[images.taps[domain]], axis=-1)
        picture = shown.reshape(images.images.shape).transpose(1, 2, 0) / pixels.max()
        ax.imshow(
            picture.clip(0, 1) if picture.shape[2] == 3 else picture[..., 0],
            cmap="gray",
            extent=(0, 1, middle - 0.5, middle + 0.5),
            interpolation="nearest",
        )
        turned = dataset.inputs == "rotation"
        name = f"{dataset.arc * domain / dataset.count:.0f}°" if turned else str(domain + 1)
        ax.text(-0.1, middle, name, ha="right", va="center", fontsize=6.5)
    ax.text(0.5, 0.65, "input\ndomains", ha="center", fontsize=6.5)


def _draw_labels(ax: Axes, cell: CellResults, chosen: Sequence[int], rows: np.ndarray) -> None:
    """Draws the output units of output domains; that of the image's class is dark."""
    names = cell.spec.dataset.images.class_names
    for domain, middle in zip(chosen, rows, strict=True):
        own = int(cell.image_domains.class_order[domain, EXAMPLE])
        for unit in range(CLASSES):
            corner = UNITS + unit * CELL, middle - 0.2
            fill: dict[str, Any] = {
                "facecolor": "0.2" if unit == own else "white",
                "edgecolor": "0.5",
            }
            ax.add_patch(Rectangle(corner, CELL, 0.4, linewidth=0.5, **fill))
        at = UNITS + (own + 0.5) * CELL, middle - 0.25
        ax.text(*at, f"unit {own + 1}", ha="center", va="top", fontsize=6.5)
    head = f"output domains\n(dark: unit for class “{names[EXAMPLE]}”)"
    ax.text(UNITS + CLASSES * CELL / 2, 0.65, head, ha="center", fontsize=6.5)
