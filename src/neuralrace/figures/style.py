"""Style of all figures: rcParams, colours, line styles and common drawing functions.

- Simulations are coloured, wide and half transparent: the mean over seeds is a line and their range
  a band (`SIMULATION`).
- Theory is thin, dashed and black, on top of simulations; nothing else is (`THEORY`).
- A statement of a paper that theory contradicts is dotted. Its label names the authors (`PAPER`):
  "Jarvis et al., closed form".
- Guides and baselines are thin and grey (`GUIDE`): a line of slope 1, y = x, a limit or another
  method.
- Ordered things (modes, init scales, layers) have colours of decreasing darkness (`sequential`).
  Where a figure has two kinds of them, one is grey (`greys`).
  Unordered things have colours that also differ in marker or line style (`categorical`), so that
  figures can be read in greyscale. Kinds of networks and of pairs have one colour each in all
  figures (`COLOURS`). Beside pairs, which are green and orange, ordered things are purple.
- The larger an entry of a matrix, the lighter it is drawn. Where signs matter, negative entries are
  blue, positive ones orange, and entries near zero white. Each matrix has a colour bar.
- The title of a panel is its finding, in at most eight words (`TITLE_WORDS`); numbers stand at the
  data.
- A label has the hue of its line, in a shade that can be read on white (`readable`).

Distributions and palettes come from seaborn. Three things are drawn without it. Means and ranges
over seeds need no bootstrap. Matrices are images, so that overlays can use indices as coordinates.
Dots of single seeds are spread in order, as random jitter would change the bytes of a figure.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import seaborn as sns
import xarray as xr
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.gridspec import SubplotSpec
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.style import context
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.typing import ColorType

from neuralrace.errors import UserError
from neuralrace.figures.fonts import cached_fonts

COLUMN, PAGE = 3.4, 7.0
"""Widths of a column and of a page of a journal, in inches."""
FLOW_TIME = r"gradient-flow time (units of $\tau$)"
HEAT = "cividis"
"""Colour map of matrices. Lightness rises with the value, also for colour-blind readers."""
SIGNED = sns.blend_palette(["#04142f", "#3f74bd", "#ffffff", "#f7b267", "#c96a00"], as_cmap=True)
"""Colour map of matrices whose signs matter: blue below 0, white at 0, orange above."""
GREEN = sns.color_palette("viridis", as_cmap=True)
PURPLE = sns.blend_palette(["#12062b", "#8f2f9b", "#f7b4e0"], as_cmap=True)
"""Colour maps of ordered things, from dark to light: the usual one, and the one beside pairs."""
TITLE_WORDS = 8
"""Most words of the title of a panel."""
CONTRAST = 4.5
"""Least contrast of text with its ground (Web Content Accessibility Guidelines, level AA)."""

RC_PARAMS: dict[Any, Any] = {
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
    # Close to the final layout: networks are drawn to the size of their axes before it is known.
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
    "svg.hashsalt": "neuralrace",
    "xtick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.labelsize": 6.5,
    "ytick.major.width": 0.6,
    "ytick.minor.width": 0.4,
}


@contextmanager
def rc_context() -> Iterator[None]:
    """Matplotlib's defaults with `RC_PARAMS` on top; a user's matplotlibrc has no effect."""
    with context(RC_PARAMS, after_reset=True), cached_fonts():
        yield


SIMULATION: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.5, "solid_capstyle": "butt"}
"""Lines of simulated values, so that theory on top of them is seen as well."""
THEORY = {"color": "black", "linestyle": (0, (3.2, 2.0)), "linewidth": 0.8, "zorder": 3}
"""Closed forms, flows and bounds, with nothing fitted."""
PAPER = {"color": "0.35", "linestyle": (0, (1, 1.3)), "linewidth": 1.1, "zorder": 3}
"""Statements of a paper that theory contradicts; the label names the authors."""
GUIDE = {"color": "0.6", "linewidth": 0.8, "zorder": 1}
"""Guides and baselines that are not theory of the data: slopes, y = x, limits."""
OFF_AXIS = {"marker": "v", "markerfacecolor": "white"}
"""Marker of a value beyond the axis, drawn on the edge; other properties are the series' own."""
with rc_context():
    BAND = Patch(facecolor="0.5", alpha=0.4, label="range over seeds")
