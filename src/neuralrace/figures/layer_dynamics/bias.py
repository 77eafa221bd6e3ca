"""Biases, not the nonlinearity, make squared layer norms of a ReLU network grow apart."""

import xarray as xr
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

LOOKS = {
    "without biases": {"color": style.distinct(0), "marker": "o"},
    "with biases": {"color": style.distinct(1), "linestyle": style.LINES[1], "marker": "s"},
    "with biases, less their square": {
        "color": style.distinct(2),
        "linestyle": style.LINES[3],
        "marker": "^",
    },
}


@Figure(
    reads={
        "relu": {
            "trajectory": "imbalance_trace",
            "metrics": "norm_difference_drift",
        },
        "relu_biases": {
            "trajectory": "bias_norm imbalance_trace",
            "metrics": "bias_corrected_drift norm_difference_drift",
        },
        "images": {
            "trajectory": "bias_norm imbalance_trace",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Change of the difference of squared norms over time, and against the learning rate.

    Of the pairs of adjacent layers, that which changes most.
    """
    without, biased = results.cells("relu"), results.cells("relu_biases")
    figure, axes = style.panels(3, height=1.5)
    finest = [
        min(cells, key=lambda cell: cell.spec.training.learning_rate) for cells in (without, biased)
    ]
    for ax, cells in zip(axes[:2, 0], (finest, results.cells("images")), strict=True):
        for cell in cells:
            time = cell.trajectory["time"]
            for name, change in _changes(cell).items():
                style.over_seeds(ax, time, change, **LOOKS[name] | {"marker": None})
        ax.set(ylabel="largest change", xlabel=f"training time ({time.attrs['units']})")
        ax.set_xlim(0, float(time[-1]))
    ax = axes[2, 0]
    rates = [cell.spec.training.learning_rate for cell in [*without, *biased]]
    for cells, metric, name in (
        (without, "norm_difference_drift", "without biases"),
        (biased, "norm_difference_drift", "with biases"),
        (biased, "bias_corrected_drift", "with biases, less their square"),
    ):
        look = LOOKS[name] | {"linestyle": None}
        drifts = {
            cell.spec.training.learning_rate: cell.get("metrics", metric)
            .isel(init_scale=0)
            .max("pair")
            for cell in cells
        }
        for rate, drift in drifts.items():
            style.points(ax, rate, drift, color=look["color"], marker=look["marker"])
        if name != "with biases":
            style.slope_one(ax, list(drifts), float(drifts[max(drifts)].mean("seed")))
    style.loglog(ax, sorted(set(rates)))
    ax.set(xlabel="learning rate", ylabel="over final\nsquared norms")
    titles = ["Gaussian mixture, least learning rate", "images", "Gaussian mixture"]
    style.letters(axes[:, 0], titles)
    entries = [style.entry(name, **look) for name, look in LOOKS.items()]
    slope = style.entry("c: slope 1", **style.GUIDE)
    style.legend(figure, [*entries, style.BAND, slope], columns=2)
    return figure


def _changes(cell: CellResults) -> dict[str, xr.DataArray]:
    """Largest change over pairs of the difference of squared norms, by name in `LOOKS`."""
    trace = cell.get("trajectory", "imbalance_trace").isel(init_scale=0)
    change = trace - trace.isel(time=0)
    if not cell.spec.layered.bias:
        return {"without biases": abs(change).max("pair")}
    squares = cell.get("trajectory", "bias_norm").isel(init_scale=0) ** 2
    hidden = (
        squares.isel(layer=slice(None, -1)).rename(layer="pair").assign_coords(pair=trace["pair"])
    )
    corrected = change - (hidden - hidden.isel(time=0))
    return {
        "with biases": abs(change).max("pair"),
        "with biases, less their square": abs(corrected).max("pair"),
    }
