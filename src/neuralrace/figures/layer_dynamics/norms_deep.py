"""Layer norms of a linear network with four layers.

Basu, Mukherjee and Vasudevan, fig. 1 (ii): the norms of all layers grow at the same pace. They do,
to about a tenth, from the entry variance that the paper prints (a); from weights twice as large
(b), or from the variance of Glorot and Bengio, which it names but does not print, they do less (c).
What gradient flow conserves are differences of squared norms: the larger layer grows by less.
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

NAMES = {"growth": "printed", "growth_standard": "Glorot"}
"""Names of entry variances, by experiment."""


@Figure(
    layout="aaabbbcccc",
    height=2.5,
    cf={"a": "Fig. 1 (ii)"},
    reads={
        "growth": {
            "trajectory": "layer_norm",
            "theory": "layer_norm",
            "metrics": "norm_growth norm_growth_deviation",
        },
        "growth_standard": {
            "metrics": "norm_growth norm_growth_deviation",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Layers, and gradient flow."""
    layers = _deepest(results, "growth").get("metrics", "norm_growth")["layer"].values
    return [
        *(
            style.handle(f"$|W_{layer}|$", **props)
            for layer, props in zip(layers, style.sequential_styles(len(layers)), strict=True)
        ),
        style.handle("gradient flow", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Norms in the run whose layers grow as alike as in the median one; printed variance."""
    _norms(results, 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same from weights twice as large, of which the layers have further to come."""
    _norms(results, -1, ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Growth of each layer over the mean of all layers, at the end, by entry variance and scale of
    the start; markers are means, bars ranges over seeds.
    """
    starts = [
        (NAMES[experiment], cell.get("metrics", "norm_growth").isel(init_scale=index))
        for experiment in NAMES
        for cell in [_deepest(results, experiment)]
        for index in range(cell.metrics.sizes["init_scale"])
    ]
    for row, (_, growth) in enumerate(starts):
        share = growth / growth.mean("layer")
        layers = share["layer"].values
        for index, props in enumerate(style.sequential_styles(len(layers))):
            at = row + 0.17 * (index - (len(layers) - 1) / 2)
            style.points(ax, at, share.isel(layer=index), **props)
    ax.axhline(1, **style.GUIDE)
    ax.set_xticks(
        range(len(starts)),
        [f"{name}\n$\\times$ {float(growth['init_scale']):g}" for name, growth in starts],
    )
    ax.set(xlabel="entry variance, init scale", ylabel="growth over mean")
    off = _deepest(results, "growth").get("metrics", "norm_growth_deviation").max("layer")
    deviations = ", ".join(f"{value:.0%}" for value in off.mean("seed").values)
    ax.set_title(f"Furthest from the mean, printed: {deviations}")


def _norms(results: Results, index: int, ax: Axes) -> None:
    cell, at = _deepest(results, "growth"), {"init_scale": index}
    off = cell.get("metrics", "norm_growth_deviation").isel(at).max("layer")
    seed = {"seed": style.median_seed(off)}
    norms = cell.get("trajectory", "layer_norm").isel(at).sel(seed)
    flow, time = cell.get("theory", "layer_norm").isel(at).sel(seed), cell.flow_time
    layers = norms["layer"].values
    for layer, colour in zip(layers, style.sequential(len(layers)), strict=True):
        ax.plot(time, norms.sel(layer=layer), color=colour)
        ax.plot(time, flow.sel(layer=layer), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="Frobenius norm")
    ax.set_xlim(0, style.settling_time(norms, time))
    growth = norms.isel(time=-1) - norms.isel(time=0)
    least, most = float(growth.min()), float(growth.max())
    scale = f"Init scale {float(norms['init_scale']):g}"
    ax.set_title(f"{scale}: growth {least:.2f} to {most:.2f}")


def _deepest(results: Results, experiment: str) -> CellResults:
    return max(results.cells(experiment), key=lambda cell: len(cell.spec.layered.hidden))