"""Legend handle of bands."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

Colour = tuple[float, float, float]
"""Red, green and blue from 0 to 1."""
Handles = Sequence[Artist]
"""Legend handles of a figure."""


class Canvas(Figure):
    """A figure that a notebook displays without pyplot, and that is saved with TrueType fonts."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """As matplotlib's, with TrueType fonts in PDF and PostScript files.

        Matplotlib's default there is Type 3, which journals refuse. It reads both parameters when a
        figure is saved.
        """
        with mpl.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        png = io.BytesIO()
        with rc_context():
            self.savefig(png, format="png")
        return png.getvalue()


def sequential(count: int, cmap: Colormap = GREEN) -> list[Colour]:
    """Colours of ordered things, from dark to light."""
    return [(red, green, blue) for red, green, blue, _ in cmap(np.linspace(0.2, 0.82, count))]


def greys(count: int) -> list[Colour]:
    """Greys of ordered things, from dark to light, where colours already stand for others."""
    return [(grey, grey, grey) for grey in np.linspace(0.2, 0.65, count).tolist()]


def categorical(index: int) -> Colour:
    """The colour of one of several unordered things."""
    palette = sns.color_palette("colorblind")
    return palette[index % len(palette)]


COLOURS = {
    "relu": categorical(3),
    "gated": categorical(0),
    "trained": categorical(2),
    "untrained": categorical(1),
}
"""Colours of kinds of networks and of pairs of domains, the same in all figures."""


def contrast(colour: ColorType, ground: ColorType = "white") -> float:
    """Contrast of two colours by their luminances, from 1 to 21 (WCAG 2)."""
    rgb = np.array([to_rgb(colour), to_rgb(ground)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    dark, light = np.sort(linear @ (0.2126, 0.7152, 0.0722) + 0.05)
    return float(light / dark)


def readable(colour: ColorType) -> Colour:
    """The lightest shade of a colour in which text on white can be read."""
    shades = (tuple(share * np.array(to_rgb(colour))) for share in np.linspace(1, 0, 101))
    return next(shade for shade in shades if contrast(shade) >= CONTRAST)


def darken_text(figure: Figure) -> None:
    """Draws all text of a figure in a `readable` shade, except white text on dark ground."""
    for text in figure.findobj(Text):
        if to_rgb(colour := text.get_color()) != to_rgb("white"):
            text.set_color(readable(colour))


def marker(index: int) -> str:
    """The marker of one of several things."""
    return MARKERS[index % len(MARKERS)]


def sequential_styles(count: int, cmap: Colormap = GREEN) -> list[dict[str, Any]]:
    """Colour and marker of each of several ordered things."""
    return [
        {"color": colour, "marker": marker(index)}
        for index, colour in enumerate(sequential(count, cmap))
    ]


def styled(items: Sequence[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Each item with its colour and marker, in a sequential scale."""
    return list(zip(items, sequential_styles(len(items)), strict=True))


def over_seeds(ax: Axes, x: xr.DataArray, y: xr.DataArray, **props: Any) -> None:
    """The mean over seeds as a line, and the range over seeds as a band."""
    (dim,) = x.dims
    y = y.transpose("seed", dim)
    colour = props.get("color")
    ax.fill_between(x, y.min("seed"), y.max("seed"), color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, y.mean("seed"), **SIMULATION | props)


