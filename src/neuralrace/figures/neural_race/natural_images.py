"""Natural images through many transformations, with classes under many names (fig. 7)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.datasets.images import CLASSES
from neuralrace.errors import UserError
from neuralrace.figures import domains, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

IMAGE_SETS = ("images", "images_cifar")
"""Experiments with squared error; those with cross-entropy are called after them."""
BY_SCALE = ("images_init_scale", "images_init_scale_cross_entropy", "images_init_scale_relu")
"""Experiments that sweep the init scale: squared error, and cross-entropy by activation."""
SHOWN = 5
"""Domains that images and names of classes are shown of, at most."""
EXAMPLE = 4
"""Class that an image is shown of: one that does not look the same when turned."""
GAP = 0.2
"""Space between images, in widths of an image."""
ERRORS = (0.3, 0.5, 1, 2, 3)
SHARES = (0.2, 0.4, 0.6, 0.8)
PAIRS = {"untrained": domains.UNTRAINED, "trained": domains.TRAINED | {"markersize": 2.2}}
"""Trained pairs on top and smaller, as both often coincide."""
ACTIVATIONS: dict[str, dict[str, Any]] = {
    "linear": {},
    "relu": {"markerfacecolor": "white", "linestyle": style.LINES[2]},
}
NAMES = {"linear": "linear", "relu": "ReLU"}
RIDGE: dict[str, Any] = style.GUIDE | {"linestyle": style.LINES[3]}

Measure = Callable[[CellResults, str], xr.DataArray]


@Figure(
    reads={
        "images *_cifar": {
            "trajectory": "held_out_trained_error held_out_untrained_error",
            "metrics": "ridge_held_out_error ridge_misclassified",
        },
        "images_init_scale": {
            "trajectory": "held_out_trained_error held_out_untrained_error",
        },
        (
            "images_cross_entropy *_cifar_cross_entropy images_init_scale_cross_entropy "
            "images_init_scale_relu"
        ): {
            "trajectory": "",
            "metrics": "final_trained_misclassified final_untrained_misclassified",
        },
    }
)
def draw(results: Results) -> Canvas:
    """The task, errors against K/M for every image set, and errors against the init scale."""
    experiments = {cell.name.split("/")[1] for cell in results.values()}
    sets = [name for name in IMAGE_SETS if name in experiments] or IMAGE_SETS[:1]
    squared = [domains.by_partners(results, name) for name in sets]
    entropy = [domains.by_partners(results, f"{name}_cross_entropy") for name in sets]
    scaled, scaled_entropy, scaled_relu = map(results.cells, BY_SCALE)

    heights = (0.85, 1.45, *[1.6] * (len(sets) + 1))
    figure = Canvas(figsize=(style.COLUMN, 0.5 + sum(heights)))
    rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    shown = figure.add_subplot(rows[0])
    pairs = [
        [figure.add_subplot(place) for place in rows[row].subgridspec(1, 2)]
        for row in range(1, len(heights))
    ]
    (names, trained), *by_share, by_scale = pairs

    example = min(squared[0], key=lambda cell: abs(domains.partners(cell) - domains.SHARE))
    _draw_images(shown, example)
    _draw_names(names, example)
    domains.draw_mask(trained, example)
    titles = [
        f"{_images(example)} in some of $M$ = {example.spec.dataset.count} input domains",
        "names of classes",
        f"trained, $K/M$ = {domains.partners(example):.2g}",
    ]
    for (errors, shares), each, other in zip(by_share, squared, entropy, strict=True):
        _draw_by_share(errors, _held_out_error, each)
        _frame_errors(errors, each[0])
        _draw_by_share(shares, _misclassified, other)
        _frame_shares(shares, each[0])
        entries = [
            style.entry(NAMES[activation], **{"color": "0.3", "marker": "o"} | look)
            for activation, look in ACTIVATIONS.items()
        ]
        shares.legend(handles=entries, loc="center right", title=_units(other[0]))
        titles += [f"{_images(each[0])}, {_size(each[0])}", "cross-entropy"]
    errors, shares = by_scale
    errors.sharex(shares)
    baseline = _same_images(scaled[0], chain.from_iterable(squared))
    _draw_by_scale(errors, _held_out_error, scaled)
    _frame_errors(errors, baseline)
    _draw_by_scale(shares, _misclassified, [*scaled_entropy, *scaled_relu])
    _frame_shares(shares, baseline)
    titles += [f"{_images(scaled[0])} by init scale", "cross-entropy"]
    style.letters([shown, *chain.from_iterable(pairs)], titles)
    entries = [
        style.entry("trained pairs", **domains.TRAINED),
        style.entry("untrained pairs", **domains.UNTRAINED),
        style.BAND,
        style.entry("ridge regression", **RIDGE),
        style.entry(f"Saxe et al.: {domains.SHARE:.0%}", **style.PAPER),
        style.entry("zero, chance", **style.GUIDE),
    ]
    style.legend(figure, entries, columns=3)
    return figure


def _images(cell: CellResults) -> str:
    """Name of the image set."""
    return cell.spec.dataset.images.name


def _size(cell: CellResults) -> str:
    """Domains and hidden units."""
    return f"$M$ = {cell.spec.dataset.count}, {_units(cell)}"


def _units(cell: CellResults) -> str:
    """Hidden units."""
    return f"$N_h$ = {cell.routing.hidden[0]}"


def _some(cell: CellResults) -> list[int]:
    """A few domains, evenly spaced, from 0."""
    count = cell.spec.dataset.count
    return sorted({count * number // SHOWN for number in range(SHOWN)})


def _draw_images(ax: Axes, cell: CellResults) -> None:
    """An image as some input domains show it, side by side, pixels from 0 to the largest."""
    images = cell.image_domains
    channels, height, width = images.images.shape
    pixels = images.images.pixels[images.images.labels == EXAMPLE][0]
    step = width * (1 + GAP)
    chosen = _some(cell)
    for place, domain in enumerate(chosen):
        seen = np.sum(images.tap_weights[domain] * pixels[images.taps[domain]], axis=-1)
        picture = seen.reshape(channels, height, width).transpose(1, 2, 0) / pixels.max()
        left = place * step
        ax.imshow(
            picture.clip(0, 1) if channels == 3 else picture[..., 0],
            cmap="gray",
            extent=(left, left + width, height, 0),
            interpolation="nearest",
        )
    ax.set(xlim=(0, (len(chosen) - 1) * step + width), ylim=(height, 0), yticks=[])
    ax.set_xticks([place * step + width / 2 for place in range(len(chosen))])
    dataset = cell.spec.dataset
    if dataset.inputs == "rotation":
        turned = [f"{dataset.arc * domain / dataset.count:.0f}°" for domain in chosen]
        ax.set(xticklabels=turned, xlabel="rotation")
    else:
        ax.set_xticklabels([str(domain + 1) for domain in chosen])
        ax.set_xlabel(f"input domain ({dataset.inputs.replace('_', ' ')})")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _draw_names(ax: Axes, cell: CellResults) -> None:
    """Output that stands for each class in some output domains, in numbers and in shades."""
    chosen = _some(cell)
    named = cell.image_domains.renamed[chosen]
    classes = cell.spec.dataset.images.class_names
    style.heat(
        ax,
        named,
        -CLASSES / 2,
        CLASSES,
        [str(domain + 1) for domain in chosen],
        classes,
        cmap=style.HEAT,
    )
    for (row, column), output in np.ndenumerate(named):
        ax.text(column, row, str(output), ha="center", va="center_baseline", fontsize=6)
    ax.set(xlabel="class", ylabel="output domain")


def _held_out_error(cell: CellResults, pairs: str) -> xr.DataArray:
    """Squared error of trained or untrained pairs on held-out images at the end of training."""
    return cell.get("trajectory", f"held_out_{pairs}_error").isel(time=-1, drop=True)


def _misclassified(cell: CellResults, pairs: str) -> xr.DataArray:
    """Share of held-out images that trained or untrained pairs misclassify at the end."""
    return cell.get("metrics", f"final_{pairs}_misclassified")


def _by_activation(
    cells: Sequence[CellResults],
) -> Iterator[tuple[list[CellResults], dict[str, Any]]]:
    """The cells of each activation that there is, with its look."""
    for activation, look in ACTIVATIONS.items():
        some = [cell for cell in cells if cell.routing.activation == activation]
        if some:
            yield some, look


def _draw_by_share(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Trained and untrained pairs against K/M."""
    for some, changed in _by_activation(cells):
        for name, look in PAIRS.items():
            values = [of(cell, name).isel(init_scale=0) for cell in some]
            domains.draw_by_partners(ax, some, values, look | changed)
    ax.axvline(domains.SHARE, **style.PAPER)
    ax.set(xlabel="$K/M$", xticks=SHARES)


