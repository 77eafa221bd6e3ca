"""How many gates of a ReLU network flip while it learns, and when.

A gate is that of one unit on one sample of a fixed sample. The notes observe that weights grow
uniformly for much of the training, and take from it that gates may be relatively constant. Here
about three gates in ten end up other than they started, where half would by chance, and six in ten
never flip. The share follows the angle between the weights then and now (dashed, from the weights
of the simulation and the covariances of the classes with nothing fitted), which is exact for
Gaussian inputs: those at the lower gain are next to Gaussian, and as many gates flip there, where
nothing localises. Nine in ten of the flips come before fields are half way to their final
participation, and from a small start while the weights grow. Few gates would be 10%. Lines are
means of five runs, and bands their ranges.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.receptive_fields import marginal_name, scale_styles
from neuralrace.results.cells import CellResults, Results

CLOCK = "snapshot_flow_time"
FEW = 0.1
"""Gates are constant if at most this share flips, as in the claims."""
TEXT = {"color": "0.4", "fontsize": 6.5}
"""Text at a guide."""
KNEE = 0.6
"""Share of the final flips at which a line has the name of its init scale beside it."""
LOCALISED = {
    "marker": "D",
    "markersize": 5,
    "markeredgecolor": "white",
    "linestyle": "",
    "zorder": 4,
}
"""Marker of the time at which fields are half way to their final participation."""
FATES: dict[str, dict[str, Any]] = {
    "end\nflipped": {"facecolor": style.COLOURS["relu"]},
    "flip and\nreturn": {"facecolor": "0.7", "hatch": "////", "edgecolor": "white"},
    "never\nflip": {"facecolor": "0.88"},
}
"""What becomes of gates, and their bars, from below."""


@Figure(
    layout="a.b;c.d",
    height=4.4,
    widths=(1.0, 0.03, 1.0),
    cf={"a": "sec. 2.1", "c": "sec. 2.1"},
    reads={
        "gate_flips": {
            "metrics": (
                "final_gate_flips gate_flip_fraction gate_flips_between localisation_time "
                "never_changed predicted_gate_flips"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Init scales, the formula, and the time of localisation."""
    handles = style.scale_handles(scale_styles(results.cells("gate_flips")[0]))
    return [
        *handles,
        style.handle("Gaussian formula", **style.THEORY),
        style.handle("localisation half way", color="0.4", **LOCALISED),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Gates that differ from the start over time, at the gain at which fields localise."""
    _flips(results.cells("gate_flips")[0], ax)
    style.note(ax, "bands: range of runs", "lower right", color="0.4")
    ax.set_title("Most flips come before localisation")


def panel_b(results: Results, ax: Axes) -> None:
    """The same at the lower gain, where nothing localises."""
    _flips(results.cells("gate_flips")[-1], ax)
    ax.set_title("Nearly as many flip where nothing localises")


def panel_c(results: Results, ax: Axes) -> None:
    """Gates by what becomes of them, by init scale and gain, means over runs."""
    names: dict[float, str] = {}
    for index, cell in enumerate(results.cells("gate_flips")):
        differ, never = (
            _first_layer(cell, name).mean("seed").sortby("init_scale")
            for name in ("final_gate_flips", "never_changed")
        )
        scales = differ["init_scale"].values.tolist()
        columns = np.arange(len(scales)) + (len(scales) + 0.6) * index
        level = xr.zeros_like(differ)
        for share, props in zip((differ, 1 - differ - never, never), FATES.values(), strict=True):
            ax.bar(columns, share, 0.86, bottom=level, linewidth=0, **props)
            level = level + share
        gains = [" "] * len(scales)
        gains[len(scales) // 2] = marginal_name(cell)
        labels = (f"{scale:g}\n{gain}" for scale, gain in zip(scales, gains, strict=True))
        names |= dict(zip(columns.tolist(), labels, strict=True))
    ax.set_xticks(list(names), names.values())
    ax.tick_params(axis="x", length=0)
    ax.set(xlabel="init scale", ylabel="share of gates", ylim=(0, 1))
    middles = differ[-1] / 2, (1 + differ[-1] - never[-1]) / 2, 1 - never[-1] / 2
    label_ends(ax, [(float(y), name, "0.3") for y, name in zip(middles, FATES, strict=True)])
    ax.set_title("Most gates never flip")


def panel_d(results: Results, ax: Axes) -> None:
    """Gates that differ between two times, at the higher gain and the largest init scale."""
    values = _first_layer(results.cells("gate_flips")[0], "gate_flips_between")
    scale = float(values["init_scale"].max())
    shown = values.sel(init_scale=scale).mean("seed")
    time = shown[CLOCK]
    shades = ax.pcolormesh(time, time, shown, vmin=0, cmap=style.HEAT)
    setting = f"({marginal_name(results.cells('gate_flips')[0])}, init scale {scale:g})"
    ax.set(xlabel=f"{style.FLOW_TIME}\n{setting}", ylabel=style.FLOW_TIME)
    ax.invert_yaxis()
    ax.figure.colorbar(shades, ax=ax, label="gates that differ", aspect=14)
    ax.set_title("Gates flip less and less")


def _first_layer(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric of the first hidden layer."""
    return cell.get("metrics", metric).sel(layer=1, drop=True)


def _flips(cell: CellResults, ax: Axes) -> None:
    """Draws the share of gates that differ from the start, by init scale, with theory on top."""
    flips = _first_layer(cell, "gate_flip_fraction")
    predicted = cell.get("metrics", "predicted_gate_flips").mean("seed")
    above = 7  # the first line, and the others below themselves
    for scale, props in scale_styles(cell).items():
        style.over_seeds(ax, flips[CLOCK], flips.sel(init_scale=scale), **props)
        ax.plot(predicted[CLOCK], predicted.sel(init_scale=scale), **style.THEORY)
        mean = flips.sel(init_scale=scale).mean("seed")
        knee = int(np.argmax(mean.values > KNEE * mean.values[-1]))
        ax.annotate(f"{scale:g}", (float(mean[CLOCK][knee]), float(mean[knee])), (4, above),
                    textcoords="offset points", fontsize=6.5, color=props["color"])  # fmt: skip
        above = -9
        half = float(cell.get("metrics", "localisation_time").sel(init_scale=scale).mean("seed"))
        if half > 0:
            level = np.interp(half, flips[CLOCK], mean)
            ax.plot([half], [level], color=props["color"], **LOCALISED)
    ax.axhline(FEW, **style.GUIDE)
    ax.set(xlabel=style.FLOW_TIME, ylabel="gates that differ from the start")
    ax.set(xlim=(0, float(flips[CLOCK][-1])), ylim=(0, 0.4), yticks=[0, 0.1, 0.2, 0.3, 0.4])
    ax.text(0.98, 0.97, marginal_name(cell), ha="right", va="top", transform=ax.transAxes)
    at = {"ha": "right", "va": "bottom", "transform": ax.get_yaxis_transform()}
    ax.text(1, FEW, f"few ({FEW:.0%})", **at, **TEXT)
