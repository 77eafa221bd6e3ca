"""Layer norms of a ReLU network of seven layers that learns images.

Basu, Mukherjee and Vasudevan, fig. 2 and conjecture 4, train on MNIST; here on 6,000 of its images,
and the configuration of full scale takes all. Layers 4 to 6 grow alike, as the paper says, but from
the start rather than from step 1600 on (dotted; a, b). That is no evidence for the conjecture: a
ReLU network conserves the differences of squared norms. The gap between the growth rates of the
matrices falls in all layers as training comes to rest. Relative to the rates it falls in upper
layers, early and then little, and rises in the lowest (c). The paper prints no learning rate, batch
or scale of the start. On all 60,000 images, after as many steps, lower layers still grow more than
upper ones.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import label_layers
from neuralrace.results.cells import CellResults, Results

UPPER, LOWEST = [4, 5], [1]
"""Pairs of adjacent layers, by the lower one: of those that the paper calls upper, and the lowest
pair."""
SINCE = 1600
"""Number of steps after which upper layers grow equally in the paper."""
EDGES = 11
"""Number of times between which growth is compared."""


@Figure(
    layout="ac;bc",
    height=4.6,
    cf={"a": "Fig. 2", "c": "conj. 4"},
    reads={
        "images": {
            "trajectory": "layer_norm rate_gap relative_rate_gap",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines are named at their ends."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Growth of the Frobenius norm of each layer since the start; layer 1 is closest to the input.
    Lines are means and bands ranges over 8 runs. Squared norms are what grows alike, so that the
    norm of the last layer, which is the smallest, grows most. The paper draws the norms themselves,
    and finds layers 4 to 6 alike from the dotted line on.
    """
    cell = _cell(results)
    norms = _norms(cell)
    growth = norms - norms.isel(time=0)
    time, layers = growth["time"], growth["layer"].values
    colours = style.sequential(len(layers) + 2)[: len(layers)]
    for layer, colour in zip(layers, colours, strict=True):
        style.over_seeds(ax, time, growth.sel(layer=layer), color=colour)
    ax.set(ylim=(0, None), ylabel="growth of norm")
    label_layers(ax, growth.isel(time=-1).mean("seed"), colours)
    _time(time, ax)
    if float(time[-1]) > SINCE:
        at = {"transform": ax.get_xaxis_transform(), "va": "center"}
        ax.text(1.03 * SINCE, 0.63, "Basu et al.:\nalike from here on", **at)
    style.note(ax, "bands: range\nof 8 runs", "lower right")
    ax.set_title("Middle layers grow alike from the start")


def panel_b(results: Results, ax: Axes) -> None:
    """Growth of each layer in ten parts of training, per 1000 steps, means over 8 runs.

    Where layers grow alike a column has one colour; the dotted line is as in a.
    """
    norms = _norms(_cell(results))
    time, layers = norms["time"], norms["layer"].values
    edges = np.unique(np.linspace(0, time.size - 1, EDGES).astype(int))
    steps = time.values[edges]
    growth = norms.isel(time=edges).diff("time").mean("seed").transpose("layer", "time").values
    rates, edge = 1000 * growth / np.diff(steps), [*(layers - 0.5), layers[-1] + 0.5]
    image = ax.pcolormesh(steps, edge, rates, norm=LogNorm(), cmap=style.HEAT)
    ax.set_yticks(layers, layers)
    _time(time, ax, "white")
    if float(time[-1]) > SINCE:
        ax.text(1.03 * SINCE, layers[-1], "Basu et al.", color="white", va="center")
    ax.set(ylabel="layer")
    ax.tick_params(length=0)
    bar = ax.figure.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.035, 1)))
    bar.set_label("growth per 1000 steps")
    ax.set_title("Layers 2-6 grow at similar rates")


def panel_c(results: Results, ax: Axes) -> None:
    r"""Gap between the rates of :math:`W_{l+1}^\top W_{l+1}` and :math:`W_l W_l^\top`: over its
    peak, and over the sum of both rates, for layers 4 to 6 and for the lowest two. Means and ranges
    over pairs and 8 runs.
    """
    cell = _cell(results)
    gap, relative = (
        cell.get("trajectory", name).isel(init_scale=0).rename(seed="run")
        for name in ("rate_gap", "relative_rate_gap")
    )
    ends: list[tuple[float, str, style.Colour | str]] = []
    for values, pairs, name, colour in (
        (gap / gap.max("time"), UPPER, "gap / its peak,\nlayers 4-6", "0.45"),
        (relative, UPPER, "gap / sum of rates,\nlayers 4-6", style.COLOURS["relu"]),
        (relative, LOWEST, "gap / sum of rates,\nlayers 1-2", style.categorical(0)),
    ):
        shown = values.sel(pair=pairs)
        style.over_seeds(ax, gap["time"], shown.stack(seed=("run", "pair")), color=colour)
        ends.append((float(shown.isel(time=-1).mean()), name, colour))
    ax.set(yscale="log", ylabel="gap of growth rates of adjacent layers")
    label_ends(ax, ends)
    _time(gap["time"], ax)
    if float(gap["time"][-1]) > SINCE:
        at = {"transform": ax.get_xaxis_transform(), "va": "top"}
        ax.text(1.03 * SINCE, 0.99, "Basu et al.:\nalike from here on", **at)
    style.note(ax, "bands: range of\npairs and 8 runs", "lower left")
    ax.set_title("Relative gap falls in upper layers only")


def _cell(results: Results) -> CellResults:
    """The network with biases, if there is one."""
    return max(results.cells("images"), key=lambda cell: cell.spec.layered.bias)


def _norms(cell: CellResults) -> xr.DataArray:
    return cell.get("trajectory", "layer_norm").isel(init_scale=0)


def _time(time: xr.DataArray, ax: Axes, colour: str = "0.35") -> None:
    """The time axis, with the step from which the paper finds equal growth."""
    if float(time[-1]) > SINCE:
        line: dict[str, Any] = style.PAPER | {"color": colour}
        ax.axvline(SINCE, **line)
    ax.set(xlabel=f"training time ({time.attrs['units']})", xlim=(0, float(time[-1])))
