r"""A linear network conserves the imbalance of its layers, a ReLU network its diagonal.

Basu, Mukherjee and Vasudevan, theorem 1 and section 3, have no figure of it. In a linear network
the imbalance :math:`C = W_{l+1}^\top W_{l+1} - W_l W_l^\top` of adjacent layers ends as it began
(a): both parts change at one rate along the gradient, and what is left is the step size of descent
(c). In a ReLU network without biases the rates differ as matrices, as the paper says, and the
off-diagonal part changes at any step size. But the diagonal, neuron by neuron, and with it the
difference of squared norms, are conserved (b, c), which the paper does not see.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.layers import networks
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.balance import imbalance

DIAGONAL: dict[str, Any] = {"fill": False, "edgecolor": "black", "linewidth": 0.8}
"""Outline of diagonal entries of a change."""
HIGH = (0.1, 0.5)
LOW = (2e-5, 4e-3)
"""Ends of both parts of the axis of drifts."""
TICKS = (0.0001, 0.001, 0.2, 0.5)
"""Ticks of that axis."""
BREAK: dict[str, Any] = {"marker": [(-1, -0.6), (1, 0.6)], "markersize": 8, "linestyle": ""}
BREAK |= {"color": "black", "markeredgewidth": 0.8, "clip_on": False}
"""Slash at the end of a part of that axis."""
APART = 1.1
"""Factor by which points stand to the right of others, whose bars would hide theirs."""
ROUNDING = 1e-12
"""Gap of rates over the rates below which it is a rounding error."""
DRIFTS = {
    "ReLU, off-diagonal": ("relu", "offdiagonal_drift", (0, 18)),
    "ReLU, difference of\nsquared norms": ("relu", "norm_difference_drift", (0, 34)),
    "ReLU, diagonal": ("relu", "neuron_drift", (0, -64)),
    "linear,\nall of $C$": ("step_size", "imbalance_drift", (-14, 16)),
}
"""Experiment and metric of what drifts, and the shift of its label in points, by label."""


@Figure(
    layout="ac;bc",
    height=4.4,
    widths=(2.1, 1),
    cf={"a": "theorem 1", "b": "eq. 29"},
    reads={
        "growth": {
            "trajectory": "weight_1 weight_2",
            "metrics": "imbalance_drift",
        },
        "step_size": {
            "metrics": "early_relative_rate_gap imbalance_drift",
        },
        "relu": {
            "trajectory": "weight_1 weight_2",
            "metrics": (
                "early_relative_rate_gap neuron_drift norm_difference_drift offdiagonal_drift"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None, as all is labelled."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    r""":math:`C` between the first two layers of a linear network, before and after training, and
    the change, with its diagonal outlined; rows and columns are the six hidden units. The run is
    that of the median drift. The gap of both rates is that along the gradient early in training,
    over the sum of the rates, the largest of 20 runs of four layers.
    """
    cell = networks(results, "growth")[0]
    gap = finest(results, "step_size").get("metrics", "early_relative_rate_gap")
    _matrices(cell, "imbalance_drift", gap, ax)
    ax.set_title("Linear layers conserve their imbalance")


def panel_b(results: Results, ax: Axes) -> None:
    """The same of a ReLU network without biases, of 10 runs."""
    cell = finest(results, "relu")
    _matrices(cell, "offdiagonal_drift", cell.get("metrics", "early_relative_rate_gap"), ax)
    ax.set_title("ReLU layers conserve only the diagonal of $C$")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest drift over the final squared norms, of the pair of layers that drifts most; markers
    are means, bars ranges over 20 runs of the linear network and 10 of the other. The axis is
    broken, as the off-diagonal drift is far above the others; the diagonal's marks stand to the
    right of their learning rates, beside the bars of the difference.
    """
    above, below = style.split(ax, 2, 1, height_ratios=(1, 3), sharex=True)[:, 0]
    rates: set[float] = set()
    for index, (name, (experiment, metric, shift)) in enumerate(DRIFTS.items()):
        drifts = {
            learning_rate(cell): cell.get("metrics", metric).isel(init_scale=0).max("pair")
            for cell in sorted(results.cells(experiment), key=learning_rate)
        }
        part = below if index else above
        colour = style.COLOURS["relu" if experiment == "relu" else "gated"]
        props = {"color": colour, "marker": style.marker(index)}
        beside = [rate * (APART if metric == "neuron_drift" else 1) for rate in drifts]
        means = style.point_series(part, beside, drifts.values(), **props)
        if part is below:
            style.slope_one(part, beside, means[-1])
        at = (max(drifts), means[-1])
        text = {"textcoords": "offset points", "va": "center", "ha": "right", "color": colour}
        part.annotate(name, at, shift, **text)
        rates |= {float(f"{rate:.3g}") for rate in drifts}
    first = (min(drifts), means[0])
    below.annotate("slope 1", first, (8, -5), textcoords="offset points", color="0.4")
    for part in (above, below):
        style.loglog(part, sorted(rates))
    style.note(below, "bars: range of\n20 runs (linear)\nor 10 (ReLU)", "lower left")
    above.tick_params(which="both", bottom=False, labelbottom=False)
    above.spines["bottom"].set_visible(False)
    for part, end in ((above, 0), (below, 1)):
        part.plot([0], [end], transform=part.transAxes, **BREAK)
    for part, (low, high) in ((above, HIGH), (below, LOW)):
        ticks = [tick for tick in TICKS if low <= tick <= high]
        part.set_ylim(low, high)
        part.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    above.set_yticks([], minor=True)
    below.set_xticks(sorted(rates), [f"{1000 * rate:.3g}" for rate in sorted(rates)])
    below.set(xlabel="learning rate (thousandths)", ylabel="drift over squared norms")
    ax.set_title("Off-diagonal drift ignores step size")


