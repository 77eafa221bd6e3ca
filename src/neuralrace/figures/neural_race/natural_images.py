"""Natural images through many transformations, with classes under many names.

Each of M input domains turns the images by an angle of its own, each output domain asks for their
classes under names of its own, and an input domain is trained with K output domains. Images are
held out of training, but in f. Markers are means, bars ranges over seeds; small markers on top are
trained pairs. From how many partners on untrained pairs follow depends on the number of domains and
the init scale: 40% is no constant. Sets of images are compared after as many steps as their
specification says, which need not be the end of training.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.datasets.images import CLASSES
from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

SETS = {
    "digits": "digits",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar10_files": "JPEG CIFAR-10",
}
"""Usual names of image sets."""
FEATURES = {
    "pixels": "pixels",
    "principal_components": "components",
    "random_convolutions": "convolutions",
}
"""Names of features, the inputs of networks."""
SHOWN = 5
"""Largest number of domains for which images and names of classes are drawn."""
EXAMPLE = 4
"""Class of the image that is drawn: a digit without rotational symmetry."""
GAP = 0.2
"""Distance between images, in widths of an image."""
ERRORS = (0.3, 0.5, 1, 2, 3)
SHARES = (0.2, 0.4, 0.6, 0.8)
LEAST = -0.5
"""Lower end of the axis of ratios, which are negative if untrained pairs do worse than zero."""
PAIRS = {"untrained": domains.UNTRAINED, "trained": domains.TRAINED | {"markersize": 2.2}}
"""Trained pairs are on top and smaller, because both often coincide."""
ACTIVATIONS: dict[str, dict[str, Any]] = {
    "linear": {},
    "relu": {"markerfacecolor": "white", "linestyle": style.LINES[2]},
}
NAMES = {"linear": "linear", "relu": "ReLU"}
RIDGE: dict[str, Any] = style.GUIDE | {"linestyle": style.LINES[3]}

Measure = Callable[[CellResults, str], xr.DataArray]


@Figure(
    layout="aabbcc;ddeeff;ggghhh",
    height=5.6,
    heights=(1.0, 1.25, 1.1),
    cf={"a": "Fig. 7a", "d": "Fig. 7c", "f": "Fig. 7b", "g": "Fig. 7d"},
    reads={
        "images": {
            "trajectory": "held_out_trained_error held_out_untrained_error",
            "metrics": "ridge_held_out_error ridge_misclassified zero_shot_ratio",
        },
        "images_cifar_*": {
            "trajectory": "",
            "metrics": "zero_shot_ratio",
        },
        "images_init_scale": {
            "trajectory": "held_out_trained_error held_out_untrained_error",
        },
        "images_cross_entropy images_init_scale_cross_entropy images_init_scale_relu": {
            "trajectory": "",
            "metrics": "final_trained_misclassified final_untrained_misclassified",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs, baselines, and the share in the paper."""
    return [
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.BAND,
        style.handle("ridge regression", **RIDGE),
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
        style.handle("zero, chance", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """An image as some of the input domains show it."""
    cell = _example(results)
    _draw_images(ax, cell)
    dataset = cell.spec.dataset
    if dataset.inputs == "rotation":
        shown = f"{dataset.arc / dataset.count:.3g}° further"
    else:
        shown = "in its own way"
    ax.set_title(f"Each domain {shown}")


def panel_b(results: Results, ax: Axes) -> None:
    """The output that stands for each class in some of the output domains; what they have in common
    is a mean over all pairs of them.
    """
    cell = _example(results)
    _draw_names(ax, cell)
    renamed = cell.image_domains.class_order
    one, other = np.triu_indices(len(renamed), k=1)
    same = np.mean(renamed[one] == renamed[other])
    ax.set_title(f"Two domains have {same:.0%} of names in common")


def panel_c(results: Results, ax: Axes) -> None:
    """Trained pairs dark, the others never seen."""
    cell = _example(results)
    domains.draw_mask(ax, cell)
    trained = domains.mask(cell)
    ax.set_title(f"{trained.sum()} of {trained.size} pairs trained, {domains.share_label(cell)}")


def panel_d(results: Results, ax: Axes) -> None:
    """Squared error of linear networks, relative to the answer zero, on a logarithmic axis.

    Untrained pairs do worse than zero where K is small.
    """
    cells = domains.by_partners(results, "images")
    _draw_by_share(ax, _held_out_error, cells)
    _frame_errors(ax, cells[0])
    ax.set_title(_finding("Error on", _held_out_error, cells, ".2g"))


def panel_e(results: Results, ax: Axes) -> None:
    """Share misclassified by networks trained on cross-entropy, linear and with ReLUs."""
    cells = domains.by_partners(results, "images_cross_entropy")
    _draw_by_share(ax, _misclassified, cells)
    _frame_shares(ax, domains.by_partners(results, "images")[0])
    handles = [
        style.handle(NAMES[activation], **{"color": "0.3", "marker": "o"} | props)
        for activation, props in ACTIVATIONS.items()
    ]
    ax.legend(handles=handles, loc="center right")
    first, _ = next(_by_activation(cells))
    ax.set_title(_finding("Misclassified", _misclassified, first, ".0%"))


def panel_f(results: Results, ax: Axes) -> None:
    """Explained power of untrained pairs over that of trained ones, on the training images."""
    sets: dict[str, list[CellResults]] = {"images": domains.by_partners(results, "images")}
    for cell in results.values():
        name = cell.name.split("/")[1]
        if name.startswith("images_cifar_"):
            sets[name] = domains.by_partners(results, name)
    ratios_by_set: dict[str, list[str]] = {}
    for index, (name, cells) in enumerate(sets.items()):
        props = {"color": style.categorical(index), "marker": style.marker(index)}
        ratios = [cell.get("metrics", "zero_shot_ratio").isel(init_scale=0) for cell in cells]
        domains.draw_by_partners(ax, cells, ratios, props)
        near = domains.nearest_first(cells)[0]
        ratio = float(near.get("metrics", "zero_shot_ratio").mean())
        ratios_by_set.setdefault(_set_name(near), []).append(f"{ratio:.2f}")
        features = FEATURES[near.spec.dataset.features.name]
        ax.plot([], [], **props, label=_images(near) if name == "images" else features)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    for height in (0, 1):
        ax.axhline(height, **style.GUIDE)
    ax.set(xlabel="$K/M$", xticks=SHARES, ylabel="ratio of explained power", ylim=(LEAST, 1.1))
    ax.legend(loc="lower right", fontsize=6)
    listed = ", ".join(f"{', '.join(ratios)} ({name})" for name, ratios in ratios_by_set.items())
    ax.set_title(f"Ratio at {domains.share_label(_example(results))}: {listed}")


def panel_g(results: Results, ax: Axes) -> None:
    """Squared error against the init scale.

    Learning rates and lengths of training differ by init scale.
    """
    cells = results.cells("images_init_scale")
    _draw_by_scale(ax, _held_out_error, cells)
    _frame_errors(ax, _same_images(cells[0], results.cells("images")))
    ax.set_title(_finding_by_scale("Error on", _held_out_error, cells, ".2g"))


def panel_h(results: Results, ax: Axes) -> None:
    """Share misclassified against the init scale.

    Trained pairs above the line of ridge regression have not come to their end.
    """
    cells = [
        *results.cells("images_init_scale_cross_entropy"),
        *results.cells("images_init_scale_relu"),
    ]
    _draw_by_scale(ax, _misclassified, cells)
    scaled = results.cells("images_init_scale")
    _frame_shares(ax, _same_images(scaled[0], results.cells("images")))
    first, _ = next(_by_activation(cells))
    ax.set_title(_finding_by_scale("Misclassified", _misclassified, first, ".0%"))


def _example(results: Results) -> CellResults:
    """The cell whose share of trained pairs is nearest to what the paper names."""
    return domains.nearest_first(results.cells("images"))[0]


def _images(cell: CellResults) -> str:
    """Name of the image set."""
    name = cell.spec.dataset.images.name
    return str(SETS.get(name, name))


def _set_name(cell: CellResults) -> str:
    """Image set and number of domains."""
    return f"{_images(cell)}, $M$ = {cell.spec.dataset.count}"


def _network_name(cell: CellResults) -> str:
    """Image set and activation."""
    return f"{_images(cell)}, {NAMES[cell.routing.activation]}"


def _finding(name: str, of: Measure, cells: Sequence[CellResults], digits: str) -> str:
    """A measure of both kinds of pairs, at the share nearest to what the paper names."""
    near = domains.nearest_first(cells)[0]
    untrained, trained = (f"{float(of(near, pairs).mean()):{digits}}" for pairs in PAIRS)
    network, share = _network_name(near), domains.share_label(near)
    return f"{name} {network}, {share}: untrained {untrained}, trained {trained}"


def _finding_by_scale(name: str, of: Measure, cells: Sequence[CellResults], digits: str) -> str:
    """A measure of untrained pairs at the smallest and the largest init scale."""
    means = _by_scale(of, cells, "untrained").mean("seed").isel(init_scale=[0, -1])
    (small, least), (large, most) = ((float(m), float(m["init_scale"])) for m in means)
    return (
        f"{name} {_network_name(cells[0])}, untrained: {small:{digits}} at init scale {least:g}, "
        f"{large:{digits}} at {most:g}"
    )


def _chosen_domains(cell: CellResults) -> list[int]:
    """Indices of a few domains, evenly spaced."""
    count = cell.spec.dataset.count
    return sorted({count * number // SHOWN for number in range(SHOWN)})


def _draw_images(ax: Axes, cell: CellResults) -> None:
    """Draws an image as some input domains transform it, from 0 to the largest pixel."""
    images = cell.image_domains
    channels, height, width = images.images.shape
    pixels = images.images.pixels[images.images.labels == EXAMPLE][0]
    step = width * (1 + GAP)
    chosen = _chosen_domains(cell)
    for position, domain in enumerate(chosen):
        shown = np.sum(images.tap_weights[domain] * pixels[images.taps[domain]], axis=-1)
        picture = shown.reshape(channels, height, width).transpose(1, 2, 0) / pixels.max()
        left = position * step
        ax.imshow(
            picture.clip(0, 1) if channels == 3 else picture[..., 0],
            cmap="gray",
            extent=(left, left + width, height, 0),
            interpolation="nearest",
        )
    ax.set(xlim=(0, (len(chosen) - 1) * step + width), ylim=(height, 0), yticks=[])
    ax.set_xticks([position * step + width / 2 for position in range(len(chosen))])
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
    """Draws the output of each class in some output domains, as numbers and shades."""
    chosen = _chosen_domains(cell)
    named = cell.image_domains.class_order[chosen]
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
    """The cells of each activation that occurs, with its line style."""
    for activation, props in ACTIVATIONS.items():
        group = [cell for cell in cells if cell.routing.activation == activation]
        if group:
            yield group, props


def _draw_by_share(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Draws trained and untrained pairs against K/M."""
    for group, activation in _by_activation(cells):
        for name, props in PAIRS.items():
            values = [of(cell, name).isel(init_scale=0) for cell in group]
            domains.draw_by_partners(ax, group, values, props | activation)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.set(xlabel="$K/M$", xticks=SHARES)


def _draw_by_scale(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Draws trained and untrained pairs against the init scale."""
    for group, activation in _by_activation(cells):
        for name, props in PAIRS.items():
            values = _by_scale(of, group, name)
            scales = values["init_scale"].values.tolist()
            domains.draw_line(ax, scales, list(values), props | activation)
    ax.set(xscale="log", xlabel=f"init scale, {domains.share_label(cells[0])}")


def _by_scale(of: Measure, cells: Sequence[CellResults], pairs: str) -> xr.DataArray:
    """A measure of all cells, (init_scale, seed), smallest init scale first."""
    return xr.concat([of(cell, pairs) for cell in cells], "init_scale").sortby("init_scale")


def _frame_errors(ax: Axes, baseline: CellResults) -> None:
    """Prepares an axis of squared errors, with ridge regression and the answer zero."""
    ax.axhline(float(baseline.get("metrics", "ridge_held_out_error").mean()), **RIDGE)
    ax.axhline(1, **style.GUIDE)
    ax.set(yscale="log", ylabel="error, held out")
    ax.set_yticks(ERRORS, map(str, ERRORS))
    ax.set_yticks([], minor=True)


def _frame_shares(ax: Axes, baseline: CellResults) -> None:
    """Prepares an axis of shares misclassified, with ridge regression and guessing."""
    ax.axhline(float(baseline.get("metrics", "ridge_misclassified").mean()), **RIDGE)
    ax.axhline(1 - 1 / CLASSES, **style.GUIDE)
    ax.set(ylim=(0, 1), ylabel="misclassified")


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
