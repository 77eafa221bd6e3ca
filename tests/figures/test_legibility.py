"""Each legibility fault is found in a small figure with this fault, and in no other."""

import matplotlib as mpl
import numpy as np
import pytest
from legibility import faults, title_faults
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from neuralrace.figures.style import (
    CONTRAST,
    RC_PARAMS,
    contrast,
    darken_text,
    heat,
    readable,
    write_entry,
)


@pytest.fixture(autouse=True)
def rc_params():
    with mpl.rc_context(RC_PARAMS):
        yield


def plot(**shape):
    """A figure with one panel and no fault."""
    figure = Figure(figsize=(3.4, 2.4))
    ax = figure.subplots(**shape)
    ax.plot([0, 1], [0, 1], label="line")
    ax.set(xlabel="time", ylabel="loss", title="panel")
    return figure, ax


def drawn_faults(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return faults(figure)


def test_figure_without_faults():
    figure = Figure(figsize=(3.4, 4))
    grid = figure.subplots(3, 2, sharex="col", sharey="row")
    for ax in grid.flat:
        image = ax.imshow(np.eye(3), extent=(0, 1, 0, 1), aspect="auto")
    grid[0, 0].set_yticks([0, 0.5, 1], ["first", "second", "third"], rotation=60)
    grid[2, 1].set_xticks(np.linspace(0, 1, 6), [f"number {n}" for n in range(6)], rotation=90)
    figure.colorbar(image, ax=grid, label="value")
    grid[0, 0].secondary_xaxis("top").set_xlabel("steps")
    figure.legend(handles=[*grid[0, 0].plot([0, 1], label="$x^2$")], loc="outside upper center")
    drawing = grid[1, 0].inset_axes((0.6, 0.6, 0.3, 0.3))
    drawing.set_axis_off()
    figure.add_subplot(visible=False)
    assert drawn_faults(figure) == []


@pytest.mark.parametrize(("size", "known"), [(5.9, ["too small: panel"]), (6.0, [])])
def test_small_text(size: float, known: list[str]):
    figure, ax = plot()
    ax.set_title("panel", fontsize=size)
    assert drawn_faults(figure) == known


@pytest.mark.parametrize(
    ("colour", "ground", "known"),
    [
        ("0.5", None, ["pale: label"]),
        ("0.46", None, []),
        ("yellowgreen", None, ["pale: label"]),
        (readable("yellowgreen"), None, []),
        ("white", None, ["pale: label"]),
        ("white", "0.3", []),
        ("white", "0.7", ["pale: label"]),
    ],
)
def test_pale_text(colour, ground: str | None, known: list[str]):
    figure, ax = plot()
    if ground:
        ax.axvspan(0.1, 0.6, color=ground)
    ax.text(0.2, 0.7, "label", color=colour)
    assert drawn_faults(figure) == known


def test_darkened_text_keeps_its_hue_and_white_text_stays():
    figure, ax = plot()
    ax.axvspan(0.1, 0.6, 0, 0.2, color="0.2")
    texts = [ax.text(0.2, 0.7, "label", color="orange"), ax.text(0.2, 0.1, "in", color="white")]
    darken_text(figure)
    assert drawn_faults(figure) == []
    hue, *_ = rgb_to_hsv(to_rgb("orange"))
    assert rgb_to_hsv(texts[0].get_color())[0] == pytest.approx(hue)
    assert contrast(texts[0].get_color()) == pytest.approx(CONTRAST, abs=0.15)
    assert texts[1].get_color() == "white"
    assert ax.title.get_color() == (0, 0, 0)


def test_text_on_entries_of_a_matrix_contrasts_with_them():
    figure, ax = plot()
    values = np.linspace(0, 1, 12).reshape(3, 4)
    image = heat(ax, values, 0, 1)
    for row, column in np.ndindex(values.shape):
        write_entry(ax, image, (row, column), float(values[row, column]), "12")
    assert drawn_faults(figure) == []
    assert [text.get_color() for text in ax.texts[:: len(ax.texts) - 1]] == ["white", "black"]


@pytest.mark.parametrize(("colour", "expected"), [("black", 21), ("white", 1), ("#767676", 4.54)])
def test_contrast(colour: str, expected: float):
    assert contrast(colour) == pytest.approx(expected, abs=0.005)
    assert contrast("white", colour) == contrast(colour)


@pytest.mark.parametrize("words", ["nan%", "up to inf", "$nan$ times"])
def test_text_with_nan_or_infinity(words: str):
    figure, ax = plot()
    ax.set_title(words)
    assert drawn_faults(figure) == [f"no number: {words}"]


def test_text_off_the_page():
    figure, ax = plot()
    ax.annotate("far", (0.5, 0.5), (1.3, 0.5), annotation_clip=False, in_layout=False)
    figure.text(0.5, 0.99, "high", rotation=30)
    assert drawn_faults(figure) == ["off the page: far", "off the page: high"]


def test_text_cut_off():
    figure, ax = plot()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for x in (0.1, 0.99, 1.5):  # inside, at the edge, outside
        ax.text(x, 0.2, f"at {x}", clip_on=True)
    assert drawn_faults(figure) == ["cut off: at 0.99"]


@pytest.mark.parametrize("effects", [[], [withStroke(linewidth=1, foreground="white")]])
def test_overlapping_text(effects: list):
    figure, ax = plot()
    ax.text(0.2, 0.5, "one label", path_effects=effects)
    ax.annotate("other label", (0.3, 0.52))
    assert drawn_faults(figure) == ["in each other: one label | other label"]


def test_overlapping_ticks():
    figure, ax = plot()
    ax.set_xticks([0.5, 0.52, 7], ["ticks", "named", "out of sight"])
    ax.set_xlim(0, 1)
    assert drawn_faults(figure) == ["in each other: ticks | named"]
    ax.tick_params(labelbottom=False)
    assert drawn_faults(figure) == []


def test_each_line_of_a_text_is_checked():
    figure, ax = plot()
    ax.text(0.2, 0.5, "$g_y$ above\nHigh below")
    ax.text(0.2, 0.5, "another")
    assert drawn_faults(figure) == ["in each other: High below | another"]


def test_rotated_text_may_have_overlapping_bounding_boxes():
    figure, ax = plot()
    ax.text(0.2, 0.2, "along the first of two lines", rotation=45)
    other = ax.text(0.3, 0.2, "along the second", rotation=45)
    assert drawn_faults(figure) == []
    other.set_rotation(0)
    assert drawn_faults(figure) == []
    other.set_rotation(90)
    assert len(drawn_faults(figure)) == 1


def test_axes_without_data():
    figure, _ = plot()
    ax = figure.add_axes((0.5, 0.5, 0.2, 0.2))
    ax.set_axis_off()
    assert drawn_faults(figure) == []
    ax.set_axis_on()
    ax.set(xticks=[0.5], yticks=[], title="none")
    assert drawn_faults(figure) == ["no data: none"]


def test_axes_off_the_page():
    figure, ax = plot()
    figure.set_layout_engine("none")
    ax.set_position((0.2, 0.2, 0.9, 0.5))
    ax.set(xlim=(0, 1), xticks=[0, 0.5], title="wide")
    assert drawn_faults(figure) == ["off the page: wide"]


def test_axes_without_names():
    figure = Figure()
    one, other = figure.subplots(1, 2, sharey=True)
    for ax in (one, other):
        ax.imshow(np.eye(2), aspect="auto")
        ax.set(xticks=[])
    assert drawn_faults(figure) == []
    other.set(yticks=[])
    assert len(drawn_faults(figure)) == 2
    one.set_ylabel("shared")
    assert drawn_faults(figure) == []


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("Modes are learned one by one", False),
        ("$s = 3$ and $s = 2$ are learned by 4 units", False),
        ("Modes of all sizes are learned one by one here", True),
        ("Errors are 3 and 4", True),
        ("Modes are\nlearned", True),
    ],
)
def test_long_titles(title: str, known: bool):
    figure, ax = plot()
    ax.set_title(f"$\\bf{{a}}$ {title}", loc="left")
    assert bool(title_faults(figure)) is known
