"""The page of the moving race: its numbers, and what it shows without them."""

import json
import re
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from builders import REPOSITORY
from neuralrace.extensions.registry import FIGURES

TIMES = 500


@pytest.fixture
def race(monkeypatch):
    pytest.importorskip("sphinx", reason="the site needs the extra `docs`")
    monkeypatch.syspath_prepend(str(REPOSITORY / "docs" / "_ext"))
    return import_module("race")


def cell(name, **variables):
    """A cell with these variables along time, a loss, and its theory."""
    time = np.linspace(0, 5, TIMES)
    loss = xr.DataArray(
        np.exp(-time)[None, None] * np.ones((2, 3, 1)), dims=("init_scale", "seed", "time")
    )
    trajectory = xr.Dataset({"loss": loss, **variables})
    theory = xr.Dataset({"loss": loss.expand_dims(solution=["flow"])})
    files = {"trajectory": trajectory, "theory": theory}
    return SimpleNamespace(
        name=name, flow_time=xr.DataArray(time, dims="time"), trajectory=trajectory, theory=theory,
        get=lambda kind, variable: files[kind][variable],
    )  # fmt: skip


def values(**sizes):
    """Values that grow from 0 to 1 along time, and are smaller for later entries."""
    grown = xr.DataArray(np.linspace(0, 1, TIMES), dims="time")
    return grown * xr.DataArray(
        1 / np.arange(1, np.prod(list(sizes.values())) + 1).reshape(tuple(sizes.values())),
        dims=tuple(sizes),
    )


@pytest.fixture
def results(race, monkeypatch):
    runs = {"init_scale": 2, "seed": 3}
    cells = {
        name: cell(name, singular_values=values(**runs, layer=3, singular_mode=2))
        for name in race.RACES[0].cells
    }
    (name,) = race.RACES[1].cells
    cells[name] = cell(name, pathway_values=values(**runs, pathway=4, pathway_mode=2))
    (name,) = race.RACES[2].cells
    cells[name] = cell(name, singular_values=values(**runs, layer=8, singular_mode=2))
    monkeypatch.setattr(
        race, "open_results", lambda _, names: {each: cells[each] for each in names}
    )
    return cells


def shown(page):
    return [json.loads(text) for text in re.findall(r"json\">(.*?)</script>", page)]


def test_each_race_has_a_figure_in_its_place(race):
    assert all(each.figure in FIGURES for each in race.RACES)
    page = race.page(None)
    assert "do not move" in page
    assert page.count("a still picture") == len(race.RACES)
    assert not shown(page)


def test_an_empty_folder_gives_still_pictures(race, tmp_path):
    assert race.page(tmp_path) == race.page(None)


def test_pathways_have_names_widths_and_losses(race, results, tmp_path):
    page = race.page(tmp_path)
    assert "do not move" not in page
    data = shown(page)
    names = [[each["name"] for each in one["pathways"]] for one in data]
    assert names == [
        ["1 pair each", "4 pairs share", "25 pairs share", "100 pairs share"],
        ["common", "all but context 1", "all but context 2", "all but context 3"],
        ["example 1", "example 2", "example 3", "example 4"],
    ]
    for one in data:
        assert len(one["times"]) == race.MOST_TIMES
        assert (one["times"][0], one["times"][-1]) == (0.0, 5.0)
        first = one["pathways"][0]
        assert {len(first[key]) for key in ("width", "loss", "theory")} == {race.MOST_TIMES}
        assert first["width"][0] == 0 < first["width"][-1]
        assert first["loss"] == first["theory"]
    # networks have a loss each, pathways of one network share it
    assert ["loss" in each for one in data for each in one["pathways"]] == [True] * 4 + [
        True, False, False, False,
    ] * 2  # fmt: skip


def test_numbers_are_means_over_runs_from_the_smallest_init_scale(race, results, tmp_path):
    first = shown(race.page(tmp_path))[0]["pathways"][0]
    recorded = results[race.RACES[0].cells[0]].trajectory["singular_values"]
    mean = recorded.isel(init_scale=0, layer=1, singular_mode=0, time=-1).mean("seed")
    assert first["width"][-1] == pytest.approx(float(mean), rel=1e-3)