def _matrices(cell: CellResults, drift: str, gap: xr.DataArray, ax: Axes) -> None:
    """Draws the imbalance of the first two layers at the start and at the end, and its change."""
    change = cell.get("metrics", drift).isel(init_scale=0, pair=0)
    run = {"init_scale": 0, "seed": list(change["seed"].values).index(style.median_seed(change))}
    start, end = _imbalance(cell, run, 0), _imbalance(cell, run, -1)
    high = float(max(abs(start).max(), abs(end).max()))
    parts = style.split(ax, 1, 3, sharey=True, wspace=0.06)[0]
    names = ("$C$ at the start", "at the end", "change (boxes: diagonal)")
    for part, matrix, name in zip(parts, (start, end, end - start), names, strict=True):
        image = style.heat(part, matrix, -high, high)
        part.set_title(name, loc="center")
        part.spines[["top", "right"]].set_visible(True)
    for unit in range(len(start)):
        parts[2].add_patch(Rectangle((unit - 0.5, unit - 0.5), 1, 1, **DIAGONAL))
    parts[0].set_ylabel("hidden unit")
    largest = float(gap.max())
    apart = "rounding error" if largest < ROUNDING else f"up to {largest:.0%}"
    terms = r"$W_2^\top W_2$ and $W_1W_1^\top$"
    parts[1].set_xlabel(f"rates of {terms} differ by {apart}")
    bar = ax.figure.figure.colorbar(image, ax=list(parts), pad=0.02, aspect=12)
    bar.set_label(r"entry of $C = W_2^\top W_2 - W_1W_1^\top$")


def _imbalance(
    cell: CellResults, run: dict[str, int], snapshot: int
) -> Float[np.ndarray, "unit unit"]:
    below, above = (
        cell.get("trajectory", f"weight_{layer}").isel(run | {"snapshot": snapshot}).values
        for layer in (1, 2)
    )
    return imbalance(below, above)