def over_scales(ax: Axes, x: xr.DataArray, values: xr.DataArray, theory: xr.DataArray) -> None:
    """`over_seeds` for each init scale, labelled, with the mean of theory over seeds on top."""
    scales = values["init_scale"].values
    for scale, colour in zip(scales, sequential(len(scales)), strict=True):
        at = {"init_scale": scale}
        over_seeds(ax, x, values.sel(at), color=colour, label=f"{scale:g}")
        ax.plot(x, theory.sel(at).mean("seed"), **THEORY)


def points(ax: Axes, x: int | float, y: xr.DataArray, across: bool = False, **props: Any) -> float:
    """The mean over seeds as a marker, and the range over seeds as a bar; returns the mean.

    `across` swaps the axes: values run along x, in row `x`.
    """
    low, mean, high = (float(value) for value in (y.min("seed"), y.mean("seed"), y.max("seed")))

    def draw(values: list[float], **line: Any) -> None:
        position = [x] * len(values)
        ax.plot(*((values, position) if across else (position, values)), **line)

    draw([low, high], color=props["color"], linewidth=0.8)
    draw([mean], linestyle="", **props)
    return mean


def point_series(
    ax: Axes,
    x: Iterable[int | float],
    y: Iterable[xr.DataArray],
    across: bool = False,
    label: str | None = None,
    **props: Any,
) -> list[float]:
    """`points` at several positions, of which the first one has the label; returns the means."""
    means = []
    for position, values in zip(x, y, strict=True):
        means.append(points(ax, position, values, across, label=label, **props))
        label = None
    return means


def single_runs(
    ax: Axes, x: int | float, values: xr.DataArray, spread: float, **dots: Any
) -> float:
    """A dot for each value, beside those that it would hide (`swarm`), and a bar at the median.

    Args:
        ax: axes to draw on, with their final scale and limits along y.
        x: position of the column.
        values: of any dimensions.
        spread: half the width of the column.
        dots: properties of the dots.

    Returns:
        The median of the values that are finite; NaN if there are none.
    """
    ascending = np.sort(values.values[np.isfinite(values.values)], axis=None)
    if not len(ascending):
        return np.nan
    swarm(ax, x, ascending, spread, **dots)
    median = float(np.median(ascending))
    half = spread + 0.05
    ax.plot([x - half, x + half], [median, median], color="0.2", linewidth=1.2)
    return median


