r"""How unequal two layers end that start aligned and unequal.

Basu, Mukherjee and Vasudevan, corollary 2.4, have no figure of it. They let the ratio of two
aligned layers fall to 1. It ends where the conserved difference of squares puts it (triangles),
:math:`(\delta + \sqrt{\delta^2 + 4 s^2})/2s`: near 1 from small weights only (a, b), and from large
weights, where modes shrink, it moves away from 1 (c). That layers evolve mode by mode (eq. 13)
holds at any depth (d).
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_modes
from neuralrace.results.cells import Results
from neuralrace.results.gram import diagonal, vectors


@Figure(
    layout="abcd",
    height=2.5,
    cf={"b": "cor. 2.4", "d": "eq. 13"},
    reads={
        "unequal_layers": {
            "trajectory": "gram",
            "theory": "layer_strength",
            "metrics": "final_layer_ratio final_layer_ratio_over_limit",
        },
        "decoupled_modes": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by singular value, eq. 13, and both limits."""
    return [
        *style.mode_handles(results.cell("unequal_layers").strength),
        style.handle("eq. 13", **style.THEORY),
        style.handle(r"limit from $\delta$ and $s$", color="0.3", marker="<", linestyle=""),
        style.handle("Basu et al.: limit", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Ratio of the larger to the smaller layer in each mode, from small weights."""
    _ratio(results, 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same from weights near those that are learned: the claimed limit is missed."""
    _ratio(results, 1, ax)


def panel_c(results: Results, ax: Axes) -> None:
    """The same from large weights, which have to shrink: the ratio rises."""
    _ratio(results, -1, ax)


def panel_d(results: Results, ax: Axes) -> None:
    """Mode strengths of a network with four aligned layers of unequal strength, and how far the
    largest distance from eq. 13 is, over the largest target.
    """
    cell = results.cell("decoupled_modes")
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=0)
    closed = cell.get("theory", "mode_strength", solution="layered_modes").isel(init_scale=0)
    draw_modes(ax, cell, modes, closed)
    off = float(abs(modes - closed).max() / cell.target.max())
    ax.set(xlabel=r"time (units of $\tau$)", ylabel="mode strength")
    ax.set(xlim=(0, style.settling_time(modes, cell.flow_time)), ylim=(0, None))
    ax.set_title(f"Off by {off:.1%}")


def _ratio(results: Results, index: int, ax: Axes) -> None:
    cell = results.cell("unequal_layers")
    encoder, decoder, _ = vectors(cell)
    ratio = (diagonal(encoder) / diagonal(decoder)).isel(init_scale=index) ** 0.5
    ratio = ratio.where(ratio >= 1, 1 / ratio)
    layers = cell.get("theory", "layer_strength").isel(init_scale=index)
    draw_modes(ax, cell, ratio, layers.max("layer") / layers.min("layer"))
    ends = cell.get("metrics", "final_layer_ratio").isel(init_scale=index)
    limit = ends / cell.get("metrics", "final_layer_ratio_over_limit").isel(init_scale=index)
    end = style.settling_time(ratio, cell.flow_time)
    for mode, colour in style.mode_colours(cell.strength).items():
        level = limit.sel(mode=mode).mean("seed")
        ax.plot(end, level, marker="<", color=colour, markersize=5, clip_on=False, zorder=4)
    ax.axhline(1, **style.PAPER)
    ax.set(xlabel=r"time (units of $\tau$)", ylabel="larger over smaller layer")
    ax.set(xlim=(0, end), ylim=(0, None))
    start = float(ratio.isel(time=0).mean())
    low, high = float(ends.min()), float(ends.max())
    scale = float(ratio["init_scale"])
    ax.set_title(f"Scale {scale:g}: {start:.2g} to {low:.2f}\u2013{high:.2f}")
