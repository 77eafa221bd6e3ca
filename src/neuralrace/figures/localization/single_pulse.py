r"""Receptive fields of ReLU networks that learn from single pulses.

Columns are variants of the data: the values off and on the pulse, and whether the two are exchanged
in half of the samples. The notes name single pulses as their second kind of data, without a gain
that would control how far fields localise, and do not say which variants do. By the measure of the
other figures none does: the window of 90% of the energy is a third of the ring or less in hardly
any unit. In one variant bumps stand on a background that holds a tenth of the energy; they are
beyond the noise of their spectrum.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    centred,
    final_fields,
    pulses,
    width_labels,
)
from neuralrace.figures.sweeps import metric_mean
from neuralrace.results.cells import CellResults, Results

SUPPORTS = {"zero_one": "0 and 1", "plus_minus": r"$-$1 and 1"}
COLOUR = style.COLOURS["relu"]
SAMPLES: tuple[dict[str, Any], ...] = (
    {"color": style.sequential(2)[0], "linewidth": 1.3},
    {"color": style.sequential(2)[1], "linewidth": 1.3, "linestyle": style.LINES[1]},
)
"""Lines of samples with y = 1 and with y = 0."""
SHARE = (10, 90)
"""Percentiles of weights between which the band is."""


@Figure(
    layout="a;b;c",
    height=4.4,
    heights=(0.62, 1.0, 1.0),
    cf={"a": "sec. 1", "b": "sec. 1", "c": "sec. 1"},
    reads={
        "single_pulse": {
            "trajectory": "weight_1",
            "metrics": "localised_share participation_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Samples, and fields."""
    return [
        *(
            style.handle(f"sample of width {width}", **props)
            for width, props in zip(_widths(results, 0), SAMPLES, strict=True)
        ),
        style.handle("mean field", color=COLOUR, **style.SIMULATION),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """A sample of either class by variant; that of the narrow pulse is exchanged if some are."""
    cells = next(iter(_orders(results).values()))
    axes = style.split(ax, 1, len(cells), sharey=True)[0]
    for part, cell in zip(axes, cells, strict=True):
        x, y = cell.data.x, cell.data.y[:, 0]
        positions = np.arange(1, x.shape[1] + 1)
        for number, target in enumerate((y.max(), y.min())):
            at = int((0.3, 0.75)[number] * len(positions))
            sample = np.roll(_first_pulse(x[y == target]), at)
            if number and pulses(cell).complement:
                sample = x.max() + x.min() - sample
            part.plot(positions, sample, **SAMPLES[number])
        part.set(xlim=(1, len(positions)), ylim=(-1.3, 1.3), yticks=[-1, 0, 1])
        part.set_xticks([])
        part.set_title(_variant(cell), loc="center")
    axes[0].set_ylabel("input")
    ax.set_title("Four variants of the data")


def panel_b(results: Results, ax: Axes) -> None:
    """Mean and range of all fields where wide pulses have :math:`y = 1`.

    Each field is over its largest weight and moved around the ring, and turned in sign, so that
    this weight is in the middle and positive; bands hold eight of ten weights. 40 units of five
    runs. Numbers are participation over that of random phases, 1 for noise of any spectrum.
    """
    _fields(results, ax, 0)
    ax.set_title("Wide pulses first: bumps on a background")


def panel_c(results: Results, ax: Axes) -> None:
    """The same where the narrow pulses have :math:`y = 1`."""
    _fields(results, ax, -1)
    ax.set_title("Narrow pulses first: waves, or noise")


def _orders(results: Results) -> dict[str, list[CellResults]]:
    """Cells by the widths of class one and class two."""
    by_widths: dict[str, list[CellResults]] = {}
    for cell in results.cells("single_pulse"):
        by_widths.setdefault(" against ".join(width_labels(cell)), []).append(cell)
    return by_widths


def _widths(results: Results, order: int) -> list[str]:
    """Widths of the pulses of both classes, in an order of them."""
    return width_labels(list(_orders(results).values())[order][0])


def _variant(cell: CellResults) -> str:
    """Values off and on the pulse, and whether they are exchanged."""
    dataset = pulses(cell)
    values = SUPPORTS[dataset.support]
    return f"{values}, exchanged" if dataset.complement else values


def _first_pulse(samples: Float[np.ndarray, "sample input"]) -> Float[np.ndarray, " input"]:
    """A sample whose pulse is at the start of the ring."""
    high = samples > samples.min()
    single = samples[high.sum(axis=1) <= samples.shape[1] / 2]
    starts = (single > single.min()) & (np.roll(single, 1, axis=1) == single.min())
    return np.roll(single[0], -int(starts[0].argmax()))


def _fields(results: Results, ax: Axes, order: int) -> None:
    """Draws mean and range of the fields of every variant at an order of widths."""
    cells = list(_orders(results).values())[order]
    axes = style.split(ax, 1, len(cells), sharey=True)[0]
    for part, cell in zip(axes, cells, strict=True):
        fields = final_fields(cell).values
        fields = fields.reshape(-1, fields.shape[-1])
        fields = centred(fields / np.abs(fields).max(axis=1, keepdims=True))
        positions = np.arange(1, fields.shape[1] + 1)
        low, high = np.percentile(fields, SHARE, axis=0)
        part.axhline(0, **style.GUIDE | {"linewidth": 0.5})
        part.fill_between(positions, low, high, color=COLOUR, alpha=0.2, linewidth=0)
        part.plot(positions, fields.mean(axis=0), color=COLOUR, **style.SIMULATION)
        beyond = metric_mean(cell, "participation_ratio")
        localised = metric_mean(cell, "localised_share")
        text = f"{beyond:.1f} times its spectrum\n"
        text += f"{localised:.0%} localised" if localised else "none localised"
        at = {"ha": "right", "va": "bottom", "transform": part.transAxes}
        part.text(0.98, 0.02, text, fontsize=6.5, **at)
        part.set(xlim=(1, len(positions)), ylim=(-1.6, 1.1), yticks=[-1, 0, 1])
        part.set_xticks([1, len(positions)])
        part.set_xlabel(POSITION_LABEL)
    axes[0].set_ylabel("weight over largest")