def swarm(
    ax: Axes,
    x: int | float,
    ascending: Float[np.ndarray, " value"],
    spread: float,
    across: bool = False,
    **dots: Any,
) -> None:
    """Dots of a column, beside each other where one would hide another (a beeswarm).

    Dots nearer to each other than their size stand side by side around the middle of the column, in
    an order that depends on their values alone. The dots that need most places fill its width.

    Args:
        ax: axes to draw on, with their final scale and limits along the values.
        x: position of the column.
        ascending: sorted values, at least one.
        spread: half the width of the column.
        across: values run along x, in row `x`.
        dots: properties of the dots.
    """
    along, aside = (0, 1) if across else (1, 0)
    at = np.full((len(ascending), 2), float(x))
    at[:, along] = ascending
    (line,) = ax.plot(*at.T, linestyle="", **dots)
    size = line.get_markersize()
    ax.autoscale_view()  # limits that are not set take in the dots
    values = ax.transData.transform(at)[:, along] * 72 / ax.figure.dpi  # in points, as `size`
    places = np.zeros(len(at))
    nearest_first = sorted(range(-len(at), len(at)), key=abs)
    for dot, value in enumerate(values):
        taken = places[:dot][abs(value - values[:dot]) < size]
        places[dot] = next(place for place in nearest_first if place not in taken)
    for group in np.split(np.arange(len(at)), np.flatnonzero(abs(np.diff(values)) >= size) + 1):
        places[group] -= (places[group].min() + places[group].max()) / 2
    at[:, aside] += spread * places / max(abs(places).max(), 1)
    line.set_data(*at.T)


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
    """A matrix as an image, from `low` to `high`, with optional names of rows and columns.

    Without a `cmap`, a negative `low` selects the colour map of signs, centred at 0.
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


def write_entry(
    ax: Axes,
    image: AxesImage,
    at: tuple[int | float, int | float],
    value: float,
    text: str,
    size: int | float = 6,
) -> None:
    """Small text on an entry of a matrix, in black or white, whichever has more contrast.

    Args:
        ax: the axes of the matrix.
        image: the matrix.
        at: row and column of the entry, or of the middle of several.
        value: the entry, which sets its colour.
        text: the text.
        size: of the font in points.
    """
    red, green, blue, _ = image.to_rgba(np.array([value]))[0].tolist()
    ink = max(("black", "white"), key=lambda ink: contrast(ink, (red, green, blue)))
    row, column = at
    ax.text(column, row, text, color=ink, fontsize=size, ha="center", va="center")


def note(ax: Axes, text: str, corner: str = "upper right", **props: Any) -> None:
    """Small text in a corner of axes, such as what their bars show.

    Args:
        ax: axes to write on.
        text: one line or several.
        corner: "upper" or "lower", and "left" or "right".
        props: further properties of the text.
    """
    height, side = corner.split()
    x, y = {"left": 0.03, "right": 0.98}[side], {"lower": 0.03, "upper": 0.97}[height]
    align = {"ha": side, "va": {"lower": "bottom", "upper": "top"}[height]}
    props = {"fontsize": RC_PARAMS["legend.fontsize"], **align, **props}
    ax.text(x, y, text, transform=ax.transAxes, **props)


def loglog(ax: Axes, x: Sequence[float]) -> None:
    """Logarithmic scales on both axes, with ticks at `x`, and y over whole decades."""
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(x, [f"{value:.3g}" for value in x])
    ax.set_xticks([], minor=True)
    low, high = ax.dataLim.minposy, ax.dataLim.y1
    ax.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))


def slope_one(ax: Axes, x: Sequence[float], anchor: float) -> None:
    """A guide of slope 1 on logarithmic axes, through `anchor` at the largest x."""
    ends = np.array([min(x), max(x)])
    ax.plot(ends, anchor * ends / ends[1], **GUIDE)


def log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least-squares slope on logarithmic axes; NaN for a single x or a y that is not positive."""
    if len(set(x)) < 2 or not np.all(np.asarray(y) > 0):
        return np.nan
    return float(np.polynomial.polynomial.polyfit(np.log(x), np.log(y), 1)[1])


def settling_time(curve: xr.DataArray, time: xr.DataArray) -> float:
    """The time from which all curves stay within 1% of their largest change from their ends.

    Curves that do not change give the end of the time axis.

    Args:
        curve: has the dimension `time`.
        time: clock along `time`.
    """
    off = abs(curve - curve.isel(time=-1))
    moving = (off > 0.01 * off.max("time")).any([dim for dim in curve.dims if dim != "time"])
    until = np.flatnonzero(moving)
    return float(time[min(until[-1] + 1, len(time) - 1)] if len(until) else time[-1])


def mode_colours(target: xr.DataArray) -> dict[int, Colour]:
    """A colour for each mode whose target is not zero, by mode number."""
    learned = target["mode"].values[target.values != 0]
    return dict(zip(learned.tolist(), sequential(len(learned)), strict=True))


def mode_handles(s: xr.DataArray) -> list[Artist]:
    """Legend handles of modes, labelled by singular value."""
    return [
        handle(f"$s$ = {float(s.sel(mode=mode)):.3g}".replace("-", "\N{MINUS SIGN}"), color=colour)
        for mode, colour in mode_colours(s).items()
    ]


def handle(label: str, **props: Any) -> Artist:
    """A legend handle: a line or marker that is not drawn in any axes."""
    return Line2D([], [], label=label, **props)


