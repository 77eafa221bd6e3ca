"""The visual language of all figures, in one style sheet and the few words they are drawn with.

- Simulation is coloured: its mean over seeds a line, their range a band.
- Theory is dashed and black on top, and nothing else is (`THEORY`).
- What a paper states, where theory says otherwise, is dotted, and its label names the authors
  (`PAPER`): "Jarvis et al., closed form".
- Guides and baselines, such as a line of slope 1, y = x, a limit or another method, are thin and
  grey (`GUIDE`).
- Ordered things (modes, init scales, layers) get colours of falling lightness; unordered ones get
  colours that also differ in marker or line style, so that figures survive greyscale. Kinds of
  networks and of pairs have one colour each in all figures (`COLOURS`).
- Matrices are the lighter, the larger their entries; where signs mean something they are blue below
  zero and orange above, and grey about it.

Distributions and colours are seaborn's. Means and ranges over seeds are drawn as computed, with no
bootstrap; matrices as images, which take overlays in units of their entries; and dots by seed in
order, as seaborn's jitter is random and the same results are to give the same bytes.
"""

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.gridspec import SubplotSpec
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.style import context
from matplotlib.textpath import TextToPath

COLUMN, PAGE = 3.4, 7.0
"""Widths of a journal's column and page in inches."""
FLOW_TIME = r"gradient-flow time (units of $\tau$)"
HEAT = "cividis"
"""Colour map of matrices: lightness rises with the value, for colour-blind and grey readers."""
SIGNED = sns.blend_palette(["#06173a", "#1c5299", "#858585", "#f3a83a", "#fff3bf"], as_cmap=True)
"""The same of matrices whose signs mean something: grey is 0, blue below it and orange above."""

SHEET: dict[Any, Any] = {
    "axes.grid": False,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.titlesize": 7,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.04,
    "figure.constrained_layout.w_pad": 0.05,
    "figure.dpi": 200,
    # about what the layout comes to, for what is drawn to the size of its axes
    "figure.subplot.bottom": 0.03,
    "figure.subplot.hspace": 0.25,
    "figure.subplot.left": 0.02,
    "figure.subplot.right": 0.98,
    "figure.subplot.top": 0.92,
    "figure.subplot.wspace": 0.06,
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 1.2,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.9,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "neuralrace",
    "xtick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.labelsize": 6.5,
    "ytick.major.width": 0.6,
    "ytick.minor.width": 0.4,
}


def sheet() -> AbstractContextManager[None]:
    """Matplotlib as it comes, with `SHEET` over it: nobody's matplotlibrc changes a figure."""
    return context(SHEET, after_reset=True)


THEORY = {"color": "black", "linestyle": (0, (3.2, 2.0)), "linewidth": 0.9, "zorder": 3}
"""Closed forms, flows and bounds, with nothing fitted."""
PAPER = {"color": "0.35", "linestyle": (0, (1, 1.3)), "linewidth": 1.1, "zorder": 3}
"""What a paper states or prints, where theory says otherwise; the label names its authors."""
GUIDE = {"color": "0.6", "linewidth": 0.8, "zorder": 1}
"""What is no theory of the data beside it: slopes, y = x, limits, baselines."""
CUT = {"marker": "v", "markerfacecolor": "white"}
"""Beside the look of a point: it lies beyond the axis, on whose edge it is drawn."""
with sheet():
    BAND = Patch(facecolor="0.5", alpha=0.4, label="range over seeds")
"""The legend entry of bands."""
BESIDE = ("handlelength", "handletextpad", "columnspacing")
"""What an entry of a legend takes beside its text, in units of the size of letters."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))


class Canvas(Figure):
    """A figure that a notebook shows, whether or not pyplot was asked to."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        with sheet():
            self.savefig(picture, format="png")
        return picture.getvalue()


def ordered(count: int) -> list[tuple[float, float, float]]:
    """Colours of an ordered set, dark to light."""
    shades = sns.color_palette("viridis", as_cmap=True)(np.linspace(0.2, 0.82, count))
    return [(red, green, blue) for red, green, blue, _ in shades]