def _draw_by_scale(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Trained and untrained pairs against the init scale."""
    for some, changed in _by_activation(cells):
        for name, look in PAIRS.items():
            values = xr.concat([of(cell, name) for cell in some], "init_scale")
            values = values.sortby("init_scale")
            scales = values["init_scale"].values.tolist()
            domains.draw_ends(ax, scales, list(values), look | changed)
    ax.set(xscale="log", xlabel="init scale")


def _frame_errors(ax: Axes, baseline: CellResults) -> None:
    """An axis of squared errors, with those of ridge regression and of answering zero."""
    ax.axhline(float(baseline.get("metrics", "ridge_held_out_error").mean()), **RIDGE)
    ax.axhline(1, **style.GUIDE)
    ax.set(yscale="log", ylabel="error, held out")
    ax.set_yticks(ERRORS, map(str, ERRORS))
    ax.set_yticks([], minor=True)


def _frame_shares(ax: Axes, baseline: CellResults) -> None:
    """An axis of shares misclassified, with those of ridge regression and of guessing."""
    ax.axhline(float(baseline.get("metrics", "ridge_misclassified").mean()), **RIDGE)
    ax.axhline(1 - 1 / CLASSES, **style.GUIDE)
    ax.set(ylim=(0, 1), ylabel="misclassified")


def _same_images(cell: CellResults, baselines: Iterable[CellResults]) -> CellResults:
    """A cell on the images of another one, of which ridge regression was measured.

    Raises:
        UserError: there is none.
    """
    for baseline in baselines:
        if baseline.spec.dataset == cell.spec.dataset:
            return baseline
    raise UserError(
        f"{cell.name}: none of {', '.join(IMAGE_SETS)} has its dataset, so that there is no "
        "ridge regression to draw. Give one of them the same dataset in config/."
    )
