"""Pictures are alike where none sees a difference, and only there."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from neuralrace.figures.image_comparison import WIDTH, picture_difference
from neuralrace.figures.style import PAGE, RC_PARAMS, THEORY, categorical


def drawn(
    path: Path,
    title: str = "Modes are learned by t = 3.8",
    strength: float = 1.0,
    marker: float = 0.5,
    colour: int = 0,
    dots: float = 0.0,
    smooth: bool = True,
    said: str = "Panel a: modes.",
    **sheet,
) -> Path:
    """A picture of lines, a marker, theory and a matrix, moved by a number of dots."""
    with mpl.rc_context({**RC_PARAMS, "figure.constrained_layout.use": False, **sheet}):
        figure = Figure(figsize=(PAGE, 1.6))
        left, right = figure.subplots(1, 2)
        time = np.linspace(0, 1, 200)
        left.plot(time, strength * np.tanh(3 * time), color=categorical(colour), antialiased=smooth)
        left.plot(time, 0.7 * np.tanh(9 * time), color=categorical(3), antialiased=smooth)
        left.plot(time, 0.8 * time, **THEORY)  # dashes that are not smoothed have other lengths
        left.plot([marker], [0.2], "s", color="black")
        right.imshow(np.arange(12).reshape(3, 4), aspect="auto")
        left.set(title=title, xlabel="time", ylabel="mode strength")
        figure.subplots_adjust(top=0.85, bottom=0.22)
        for ax in (left, right):
            x, y, width, height = ax.get_position().bounds
            ax.set_position((x + dots / WIDTH, y + dots / 480, width, height))
        figure.savefig(path, metadata={"Description": said})
    return path


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Path:
    return drawn(tmp_path_factory.mktemp("known") / "figure.png")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"smooth": False},
        {"text.antialiased": False},
        {"text.hinting": "none"},
        {"dots": 0.4},
        {"dots": 1.7},
    ],
    ids=str,
)
def test_the_same_drawn_otherwise_is_alike(known: Path, how: dict, tmp_path: Path):
    assert picture_difference(known, drawn(tmp_path / "figure.png", **how)) is None


@pytest.mark.parametrize(
    "what",
    [
        {"strength": 1.05},
        {"marker": 0.53},
        {"colour": 2},
        {"colour": 4},
        {"title": "Modes are learned by t = 12"},
    ],
    ids=str,
)
def test_what_is_drawn_elsewhere_or_in_another_colour_is_not(
    known: Path, what: dict, tmp_path: Path
):
    found = picture_difference(known, drawn(tmp_path / "figure.png", **what))
    assert found
    assert found.endswith(f"dots of {WIDTH} across")


def test_what_pictures_say_is_compared_as_text(known: Path, tmp_path: Path):
    other = drawn(tmp_path / "figure.png", said="Panel a: waves.")
    assert picture_difference(known, other) == "other titles, labels or legends"


def test_pictures_of_other_sizes_are_unlike(known: Path, tmp_path: Path):
    with Image.open(known) as picture:
        picture.resize((700, 160)).save(tmp_path / "figure.png")
    assert picture_difference(known, tmp_path / "figure.png") == "other size"