def distinct(index: int) -> tuple[float, float, float]:
    """A colour of an unordered set."""
    palette = sns.color_palette("colorblind")
    return palette[index % len(palette)]


COLOURS = {
    "relu": distinct(3),
    "gated": distinct(0),
    "trained": distinct(2),
    "untrained": distinct(1),
}
"""Of networks by kind, and of pairs of domains: the same in all figures."""


def marker(index: int) -> str:
    """A marker of a set."""
    return MARKERS[index % len(MARKERS)]


def over_seeds(ax: Axes, x: xr.DataArray, y: xr.DataArray, **line: Any) -> None:
    """The mean over seeds as a line, the range from least to largest as a band."""
    (dim,) = x.dims
    y = y.transpose("seed", dim)
    band = line.get("color")
    ax.fill_between(x, y.min("seed"), y.max("seed"), color=band, alpha=0.2, linewidth=0)
    ax.plot(x, y.mean("seed"), **line)


def points(ax: Axes, x: int | float, y: xr.DataArray, across: bool = False, **look: Any) -> None:
    """The mean over seeds as a marker, the range from least to largest as a bar.

    `across` swaps the axes: values run along x, in row `x`.
    """
    low, mean, high = (float(value) for value in (y.min("seed"), y.mean("seed"), y.max("seed")))

    def draw(values: list[float], **shape: Any) -> None:
        place = [x] * len(values)
        ax.plot(*((values, place) if across else (place, values)), **shape)

    draw([low, high], color=look["color"], linewidth=0.8)
    draw([mean], linestyle="", **look)


def heat(
    ax: Axes,
    matrix: np.ndarray,
    low: int | float,
    high: int | float,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    aspect: Literal["auto", "equal"] = "auto",
    cmap: str | Colormap | None = None,
) -> AxesImage:
    """A matrix as shades from `low` to `high`, with names on its sides where there are any.

    Where `low` is negative, and there is no `cmap`, shades are those of signs, 0 in the middle.
    """
    if cmap is None and low < 0:
        low, high, cmap = min(low, -high), max(high, -low), SIGNED
    image = ax.imshow(
        matrix, vmin=low, vmax=high, cmap=cmap or HEAT, aspect=aspect, interpolation="nearest"
    )
    upright = max(map(len, columns), default=0) > 2
    ax.set_xticks(range(len(columns)), columns, rotation=90 if upright else 0)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    return image


def loglog(ax: Axes, x: Sequence[float]) -> None:
    """Doubly logarithmic axes: ticks at the values of x, and y over whole decades."""
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(x, [f"{value:.3g}" for value in x])
    ax.set_xticks([], minor=True)
    low, high = ax.dataLim.minposy, ax.dataLim.y1
    ax.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))


def slope_one(ax: Axes, x: Sequence[float], anchor: float) -> None:
    """A line of slope 1 in doubly logarithmic axes, through `anchor` at the largest x."""
    ends = np.array([min(x), max(x)])
    ax.plot(ends, anchor * ends / ends[1], **GUIDE)


