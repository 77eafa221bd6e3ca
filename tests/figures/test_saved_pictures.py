"""Slim pictures are under version control: they are written where a difference can be seen."""

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context
from PIL import Image

from neuralrace.figures.save import fixed_layout, save_if_seen
from neuralrace.figures.style import RC_PARAMS, Canvas

TEXTS = {"Title": "paper/figure", "Description": "Panel a: modes.", "Comment": "What was run."}


def save(path: Path, strength: float = 1.0, texts=TEXTS, **rc_params):
    with rc_context({**RC_PARAMS, **rc_params}):
        figure = Canvas(figsize=(7.0, 2.0))
        ax = figure.subplots()
        time = np.linspace(0, 1, 200)
        ax.plot(time, strength * np.tanh(3 * time))
        ax.set(xlabel="time", ylabel="mode strength", ylim=(0, 1.2))
        with fixed_layout(figure), rc_context(rc_params):
            save_if_seen(figure, texts, path)


@pytest.fixture
def picture(tmp_path) -> Path:
    save(tmp_path / "figure.png")
    return tmp_path / "figure.png"


def test_a_picture_is_kept_if_no_difference_can_be_seen(picture):
    before = picture.read_bytes()
    os.utime(picture, (1, 1))
    save(picture, **{"lines.antialiased": False})
    assert picture.read_bytes() == before
    assert picture.stat().st_mtime > 1, "Snakemake expects a newer file"
    assert [path.name for path in picture.parent.iterdir()] == [picture.name]


@pytest.mark.parametrize(
    "changes", [{"strength": 0.8}, {"texts": TEXTS | {"Comment": "Something else was run."}}]
)
def test_another_picture_or_text_is_written(picture, changes):
    before = picture.read_bytes()
    save(picture, **changes)
    assert picture.read_bytes() != before
    with Image.open(picture) as written:
        assert written.info["Comment"] == changes.get("texts", TEXTS)["Comment"]


@pytest.mark.parametrize("content", [b"", b"no picture", None])
def test_a_damaged_picture_is_written_anew(picture, content):
    known = picture.read_bytes()
    picture.write_bytes(known[: len(known) // 2] if content is None else content)
    save(picture)
    assert picture.read_bytes() == known
