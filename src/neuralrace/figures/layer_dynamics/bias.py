"""Biases, not the nonlinearity, make squared layer norms of a ReLU network grow apart.

Basu, Mukherjee and Vasudevan, section 3, have no figure of it. They conclude from eq. 29, on the
rates of matrices, that nonlinearity breaks the equal growth of adjacent layers' norms. Shown is the
largest change, over pairs of layers, of the difference of squared Frobenius norms. Without biases
gradient flow conserves it, and what is left shrinks with the learning rate (c, d); with biases it
changes by a fixed share of the growth (a), and is conserved again once the squared bias is
subtracted. On images (b) biases stay small and the steps of mini-batches account for the change.
"""

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results

WITHOUT, WITH, LESS = "without biases", "with biases", "with biases, less their square"
STYLES = {
    WITHOUT: {"color": style.categorical(0), "marker": "o"},
    WITH: {"color": style.categorical(1), "linestyle": style.LINES[1], "marker": "s"},
    LESS: {"color": style.categorical(2), "linestyle": style.LINES[3], "marker": "^"},
}


@Figure(
    layout="ab;cd",
    height=3.9,
    cf={"d": "eq. 29"},
    reads={
        "relu": {
            "trajectory": "imbalance_trace",
            "metrics": (
                "early_relative_norm_rate_gap early_relative_rate_gap norm_difference_drift"
            ),
        },
        "relu_biases": {
            "trajectory": "bias_norm imbalance_trace",
            "metrics": (
                "bias_corrected_drift early_relative_norm_rate_gap early_relative_rate_gap "
                "norm_difference_drift"
            ),
        },
        "images": {
            "trajectory": "bias_norm imbalance_trace",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Networks, and guides."""
    return [
        *(style.handle(name, **props) for name, props in STYLES.items()),
        style.BAND,
        style.handle("c: slope 1", **style.GUIDE),
        style.handle("d: Basu et al.: squared norms too", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Change over time at the least learning rate, on a mixture of Gaussians."""
    cells = [finest(results, "relu"), finest(results, "relu_biases")]
    ends = _changes(cells, ax)
    ax.set_title(f"Gaussians: {ends[WITHOUT]:.2g} without, {ends[WITH]:.2g} with biases")


def panel_b(results: Results, ax: Axes) -> None:
    """The same on images."""
    cells = results.cells("images")
    ends = _changes(cells, ax)
    values = ", ".join(f"{end:.2g}" for end in ends.values())
    ax.set_title(f"On {cells[0].spec.dataset.name}, in mini-batches: {values}")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest change over the final squared norms, by learning rate, on the mixture."""
    without, biased = results.cells("relu"), results.cells("relu_biases")
    rates, slopes = [learning_rate(cell) for cell in [*without, *biased]], []
    for cells, metric, name in (
        (without, "norm_difference_drift", WITHOUT),
        (biased, "norm_difference_drift", WITH),
        (biased, "bias_corrected_drift", LESS),
    ):
        props = {key: STYLES[name][key] for key in ("color", "marker")}
        drifts = {
            learning_rate(cell): cell.get("metrics", metric).isel(init_scale=0).max("pair")
            for cell in cells
        }
        for rate, drift in drifts.items():
            style.points(ax, rate, drift, **props)
        if name != WITH:
            style.slope_one(ax, list(drifts), float(drifts[max(drifts)].mean("seed")))
        means = [float(drift.mean()) for drift in drifts.values()]
        slopes.append(style.log_slope(list(drifts), means))
    style.loglog(ax, sorted(set(rates)))
    ax.set(xlabel="learning rate", ylabel="over final squared norms")
    ax.set_title("Slopes " + ", ".join(f"{abs(slope):.2f}" for slope in slopes))


def panel_d(results: Results, ax: Axes) -> None:
    r"""Gap between the growth rates of adjacent layers, over the sum of the rates, early in
    training: of :math:`W_{l+1}^\top W_{l+1}` and :math:`W_l W_l^\top` as matrices, and of squared
    norms. The paper concludes from the one to the other (dotted).
    """
    means = {}
    for name, experiment in ((WITHOUT, "relu"), (WITH, "relu_biases")):
        cell, props = finest(results, experiment), STYLES[name]
        props = {key: props[key] for key in ("color", "marker")}
        for position, kind in enumerate(("rate", "norm_rate")):
            gaps = cell.get("metrics", f"early_relative_{kind}_gap").isel(init_scale=0).max("pair")
            style.points(ax, position + 0.1 * (1 if name == WITH else -1), gaps, **props)
            means[name, kind] = float(gaps.mean())
    ax.axhline(means[WITHOUT, "rate"], **style.PAPER)
    ax.set(yscale="log", ylabel="relative gap of rates", xlim=(-0.5, 1.5))
    ax.set_xticks(range(2), ["as matrices", "squared norms"])
    gap = means[WITHOUT, "norm_rate"]
    ax.set_title(f"Squared norms differ by {gap:.0e}")


def _changes(cells: Sequence[CellResults], ax: Axes) -> dict[str, float]:
    """Draws the changes of all cells over time, and returns their final means."""
    ends = {}
    for cell in cells:
        time = cell.trajectory["time"]
        for name, change in _change(cell).items():
            style.over_seeds(ax, time, change, **STYLES[name] | {"marker": None})
            ends[name] = float(change.isel(time=-1).mean())
    ax.set(ylabel="largest change", xlabel=f"training time ({time.attrs['units']})")
    ax.set_xlim(0, float(time[-1]))
    return ends


def _change(cell: CellResults) -> dict[str, xr.DataArray]:
    """Largest change over pairs of the difference of squared norms, by name in `LOOKS`."""
    trace = cell.get("trajectory", "imbalance_trace").isel(init_scale=0)
    change = trace - trace.isel(time=0)
    if not cell.spec.layered.bias:
        return {WITHOUT: abs(change).max("pair")}
    squares = cell.get("trajectory", "bias_norm").isel(init_scale=0) ** 2
    hidden = (
        squares.isel(layer=slice(None, -1)).rename(layer="pair").assign_coords(pair=trace["pair"])
    )
    corrected = change - (hidden - hidden.isel(time=0))
    return {WITH: abs(change).max("pair"), LESS: abs(corrected).max("pair")}
