"""Receptive fields on a ring of inputs, and words for the networks that have them.

All is drawn at the smallest init scale, unless a figure compares init scales.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.datasets.marginals import Erf
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian
from neuralrace.datasets.single_pulse import SinglePulse
from neuralrace.errors import UserError
from neuralrace.figures import gated, style
from neuralrace.results.cells import CellResults

Fields = Float[np.ndarray, "_unit input"]

PLACE = "input on the ring"
CLASSES: dict[str, dict[str, Any]] = {
    "localised": {"facecolor": style.ordered(3)[0]},
    "neither": {"facecolor": "0.88"},
    "oscillating": {"facecolor": style.ordered(3)[1], "hatch": "////", "edgecolor": "white"},
}
"""Looks of bars by class of receptive field."""
SPACING = 2.3
"""Distance of the zero lines of receptive fields that are drawn above each other."""


def process(cell: CellResults) -> NonlinearGaussian:
    """The nonlinear Gaussian process of a cell.

    Raises:
        UserError: its dataset is another one.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, NonlinearGaussian):
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no correlation lengths to draw")
    return dataset


def lengths(cell: CellResults) -> str:
    """Correlation lengths of class one and class two."""
    return ", ".join(f"{xi:g}" for xi in process(cell).xi)


def marginal(cell: CellResults) -> str:
    """What to call the law of a single input: its gain, or its name."""
    law = process(cell).marginal
    names = {"gaussian": "Gaussian", "ising": "Ising", "laplace": "Laplace"}
    return f"gain {law.gain:.3g}" if isinstance(law, Erf) else names[law.name]


def pulses(cell: CellResults) -> SinglePulse:
    """The single pulses of a cell.

    Raises:
        UserError: its dataset is another one.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, SinglePulse):
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no pulses to draw")
    return dataset


def widths(cell: CellResults) -> list[str]:
    """Widths of the pulses of class one and of class two."""
    return [str(low) if low == high else f"{low} to {high}" for low, high in pulses(cell).widths]


def learned(cell: CellResults) -> xr.DataArray:
    """Receptive fields at the end, (seed, unit, input)."""
    return gated.smallest(cell.receptive_fields.isel(snapshot=-1, drop=True))


def examples(fields: Fields, count: int) -> Fields:
    """Some receptive fields, from all around the ring, in the order of their centres.

    The centre is that of the squared weights.

    Args:
        fields: weights, not all zero in any unit.
        count: how many; all of them where there are fewer.
    """
    inputs = fields.shape[1]
    resultant = fields**2 @ np.exp(2j * np.pi * np.arange(inputs) / inputs)
    ranked = np.argsort(np.angle(resultant) % (2 * np.pi))
    count = min(count, len(fields))
    return fields[ranked[(np.arange(count) * 2 + 1) * len(fields) // (2 * count)]]


def scales(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Colour and line of each init scale, the smallest first."""
    values = sorted(map(float, cell.spec.init_scales))
    return {
        scale: {"color": colour, "linestyle": style.LINES[index % len(style.LINES)]}
        for index, (scale, colour) in enumerate(
            zip(values, style.ordered(len(values)), strict=True)
        )
    }


def centred(fields: Fields) -> Fields:
    """Receptive fields moved around the ring so that the largest weight, in size, is in the middle.

    It is positive there: units of either sign are alike.
    """
    inputs = fields.shape[1]
    largest = np.abs(fields).argmax(axis=1)
    moved = [np.roll(w, inputs // 2 - at) for w, at in zip(fields, largest, strict=True)]
    return np.array(moved) * np.sign(np.take_along_axis(fields, largest[:, None], axis=1))


def draw(ax: Axes, fields: Fields, **line: Any) -> None:
    """Receptive fields above each other, the first on top, each over its largest weight.

    Thin lines are at zero.
    """
    colours = style.ordered(len(fields))
    places = np.arange(1, fields.shape[1] + 1)
    for row, (field, colour) in enumerate(zip(fields, colours, strict=True)):
        level = -SPACING * row
        ax.axhline(level, color="0.8", linewidth=0.5, zorder=0)
        shape = field / np.abs(field).max()
        ax.plot(places, shape + level, **{"color": colour, "linewidth": 1.1} | line)
    ax.set(xlim=(1, len(places)), ylim=(-SPACING * (len(fields) - 0.5), SPACING / 2))
    ax.set_xticks([1, len(places)])
    ax.set_yticks([])


def shares(cell: CellResults) -> dict[str, xr.DataArray]:
    """Shares of units by class at the end, (seed), in the order of `CLASSES`."""
    return {name: gated.smallest(cell.get("metrics", f"{name}_share")) for name in CLASSES}


def draw_shares(ax: Axes, cell: CellResults, row: int | float, **options: Any) -> None:
    """Mean shares of units by class as one bar, side by side from 0 to 1."""
    left = 0.0
    for name, share in shares(cell).items():
        width = float(share.mean("seed"))
        ax.barh(row, width, left=left, linewidth=0, **CLASSES[name] | options)
        left += width


def draw_above_shares(ax: Axes, cell: CellResults, count: int) -> None:
    """Some units of the first run, above the shares of all units by class."""
    draw(ax, examples(learned(cell).isel(seed=0).values, count))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom - 0.12 * (top - bottom), top)
    draw_shares(ax, cell, 0.04, height=0.08, transform=ax.transAxes)


def class_entries() -> list[Artist]:
    """Legend entries of classes."""
    return [Patch(label=name, **look) for name, look in CLASSES.items()]
