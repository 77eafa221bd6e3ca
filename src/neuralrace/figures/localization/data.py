"""What networks learn from: two classes that differ in how far inputs go together.

Inputs are a ring. Samples with :math:`y = 1` are of one correlation length or width, those with
:math:`y = 0` of another. The notes have two kinds of data: the nonlinear Gaussian process, whose
gain says how far single inputs are from Gaussian, and single pulses, which have no gain. The gain
changes the second moments little, which is why fields that form at one gain alone are not a matter
of second moments. Sizes, lengths and gains are ours, as the notes print none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from scipy.stats import norm

from neuralrace.datasets.base import Mixture
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    POSITION_LABEL,
    SAMPLES,
    marginal_name,
    process,
    width_labels,
)
from neuralrace.figures.sweeps import cannot_draw
from neuralrace.results.cells import CellResults, Results

SHOWN = 2
"""Number of samples of each class."""
LINE, PALE = 1.2, 0.5
"""Width of the lines of samples, and opacity of the second one."""
REACH = 14
"""Largest distance on the ring that is shown; further inputs are independent."""
GAINS: tuple[dict[str, Any], ...] = (
    {"facecolor": "0.35", "edgecolor": "white", "hatch": "//////"},
    {"facecolor": "0.75"},
)
"""Fills of the distributions of one input, at the higher and at the lower gain."""
GAIN_NAMES = {"relu": (1.25, 1.05), "relu_low_gain": (1.55, 0.25)}
"""Places of their names: beside the right peak of the higher gain, and above the other's tail."""
BINS, TOP = 48, 1.6
"""Number of bins of the histogram of an input, and the end of its axis: some densities diverge."""


