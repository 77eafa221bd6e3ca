"""Pictures are equal if no difference can be seen, and only then."""

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
    shift: float = 0.0,
    smooth: bool = True,
    description: str = "Panel a: modes.",
    **rc_params,
) -> Path:
    """Draws lines, a marker, theory and a matrix, shifted by a number of pixels."""
    with mpl.rc_context({**RC_PARAMS, "figure.constrained_layout.use": False, **rc_params}):
        figure = Figure(figsize=(PAGE, 1.6))
        left, right = figure.subplots(1, 2)
        time = np.linspace(0, 1, 200)
        left.plot(time, strength * np.tanh(3 * time), color=categorical(colour), antialiased=smooth)
        left.plot(time, 0.7 * np.tanh(9 * time), color=categorical(3), antialiased=smooth)
        # Theory is always smoothed: without smoothing, dashes have other lengths.
        left.plot(time, 0.8 * time, **THEORY)
        left.plot([marker], [0.2], "s", color="black")
        right.imshow(np.arange(12).reshape(3, 4), aspect="auto")
        left.set(title=title, xlabel="time", ylabel="mode strength")
        figure.subplots_adjust(top=0.85, bottom=0.22)
        for ax in (left, right):
            x, y, width, height = ax.get_position().bounds
            ax.set_position((x + shift / WIDTH, y + shift / 480, width, height))
        figure.savefig(path, metadata={"Description": description})
    return path


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Path:
    return drawn(tmp_path_factory.mktemp("known") / "figure.png")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"smooth": False},
        {"text.antialiased": False},
        {"text.hinting": "none"},
        {"shift": 0.4},
        {"shift": 1.7},
    ],
    ids=str,
)
def test_invisible_differences_are_ignored(known: Path, changes: dict, tmp_path: Path):
    assert picture_difference(known, drawn(tmp_path / "figure.png", **changes)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"strength": 1.05},
        {"marker": 0.53},
        {"colour": 2},
        {"colour": 4},
        {"title": "Modes are learned by t = 12"},
    ],
    ids=str,
)
def test_other_positions_and_colours_are_found(known: Path, changes: dict, tmp_path: Path):
    difference = picture_difference(known, drawn(tmp_path / "figure.png", **changes))
    assert difference
    assert difference.endswith(f"dots of {WIDTH} across")


def test_titles_labels_and_legends_are_compared_as_text(known: Path, tmp_path: Path):
    other = drawn(tmp_path / "figure.png", description="Panel a: waves.")
    assert picture_difference(known, other) == "other titles, labels or legends"


def test_pictures_of_other_sizes_differ(known: Path, tmp_path: Path):
    with Image.open(known) as picture:
        picture.resize((700, 160)).save(tmp_path / "figure.png")
    assert picture_difference(known, tmp_path / "figure.png") == "other size"
