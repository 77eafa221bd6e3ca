"""Transfer among images from small and from large weights, by squared error and cross-entropy.

Figure 7d of Saxe, Sodhani and Lewallen (2022), and its panels b and c with another loss. Digits in
ten domains stand for the images of the source, which does not say whether they are CIFAR or MNIST;
errors are shares of held-out images that are misclassified. Learning rates and lengths of training
differ by init scale, whose law is ours; squared error is not trained to its end from scales above
1. Trained pairs above the line of ridge regression have not come to their end. Markers are means
and bars ranges over seeds: 5 by init scale, 10 by share of trained pairs.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.image_errors import PAIRS, draw_pairs, frame_shares, misclassified
from neuralrace.results.cells import CellResults, Results

LEARNING = (
    ("squared error, linear", "images_init_scale", "images", "linear"),
    ("cross-entropy, linear", "images_init_scale_cross_entropy", "images_cross_entropy", "linear"),
    ("cross-entropy, ReLU", "images_init_scale_relu", "images_cross_entropy", "relu"),
)
"""Loss and units; experiments by init scale and by share, and the activation."""


@Figure(
    layout="a;b",
    height=4.4,
    cf={"a": "Fig. 7d", "b": "Fig. 7b, c"},
    reads={
        "images": {
            "metrics": "ridge_misclassified",
        },
        (
            "images images_cross_entropy "
            "images_init_scale images_init_scale_cross_entropy images_init_scale_relu"
        ): {
            "trajectory": "",
            "metrics": "final_trained_misclassified final_untrained_misclassified",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs."""
    return domains.handles()


def panel_a(results: Results, ax: Axes) -> None:
    """Share of images misclassified against the init scale, with the share of pairs trained that is
    named: from small weights untrained pairs are answered as well, from large ones less. Each kind
    of learning was run from other scales.
    """
    parts = _parts(ax)
    parts[0].set_xscale("log")
    for part, (name, experiment, _, _) in zip(parts, LEARNING, strict=True):
        _draw_by_scale(part, results.cells(experiment))
        frame_shares(part, _baseline(results), named=part is parts[1], ridge_at=0.15)
        part.set_title(name, loc="center")
        part.set_xlabel("init scale")
    (share,) = {domains.partner_share(cell) for cell in results.cells(LEARNING[0][1])}
    left: dict[str, Any] = {"xycoords": ("axes fraction", "data")}
    style.note_at(parts[0], f"{share:.0%} of pairs trained\n(bars: ranges)", (0, 0.5), **left)
    ax.set_title("Large weights hurt transfer, most with cross-entropy")


def panel_b(results: Results, ax: Axes) -> None:
    """The same against the share of trained pairs, in networks that are linear or have ReLUs in
    both hidden layers. With cross-entropy some runs fall behind at 40%, and none from half on.
    """
    parts = _parts(ax)
    for part, (name, _, experiment, activation) in zip(parts, LEARNING, strict=True):
        cells = domains.by_partners(results, experiment)
        draw_pairs(part, misclassified, [c for c in cells if c.routing.activation == activation])
        frame_shares(part, _baseline(results), named=part is parts[0])
        part.set_title(name, loc="center")
        part.set_xlabel("trained share of pairs, $K/M$")
    domains.name_paper_share(parts[0], height=0.6)
    ax.set_title("With half of the pairs, transfer is complete")


def _parts(ax: Axes) -> Sequence[Axes]:
    """Axes for each kind of learning, side by side, with the same ranges."""
    parts = list(style.split(ax, 1, len(LEARNING), sharex=True, sharey=True)[0])
    parts[0].set_ylabel("misclassified")
    return parts


def _baseline(results: Results) -> CellResults:
    """The cell with the ridge regression of all panels."""
    return _same_images(results.cells("images_init_scale")[0], results.cells("images"))


def _draw_by_scale(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Draws what trained and untrained pairs misclassify against the init scale."""
    for name, props in PAIRS.items():
        values = xr.concat([misclassified(cell, name) for cell in cells], "init_scale")
        values = values.sortby("init_scale")
        domains.draw_line(ax, values["init_scale"].values.tolist(), list(values), props)


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
