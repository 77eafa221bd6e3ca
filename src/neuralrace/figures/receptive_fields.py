"""Receptive fields on a ring of inputs, and names of the datasets that networks learn from.

Panels show the smallest init scale, except where init scales are compared.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.datasets.marginals import Erf
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian
from neuralrace.datasets.single_pulse import SinglePulse
from neuralrace.figures import style
from neuralrace.figures.sweeps import dataset_of, metric, smallest_scale
from neuralrace.metrics.receptive_fields import receptive_fields as receptive_field_metrics
from neuralrace.results.cells import CellResults

Fields = Float[np.ndarray, "_unit input"]

POSITION_LABEL = "input on the ring"
CLASS_STYLES: dict[str, dict[str, Any]] = {
    "localised": {"facecolor": style.sequential(3)[0]},
    "neither": {"facecolor": "0.88"},
    "oscillating": {"facecolor": style.sequential(3)[1], "hatch": "////", "edgecolor": "white"},
}
"""Bars by class of receptive field."""
SAMPLES: tuple[dict[str, Any], ...] = (
    {"color": style.readable(style.categorical(4)), "marker": "o"},
    {"color": "0.6", "marker": "s"},
)
"""Samples of the longer correlation length or width, and of the shorter one."""
SPACING = 2.3
"""Distance between the zero lines of receptive fields that are drawn above each other."""


def process(cell: CellResults) -> NonlinearGaussian:
    """The nonlinear Gaussian process of a cell.

    Raises:
        UserError: the cell has another dataset.
    """
    return dataset_of(cell, NonlinearGaussian, "correlation lengths")


def lengths_label(cell: CellResults) -> str:
    """Correlation lengths of class one and class two."""
    return ", ".join(f"{xi:g}" for xi in process(cell).xi)


def marginal_name(cell: CellResults) -> str:
    """The distribution of a single input: its gain, or its name."""
    marginal = process(cell).marginal
    names = {"gaussian": "Gaussian", "ising": "Ising", "laplace": "Laplace"}
    return f"gain {marginal.gain:.3g}" if isinstance(marginal, Erf) else names[marginal.name]


def pulses(cell: CellResults) -> SinglePulse:
    """The single pulses of a cell.

    Raises:
        UserError: the cell has another dataset.
    """
    return dataset_of(cell, SinglePulse, "pulses")


def width_labels(cell: CellResults) -> list[str]:
    """Widths of the pulses of class one and of class two."""
    return [str(low) if low == high else f"{low} to {high}" for low, high in pulses(cell).widths]


def final_fields(cell: CellResults) -> xr.DataArray:
    """Receptive fields at the end of training, (seed, unit, input)."""
    return smallest_scale(cell.receptive_fields.isel(snapshot=-1, drop=True))


def examples(fields: Fields, count: int) -> Fields:
    """Receptive fields in proportion to their classes, spread over the ring within each.

    They are sorted by class, in the order of `CLASS_STYLES`, and then by the centre of their
    squared weights.

    Args:
        fields: weights, not all zero in any unit.
        count: number of examples; all fields if there are fewer.
    """
    inputs = fields.shape[1]
    resultant = fields**2 @ np.exp(2j * np.pi * np.arange(inputs) / inputs)
    # Each unit as a run of its own, so that shares are 0 or 1.
    members = receptive_field_metrics.class_shares(fields[:, None])
    kinds = np.argmax([members[name] for name in CLASS_STYLES], axis=0)
    ranked = np.lexsort((np.angle(resultant) % (2 * np.pi), kinds))
    count = min(count, len(fields))
    return fields[ranked[(np.arange(count) * 2 + 1) * len(fields) // (2 * count)]]


def scale_styles(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Colour of each init scale, the smallest first."""
    scales = sorted(map(float, cell.spec.init_scales))
    colours = zip(scales, style.sequential(len(scales)), strict=True)
    return {scale: {"color": colour} for scale, colour in colours}


def draw_by_scale(
    ax: Axes, cell: CellResults, values: xr.DataArray, first: float = 0, **marks: Any
) -> None:
    """Values, (init_scale, seed), in a column for each init scale from `first`."""
    for step, (scale, props) in enumerate(scale_styles(cell).items()):
        marks |= {"color": props["color"], "marker": style.marker(step), "markersize": 4.5}
        style.points(ax, first + step, values.sel(init_scale=scale), **marks)


def centred(fields: Fields) -> Fields:
    """Receptive fields shifted around the ring, the weight of largest size in the middle.

    Signs are changed so that this weight is positive: units of either sign count as equal.
    """
    inputs = fields.shape[1]
    largest = np.abs(fields).argmax(axis=1)
    shifted = [np.roll(w, inputs // 2 - at) for w, at in zip(fields, largest, strict=True)]
    return np.array(shifted) * np.sign(np.take_along_axis(fields, largest[:, None], axis=1))


def draw_fields(ax: Axes, fields: Fields, **line: Any) -> None:
    """Receptive fields above each other, the first on top, each over its largest weight.

    Thin lines are at zero.
    """
    inputs = np.arange(1, fields.shape[1] + 1)
    for row, field in enumerate(fields):
        level = -SPACING * row
        ax.axhline(level, color="0.8", linewidth=0.5, zorder=0)
        shape = field / np.abs(field).max()
        ax.plot(inputs, shape + level, **{"color": "0.25", "linewidth": 1.1} | line)
    ax.set(xlim=(1, len(inputs)), ylim=(-SPACING * (len(fields) - 0.5), SPACING / 2))
    ax.set_xticks([1, len(inputs)])
    ax.set_yticks([])


def class_shares(cell: CellResults) -> dict[str, xr.DataArray]:
    """Shares of units by class at the end of training, (seed), in the order of `CLASS_STYLES`."""
    return {name: metric(cell, f"{name}_share") for name in CLASS_STYLES}


def draw_shares(ax: Axes, cell: CellResults, row: int | float, **options: Any) -> None:
    """Mean shares of units by class as one stacked bar from 0 to 1."""
    left = 0.0
    for name, share in class_shares(cell).items():
        width = float(share.mean("seed"))
        ax.barh(row, width, left=left, linewidth=0, **CLASS_STYLES[name] | options)
        left += width


def draw_above_shares(ax: Axes, cell: CellResults, count: int) -> None:
    """Some units of all runs, above the shares of all units by class."""
    fields = final_fields(cell)
    draw_fields(ax, examples(fields.values.reshape(-1, fields.sizes["input"]), count))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom - 0.12 * (top - bottom), top)
    draw_shares(ax, cell, 0.04, height=0.08, transform=ax.transAxes)


def class_handles() -> list[Patch]:
    """Legend handles of classes."""
    return [Patch(label=name, **props) for name, props in CLASS_STYLES.items()]
