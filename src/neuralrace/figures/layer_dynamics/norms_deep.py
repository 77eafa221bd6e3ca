"""Four layers grow alike from the entry variance that is printed, not from the one that is cited.

Basu, Mukherjee and Vasudevan, fig. 1 (ii): the norms of all layers grow at the same pace. They do,
to about a tenth, from the entry variance that the paper prints (a). From the variance of Glorot and
Bengio, which it cites, layers start with unequal norms, and the smaller ones grow more (b), as what
gradient flow conserves are differences of squared norms (dashed). So it is with any number of
layers (c). In all but a few runs no layer is half of the mean growth away from it.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import (
    VARIANCES,
    depth,
    label,
    line,
    networks,
    unit_scale,
)
from neuralrace.results.cells import Results

COLOURS = {"growth": style.categorical(0), "growth_standard": style.categorical(1)}
"""Colours of entry variances, by experiment."""
MARKED = 4
"""Number of times at which each layer is marked."""
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
    """Simulation and conservation; layers are named in panels."""
    return [
        style.handle("simulation", color="0.4", **style.SIMULATION),
        style.handle("from layer 1, by conservation", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Norm of each layer in the run whose layers grow as alike as in the median one of 60; printed
    variance. Dashed are layers 2 to 4 as conservation gives them from the first.
    """
    _norms(results, "growth", ax)
    ax.legend(loc="lower right", ncols=2)
    ax.set_title("Printed variance: norms grow alike")


def panel_b(results: Results, ax: Axes) -> None:
    """The same from the variance of Glorot and Bengio."""
    label_ends(ax, _norms(results, "growth_standard", ax))
    ax.set_title("Glorot and Bengio: smaller norms grow more")


def panel_c(results: Results, ax: Axes) -> None:
    """The largest distance of a layer's growth from the mean over layers, over that mean, in each
    of 60 runs, with the median. Below the lower line layers grow alike, to a tenth; above the upper
    one some layer grows by less than half of the mean, or by more than one and a half times.
    """
    ax.set(ylim=(0, 0.65), ylabel="largest deviation of a layer's growth / mean growth")
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
    handles.append(style.handle("median of 60 runs", color="0.2", linewidth=1.2))
    ax.legend(handles=handles, loc="upper left", handlelength=1)
    ax.set_title("Printed variance: more alike at every depth")


def _norms(results: Results, experiment: str, ax: Axes) -> list[tuple[float, str, style.Colour]]:
    """Draws norms of the deepest network over time in one run, and what conservation gives.

    Returns:
        The end, the name and the colour of each layer.
    """
    cell = networks(results, experiment)[-1]
    at = unit_scale(cell)
    off = cell.get("metrics", "norm_growth_deviation").isel(at).max("layer")
    seed = {"seed": style.median_seed(off)}
    norms = cell.get("trajectory", "layer_norm").isel(at).sel(seed)
    trace = cell.get("trajectory", "imbalance_trace").isel(at | {"time": 0}).sel(seed)
    time, layers = cell.flow_time, norms["layer"].values
    colours = style.sequential(len(layers) + 2)[: len(layers)]
    end = style.settling_time(norms, time)
    for index, (layer, colour) in enumerate(zip(layers, colours, strict=True)):
        ax.plot(time, norms.sel(layer=layer), **line(colour))
        # Marks of different layers stand at different times, as their lines are close.
        at = end * (np.arange(MARKED) + (index + 0.5) / len(layers)) / MARKED
        marks = {"color": colour, "marker": style.marker(index), "markersize": 4, "linestyle": ""}
        height = np.interp(at, time, norms.sel(layer=layer))
        ax.plot(at, height, label=f"layer {layer}", zorder=4, **marks)
    for difference in trace.cumsum("pair").transpose("pair").values:
        ax.plot(time, (norms.isel(layer=0) ** 2 + float(difference)) ** 0.5, **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="layer norm $|W|$")
    margin = 0.1 * float(norms.max() - norms.min())
    ax.set(xlim=(0, end), ylim=(float(norms.min()) - margin, float(norms.max()) + margin))
    last = norms.isel(time=int(np.searchsorted(time.values, end)) - 1)
    names = [f"layer {layer}" for layer in layers]
    return list(zip(last.values.tolist(), names, colours, strict=True))