def steepness(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of the line of least squares in doubly logarithmic axes; NaN where there is none."""
    if len(set(x)) < 2 or not np.all(np.asarray(y) > 0):
        return np.nan
    return float(np.polynomial.polynomial.polyfit(np.log(x), np.log(y), 1)[1])


def settled(curve: xr.DataArray, time: xr.DataArray) -> float:
    """When all curves are within 1% of their largest change from their ends: no need to show more.

    The end of the time axis for curves that do not move.

    Args:
        curve: has dimension `time`.
        time: clock along `time`.
    """
    off = abs(curve - curve.isel(time=-1))
    moving = (off > 0.01 * off.max("time")).any([dim for dim in curve.dims if dim != "time"])
    until = np.flatnonzero(moving)
    return float(time[min(until[-1] + 1, len(time) - 1)] if len(until) else time[-1])


def epochs(ax: Axes, time: xr.DataArray) -> None:
    """A second axis above a panel, with the epochs (or steps) that a flow time is reached in."""
    step = float(time[-1] / time["time"][-1])
    above = ax.secondary_xaxis(
        "top", functions=(lambda t: np.divide(t, step), lambda n: np.multiply(n, step))
    )
    above.set_xlabel(time["time"].attrs["units"])


def mode_colours(target: xr.DataArray) -> dict[int, tuple[float, float, float]]:
    """A colour for each mode that is to be learned, by number."""
    learned = target["mode"].values[target.values != 0]
    return dict(zip(learned.tolist(), ordered(len(learned)), strict=True))


def mode_entries(s: xr.DataArray) -> list[Artist]:
    """Legend entries of modes by their singular value."""
    return [
        entry(f"$s$ = {float(s.sel(mode=mode)):.3g}", color=colour)
        for mode, colour in mode_colours(s).items()
    ]


def entry(label: str, **look: Any) -> Artist:
    """A legend entry for a line or marker that is described rather than drawn."""
    return Line2D([], [], label=label, **look)


def colour_bar(ax: Axes, values: Sequence[float], label: str) -> None:
    """Beside axes, the colours that `ordered` gives the values of a sweep, in steps."""
    shades = ListedColormap(ordered(len(values)))
    steps = BoundaryNorm(np.arange(len(values) + 1) - 0.5, len(values))
    figure = ax.figure.figure
    bar = figure.colorbar(ScalarMappable(steps, shades), ax=ax, pad=0.02, aspect=25, label=label)
    bar.set_ticks(range(len(values)), labels=[f"{value:g}" for value in values])
    bar.ax.tick_params(length=0, which="both")


def width(text: str, size: int | float) -> float:
    """Points that a line of text takes."""
    font = FontProperties(family=SHEET["font.family"], size=size)
    return float(TextToPath().get_text_width_height_descent(text, font, "$" in text)[0])


def typical(values: xr.DataArray) -> int:
    """The seed whose value is the median, of those that are numbers; where none is, one of all.

    Values that differ by rounding alone are the same, so that every machine shows the same run.
    """
    numbers = values.dropna("seed")
    known = numbers if numbers.size else values
    rounded = [float(f"{value:.9g}") for value in known.values]
    ranked = known["seed"].values[np.argsort(rounded, kind="stable")]
    return int(ranked[ranked.size // 2])


def legend(figure: Figure, entries: Sequence[Artist], columns: int | None = None) -> None:
    """A legend above all panels, where it covers no data, in as many columns as it has room for."""
    if entries:
        size = SHEET["legend.fontsize"]
        widest = max(width(str(each.get_label()), size) for each in entries)
        beside = size * sum(SHEET[f"legend.{key}"] for key in BESIDE)
        room = int(72 * figure.get_figwidth() / (widest + beside))
        columns = columns or max(1, min(room, len(entries)))
        figure.legend(handles=entries, loc="outside upper center", ncols=columns)


def arrange(figure: Figure) -> None:
    """Lets all axes stand where they will when they are drawn, which takes far longer."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for ax in figure.axes:
        ax.apply_aspect()


def place(ax: Axes) -> SubplotSpec:
    """Where axes stand in a grid.

    Raises:
        ValueError: they stand in none.
    """
    found = ax.get_subplotspec()
    if found is None:
        raise ValueError("these axes stand in no grid; make them by subplots or subplot_mosaic")
    return found


def split(ax: Axes, rows: int, columns: int = 1, **options: Any) -> Any:
    """Axes side by side in the place of those of a panel, which keep nothing but the title.

    Args:
        ax: of a panel; they stand in a grid, as those that `subplots` makes do.
        rows: of axes.
        columns: of axes.
        options: ratios, spaces and shared axes, as `GridSpecBase.subplots` and
            `SubplotSpec.subgridspec` take them.

    Returns:
        axes, (rows, columns).

    Raises:
        ValueError: they stand in no grid.
    """
    shared = {key: options.pop(key) for key in ("sharex", "sharey") if key in options}
    head, body = place(ax).subgridspec(2, 1, height_ratios=(0.01, 1), hspace=0)
    ax.set_subplotspec(head)
    ax.set_axis_off()
    return body.subgridspec(rows, columns, **options).subplots(squeeze=False, **shared)
