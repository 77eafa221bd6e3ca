r"""How unequal two layers end that start aligned and unequal.

Basu, Mukherjee and Vasudevan, corollary 2.4, have no figure of it. They let the ratio of two
aligned layers fall to 1. It ends where the conserved difference of squares :math:`\delta` puts it,
:math:`(\delta + \sqrt{\delta^2 + 4 s^2})/2s` (b): near 1 from small weights only, and from large
weights, where modes shrink, it moves away from 1 (a). That layers evolve mode by mode (eq. 13)
holds at any depth (c).
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.layers import line
from neuralrace.figures.modes import draw_modes, label_modes
from neuralrace.results.cells import Results
from neuralrace.results.gram import diagonal, vectors

SIZES = (9, 6.5, 4)
"""Sizes of the marks of modes, which stand around each other where ratios agree."""


@Figure(
    layout="abc",
    height=2.7,
    widths=(1.7, 1.0, 1.0),
    cf={"a": "cor. 2.4", "c": "eq. 13"},
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
    """Modes, prediction and what the paper expects."""
    return [
        *style.mode_handles(results.cell("unequal_layers").strength),
        style.handle("prediction", **style.THEORY),
        style.handle("Basu et al.: ratio 1", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Ratio of the larger to the smaller of two layers in each of three modes, from three scales of
    the start: weights below, near and above those that are learned. Lines are means over 5 runs;
    dashed is eq. 13. Lines of weaker modes are thinner, as two coincide.
    """
    cell = results.cell("unequal_layers")
    encoder, decoder, _ = vectors(cell)
    ratios = (diagonal(encoder) / diagonal(decoder)) ** 0.5
    ratios = ratios.where(ratios >= 1, 1 / ratios)
    strengths = cell.get("theory", "layer_strength")
    theory = strengths.max("layer") / strengths.min("layer")
    time, colours = cell.flow_time, style.mode_colours(cell.strength)
    end = style.settling_time(ratios.isel(init_scale=1).sel(mode=list(colours)), time)
    scales = ratios["init_scale"].values
    frames = style.split(ax, 1, len(scales), sharex=True, sharey=True, wspace=0.06)[0]
    for frame, scale in zip(frames, scales, strict=True):
        for size, (mode, colour) in zip(SIZES, colours.items(), strict=False):
            at = {"init_scale": scale, "mode": mode}
            frame.plot(time, ratios.sel(at).mean("seed"), **line(colour, 0.6 * size))
            frame.plot(time, theory.sel(at).mean("seed"), **style.THEORY)
        frame.axhline(1, **style.PAPER)
        frame.set_title(f"init scale {scale:g}", loc="center")
    frames[0].set(ylabel="larger over smaller layer", xlim=(0, end), yscale="log")
    frames[0].set_ylim(0.9, 1.2 * float(ratios.sel(mode=list(colours)).max()))
    frames[0].set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    frames[0].set_yticks([], minor=True)
    frames[len(frames) // 2].set_xlabel(r"time (units of $\tau$)")
    ax.set_title("Only small starts make layers equal")


def panel_b(results: Results, ax: Axes) -> None:
    r"""Ratio at the end against its prediction, :math:`(\delta + \sqrt{\delta^2 + 4 s^2})/2s`, both
    less the ratio of 1 that the paper expects, for each mode (by size), scale (by marker) and run;
    on the dashed line it is as predicted.
    """
    cell = results.cell("unequal_layers")
    colours = style.mode_colours(cell.strength)
    ends = cell.get("metrics", "final_layer_ratio").sel(mode=list(colours))
    limits = ends / cell.get("metrics", "final_layer_ratio_over_limit")
    low, high = 0.5 * float((limits - 1).min()), 2 * float((ends - 1).max())
    for index, scale in enumerate(ends["init_scale"].values):
        dots: dict[str, Any] = {"marker": style.marker(index), "linestyle": ""}
        for size, (mode, colour) in zip(SIZES, colours.items(), strict=False):
            at = {"init_scale": scale, "mode": mode}
            rings = {"color": colour, "markersize": size, "markerfacecolor": "none"}
            ax.plot(limits.sel(at) - 1, ends.sel(at) - 1, **dots | rings)
        ax.plot([], [], color="0.3", markerfacecolor="none", label=f"{scale:g}", **dots)
    ax.plot([low, high], [low, high], **style.THEORY)
    middle = (low * high) ** 0.5
    ax.annotate("as predicted", (middle, middle), (7, -3), textcoords="offset points", va="top")
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    ax.set(xlabel="predicted ratio \u2212 1", ylabel="ratio at the end \u2212 1")
    ax.legend(title="init scale", loc="upper left", handlelength=1)
    ax.set_title("Conservation predicts the ratio")


def panel_c(results: Results, ax: Axes) -> None:
    """Mode strengths of a network with four aligned layers of unequal strength; mean and range over
    5 runs, and eq. 13 (dashed).
    """
    cell = results.cell("decoupled_modes")
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=0)
    closed = cell.get("theory", "mode_strength", solution="layered_modes").isel(init_scale=0)
    draw_modes(ax, cell, modes, closed)
    end = style.settling_time(modes, cell.flow_time)
    ax.set(xlabel=r"time (units of $\tau$)", ylabel="mode strength", xlim=(0, end), ylim=(0, None))
    label_modes(ax, cell.strength)
    ax.set_title("4 layers: modes evolve alone")
