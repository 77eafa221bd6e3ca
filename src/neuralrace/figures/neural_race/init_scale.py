"""From the race to the lazy regime.

Figure 6 of Saxe, Sodhani, Lewallen (2022): routing networks from weights of growing size. From
small weights the loss falls in stages, every item comes to be represented alike in all domains,
and pairs of domains that were never trained are answered, too. From large weights the loss falls at
once, domains keep the random directions that they started from, and trained pairs alone are
answered. Lines and markers are means, bands and bars ranges over seeds; matrices are those of one
seed at the end of training.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

LEAST_LOSS = 1e-5
"""Lower end of the axis of the loss."""
SCALE = r"init scale $\sigma_0$"


@Figure(
    layout="aaaabbbee;aaaabbbff;ccccddddd",
    height=5.0,
    heights=(0.8, 0.8, 1.3),
    cf={"a": "Fig. 6a", "b": "Fig. 6b", "c": "Fig. 6c", "d": "Fig. 6d"},
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
    """Loss over its start: small weights wait on plateaus, large ones learn fastest at once."""
    cell = results.cell("init_scale")
    loss = cell.get("trajectory", "loss")
    loss = loss / loss.isel(time=0, drop=True)
    scales = loss["init_scale"].values
    for index, colour in zip(scales.argsort(), style.sequential(len(scales)), strict=True):
        style.over_seeds(ax, cell.flow_time, loss.isel(init_scale=index), color=colour)
    ax.set(yscale="log", ylim=(LEAST_LOSS, 1.5), ylabel="loss over initial loss")
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    style.epoch_axis(ax, cell.flow_time)
    style.colour_bar(ax, np.sort(scales).tolist(), SCALE)
    ax.set_title("Stages from small weights, none from large")


def panel_b(results: Results, ax: Axes) -> None:
    """Relative error at the end of training: trained pairs are learned at any scale."""
    ends = {}
    styles = {"trained": domains.TRAINED, "untrained": domains.UNTRAINED}
    for name, props in styles.items():
        error = _metric(results, f"final_{name}_error")
        domains.draw_line(ax, _scales(error), [e.clip(min=domains.FLOOR) for e in error], props)
        least = error.max("seed") <= domains.FLOOR
        at = error["init_scale"].values[least.values]
        off_axis: dict[str, Any] = props | style.OFF_AXIS | {"linestyle": "", "zorder": 4}
        ax.plot(at, [domains.FLOOR] * len(at), **off_axis)
        ends[name] = error.mean("seed")
    ax.set(yscale="log", ylabel="relative error at the end", xlabel=SCALE)
    first, last = (float(ends["untrained"][end]) for end in (0, -1))
    ax.set_title(f"Untrained pairs: error {first:.0e} from small weights, {last:.1f} from large")


def panel_c(results: Results, ax: Axes) -> None:
    """Cosines between all items of all input domains in the first hidden layer.

    The title gives the mean of one item in two domains.
    """
    bar = {"label": "cosine", "ticks": (-1, 0, 1)}
    cosines = _draw_maps(results, ax, domains.draw_similarity, "final_similarity_across", bar)
    values = ", ".join(f"{cosine:.2f}" for cosine in cosines)
    ax.set_title(f"One item in two domains: cosine {values}")


def panel_d(results: Results, ax: Axes) -> None:
    """Outputs of all pairs of domains, trained ones within the lines.

    Values beyond the range of the targets have its end colours.
    """
    bar = {"label": "output", "extend": "both"}
    errors = _draw_maps(results, ax, domains.draw_outputs, "final_untrained_error", bar)
    values = ", ".join(f"{error:.1g}" for error in errors)
    ax.set_title(f"Outputs of untrained pairs (outside the lines): error {values}")


def panel_e(results: Results, ax: Axes) -> None:
    """Separate drops of the loss: maxima of its relative rate."""
    stages = _metric(results, "stages")
    domains.draw_line(ax, _scales(stages), list(stages), {"color": "0.3", "marker": "o"})
    ax.set(ylabel="drops", ylim=(-0.3, None))
    ax.tick_params(labelbottom=False)
    first, last = (float(stages[end].mean("seed")) for end in (0, -1))
    ax.set_title(f"{first:.1f} drops, then {last:.0f}")


def panel_f(results: Results, ax: Axes) -> None:
    """Rate of learning at the start over its largest value: 1 in an exponential decay."""
    share = _metric(results, "initial_rate_share")
    domains.draw_line(ax, _scales(share), list(share), {"color": "0.3", "marker": "o"})
    ax.set(ylabel="initial over\nlargest rate", ylim=(0, 1.05), xlabel=SCALE)
    ax.set_title("Fastest at the start")


def _metric(results: Results, name: str) -> xr.DataArray:
    """A metric, (init_scale, seed), smallest scale first."""
    values = results.cell("init_scale").get("metrics", name)
    return values.transpose("init_scale", "seed").sortby("init_scale")


def _scales(values: xr.DataArray) -> Sequence[float]:
    return values["init_scale"].values.tolist()


def _draw_maps(
    results: Results,
    ax: Axes,
    draw: Callable[[Axes, CellResults, int], AxesImage],
    metric: str,
    bar: Mapping[str, Any],
) -> list[float]:
    """Draws a matrix at three init scales, smallest to largest; returns the means of a metric."""
    cell = results.cell("init_scale")
    scales = cell.trajectory["init_scale"].values
    order = scales.argsort().tolist()
    chosen = list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]]))
    axes = style.split(ax, 1, len(chosen))[0]
    for part, index in zip(axes, chosen, strict=True):
        shades = draw(part, cell, index)
        part.set_title(rf"$\sigma_0$ = {scales[index]:g}", loc="center")
        part.set_box_aspect(1)
    for part in axes[1:]:  # Only the first has labels on its left.
        part.set_ylabel("")
        part.tick_params(labelleft=False)
    ax.figure.colorbar(shades, ax=list(axes), aspect=12, **bar)
    values = _metric(results, metric).mean("seed")
    return [float(values.sel(init_scale=scales[index])) for index in chosen]
