"""Layer norms of a ReLU network of seven layers that learns images.

Basu, Mukherjee and Vasudevan, fig. 2 and conjecture 4, train on MNIST; here images are the digits
that come with scikit-learn, and the configuration of full scale sets MNIST. Layers 4 to 6 grow
alike, as the paper says, but from the start rather than from step 1600 on (dotted; a to c). That is
no evidence for the conjecture: a ReLU network conserves the differences of squared norms. The gap
between the growth rates of the matrices vanishes as training comes to rest (d), while relative to
the rates it falls early and then stays (e). The paper prints no learning rate, batch or scale of
the start. On MNIST, after as many steps, lower layers still grow more than upper ones, and relative
gaps do not fall on average.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import label_layers, line
from neuralrace.results.cells import CellResults, Results

UPPER = (4, 5, 6)
"""Layers that the paper calls upper."""
SINCE = 1600
"""Number of steps after which upper layers grow equally in the paper."""
WINDOWS = 10
"""Number of equal parts of training in which growth is compared."""
SHADES = 0.2
"""Deviation from the mean growth at which colours end."""


@Figure(
    layout="aabbcc;dddeee",
    height=4.4,
    cf={"a": "Fig. 2", "b": "Fig. 2", "d": "conj. 4"},
    reads={
        "images": {
            "trajectory": "layer_norm rate_gap relative_rate_gap",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The statement of the paper, and ranges, which in d are over pairs as well."""
    return [style.handle(f"Basu et al.: alike from step {SINCE} on", **style.PAPER), style.BAND]


def panel_a(results: Results, ax: Axes) -> None:
    """Frobenius norms of all layers, as the paper draws them; layer 1 is closest to the input.
    Lines are means and bands ranges over 10 runs; numbers are layers.
    """
    cell = _cell(results)
    _layers(cell, _norms(cell), ax)
    ax.set(ylabel="Frobenius norm")
    ax.set_title(f"Norms on {cell.spec.dataset.name}")


def panel_b(results: Results, ax: Axes) -> None:
    """Growth of the same norms since the start. Squared norms are what grows alike, so that the
    norm of the last layer, which is the smallest, grows most.
    """
    cell = _cell(results)
    norms = _norms(cell)
    _layers(cell, norms - norms.isel(time=0), ax)
    ax.set(ylabel="growth of norm")
    ax.set_title("Hidden layers grow alike")


def panel_c(results: Results, ax: Axes) -> None:
    """Growth of each layer in ten equal parts of training, as its distance from the mean of layers
    4 to 6 (between the lines) at that time, a mean over 10 runs; white is the mean. The last layer
    grows about twice as much and is beyond the colours.
    """
    cell = _cell(results)
    norms = _norms(cell)
    time, layers = norms["time"], norms["layer"].values
    edges = np.linspace(0, time.size - 1, WINDOWS + 1).astype(int)
    growth = norms.isel(time=edges).diff("time").mean("seed").transpose("layer", "time")
    share = growth / growth.sel(layer=list(UPPER)).mean("layer") - 1
    image = style.heat(ax, share.values[::-1], -SHADES, SHADES)
    end, low, high = float(time[-1]), layers[0] - 0.5, layers[-1] + 0.5
    image.set_extent((0, end, low, high))
    ax.set_yticks(layers, layers)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    _time(time, ax)
    ax.hlines((UPPER[0] - 0.5, UPPER[-1] + 0.5), 0, end, color="black", linewidth=0.8)
    ax.set(ylabel="layer", ylim=(low, high))
    beyond = share.isel(layer=-1).median()
    ax.text(end / 2, layers[-1], f"{float(beyond):+.0%}", ha="center", va="center")
    bar = ax.figure.figure.colorbar(image, ax=ax, pad=0.02, aspect=20, extend="max")
    bar.set_ticks([-SHADES, 0, SHADES], labels=[f"\u2212{SHADES:.0%}", "mean", f"+{SHADES:.0%}"])
    ax.set_title("Upper layers grow alike early")


def panel_d(results: Results, ax: Axes) -> None:
    r"""Gap between the rates of :math:`W_{l+1}^\top W_{l+1}` and :math:`W_l W_l^\top` for adjacent
    layers, over its peak: mean and range over all pairs and 10 runs.
    """
    cell = _cell(results)
    gaps = cell.get("trajectory", "rate_gap").isel(init_scale=0)
    shares = (gaps / gaps.max("time")).rename(seed="run").stack(seed=("run", "pair"))
    style.over_seeds(ax, gaps["time"], shares, color="0.4")
    _time(gaps["time"], ax)
    ax.set(ylabel="gap of rates over its peak", yscale="log")
    ax.set_title("The gap of growth rates vanishes")


def panel_e(results: Results, ax: Axes) -> None:
    """The same gap over the sum of both rates: means over 10 runs, by pair of layers."""
    cell = _cell(results)
    gaps = cell.get("trajectory", "relative_rate_gap").isel(init_scale=0)
    ends: list[tuple[float, str, style.Colour]] = []
    for pair, colour in zip(gaps["pair"].values, _colours(cell), strict=False):
        mean = gaps.sel(pair=pair).mean("seed")
        ax.plot(gaps["time"], mean, **line(colour, 2))
        ends.append((float(mean[-1]), f"{pair}, {pair + 1}", colour))
    _time(gaps["time"], ax)
    ax.set(ylabel="gap of rates over their sum", ylim=(0, None))
    label_ends(ax, ends)
    ax.set_title("Relative to the rates it levels off")


def _cell(results: Results) -> CellResults:
    """The network with biases, if there is one."""
    return max(results.cells("images"), key=lambda cell: cell.spec.layered.bias)


def _norms(cell: CellResults) -> xr.DataArray:
    return cell.get("trajectory", "layer_norm").isel(init_scale=0)


def _colours(cell: CellResults) -> list[style.Colour]:
    return style.sequential(_norms(cell).sizes["layer"])


def _layers(cell: CellResults, curves: xr.DataArray, ax: Axes) -> None:
    """The mean and range of each layer."""
    time, colours = curves["time"], _colours(cell)
    for layer, colour in zip(curves["layer"].values, colours, strict=True):
        style.over_seeds(ax, time, curves.sel(layer=layer), color=colour)
    _time(time, ax)
    ax.set_ylim(0, None)
    label_layers(ax, curves.isel(time=-1).mean("seed"), colours, "")


def _time(time: xr.DataArray, ax: Axes) -> None:
    """The time axis, with the step from which the paper finds equal growth."""
    if float(time[-1]) > SINCE:
        ax.axvline(SINCE, **style.PAPER)
    ax.set(xlabel=f"training time ({time.attrs['units']})", xlim=(0, float(time[-1])))