def note_at(
    ax: Axes,
    text: str,
    at: tuple[int | float, int | float],
    shift: tuple[int | float, int | float] = (4, 0),
    **props: Any,
) -> None:
    """Small text beside a point, `shift` points from it, such as the name of a line."""
    look: dict[str, Any] = {"fontsize": RC_PARAMS["legend.fontsize"], "color": "0.35"}
    look |= {"textcoords": "offset points", "annotation_clip": False, "linespacing": 1.1}
    ax.annotate(text, at, shift, **look | props)


def name_level(ax: Axes, height: int | float, text: str) -> None:
    """The name of a horizontal line, above its right end."""
    note_at(ax, text, (1, height), (-1, 2), xycoords=ax.get_yaxis_transform(), ha="right")


def scale_handles(styles: Mapping[float, Mapping[str, Any]]) -> list[Artist]:
    """Legend handles of init scales."""
    return [handle(f"init scale {scale:g}", **props) for scale, props in styles.items()]


def text_width(text: str, size: int | float) -> float:
    """Width of a line of text at a font size, both in points."""
    font = FontProperties(family=RC_PARAMS["font.family"], size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, "$" in text)[0])


def median_seed(values: xr.DataArray) -> int:
    """The seed of the median value; NaN are ignored unless all values are NaN."""
    numbers = values.dropna("seed")
    known = numbers if numbers.size else values
    # Values that differ by rounding count as equal, so that every machine picks the same run.
    rounded = [float(f"{value:.9g}") for value in known.values]
    ranked = known["seed"].values[np.argsort(rounded, kind="stable")]
    return int(ranked[ranked.size // 2])


def legend(figure: Figure, handles: Handles, columns: int | None = None) -> None:
    """A legend above all panels, in as many columns as fit."""
    if handles:
        size = RC_PARAMS["legend.fontsize"]
        widest = max(text_width(str(artist.get_label()), size) for artist in handles)
        spaces = ("handlelength", "handletextpad", "columnspacing")  # in units of the font size
        widest += size * sum(RC_PARAMS[f"legend.{name}"] for name in spaces)
        fitting = int(72 * figure.get_figwidth() / widest)
        columns = columns or max(1, min(fitting, len(handles)))
        figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def apply_layout(figure: Figure) -> None:
    """Moves all axes to their final positions without drawing, which would take far longer."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for ax in figure.axes:
        ax.apply_aspect()


def subplot_spec(ax: Axes) -> SubplotSpec:
    """The grid cell of axes.

    Raises:
        UserError: the axes belong to no grid.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        raise UserError(
            "these axes stand in no grid",
            key="ax",
            remedy="make them by subplots or subplot_mosaic",
        )
    return spec


def split(ax: Axes, rows: int, columns: int = 1, **options: Any) -> Any:
    """Divides the axes of a panel into several; the panel's axes keep only the title.

    Args:
        ax: axes of a panel, in a grid, such as those that `subplots` makes.
        rows: number of rows.
        columns: number of columns.
        options: ratios, spaces and shared axes, as in `GridSpecBase.subplots` and
            `SubplotSpec.subgridspec`.

    Returns:
        The new axes, (rows, columns).

    Raises:
        UserError: the axes belong to no grid.
    """
    shared = {key: options.pop(key) for key in ("sharex", "sharey") if key in options}
    head, body = subplot_spec(ax).subgridspec(2, 1, height_ratios=(0.01, 1), hspace=0)
    ax.set_subplotspec(head)
    ax.set_axis_off()
    return body.subgridspec(rows, columns, **options).subplots(squeeze=False, **shared)


def named_rows(ax: Axes, names: Iterable[str]) -> Axes:
    """Axes with a named row for each value of y from 0, first on top, in place of a panel's.

    They are split off the panel's axes, so that the title starts above the names of the rows.
    """
    ax, names = split(ax, 1)[0, 0], list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    return ax


def named_columns(ax: Axes, names: Iterable[str]) -> None:
    """A named column for each value of x from 0."""
    names = list(names)
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.5, len(names) - 0.5)
