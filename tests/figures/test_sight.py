"""Colours can be distinguished in greyscale and by colour-blind readers."""

from importlib import import_module
from itertools import combinations, pairwise
from types import ModuleType

import numpy as np
import pytest
from docutils.core import publish_doctree
from matplotlib import colormaps

from builders import REPOSITORY
from neuralrace.figures.style import (
    COLOURS,
    HEAT,
    LINES,
    MARKERS,
    SIGNED,
    categorical,
    marker,
    sequential,
)

SIGHTS = ("grey", "deuteranopia", "protanopia")
APART = 30
"""Least distance of two colours that are distinguished, with 255 for each channel of sRGB."""


@pytest.fixture
def sight(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(REPOSITORY / "docs" / "_ext")
    return import_module("sight")


def distance(sight: ModuleType, name: str, *colours) -> float:
    one, other = (sight.seen(np.array(colour), name) for colour in colours)
    return float(255 * np.linalg.norm(one - other))


@pytest.mark.parametrize("name", SIGHTS)
def test_greys_stay_the_same(sight: ModuleType, name: str):
    greys = np.linspace(0, 1, 5)[:, None] * np.ones(3)
    np.testing.assert_allclose(sight.seen(greys, name), greys, atol=1e-5)


def test_only_colour_blind_readers_confuse_red_and_green_of_one_lightness(sight: ModuleType):
    red, green = (0.72, 0.40, 0.20), (0.40, 0.53, 0.20)
    assert (
        distance(sight, "deuteranopia", red, green)
        < 20
        < 255 * np.linalg.norm(np.subtract(red, green))
    )
    assert distance(sight, "grey", red, green) < 20


@pytest.mark.parametrize("name", SIGHTS)
@pytest.mark.parametrize("count", [2, 4, 7])
def test_steps_of_sequential_colours_are_distinct(sight: ModuleType, name: str, count: int):
    assert all(distance(sight, name, *step) > APART for step in pairwise(sequential(count)))


@pytest.mark.parametrize("name", SIGHTS)
@pytest.mark.parametrize("kinds", [("relu", "gated"), ("trained", "untrained")])
def test_colours_of_kinds_in_one_panel_are_distinct(sight: ModuleType, name: str, kinds):
    assert distance(sight, name, *(COLOURS[kind] for kind in kinds)) > APART


@pytest.mark.parametrize("name", ["deuteranopia", "protanopia"])
def test_colours_of_all_kinds_are_distinct_to_colour_blind_readers(sight: ModuleType, name: str):
    assert all(distance(sight, name, *pair) > APART for pair in combinations(COLOURS.values(), 2))


@pytest.mark.parametrize("name", SIGHTS)
@pytest.mark.parametrize("shades", [HEAT, SIGNED], ids=["heat", "signed"])
def test_entries_of_matrices_are_distinct(sight: ModuleType, name: str, shades):
    least_to_most = colormaps.get_cmap(shades)(np.linspace(0, 1, 5))[:, :3]
    assert all(distance(sight, name, *step) > APART for step in pairwise(least_to_most))


def test_larger_entries_of_matrices_are_lighter(sight: ModuleType):
    least_to_most = colormaps.get_cmap(HEAT)(np.linspace(0, 1, 9))[:, :3]
    assert np.all(np.diff(sight.seen(least_to_most, "grey")[:, 0]) > 0)


def test_signed_entries_are_white_at_zero_and_darkest_where_negative(sight: ModuleType):
    light = sight.seen(SIGNED(np.linspace(0, 1, 9))[:, :3], "grey")[:, 0]
    assert light[4] > 0.98
    assert np.all(np.diff(light[:5]) > 0)
    assert np.all(np.diff(light[4:]) < 0)
    assert np.all(light[:4] < light[:4:-1] - 0.05), "a negative entry is darker than its opposite"


def test_unordered_things_differ_in_marker_and_line_style():
    # Categorical colours are not distinct in greyscale.
    assert len({marker(index) for index in range(len(MARKERS))}) == len(MARKERS)
    assert len({categorical(index) for index in range(len(MARKERS))}) == len(MARKERS)
    assert len(set(LINES)) == len(LINES)


def test_page_shows_each_picture_in_every_simulation(sight: ModuleType):
    text = sight.page([("paper/figure", "figures/slim/paper/figure.png")])
    page = publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 2})
    shown = [image["classes"][-1] for image in page.findall(lambda node: node.tagname == "image")]
    assert shown == [f"sight-{name}" for name in SIGHTS]
    for name in SIGHTS:
        assert f'id="sight-{name}"' in text