@Figure(
    layout="abc;def",
    height=3.7,
    heights=(1.15, 1.0),
    cf={"a": "sec. 1", "b": "sec. 1", "c": "sec. 1"},
    reads={"relu relu_low_gain single_pulse": {"trajectory": ""}},
)
def legend(results: Results) -> style.Handles:
    """Classes and theory."""
    classes = [
        style.handle(f"$y$ = {target:g}", **props)
        for target, props in zip(_law(results.cells("relu")[0]).targets, SAMPLES, strict=True)
    ]
    return [
        *classes,
        style.handle("pale: another sample", color="0.3", alpha=PALE, linewidth=LINE),
        style.handle("closed form", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Samples of the nonlinear Gaussian process at the higher gain: inputs near two values."""
    cell = results.cells("relu")[0]
    _samples(cell, ax, [rf"$\xi$ = {xi:g}" for xi in process(cell).xi])
    ax.set_title(f"{marginal_name(cell).capitalize()}: near two values")


def panel_b(results: Results, ax: Axes) -> None:
    """The same at the lower gain, where inputs are next to Gaussian."""
    cell = results.cells("relu_low_gain")[0]
    _samples(cell, ax, [rf"$\xi$ = {xi:g}" for xi in process(cell).xi])
    ax.set_title(f"{marginal_name(cell).capitalize()}: near Gaussian")


def panel_c(results: Results, ax: Axes) -> None:
    """Two samples of either class of single pulses: as many neighbours as the width are 1."""
    cell = results.cells("single_pulse")[0]
    widths = width_labels(cell)
    _samples(cell, ax, [f"width {width}" for width in widths])
    ax.set_title("Pulses: a run of ones")


def panel_d(results: Results, ax: Axes) -> None:
    """How often one input has each value; a negative excess kurtosis cuts off the tails.

    At the higher gain bars end beyond the axis, where the closed form diverges.
    """
    for name, props in zip(("relu", "relu_low_gain"), GAINS, strict=True):
        cell = results.cells(name)[0]
        values, law = cell.data.x, process(cell).marginal
        heights, edges = np.histogram(values, bins=BINS, range=(-3, 3), density=True)
        ax.stairs(heights, edges, fill=True, alpha=0.45, linewidth=0, **props)
        kurtosis = f"{round(law.kurtosis, 1) + 0.0:g}".replace("-", "\N{MINUS SIGN}")
        text = f"{marginal_name(cell)},\nexcess\nkurtosis\n{kurtosis}"
        ax.text(*GAIN_NAMES[name], text, va="bottom", fontsize=6, linespacing=1.1)
        if heights.max() > TOP:
            reach = f"bars reach\n{heights.max():.1f}"
            ax.text(-1.25, TOP, reach, ha="right", va="top", fontsize=6, linespacing=1.1)
        z = np.linspace(-3, 3, 601)
        x = law.transfer(z)
        slope = np.gradient(x, z)
        shown = norm.pdf(z) < 2 * TOP * slope  # up to beyond the axis
        ax.plot(x[shown], norm.pdf(z[shown]) / slope[shown], **style.THEORY)
    ax.set(xlabel="one input $x_i$", ylabel="density", xlim=(-3, 3), ylim=(0, TOP))
    ax.set_title("A high gain cuts off the tails")


def panel_e(results: Results, ax: Axes) -> None:
    """Mean products of inputs by distance, at the higher gain (full) and the lower (hollow)."""
    names: dict[str, tuple[Artist, ...]] = {}
    for name, fill in (("relu", "full"), ("relu_low_gain", "none")):
        cell = results.cells(name)[0]
        _moments(cell, ax, fillstyle=fill)
        names[marginal_name(cell)] = tuple(
            style.handle("", linestyle="", fillstyle=fill, **props) for props in SAMPLES
        )
    side_by_side = {tuple: HandlerTuple(ndivide=None)}
    ax.legend(names.values(), names.keys(), handler_map=side_by_side, loc="upper right")
    ax.set_title("Both gains: similar moments")


def panel_f(results: Results, ax: Axes) -> None:
    """The same of pulses, whose inputs are 0 or 1: how often one pulse covers both places."""
    cell = results.cells("single_pulse")[0]
    _moments(cell, ax)
    ax.set_title("Pulses reach as far as their width")


def around_ring(x: Float[np.ndarray, "sample input"]) -> Float[np.ndarray, " distance"]:
    """Mean of x_i x_(i + d) over samples and inputs i, for distances d up to half of the ring."""
    power = np.abs(np.fft.fft(x)) ** 2
    inputs = x.shape[1]
    return np.fft.ifft(power.mean(axis=0)).real[: inputs // 2 + 1] / inputs


def _law(cell: CellResults) -> Mixture:
    """The distribution of both classes.

    Raises:
        UserError: a dataset that is no mixture of two distributions.
    """
    law = cell.spec.dataset.mixture()
    if law is None:
        raise cannot_draw(cell, "dataset", "distribution")
    return law


def _samples(cell: CellResults, ax: Axes, names: Sequence[str]) -> None:
    """Draws samples of each class in a row, with the names of the classes."""
    x, y = cell.data.x, cell.data.y[:, 0]
    rows = style.split(ax, 2, sharex=True, sharey=True)[:, 0]
    targets = _law(cell).targets
    for row, target, props, name in zip(rows, targets, SAMPLES, names, strict=True):
        members = x[y == target]
        # Pulses are sorted by position, so the samples are spread over the class.
        samples = members[len(members) // 4 :: len(members) // SHOWN][:SHOWN]
        positions = np.arange(1, x.shape[1] + 1)
        row.axhline(0, **style.GUIDE | {"linewidth": 0.5})
        for sample, alpha in zip(samples, (1, PALE), strict=False):
            row.plot(positions, sample, color=props["color"], linewidth=LINE, alpha=alpha)
        row.set_xlim(1, x.shape[1])
        row.set_ylabel(f"$y$ = {target:g}\n{name}", labelpad=7, fontsize=6.5)
        row.set_xticks([1, x.shape[1]])
        row.set_yticks(sorted({0, *np.trunc(np.percentile(x, [2, 98]))}))
    rows[-1].set_xlabel(POSITION_LABEL)


def _moments(cell: CellResults, ax: Axes, **marks: Any) -> None:
    """Draws second moments by distance, of samples and in theory."""
    x, y = cell.data.x, cell.data.y[:, 0]
    law = _law(cell)
    for target, closed, props in zip(law.targets, law.covariances, SAMPLES, strict=True):
        measured = around_ring(x[y == target])
        distance = np.arange(len(measured))
        thin = {"linestyle": "", "markersize": 3.2, "markeredgewidth": 0.7}
        ax.plot(distance, measured, **thin | props | marks)
        ax.plot(distance, closed[0, : len(distance)], **style.THEORY)
    ax.set(xlabel="distance $d$ on the ring", ylabel=r"$\langle x_i x_{i+d} \rangle$")
    ax.set(xlim=(-0.5, REACH + 0.5), xticks=range(0, REACH + 1, 2))
