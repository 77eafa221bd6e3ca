"""From the race to the lazy regime.

Figure 6 of Saxe, Sodhani, Lewallen (2022): routing networks from weights of growing size. From
small weights the loss falls in stages, every item comes to be represented alike in all domains,
and pairs of domains that were never trained are answered, too. From large weights the loss falls at
once, domains keep the random directions that they started from, and trained pairs alone are
answered. Lines and markers are means, bands and bars ranges over 5 seeds; matrices are those of one
seed at the end of training, and numbers above them means. Seven domains, of which each is trained
with four, in place of scales and sizes that the source does not print.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MultipleLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results

LEAST_LOSS = 1e-5
"""Lower end of the axis of the loss."""
LEAST_NAMED = 0.03
"""Height at which the curve of the smallest scale is named, if it leaves the axis of the loss."""
LEAST_NUMBER = 0.01
"""Smaller numbers at matrices are given as below it."""
SCALE = r"init scale $\sigma_0$"


@Figure(
    layout="aabbcc;dddeee",
    height=5.2,
    widths=(1.0, 1.0, 0.8, 1.2, 1.2, 1.2),
    heights=(1.0, 1.1),
    cf={"a": "Fig. 6a", "b": "Fig. 6b", "d": "Fig. 6c", "e": "Fig. 6d"},
    reads={
        "init_scale": {
            "trajectory": "loss pair_outputs similarity",
            "metrics": (
                "final_similarity_across final_trained_error final_untrained_error "
                "initial_rate_share stages"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pairs of domains."""
    lowest = rf"below $10^{{{np.log10(domains.FLOOR):.0f}}}$"
    return [
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.handle(lowest, linestyle="", color="0.3", **style.OFF_AXIS),
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over its start: small weights wait on plateaus, large ones learn fastest at once. Thick
    with bands: the scales that are named; thin: means of the scales between them.
    """
    cell = results.cell("init_scale")
    loss = cell.get("trajectory", "loss")
    loss = loss / loss.isel(time=0, drop=True)
    scales = loss["init_scale"].values
    chosen, ends = _chosen(scales), []
    for index, colour in zip(scales.argsort(), style.sequential(len(scales)), strict=True):
        values = loss.isel(init_scale=index)
        if index not in chosen:
            mean = values.mean("seed")
            ax.plot(cell.flow_time, mean, color=colour, linewidth=0.7, alpha=0.5)
            continue
        style.over_seeds(ax, cell.flow_time, values, color=colour)
        ends.append((values.mean("seed"), float(scales[index]), colour))
    ax.set(yscale="log", ylim=(LEAST_LOSS, 1.5), ylabel="loss over initial loss")
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    _name_curves(ax, cell.flow_time, ends)
    ax.set_title("Stages from small weights alone")


def panel_b(results: Results, ax: Axes) -> None:
    """Relative error at the end of training: trained pairs are learned at any scale."""
    for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        error = _metric(results, f"final_{name}_error")
        domains.draw_line(ax, _scales(error), [e.clip(min=domains.FLOOR) for e in error], props)
        least = error.max("seed") <= domains.FLOOR
        at = error["init_scale"].values[least.values]
        off_axis: dict[str, Any] = props | style.OFF_AXIS | {"linestyle": "", "zorder": 4}
        ax.plot(at, [domains.FLOOR] * len(at), **off_axis)
    ax.set(yscale="log", ylabel="relative error at the end", xlabel=SCALE)
    ax.xaxis.set_major_locator(MultipleLocator(0.5))
    ax.set_title("Small weights transfer")


def panel_c(results: Results, ax: Axes) -> None:
    """Rate of learning at the start over its largest value: 1 in an exponential decay. Numbers are
    separate drops of the loss: maxima of its relative rate.
    """
    share, stages = (_metric(results, name) for name in ("initial_rate_share", "stages"))
    domains.draw_line(ax, _scales(share), list(share), {"color": "0.3", "marker": "o"})
    for scale, rate, drops in zip(_scales(share), share, stages.mean("seed"), strict=True):
        at = scale, float(rate.max())
        ax.annotate(
            f"{float(drops):.2g}", at, (0, 4), textcoords="offset points", ha="center", fontsize=6
        )
    ax.xaxis.set_major_locator(MultipleLocator(0.5))
    ax.set(ylabel="initial over largest rate", ylim=(-0.03, 1.1), xlabel=SCALE)
    ax.set_title("Large weights start fastest")


def panel_d(results: Results, ax: Axes) -> None:
    """Cosines between all items of all input domains in the first hidden layer; numbers are those
    of one item in two domains.
    """
    bar = {"label": "cosine", "ticks": (-1, 0, 1)}
    _draw_maps(results, ax, domains.draw_similarity, "final_similarity_across", bar)
    ax.set_title("From small weights, domains share representations")


def panel_e(results: Results, ax: Axes) -> None:
    """Outputs of all pairs of domains, trained ones within the lines; numbers are relative errors
    of untrained pairs. Values beyond the range of the targets have its end colours.
    """
    bar = {"label": "output", "extend": "both"}
    _draw_maps(results, ax, domains.draw_outputs, "final_untrained_error", bar)
    ax.set_title("From large weights, outside the lines is noise")


def _metric(results: Results, name: str) -> xr.DataArray:
    """A metric, (init_scale, seed), smallest scale first."""
    values = results.cell("init_scale").get("metrics", name)
    return values.transpose("init_scale", "seed").sortby("init_scale")


def _scales(values: xr.DataArray) -> Sequence[float]:
    return values["init_scale"].values.tolist()


def _chosen(scales: np.ndarray) -> list[int]:
    """Indices of the smallest, the middle and the largest init scale."""
    order = scales.argsort().tolist()
    return list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]]))


def _name_curves(
    ax: Axes, time: xr.DataArray, curves: Sequence[tuple[xr.DataArray, float, style.Colour]]
) -> None:
    """Names curves, (time), at their ends, or beside the curve if they leave the axes below.

    The first one is named right of a fall, in full, and others near the lower end on their left.
    """
    ends = []
    for number, (curve, scale, colour) in enumerate(curves):
        level, side = (1.1 * LEAST_LOSS, -1) if number else (LEAST_NAMED, 1)
        text = f"{scale:g}" if number else rf"$\sigma_0$ = {scale:g}"
        left = np.flatnonzero(curve.values < level)
        if float(curve[-1]) >= LEAST_LOSS or not len(left):
            ends.append((float(curve[-1]), f"{scale:g}", colour))
            continue
        ax.annotate(
            text,
            (float(time[int(left[0])]), level),
            (3 * side, 0),
            textcoords="offset points",
            color=colour,
            fontsize=6,
            ha="right" if number else "left",
        )
    label_ends(ax, ends)


def _draw_maps(
    results: Results,
    ax: Axes,
    draw: Callable[[Axes, CellResults, int], AxesImage],
    metric: str,
    bar: Mapping[str, Any],
) -> None:
    """Draws a matrix at three init scales, smallest to largest, with the mean of a metric above."""
    cell = results.cell("init_scale")
    scales = cell.trajectory["init_scale"].values
    chosen = _chosen(scales)
    values = _metric(results, metric).mean("seed")
    axes = style.split(ax, 1, len(chosen), wspace=0.02)[0]
    for part, index in zip(axes, chosen, strict=True):
        shades = draw(part, cell, index)
        value = float(values.sel(init_scale=scales[index]))
        number = f"{value:.2f}" if value >= LEAST_NUMBER else f"below {LEAST_NUMBER:g}"
        name = f"cosine {number}" if "similarity" in metric else f"error {number}"
        part.set_title(rf"$\sigma_0$ = {scales[index]:g}" + f"\n{name}", loc="center")
        part.set_box_aspect(1)
        part.set_xlabel("")
    axes[len(axes) // 2].set_xlabel("input domain")
    for part in axes[1:]:  # Only the first has labels on its left.
        part.set_ylabel("")
        part.tick_params(labelleft=False)
    ax.figure.colorbar(
        shades, ax=list(axes), location="bottom", aspect=35, shrink=0.6, pad=0.02, **bar
    )
