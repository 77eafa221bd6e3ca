"""Phase diagrams: maps of a measure over two settings, with boundaries on top.

Cells are equally wide and high, whatever the steps of the settings are. The lower left cell has the
smallest of both settings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patheffects import Normal, Stroke

from neuralrace.figures import style

HALO = {"path_effects": [Stroke(linewidth=2.6, foreground="white"), Normal()]}
"""Makes lines visible on dark shades."""
BOUNDARY: dict[str, Any] = style.THEORY | HALO | {"linewidth": 1.2}
"""Boundaries that theory predicts."""
PAPER: dict[str, Any] = style.PAPER | HALO | {"color": "black", "linewidth": 1.3}
"""Boundaries that a paper names."""


def grid(values: Mapping[tuple[int | float, int | float], int | float]) -> xr.DataArray:
    """Values by two settings, (y, x), both ascending; NaN where there is no value.

    Args:
        values: a value for each pair of settings x, y.
    """
    x, y = (sorted(set(settings)) for settings in zip(*values, strict=True))
    table = xr.DataArray(np.full((len(y), len(x)), np.nan), {"y": y, "x": x}, ("y", "x"))
    for (across, up), value in values.items():
        table.loc[up, across] = value
    return table


def draw_map(
    ax: Axes, table: xr.DataArray, label: str, high: int | float = 1, **bar: Any
) -> AxesImage:
    """A map of values from 0 to `high`, with the settings as ticks.

    Args:
        ax: axes to draw on.
        table: values as `grid` gives them.
        label: what is drawn, at the colour bar.
        high: the value with the lightest colour.
        bar: other properties of the colour bar.
    """
    rows, columns = ([f"{setting:g}" for setting in table[dim].values] for dim in ("y", "x"))
    image = style.heat(ax, table.values, 0, high, rows, columns)
    ax.tick_params(axis="x", rotation=0)
    ax.invert_yaxis()
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.02, aspect=25, **bar)
    return image


def position(
    table: xr.DataArray, dim: str, values: Sequence[int | float], log: bool = False
) -> Float[np.ndarray, " value"]:
    """Where values of a setting stand in a map, by lines between the middles of cells.

    Args:
        table: values as `grid` gives them.
        dim: `x` or `y`.
        values: values of the setting.
        log: whether the setting is spaced by factors.
    """
    scale = np.log if log else np.asarray
    settings = table[dim].values
    return np.interp(scale(values), scale(settings), np.arange(len(settings)))


def draw_boundary(ax: Axes, table: xr.DataArray, level: int | float, **line: Any) -> None:
    """The line along which values reach a level, if any do.

    Args:
        ax: axes of a map with the same settings.
        table: values as `grid` gives them.
        level: the level.
        line: properties of the line.
    """
    if float(table.min()) < level < float(table.max()):
        contours = ax.contour(
            table.values,
            levels=[level],
            colors=[line["color"]],
            linewidths=line["linewidth"],
            linestyles=[line.get("linestyle", "-")],
            zorder=line.get("zorder", 2),
        )
        contours.set_path_effects(line.get("path_effects", []))
