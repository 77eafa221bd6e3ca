"""XoR with a linear margin: which kind of pathway wins, over margin and init scale.

Jarvis et al., "Make Haste Slowly" (sec. 3), have the ReLU network turn from XoR to linear pathways
at the margin Delta* = sqrt(2/3), dotted, where both kinds are equally fast. The map is not in the
paper. A ReLU network holds both kinds from the start, more units of the XoR kind, and the share of
either is in between near Delta*. Theory, dashed, is the race of both kinds from the initial weights
of each run, with nothing fitted. It is for small starts, and off at 0.1. Means over three runs.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import NullLocator

from neuralrace.datasets.xor import CROSSOVER
from neuralrace.extensions.registry import Figure
from neuralrace.figures import maps, margins, style
from neuralrace.metrics.values import crossing_time
from neuralrace.results.cells import Results

SCALE = r"init scale $\sigma$"
HALO = [Stroke(linewidth=1.8, foreground="white"), Normal()]
"""Makes text readable on dark shades."""
SIMULATION: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o"}
CONTOUR: dict[str, Any] = {
    "color": style.COLOURS["relu"],
    "linewidth": 2.2,
    "path_effects": [Stroke(linewidth=3.6, foreground="white"), Normal()],
}
"""Lines with a white edge, as their shade is that of the middle of the map."""


@Figure(
    layout="a.b",
    height=2.9,
    widths=(1.25, 0.04, 1.0),
    reads={"xor_map": {"metrics": "predicted_xor_share xor_share"}},
)
def legend(results: Results) -> style.Handles:
    """Simulation and theory."""
    return [
        style.handle("ReLU network", linewidth=CONTOUR["linewidth"], **SIMULATION),
        style.handle("theory: both kinds race", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Share of the output that units open on one example each carry at the end; units open on one
    class carry the rest. Lines are where the share is nine tenths, half and a tenth, as labelled,
    in the networks and in theory.
    """
    table, theory = (_table(results, name) for name in ("xor_share", "predicted_xor_share"))
    maps.draw_map(ax, table, "output carried by XoR units")
    for level in (0.1, 0.5, 0.9):
        maps.draw_boundary(ax, table, level, **CONTOUR)
        maps.draw_boundary(ax, theory, level, **style.THEORY)
        _label_boundary(ax, table, level)
    (x,) = maps.position(table, "x", [float(CROSSOVER)])
    ax.axvline(x, **maps.PAPER)
    ax.annotate(r"$\Delta^*$", (x, len(table["y"]) - 2), (4, 0), textcoords="offset points",
                va="center", path_effects=HALO)  # fmt: skip
    ax.text(-0.42, len(table["y"]) - 0.55, "theory is for\nsmaller starts", va="top", fontsize=6.5,
            path_effects=HALO)  # fmt: skip
    powers = np.log10(table["y"].values)
    ax.set_yticks(range(len(powers)), [f"$10^{{{power:.0f}}}$" for power in powers])
    ax.set(xlabel=margins.LABEL, ylabel=SCALE)
    ax.set_title("Small margins are learned as XoR")


def panel_b(results: Results, ax: Axes) -> None:
    """Margin at which both kinds carry half of the output, by linear interpolation between margins;
    bars are ranges over runs.
    """
    measured, theory = (
        _equal_margin(results, name) for name in ("xor_share", "predicted_xor_share")
    )
    scales = measured["init_scale"].values
    style.point_series(ax, scales, list(measured), **SIMULATION)
    ax.plot(scales, theory.mean("seed"), **style.THEORY)
    ax.annotate("theory is for\nsmall starts", (scales.max(), float(theory.mean("seed").max())),
                (-12, 0), textcoords="offset points", ha="right", va="top")  # fmt: skip
    ax.axhline(CROSSOVER, **style.PAPER)
    ax.annotate(r"Jarvis et al.: $\Delta^*$", (1, CROSSOVER), (0, 2), ax.get_yaxis_transform(),
                "offset points", ha="right")  # fmt: skip
    ax.set(xscale="log", xlabel=SCALE)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(r"margin $\Delta$ of equal shares")
    ax.set_title(r"Smaller starts turn nearer to $\Delta^*$")


def _label_boundary(ax: Axes, table: xr.DataArray, level: int | float) -> None:
    """The level on its boundary, in the third row from below, if it passes there."""
    row = min(2, len(table["y"]) - 1)
    share = table.values[row]
    if share.min() < level < share.max():
        column = float(np.interp(-level, -share, np.arange(len(share))))
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        ax.text(column, row, f"{level:g}", fontsize=6.5, ha="center", va="center", zorder=4,
                bbox=ground)  # fmt: skip


def _table(results: Results, name: str) -> xr.DataArray:
    """Mean of a share over seeds, by init scale (y) and margin (x)."""
    shares = {}
    for cell in results.cells("xor_map"):
        means = cell.get("metrics", name).mean("seed")
        for scale, share in zip(means["init_scale"].values, means.values, strict=True):
            shares[margins.margin(cell), float(scale)] = float(share)
    return maps.grid(shares)


def _equal_margin(results: Results, name: str) -> xr.DataArray:
    """Margin at which a share falls to a half, (init_scale, seed); NaN if it never does."""
    cells = margins.by_margin(results, "xor_map")
    by_margin = xr.concat([cell.get("metrics", name) for cell in cells], "time")
    at = xr.DataArray(list(map(margins.margin, cells)), dims="time")
    return crossing_time(-by_margin, xr.DataArray(-0.5), at)
