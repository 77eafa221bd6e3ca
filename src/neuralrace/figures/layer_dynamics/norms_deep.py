"""Four layers grow alike from the entry variance that is printed, not from the one that is cited.

Basu, Mukherjee and Vasudevan, fig. 1 (ii): the norms of all layers grow at the same pace. They do,
to about a tenth, from the entry variance that the paper prints (a). From the variance of Glorot and
Bengio, which it cites, layers start with unequal norms, and the smaller ones grow more (b), as what
gradient flow conserves are differences of squared norms (dashed). So it is with any number of
layers (c). In all but a few runs no layer is half of the mean growth away from it.
"""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import VARIANCES, depth, label, line, networks, unit_scale
from neuralrace.results.cells import Results

COLOURS = {"growth": style.categorical(0), "growth_standard": style.categorical(1)}
"""Colours of entry variances, by experiment."""
BEGUN = 0.01
"""Share of the mean growth at which the time axis begins."""
NEAR, ROGUE = 0.1, 0.5
"""Distances from the mean up to which layers grow alike, and from which one has run away."""


@Figure(
    layout="ac;bc",
    height=4.4,
    widths=(1.25, 1),
    cf={"a": "Fig. 1 (ii)"},
    reads={
        "growth growth_standard": {
            "trajectory": "imbalance_trace layer_norm",
            "metrics": "norm_growth_deviation",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation and conservation; layers are named at their lines."""
    return [
        style.handle("simulation", color="0.4", **style.SIMULATION),
        style.handle("from layer 1, by conservation", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Growth of each norm since the start, over the mean of all layers at the end, in the run whose
    layers grow as alike as in the median one of 60; printed variance. Dashed are layers 2 to 4 as
    conservation gives them from the first. The paper draws the norms themselves, on a linear axis.
    """
    _norms(results, "growth", ax)
    ax.set_title("Printed variance: layers grow alike")


def panel_b(results: Results, ax: Axes) -> None:
    """The same from the variance of Glorot and Bengio."""
    _norms(results, "growth_standard", ax)
    ax.text(0.03, 0.27, "norms shrink at first", transform=ax.transAxes)
    ax.set_title("Glorot and Bengio: layers grow apart")


def panel_c(results: Results, ax: Axes) -> None:
    """The largest distance of a layer's growth from the mean over layers, over that mean, in each
    of 60 runs, with the median. Below the lower line layers grow alike, to a tenth; above the upper
    one some layer grows by less than half of the mean, or by more than one and a half times.
    """
    ax.set(ylim=(0, 0.65), ylabel="furthest layer from the mean growth")
    depths: list[int] = []
    for shift, marker, experiment in zip((-0.22, 0.22), "os", VARIANCES, strict=True):
        dots = {"color": COLOURS[experiment], "marker": marker, "markersize": 2.2}
        for cell in networks(results, experiment):
            off = cell.get("metrics", "norm_growth_deviation").isel(unit_scale(cell)).max("layer")
            style.single_runs(ax, depth(cell) + shift, off, 0.15, **dots)
            depths.append(depth(cell))
    left, right = min(depths) - 0.5, max(depths) + 0.5
    for level, name in ((NEAR, "a tenth\nof the mean"), (ROGUE, "half of\nthe mean")):
        ax.axhline(level, **style.GUIDE)
        label(ax, right, level, name, "0.4")
    ax.set(xlim=(left, right), xticks=sorted(set(depths)), xlabel="layers")
    handles = [
        style.handle(f"variance {name}", color=COLOURS[key], marker=marker, linestyle="")
        for (key, name), marker in zip(VARIANCES.items(), "os", strict=True)
    ]
    ax.legend(handles=handles, loc="upper left", handlelength=1)
    ax.set_title("Printed variance: more alike at every depth")


def _growth(
    results: Results, experiment: str
) -> tuple[xr.DataArray, xr.DataArray, list[xr.DataArray]]:
    """Growth of norms of the deepest network in one run, and what conservation makes of it.

    Returns:
        Time, the growth of each layer, and that of layers from the second on by conservation; over
        the mean growth at the end.
    """
    cell = networks(results, experiment)[-1]
    at = unit_scale(cell)
    off = cell.get("metrics", "norm_growth_deviation").isel(at).max("layer")
    seed = {"seed": style.median_seed(off)}
    norms = cell.get("trajectory", "layer_norm").isel(at).sel(seed)
    trace = cell.get("trajectory", "imbalance_trace").isel(at | {"time": 0}).sel(seed)
    grown = norms - norms.isel(time=0)
    mean = float(grown.isel(time=-1).mean())
    kept = [
        (norms.isel(layer=0) ** 2 + float(difference)) ** 0.5
        for difference in trace.cumsum("pair").transpose("pair").values
    ]
    return cell.flow_time, grown / mean, [(curve - curve.isel(time=0)) / mean for curve in kept]


def _norms(results: Results, experiment: str, ax: Axes) -> None:
    """Draws growth over time, on the axis that holds both variances."""
    time, grown, kept = _growth(results, experiment)
    layers = grown["layer"].values
    colours = style.sequential(len(layers) + 2)[: len(layers)]
    for layer, colour in zip(layers, colours, strict=True):
        ax.plot(time, grown.sel(layer=layer), **line(colour))
    for curve in kept:
        ax.plot(time, curve, **style.THEORY)
    both = [_growth(results, name)[1] for name in VARIANCES]
    low, high = min(float(x.min()) for x in both), max(float(x.max()) for x in both)
    margin = 0.05 * (high - low)
    first = time[int((abs(grown).max("layer") > BEGUN).argmax("time"))]
    ax.set(xlabel=style.FLOW_TIME, xscale="log", ylabel="growth of norm (mean at end: 1)")
    ax.set(xlim=(first, style.settling_time(grown, time)), ylim=(low - margin, high + margin))
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.axhline(1, **style.GUIDE)
    label_ends(
        ax,
        [
            (float(grown.sel(layer=layer)[-1]), f"$|W_{layer}|$", colour)
            for layer, colour in zip(layers, colours, strict=True)
        ],
    )
