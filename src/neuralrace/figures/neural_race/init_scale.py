"""From the race to the lazy regime.

Figure 6 of Saxe, Sodhani, Lewallen (2022): routing networks from weights of growing size. From
small weights the loss falls in stages, every item comes to be represented alike in all domains,
and pairs of domains that were never trained are answered, too. From large weights the loss falls at
once, domains keep the random directions that they started from, and trained pairs alone are
answered. Lines and markers are means, bands and bars ranges over runs; matrices are those of one
run at the end of training, and numbers above them means over runs. Seven domains, of which each is
trained with four, in place of scales and sizes that the source does not print.
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
NAMED = (0.03, 1e-3, 3e-5)
"""Losses at which the curves of the smallest, a middle and the largest scale are named."""
LEAST_NUMBER = 0.01
"""Smaller numbers at matrices are given as below it."""
SCALE = r"init scale $\sigma_0$"


@Figure(
    layout="aabbcc;dddeee",
    height=4.8,
    widths=(1.05, 1.05, 1.1, 1.0, 1.1, 1.1),
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
    """None: lines are named."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over its start, from the smallest, a middle and the largest scale: small weights wait on
    plateaus, large ones learn fastest at once. Bands are ranges over runs.
    """
    cell = results.cell("init_scale")
    loss = cell.get("trajectory", "loss")
    loss = loss / loss.isel(time=0, drop=True)
    part = style.split(ax, 1)[0, 0]
    part.set(yscale="log", ylim=(LEAST_LOSS, 1.5), ylabel="loss over initial loss")
    part.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    ends = []
    for level, (index, name, colour) in zip(NAMED, _chosen(loss), strict=False):
        values = loss.isel(init_scale=index)
        style.over_seeds(part, cell.flow_time, values, color=colour)
        mean = values.mean("seed")
        reached = np.flatnonzero(mean.values < level)
        if len(reached):
            at = float(cell.flow_time[int(reached[0])]), level
            style.note_at(part, name, at, color=colour)
        else:
            ends.append((float(mean[-1]), name, colour))
    label_ends(part, ends)
    style.note(part, f"bands: ranges\nof {loss.sizes['seed']} runs", color="0.35")
    ax.set_title("Stages from small weights alone")


def panel_b(results: Results, ax: Axes) -> None:
    """Relative error at the end of training: trained pairs are learned at any scale, untrained ones
    from small weights alone.
    """
    part = style.split(ax, 1)[0, 0]
    # Beside their lines, and never in each other.
    sides = {"trained": ((7, 3), "left"), "untrained": ((-5, 4), "right")}
    for name, props in domains.PAIRS.items():
        error = _metric(results, f"final_{name}_error")
        least = (error.max("seed") <= domains.FLOOR).values
        at = error["init_scale"].values[least].tolist()
        drawn = error.clip(min=domains.FLOOR)
        part.plot(_scales(error), drawn.mean("seed"), color=props["color"], linewidth=1.2)
        above = drawn.isel(init_scale=~least)
        style.point_series(part, _scales(above), list(above), **props)
        domains.mark_below(part, at, props, (2, 6), ha="right")
        middle = (len(error) - 1) // 2
        beside = float(error["init_scale"][middle]), float(error[middle].mean().clip(domains.FLOOR))
        shift, side = sides[name]
        look = {"color": props["color"], "ha": side, "va": "center"}
        style.note_at(part, f"{name}\npairs", beside, shift, **look)
    part.set(yscale="log", ylabel="relative error at the end", xlabel=SCALE)
    part.xaxis.set_major_locator(MultipleLocator(0.5))
    style.note(part, "bars: ranges", "upper left", color="0.35")
    ax.set_title("Small weights transfer")


def panel_c(results: Results, ax: Axes) -> None:
    """Separate drops of the loss, which are maxima of its relative rate, and below this rate at the
    start over its largest value: 1 in an exponential decay.
    """
    above, below = style.split(ax, 2, sharex=True)[:, 0]
    for part, name in ((above, "stages"), (below, "initial_rate_share")):
        values = _metric(results, name)
        domains.draw_line(part, _scales(values), list(values), {"color": "0.3", "marker": "o"})
    below.xaxis.set_major_locator(MultipleLocator(0.5))
    above.yaxis.set_major_locator(MultipleLocator(1))
    above.set_ylabel("drops of\nthe loss")
    style.note_at(
        below, "1: exponential decay", (0, 1), (3, 0), xycoords=below.get_yaxis_transform()
    )
    style.note(above, "bars: ranges", color="0.35")
    below.set(ylabel="initial over\nlargest rate", ylim=(-0.05, 1.1), xlabel=SCALE)
    ax.set_title("Large weights learn without stages")


def panel_d(results: Results, ax: Axes) -> None:
    """Cosines between all items of all input domains in the first hidden layer; numbers are those
    of one item in two domains.
    """
    bar = {"label": "cosine", "ticks": (-1, 0, 1)}
    _draw_maps(results, ax, domains.draw_similarity, "final_similarity_across", "same item", bar)
    ax.set_title("From small weights, domains share representations")


def panel_e(results: Results, ax: Axes) -> None:
    """Outputs of all pairs of domains, trained ones within the lines; numbers are relative errors
    of untrained pairs. Values beyond the range of the targets have its end colours.
    """
    bar = {"label": "output (trained pairs framed, errors of the others)", "extend": "both"}
    _draw_maps(results, ax, domains.draw_outputs, "final_untrained_error", "error", bar)
    ax.set_title("Large weights answer trained pairs alone")


def _metric(results: Results, name: str) -> xr.DataArray:
    """A metric, (init_scale, seed), smallest scale first."""
    values = results.cell("init_scale").get("metrics", name)
    return values.transpose("init_scale", "seed").sortby("init_scale")


def _scales(values: xr.DataArray) -> Sequence[float]:
    return values["init_scale"].values.tolist()


def _chosen(values: xr.DataArray) -> list[tuple[int, str, style.Colour]]:
    """Index, name and colour of the smallest, a middle and the largest init scale."""
    scales = values["init_scale"].values
    order = scales.argsort().tolist()
    indices = list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]]))
    colours = style.sequential(len(indices), style.PURPLE)
    names = [rf"$\sigma_0$ = {scales[index]:g}" for index in indices]
    return list(zip(indices, names, colours, strict=True))


def _draw_maps(
    results: Results,
    ax: Axes,
    draw: Callable[[Axes, CellResults, int], AxesImage],
    metric: str,
    name: str,
    bar: Mapping[str, Any],
) -> None:
    """Draws a matrix at three init scales, smallest to largest.

    The mean of a metric stands above each, with a name.
    """
    cell = results.cell("init_scale")
    values = cell.get("metrics", metric).mean("seed")
    chosen = _chosen(values)
    axes = style.split(ax, 1, len(chosen), wspace=0.02)[0]
    for part, (index, scale, colour) in zip(axes, chosen, strict=True):
        shades = draw(part, cell, index)
        value = float(values.isel(init_scale=index))
        number = f"{value:.2f}" if value >= LEAST_NUMBER else f"< {LEAST_NUMBER:g}"
        part.set_title(f"{scale}\n{name}: {number}", loc="center", color=colour)
        part.set_box_aspect(1)
        part.set_xlabel("")
    axes[len(axes) // 2].set_xlabel("input domain")
    for part in axes[1:]:  # Only the first has labels on its left.
        part.set_ylabel("")
        part.tick_params(labelleft=False)
    ax.figure.colorbar(
        shades, ax=list(axes), location="bottom", aspect=35, shrink=0.6, pad=0.02, **bar
    )
