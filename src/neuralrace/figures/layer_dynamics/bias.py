"""Biases, not the nonlinearity, make squared layer norms of a ReLU network grow apart.

Basu, Mukherjee and Vasudevan, section 3, have no figure of it. They conclude from eq. 29, on the
rates of matrices, that nonlinearity breaks the equal growth of adjacent layers' norms. Without
biases the squared norms of all layers grow by one amount (a), as gradient flow conserves their
differences. With biases they grow apart (b), by the squared biases of the layers below. What is
left of either law is the step size of descent (c).
"""

from itertools import accumulate

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import label_layers, line, squared_growth
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results

DRIFTS = {
    "with biases": ("relu_biases", "norm_difference_drift"),
    "squared biases\nsubtracted": ("relu_biases", "bias_corrected_drift"),
    "without biases": ("relu", "norm_difference_drift"),
}
"""Experiment and metric of what changes, by label."""
APART = 1.08
"""Factor between the places of two bars at one learning rate."""


@Figure(
    layout="abc",
    height=2.7,
    cf={"a": "eq. 29"},
    reads={
        "relu": {
            "trajectory": "layer_norm",
            "metrics": "norm_difference_drift",
        },
        "relu_biases": {
            "trajectory": "bias_norm layer_norm",
            "metrics": "bias_corrected_drift norm_difference_drift",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation and conservation."""
    return [
        style.handle("one run", color="0.4", **style.SIMULATION),
        style.handle("from layer 1, by conservation", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Growth of the squared norm of each layer, without biases, in the run of the median change; at
    the least learning rate, on a mixture of Gaussians. Dashed are layers 2 and 3 as conservation
    gives them from layer 1.
    """
    _growth(results, "relu", ax)
    ax.set_title("ReLU, no biases: layers grow alike")


def panel_b(results: Results, ax: Axes) -> None:
    """The same with biases. A layer grows by as much as the one below and its squared bias."""
    _growth(results, "relu_biases", ax)
    ax.set_title("With biases they grow apart")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest change of the difference of squared norms, of the pair that changes most, over the
    final squared norms; with biases also after subtracting what their squares add. Markers are
    means, bars ranges over 10 runs; the thin line has slope 1.
    """
    ends, smallest = [], np.inf
    for index, (name, (experiment, metric)) in enumerate(DRIFTS.items()):
        drifts = {
            learning_rate(cell): cell.get("metrics", metric).isel(init_scale=0).max("pair")
            for cell in sorted(results.cells(experiment), key=learning_rate)
        }
        props = {"color": style.COLOURS["relu"], "marker": style.marker(index)}
        # Beside the bars without biases, which are about as high.
        beside = [rate * (APART if metric == "bias_corrected_drift" else 1) for rate in drifts]
        means = style.point_series(ax, beside, drifts.values(), **props)
        ends.append((means[-1], name, style.COLOURS["relu"]))
        smallest = min(smallest, *(float(drift.min()) for drift in drifts.values()))
        rates = list(drifts)
    style.slope_one(ax, rates, means[-1])
    at = (rates[0], means[0])
    ax.annotate("slope 1", at, (12, -6), textcoords="offset points", color="0.4")
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylim=(smallest / 4, 1))
    ax.set_ylabel("largest change of difference\n/ squared norms")
    style.note(ax, "bars: range of 10 runs", "lower left")
    label_ends(ax, ends)
    ax.set_title("Biases matter at any step size")


def _growth(results: Results, experiment: str, ax: Axes) -> None:
    """Growth of squared norms over time in one run, and what conservation makes of it.

    The axis holds the growth without biases and with them.
    """
    cell = finest(results, experiment)
    run, growth = _run(cell)
    time = growth["time"]
    colours = style.sequential(growth.sizes["layer"])
    for layer, colour in zip(growth["layer"].values, colours, strict=True):
        ax.plot(time, growth.sel(layer=layer), **line(colour))
    for curve in _conserved(cell, growth, run):
        ax.plot(time, curve, **style.THEORY)
    ax.set(xlabel=f"training time ({time.attrs['units']})", ylabel="growth of squared norm")
    both = [_run(finest(results, name))[1] for name in ("relu", "relu_biases")]
    low, high = min(float(x.min()) for x in both), max(float(x.max()) for x in both)
    margin = 0.05 * (high - low)
    ax.set(xlim=(0, float(time[-1])), ylim=(low - margin, high + margin))
    label_layers(ax, growth.isel(time=-1), colours)


def _run(cell: CellResults) -> tuple[dict[str, int], xr.DataArray]:
    """The run of the median change, and the growth of its squared norms."""
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=0)
    change = cell.get("metrics", "norm_difference_drift").isel(init_scale=0).max("pair")
    run = {"seed": style.median_seed(change)}
    return run, squared_growth(norms.sel(run))


def _conserved(cell: CellResults, growth: xr.DataArray, run: dict[str, int]) -> list[xr.DataArray]:
    """Growth of all layers above the first, from that of the first and from the biases."""
    layers = growth["layer"].values
    if not cell.spec.layered.bias:
        return [growth.sel(layer=layers[0])] * (layers.size - 1)
    biases = squared_growth(cell.get("trajectory", "bias_norm").isel(init_scale=0).sel(run))
    below = [growth.sel(layer=layers[0]), *(biases.sel(layer=layer) for layer in layers[:-1])]
    return list(accumulate(below, lambda one, other: one + other.drop_vars("layer")))[1:]
