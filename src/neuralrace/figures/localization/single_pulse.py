r"""Receptive fields of ReLU networks that learn from single pulses.

Columns are variants of the data: the values off and on the pulse, and whether half of the samples
are inverted, with the two values exchanged. The notes name single pulses as their second kind of
data, without a gain that would control how far fields localise, and do not say which variants do.
By the measure of the other figures none does: the window of 90% of the energy is a third of the
ring or less in no unit. In one variant bumps stand on a background that holds too much of
the energy; they are beyond the noise of their spectrum. The spike in the middle of flat fields is
made by moving the largest weight there: the same weights in random order have it, too. Networks of
erf or sigmoid units, which are not shown, localise no more.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    SAMPLES,
    centred,
    final_fields,
    pulses,
    width_labels,
)
from neuralrace.figures.sweeps import metric_mean
from neuralrace.results.cells import CellResults, Results

SUPPORTS = {"zero_one": "0 and 1", "plus_minus": r"$-$1 and 1"}
COLOUR = style.COLOURS["relu"]
LINE = 1.3
"""Width of the lines of samples."""
WINDOW = "0.9"
"""Shade of the box in which a localised field has most of its energy."""
OUTLINE = {"edgecolor": "0.5", "linewidth": 0.6}
"""Edge of the box, without which its shade is that of the band in print."""
SHARE = (10, 90)
"""Percentiles of weights between which the band is."""
SPECTRUM = (
    "× spectrum: concentration over that of noise of the same spectrum; frame: most concentrated"
)
"""What the numbers above fields are, and the frame."""
SHUFFLED = {"color": "0.25", "linewidth": 0.8}
"""Line of weights in random order."""


@Figure(
    layout="a",
    height=4.2,
    cf={"a": "sec. 1"},
    reads={
        "single_pulse": {
            "trajectory": "weight_1",
            "metrics": "localised_share participation_ratio",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Marks of fields."""
    return [
        style.handle("mean field", color=COLOUR, **style.SIMULATION),
        Patch(color=COLOUR, alpha=0.25, linewidth=0, label="8 of 10 weights"),
        style.handle("same weights in random order", **SHUFFLED),
        Patch(facecolor=WINDOW, **OUTLINE, label="localised: 90% of energy in box"),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Top: a sample of either class by variant; that of the narrow pulse is inverted if some are.
    Below: mean and range of all fields, with wide pulses or narrow ones as :math:`y = 1`.

    Each field is over its largest weight and moved around the ring, and turned in sign, so that
    this weight is in the middle and positive; bands hold eight of ten weights. 40 units of five
    runs. The thin line is the mean of these weights in random order. A field is localised with nine
    tenths of its energy in the box, a third of the ring. Above are the participation, a
    measure of concentration, over that of noise of the same spectrum, and the mean share of energy
    in the box. The frame is around the variant with most of the former: wide waves have a bump
    in the middle, too, but their spectrum explains it.
    """
    orders = list(_orders(results).values())
    samples, *grid = style.split(
        ax, 1 + len(orders), len(orders[0]), sharex=True, sharey="row", height_ratios=(0.4, 1, 1)
    )
    for part, cell in zip(samples, orders[0], strict=True):
        _draw_samples(part, cell)
        part.set_title(_variant(cell), loc="center")
    for width, props, at in zip(width_labels(orders[0][0]), SAMPLES, (0.02, 0.98), strict=True):
        samples[0].text(at, -1.25, f"width {width}", color=props["color"], fontsize=6.5,
                        ha="left" if at < 0.5 else "right",
                        transform=samples[0].get_yaxis_transform())  # fmt: skip
    samples[0].set(ylabel="input", ylim=(-1.3, 1.3), yticks=[-1, 0, 1])
    cells = [cell for order in orders for cell in order]
    most = max(metric_mean(cell, "participation_ratio") for cell in cells)
    for row, order in zip(grid, orders, strict=True):
        for part, cell in zip(row, order, strict=True):
            _draw_fields(part, cell)
            if metric_mean(cell, "participation_ratio") == most:
                part.spines[:].set(visible=True, linewidth=1.2)
        row[0].set_ylabel(f"$y = 1$ for width {width_labels(order[0])[0]}:\nweight over largest")
        row[0].set(ylim=(-1.1, 1.1), yticks=[-1, 0, 1])
    # Under the middle: with an even number of columns, below the gap.
    even = len(orders[0]) % 2 == 0
    middle = grid[-1][(len(orders[0]) - 1) // 2]
    middle.set_xlabel(f"{POSITION_LABEL}\n{SPECTRUM}", x=1.06 if even else 0.5)
    localised = max(metric_mean(cell, "localised_share") for cell in cells)
    few = f"at most {localised:.0%} localise" if localised else "none localises"
    ax.set_title(f"One variant far exceeds its spectrum; {few}")


def _orders(results: Results) -> dict[str, list[CellResults]]:
    """Cells by the widths of class one and class two."""
    by_widths: dict[str, list[CellResults]] = {}
    for cell in results.cells("single_pulse"):
        by_widths.setdefault(" against ".join(width_labels(cell)), []).append(cell)
    return by_widths


def _variant(cell: CellResults) -> str:
    """Values off and on the pulse, and whether half of the samples have them exchanged."""
    dataset = pulses(cell)
    values = SUPPORTS[dataset.support]
    return f"{values}, half inverted" if dataset.complement else values


def _first_pulse(samples: Float[np.ndarray, "sample input"]) -> Float[np.ndarray, " input"]:
    """A sample whose pulse is at the start of the ring."""
    high = samples > samples.min()
    single = samples[high.sum(axis=1) <= samples.shape[1] / 2]
    starts = (single > single.min()) & (np.roll(single, 1, axis=1) == single.min())
    return np.roll(single[0], -int(starts[0].argmax()))


def _draw_samples(ax: Axes, cell: CellResults) -> None:
    """Draws a sample of either class."""
    x, y = cell.data.x, cell.data.y[:, 0]
    positions = np.arange(1, x.shape[1] + 1)
    for number, target in enumerate((y.max(), y.min())):
        at = int((0.3, 0.75)[number] * len(positions))
        sample = np.roll(_first_pulse(x[y == target]), at)
        if number and pulses(cell).complement:
            sample = x.max() + x.min() - sample
        ax.plot(positions, sample, color=SAMPLES[number]["color"], linewidth=LINE)


def _draw_fields(ax: Axes, cell: CellResults) -> None:
    """Draws mean and range of the fields of a variant, and their energy in the window."""
    fields = final_fields(cell).values
    fields = fields.reshape(-1, fields.shape[-1])
    fields = centred(fields / np.abs(fields).max(axis=1, keepdims=True))
    count = fields.shape[1]
    positions = np.arange(1, count + 1)
    low, high = np.percentile(fields, SHARE, axis=0)
    middle = count // 2 + 1  # where `centred` puts the largest weight
    window = abs(positions - middle) < count / 6
    inside = np.mean(np.sum(fields[:, window] ** 2, axis=1) / np.sum(fields**2, axis=1))
    ax.axvspan(middle - count / 6, middle + count / 6, facecolor=WINDOW, zorder=0, **OUTLINE)
    ax.axhline(0, **style.GUIDE | {"linewidth": 0.5})
    others = (fields.sum(axis=1) - 1) / (count - 1)  # the mean of all weights but the largest
    ax.plot(positions, np.where(positions == middle, 1, others.mean()), **SHUFFLED)
    ax.fill_between(positions, low, high, color=COLOUR, alpha=0.25, linewidth=0)
    ax.plot(positions, fields.mean(axis=0), color=COLOUR, **style.SIMULATION)
    excess = metric_mean(cell, "participation_ratio")
    ax.set_title(f"{excess:.1f} × spectrum, {inside:.0%} in box", loc="center")
    ax.set(xlim=(1, count), xticks=[1, count])
