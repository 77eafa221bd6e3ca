r"""What training conserves, and how far the step size lets it drift.

Basu, Mukherjee and Vasudevan, theorem 1 and section 3, have no figure of it. In a linear network
the imbalance :math:`C = W_{l+1}^\top W_{l+1} - W_l W_l^\top` of adjacent layers drifts in
proportion to the learning rate (a): gradient flow conserves it, as both parts change at one rate
along the gradient (b). In a ReLU network without biases the rates differ as matrices, as the paper
says, and the off-diagonal part changes at any step size. But the diagonal, neuron by neuron, and
with it the difference of squared norms, are conserved (c), which the paper does not see.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import Results

QUANTITIES = {
    "offdiagonal_drift": "off-diagonal part of $C$",
    "neuron_drift": "diagonal of $C$",
    "norm_difference_drift": "difference of squared norms",
}
LINEAR = {"color": style.COLOURS["gated"], "marker": "o"}
RELU = {"color": style.COLOURS["relu"], "marker": "s"}


@Figure(
    layout="abc",
    height=2.7,
    cf={"a": "theorem 1", "b": "eq. 29"},
    reads={
        "step_size": {
            "metrics": "early_relative_rate_gap imbalance_drift",
        },
        "relu": {
            "metrics": (
                "early_relative_rate_gap neuron_drift norm_difference_drift offdiagonal_drift"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs of layers of the linear network, quantities of the ReLU network, and the guide."""
    pairs = results.cells("step_size")[0].get("metrics", "imbalance_drift")["pair"].values
    return [
        *(
            style.handle(f"a: layers {pair}, {pair + 1}", linestyle="", **props)
            for pair, props in zip(pairs, style.sequential_styles(len(pairs)), strict=True)
        ),
        *(
            style.handle(f"c: {name}", linestyle="", **_part(index))
            for index, name in enumerate(QUANTITIES.values())
        ),
        style.handle("slope 1", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Largest drift of the imbalance of a linear network, over the final squared norms; markers are
    means, bars ranges over seeds.
    """
    cells = results.cells("step_size")
    rates = list(map(learning_rate, cells))
    pairs = cells[0].get("metrics", "imbalance_drift")["pair"].values
    slopes = []
    for pair, props in zip(pairs, style.sequential_styles(len(pairs)), strict=True):
        drifts = [
            cell.get("metrics", "imbalance_drift").isel(init_scale=0).sel(pair=pair)
            for cell in cells
        ]
        style.point_series(ax, rates, drifts, **props)
        means = [float(drift.mean()) for drift in drifts]
        style.slope_one(ax, rates, means[int(np.argmax(rates))])
        slopes.append(style.log_slope(rates, means))
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="drift of $C$ over squared norms")
    ax.set_title(f"Linear: slope {np.mean(slopes):.2f}")


def panel_b(results: Results, ax: Axes) -> None:
    """Gap between the rates of both parts of :math:`C` along the gradient, over the sum of the
    rates, early in training: rounding in a linear network, and not in a ReLU network; pairs side by
    side.
    """
    means = []
    experiments = {"linear": ("step_size", LINEAR), "ReLU": ("relu", RELU)}
    for position, (experiment, props) in enumerate(experiments.values()):
        cell = finest(results, experiment)
        gaps = cell.get("metrics", "early_relative_rate_gap").isel(init_scale=0)
        for index, pair in enumerate(gaps["pair"].values):
            at = position + 0.16 * (index - (gaps.sizes["pair"] - 1) / 2)
            style.points(ax, at, gaps.sel(pair=pair), **props)
        means.append(float(gaps.mean()))
    ax.set(yscale="log", ylabel="relative gap of rates", xlim=(-0.5, 1.5))
    ax.set_xticks(range(2), list(experiments))
    ax.set_title(f"Gap {means[0]:.0e} and {means[1]:.2g}")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest drift in a ReLU network without biases, of the pair that drifts most."""
    cells = results.cells("relu")
    rates, slopes = list(map(learning_rate, cells)), []
    for index, metric in enumerate(QUANTITIES):
        drifts = [cell.get("metrics", metric).isel(init_scale=0).max("pair") for cell in cells]
        means = [float(drift.mean()) for drift in drifts]
        style.point_series(ax, rates, drifts, **_part(index))
        if metric != "offdiagonal_drift":
            style.slope_one(ax, rates, means[int(np.argmax(rates))])
        slopes.append(style.log_slope(rates, means))
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="drift over squared norms")
    ax.set_title("ReLU: slopes " + ", ".join(f"{abs(slope):.2f}" for slope in slopes))


def _part(index: int) -> dict[str, Any]:
    return {"color": style.categorical(index + 2), "marker": style.marker(index)}
