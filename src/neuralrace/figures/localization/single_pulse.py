r"""Receptive fields of ReLU networks that learn from single pulses.

Variants of the data are the values off and on the pulse, and whether the two are exchanged in half
of the samples. The notes name single pulses as their second kind of data, without a gain that would
control how far fields localise, and do not say which variants do. By the measure of the other
figures none does: the window of 90% of the energy is a third of the ring or less in hardly any
unit. In one variant bumps stand on a background that holds a tenth of the energy; they are beyond
the noise of their spectrum.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    draw_fields,
    examples,
    final_fields,
    pulses,
    width_labels,
)
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

UNITS = 3
SUPPORTS = {"zero_one": "0 and 1", "plus_minus": r"$-$1 and 1"}
STYLES: tuple[dict[str, Any], ...] = (
    {"color": style.sequential(2)[0], "marker": "o"},
    {"color": style.sequential(2)[1], "marker": "s"},
)
"""Markers of the orders of the widths."""


@Figure(
    layout="ac;bd",
    height=3.6,
    widths=(1.75, 1.0),
    cf={"a": "sec. 1", "b": "sec. 1"},
    reads={
        "single_pulse": {
            "trajectory": "weight_1",
            "metrics": "localised_share participation_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Orders of the widths."""
    return [
        style.handle(f"widths {order}", linestyle="", **props)
        for order, props in zip(_orders(results), STYLES, strict=False)
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Units of the first run where wide pulses have :math:`y = 1`, by variant of the data."""
    _fields(results, ax, 0)


def panel_b(results: Results, ax: Axes) -> None:
    """The same where the narrow pulses have :math:`y = 1`."""
    _fields(results, ax, -1)


def panel_c(results: Results, ax: Axes) -> None:
    """What a field is more than noise of its spectrum (1), mean over units; bars over seeds."""
    ax.axhline(1, **style.GUIDE)
    largest = _draw(ax, results, "participation_ratio")
    ax.set(ylabel="participation over\nthat of random phases", ylim=(0, None))
    ax.set_title(f"Beyond their spectrum by up to {largest:.1f} times")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of units that are localised."""
    largest = _draw(ax, results, "localised_share")
    ax.set(ylabel="share of localised units", ylim=(-0.03, 1))
    ax.set_title(f"At most {largest:.0%} of units are localised")


def _orders(results: Results) -> dict[str, list[CellResults]]:
    """Cells by the widths of class one and class two."""
    by_widths: dict[str, list[CellResults]] = {}
    for cell in results.cells("single_pulse"):
        by_widths.setdefault(" against ".join(width_labels(cell)), []).append(cell)
    return by_widths


def _variant(cell: CellResults) -> str:
    """Values off and on the pulse, and whether they are exchanged."""
    dataset = pulses(cell)
    values = SUPPORTS[dataset.support]
    return f"{values},\nexchanged" if dataset.complement else values


def _fields(results: Results, ax: Axes, order: int) -> None:
    """Draws units of every variant at an order of widths."""
    widths, cells = list(_orders(results).items())[order]
    for row, cell in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        fields = final_fields(cell).isel(seed=0).values
        draw_fields(row, examples(fields, UNITS))
        row.set_xlabel(_variant(cell))
    ax.set_title(f"Pulses of widths {widths}")


def _draw(ax: Axes, results: Results, measure: str) -> float:
    """Draws a measure of final receptive fields by variant; returns its largest mean."""
    orders = _orders(results)
    means = [0.0]
    for offset, cells, props in zip((-0.1, 0.1), orders.values(), STYLES, strict=False):
        positions = [position + offset for position in range(len(cells))]
        values = [metric(cell, measure) for cell in cells]
        means += style.point_series(ax, positions, values, **props)
    style.named_columns(ax, map(_variant, next(iter(orders.values()))))
    return float(np.nanmax(means))
