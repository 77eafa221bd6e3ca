"""Layer norms of a ReLU network of seven layers that learns images.

Basu, Mukherjee and Vasudevan, fig. 2 and conjecture 4, train on MNIST; here images are those of the
data set in the title of a, by default the digits that come with scikit-learn, and the configuration
of full scale sets MNIST. Norms of the layers differ from the start, and grow alike (a, b), most of
all layers 4 to 6 in the second half of training (c). The paper prints no learning rate, batch or
scale of the start. A ReLU network conserves the differences of squared norms, so that this is no
evidence for the growth rates of the matrices: the gap between those of adjacent layers vanishes as
training comes to rest, but relative to the rates it falls early and then stays (d, e). On MNIST,
after as many steps, lower layers still grow more than upper ones, and relative gaps do not fall on
average.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

UPPER = 3
"""Number of hidden layers that the paper calls upper: 4 to 6 of six."""
SINCE = 1600
"""Number of steps after which upper layers grow equally in the paper."""


@Figure(
    layout="aabbcc;ddddee",
    height=4.4,
    cf={"a": "Fig. 2", "d": "conj. 4"},
    reads={
        "images": {
            "trajectory": "accuracy layer_norm rate_gap relative_rate_gap",
            "metrics": (
                "early_norm_growth early_relative_rate_gap late_norm_growth "
                "late_over_peak_rate_gap late_relative_rate_gap"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Layers (the lower one of a pair), times, and the statement of the paper."""
    layers = _norms(_cell(results))["layer"].values
    return [
        *(
            style.handle(f"layer {layer}", color=colour)
            for layer, colour in zip(layers, style.sequential(len(layers)), strict=True)
        ),
        style.handle("c, e: early", color="0.3", marker="o", markerfacecolor="white", linestyle=""),
        style.handle("c, e: late", color="0.3", marker="o", linestyle=""),
        style.handle(f"Basu et al.: alike from {SINCE} on", **style.PAPER),
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Frobenius norms of all layers, with biases; layer 1 is closest to the input."""
    cell = _cell(results)
    _layers(cell, _norms(cell), ax)
    ax.set(ylabel="Frobenius norm", ylim=(0, None))
    right = float(cell.get("trajectory", "accuracy").isel(init_scale=0, time=-1).mean())
    ax.set_title(f"On {cell.spec.dataset.name}, learned to {right:.0%}")


def panel_b(results: Results, ax: Axes) -> None:
    """Growth of the same norms since the start; squared norms, which are what grows alike, make
    that of smaller layers larger.
    """
    cell = _cell(results)
    norms = _norms(cell)
    growth = norms - norms.isel(time=0)
    _layers(cell, growth, ax)
    ax.set(ylabel="growth of norm")
    ends = growth.isel(time=-1, layer=slice(None, -1)).mean("seed")
    ax.set_title(f"Hidden layers: {float(ends.min()):.2f} to {float(ends.max()):.2f}")


def panel_c(results: Results, ax: Axes) -> None:
    """Growth in the first half of training (open) and in the second, over its mean over layers 1 to
    6; markers are means, bars ranges over seeds.
    """
    cell = _cell(results)
    for shift, when in ((-0.16, "early"), (0.16, "late")):
        growth = cell.get("metrics", f"{when}_norm_growth").isel(init_scale=0)
        share = growth / growth.isel(layer=slice(None, -1)).mean("layer")
        layers = share["layer"].values
        for layer, colour in zip(layers, style.sequential(len(layers)), strict=True):
            style.points(ax, layer + shift, share.sel(layer=layer), **_props(colour, when))
    ax.axhline(1, **style.GUIDE)
    ax.set(xlabel="layer", ylabel="growth over mean", xticks=layers)
    upper = growth.isel(layer=slice(-1 - UPPER, -1))
    ratio = float((upper.min("layer") / upper.max("layer")).mean())
    names = upper["layer"].values
    ax.set_title(f"Late {names[0]} to {names[-1]}: least {ratio:.2f} of most")


def panel_d(results: Results, ax: Axes) -> None:
    r"""Gap between the rates of :math:`W_{l+1}^\top W_{l+1}` and :math:`W_l W_l^\top` for adjacent
    layers, over its peak, and over the sum of the rates.
    """
    cell = _cell(results)
    whole, relative = style.split(ax, 1, 2)[0]
    gaps = cell.get("trajectory", "rate_gap").isel(init_scale=0)
    _layers(cell, gaps / gaps.max("time"), whole)
    _layers(cell, cell.get("trajectory", "relative_rate_gap").isel(init_scale=0), relative)
    whole.set(ylabel="gap over its peak", yscale="log")
    relative.set(ylabel="gap over rates", ylim=(0, None))
    left, late = (
        float(cell.get("metrics", name).isel(init_scale=0).mean())
        for name in ("late_over_peak_rate_gap", "late_relative_rate_gap")
    )
    ax.set_title(f"At the end gaps are {left:.1%} of their peak and {late:.0%} of the rates")


def panel_e(results: Results, ax: Axes) -> None:
    """The latter in the first tenth of training (open) and in the last, for adjacent layers,
    without (circles) and with biases (squares).
    """
    cells = sorted(results.cells("images"), key=lambda cell: cell.spec.layered.bias)
    falls = []
    for cell in cells:
        gaps = {
            when: cell.get("metrics", f"{when}_relative_rate_gap").isel(init_scale=0)
            for when in ("early", "late")
        }
        for when, values in gaps.items():
            pairs = values["pair"].values
            shift = (-0.18 if when == "early" else 0.18) + (
                0.09 if cell.spec.layered.bias else -0.09
            )
            colours = style.sequential(len(pairs) + 1)[:-1]
            for pair, colour in zip(pairs, colours, strict=True):
                props = _props(colour, when, "s" if cell.spec.layered.bias else "o")
                style.points(ax, pair + shift, values.sel(pair=pair), **props)
        falls.append(float((gaps["late"] / gaps["early"]).mean()))
    ax.set(xlabel="adjacent layers", ylabel="gap over rates", ylim=(0, None), xticks=pairs)
    ax.set_xticklabels([f"{pair}, {pair + 1}" for pair in pairs])
    ax.set_title(f"Late over early: {np.mean(falls):.2f}")


def _cell(results: Results) -> CellResults:
    """The network with biases, if there is one."""
    return max(results.cells("images"), key=lambda cell: cell.spec.layered.bias)


def _norms(cell: CellResults) -> xr.DataArray:
    return cell.get("trajectory", "layer_norm").isel(init_scale=0)


def _layers(cell: CellResults, curves: xr.DataArray, ax: Axes) -> None:
    """A curve for each layer, or each pair in the colour of its lower one."""
    time = cell.trajectory["time"]
    (dim,) = {"layer", "pair"} & set(curves.dims)
    colours = style.sequential(_norms(cell).sizes["layer"])
    for index, colour in zip(range(curves.sizes[dim]), colours, strict=False):
        style.over_seeds(ax, time, curves.isel({dim: index}), color=colour, linewidth=1.4)
    if float(time[-1]) > SINCE:
        ax.axvline(SINCE, **style.PAPER)
    ax.set(xlabel=f"training time ({time.attrs['units']})", xlim=(0, float(time[-1])))


def _props(colour: tuple[float, float, float], when: str, marker: str = "o") -> dict[str, Any]:
    props = {"color": colour, "marker": marker}
    return props | ({"markerfacecolor": "white"} if when == "early" else {})
