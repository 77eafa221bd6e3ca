"""Every figure is registered, described, and drawn from the declared variables of its cells."""

import io
import re
import shutil
from dataclasses import replace
from html import unescape
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from docutils.core import publish_doctree
from hypothesis import given
from hypothesis import strategies as st
from legibility import faults, title_faults
from PIL import Image

import neuralrace
from builders import REPOSITORY, build_cell
from neuralrace.cli.listing import descriptions
from neuralrace.config.cell import Cell
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES, Figure
from neuralrace.figures import input_files, matching_cells, variables
from neuralrace.figures.caption import PANEL, caption, title
from neuralrace.figures.compose import alternative_text, compose, set_titles
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import equal_modes, fixed_basis
from neuralrace.figures.neural_race.structural_forms import scaled_to_plane
from neuralrace.figures.save import palette, save
from neuralrace.figures.style import (
    HEAT,
    PAGE,
    SIGNED,
    Canvas,
    apply_layout,
    heat,
    median_seed,
    rc_context,
    sequential,
    settling_time,
    split,
)
from neuralrace.results.cells import open_results
from neuralrace.results.files import read_result, write_result

PACKAGE = REPOSITORY / "src" / "neuralrace" / "figures"
NAMES = sorted(FIGURES)
FILES = ("figure.png", "figure.pdf", "figure.svg", "slim.png")


def copy_inputs(name: str, source: Path, target: Path, cell_ids: list[str]) -> None:
    """Copies the files that a figure declares, and no others."""
    for cell, kind in input_files(name, cell_ids):
        if (source / cell / f"{kind}.nc").exists():  # not all cells have theory
            (target / cell).mkdir(parents=True, exist_ok=True)
            shutil.copy(source / cell / f"{kind}.nc", target / cell)


def saved(name: str, source: Path, cell_ids: list[str], target: Path) -> None:
    """Draws a figure into a folder, from files of any specification."""
    cells: dict[str, dict[str, str]] = {cell: {} for cell in cell_ids}
    save(name, source, cells, "Caption: \u03c4.", *(target / file for file in FILES))


def used_variables(name: str, monkeypatch) -> dict[str, set[str]]:
    """Records the variables that a figure uses, by kind of file."""
    used: dict[str, set[str]] = {kind: set() for kind in ("trajectory", "theory", "metrics")}
    take = xr.Dataset.__getitem__

    def watched(path, kind, names):
        return read_result(path, kind, names).assign_attrs(watched=kind)

    def watching(self, key):
        if "watched" in self.attrs and key in self.data_vars:
            used[self.attrs["watched"]].add(key)
        return take(self, key)

    monkeypatch.setattr("neuralrace.results.cells.read_result", watched)
    monkeypatch.setattr(xr.Dataset, "__getitem__", watching)
    return used


def test_every_module_of_a_paper_is_a_registered_figure():
    modules = [path for path in PACKAGE.glob("*/*.py") if path.stem != "__init__"]
    assert {f"{path.parent.name}/{path.stem}" for path in modules} == set(FIGURES)


@pytest.mark.parametrize("name", NAMES)
def test_figure_is_described(name: str, cells: dict[str, Cell]):
    text = caption(name, cells)
    body, _, runs = text.partition("\n\nWhat was run:\n\n")
    about, *panels = body.split("\n\n**a**")
    assert 1 <= about.count(". ") + about.count(".\n") + about.endswith(".") <= 9
    assert len(panels) == 1
    letters = sorted({letter for letter in FIGURES[name].declaration.layout if letter.isalpha()})
    module = import_module(FIGURES[name].module)
    assert letters == sorted(key[-1] for key in vars(module) if PANEL.fullmatch(key))
    assert set(FIGURES[name].declaration.cf) <= set(letters)
    for letter in letters:
        assert f"**{letter}**" in body, "panels have docstrings"
    assert "Raises:" not in body
    assert descriptions("figures")[name].removesuffix(".") == title(FIGURES[name])
    experiments = {cell.rpartition("/")[0] for cell in matching_cells(name, cells)}
    assert experiments == set(re.findall(r"^\* ``(.*)``: dataset", runs, re.MULTILINE))
    publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 2})


def test_caption_lists_shared_and_swept_values():
    cells = {
        f"deep_linear/staircase/{n}": build_cell(
            seeds=3,
            init_scales=[0.1],
            record={"every": 1},
            training={"learning_rate": 0.1 / n, "steps": 8 * n},
        )
        for n in range(1, 9)
    }
    _, text = caption("deep_linear/staircase", cells).split("What was run:")
    runs, digest = text.strip().rsplit("\n\n", 1)
    assert re.fullmatch(r"Digest of this: ``[0-9a-f]{16}``\.", digest)
    other = {name: cell.model_copy(update={"seeds": 4}) for name, cell in cells.items()}
    assert digest not in caption("deep_linear/staircase", other)
    assert runs == (
        "* ``deep_linear/staircase``: dataset modes (singular values [2, 1], inputs 3, outputs 2); "
        "network layered (hidden [2]); init normal; training (learning rate 0.1 to 0.0125 (8 "
        "values), steps 8 to 64 (8 values)); init scales 0.1; seeds 3."
    )


def test_globs_and_inputs_follow_the_configuration(monkeypatch):
    reads = {
        "one thr*": {"trajectory": "loss outputs", "metrics": ""},
        "three other/one": {"trajectory": "weights"},
    }
    figure = "paper/figure"
    entry = replace(
        FIGURES["deep_linear/exact"], declaration=Figure(layout="a", height=1, reads=reads)
    )
    monkeypatch.setitem(FIGURES._entries, figure, entry)
    plan = ["paper/three/b", "paper/two/a", "paper/one/z", "other/one/a", "paper/ones/a"]
    assert matching_cells(figure, plan) == ["paper/three/b", "paper/one/z", "other/one/a"]
    assert variables(figure, "paper/three/b") == {
        "trajectory": {"loss", "outputs", "weights"},
        "metrics": set(),
    }
    assert input_files(figure, ["paper/one/a", "other/one/a"]) == [
        ("paper/one/a", "trajectory"),
        ("paper/one/a", "metrics"),
        ("other/one/a", "trajectory"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_figure_draws_labelled_axes_from_its_inputs(
    name: str, results_root: Path, cell_ids: list[str], tmp_path: Path, monkeypatch
):
    copy_inputs(name, results_root, tmp_path, cell_ids)
    used = used_variables(name, monkeypatch)
    results = open_results(tmp_path, matching_cells(name, cell_ids))
    with rc_context():
        figure = compose(name, results)
        apply_layout(figure)
        assert figure.get_figwidth() <= PAGE
        assert faults(figure) == []
        assert title_faults(figure) == []
        text = alternative_text(figure)
        for letter in FIGURES[name].declaration.layout:
            assert not letter.isalpha() or re.search(rf"Panel {letter}: \w", text), "no title"
    declared = [variables(name, cell) for cell in cell_ids]
    for kind in ("trajectory", "theory", "metrics"):
        assert used[kind] == set().union(*(kinds.get(kind, ()) for kinds in declared)), kind


@pytest.mark.parametrize("name", ["deep_linear/staircase", "neural_race/race"])
def test_saved_files_are_deterministic_and_complete(
    name: str, results_root: Path, cell_ids: list[str], tmp_path: Path
):
    for folder in ("first", "second"):
        out = tmp_path / folder
        saved(name, results_root, cell_ids, out)
        assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    for file in FILES:
        first, second = (tmp_path / folder / file for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
        assert b"CreationDate" not in first.read_bytes()
    pictures = (tmp_path / "first" / file for file in ("figure.png", "slim.png"))
    for picture, width in zip(pictures, (300 * PAGE, 130 * PAGE), strict=True):
        with Image.open(picture) as dots:
            assert dots.width == pytest.approx(width, abs=1)
            texts = dots.info
        assert texts["Title"] == name
        assert texts["Comment"] == "Caption: \u03c4."
        assert texts["Description"].startswith("Panel a: ")
    graphic = (tmp_path / "first" / "figure.svg").read_text(encoding="utf-8")
    assert texts["Description"] in unescape(graphic)
    assert "<dc:date>" not in graphic


def test_palette_keeps_areas_and_changes_no_pixel_much():
    figure = Canvas(figsize=(2, 1), dpi=100)
    left, right = figure.subplots(1, 2)
    left.imshow(np.arange(100).reshape(10, 10), cmap=SIGNED)
    right.fill_between([0, 1], [1, 2], alpha=0.2)
    right.plot([0, 1], [2, 1], color="red")
    with io.BytesIO() as dots:
        figure.savefig(dots)
        full = Image.open(dots).convert("RGB")
    few = palette(np.asarray(full.convert("RGBA")), 64)
    assert len(few.getcolors()) <= 64
    before, after = (np.asarray(image.convert("RGB"), dtype=int) for image in (full, few))
    _, index, counts = np.unique(
        before.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    off = abs(after - before).reshape(-1, 3).max(axis=1)
    frequent = np.argsort(-counts)[:5]
    assert off[np.isin(index.ravel(), frequent)].max() == 0
    assert off.max() < 64


def test_failed_save_keeps_the_old_file_and_no_temporary_file(
    results_root: Path, cell_ids: list[str], tmp_path: Path, monkeypatch
):
    png = tmp_path / "figure.png"
    png.write_bytes(b"old")

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"no space left on device.*nothing was replaced"):
        saved("deep_linear/time_to_learn", results_root, cell_ids, tmp_path)
    assert png.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_shorter_sweep_is_drawn(results_root: Path, cell_ids: list[str], tmp_path: Path):
    name = "deep_linear/imbalance"
    swept = [cell for cell in cell_ids if cell.startswith(name)]
    for lines in (1, 2):
        figure = compose(name, open_results(results_root, swept[:lines]))
        panel = figure.axes[1]  # after the axes of panel a, which keep only the title
        assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0", "0.5"][:lines]


@pytest.mark.parametrize(
    "name",
    [
        "deep_linear/alignment",
        "deep_linear/staircase",
        "layer_dynamics/norms_shallow",
        "make_haste/contexts",
        "make_haste/contextual",
        "make_haste/similarity",
        "make_haste/two_hidden",
        "neural_race/graph",
        "neural_race/xor",
    ],
)
def test_figure_is_drawn_when_a_run_diverged(
    name: str, results_root: Path, cell_ids: list[str], tmp_path: Path
):
    copy_inputs(name, results_root, tmp_path, cell_ids)
    for path in tmp_path.rglob("trajectory.nc"):
        trajectory = read_result(path)
        floats = [n for n, values in trajectory.data_vars.items() if values.dtype.kind == "f"]
        for variable in floats:
            trajectory[variable].loc[{"seed": 1}] = np.nan
        write_result(trajectory, path)
    with rc_context(), io.BytesIO() as picture:
        figure = compose(name, open_results(tmp_path, matching_cells(name, cell_ids)))
        figure.savefig(picture, dpi=100)
        assert len(picture.getvalue()) > 10_000


def test_missing_cells_and_files_name_the_remedy(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    with pytest.raises(UserError, match=r"no cell of 'rotation'.*config/"):
        saved("deep_linear/rotation", results_root, [], tmp_path)
    swept = open_results(tmp_path, [cell for cell in cell_ids if "/rotation/" in cell])
    with pytest.raises(UserError, match=r"'rotation' must have one cell here.* has 2.*config/"):
        swept.cell("rotation")
    with pytest.raises(UserError, match=r"no result files; run the workflow"):
        saved("deep_linear/rotation", tmp_path, cell_ids, tmp_path)
    assert not tmp_path.joinpath("figure.png").exists()


def test_settling_time_is_that_of_the_last_curve():
    time = xr.DataArray(np.linspace(0, 10, 1001), dims="time")
    rates = xr.DataArray([1.0, 2.0], dims="mode")
    assert settling_time(np.exp(-rates * time), time) == pytest.approx(np.log(100), abs=0.02)
    assert settling_time(0 * time, time) == 10


@given(st.lists(st.sampled_from([0.1, 1.0, 2.0, np.nan]), min_size=1, max_size=9), st.data())
def test_median_seed_does_not_depend_on_rounding(values, data):
    seeds = np.arange(len(values)) + 3
    noise = data.draw(st.lists(st.sampled_from([-4e-15, 0.0, 4e-15]), min_size=9, max_size=9))
    exact = xr.DataArray(values, {"seed": seeds}, ["seed"])
    chosen = median_seed(exact)
    assert median_seed(exact * (1 + np.array(noise[: len(values)]))) == chosen
    if exact.count():
        rank = (exact < exact.sel(seed=chosen)).sum(), (exact <= exact.sel(seed=chosen)).sum()
        assert rank[0] <= exact.count() // 2 < rank[1]


def test_ordered_colours_differ_in_grey():
    luminance = [np.dot(colour, (0.299, 0.587, 0.114)) for colour in sequential(7)]
    assert np.all(np.diff(luminance) > 0.02)


def test_heat_keeps_the_scale_and_rotates_long_names():
    left, right = Canvas().subplots(1, 2)
    matrix = np.array([[0.0, 1.0], [2.0, 3.0]])
    signed = heat(left, matrix, -1, 4, ("a", "b"), ("one", "two"))
    assert signed.get_clim() == (-4, 4)
    assert signed.get_cmap() == SIGNED
    assert heat(right, matrix, -1, 4, cmap=HEAT).get_clim() == (-1, 4)
    shades = heat(right, matrix, 1, 3, (), ("1", "2"))
    assert shades.get_clim() == (1, 3)
    assert shades.get_cmap().name == HEAT
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["a", "b"]
    assert [tick.get_rotation() for tick in left.get_xticklabels()] == [90, 90]
    assert [tick.get_rotation() for tick in right.get_xticklabels()] == [0, 0]


def test_panel_can_be_drawn_in_another_figure(results_root: Path):
    figure, (left, right) = plt.subplots(1, 2)
    panel = neuralrace.figures.deep_linear.staircase.panel_a
    panel(neuralrace.open_results(results_root), right)
    figure.canvas.draw()
    assert right.lines
    assert right.get_title(loc="left") or right.get_title()
    assert not left.has_data()
    plt.close(figure)
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        neuralrace.figures.unknown  # noqa: B018


def test_title_is_broken_before_the_next_panel():
    with rc_context():
        figure = Canvas(figsize=(PAGE, 2))
        axes = figure.subplot_mosaic("aab")
        for ax in axes.values():
            ax.set_title("A finding of many words, of which some are $a = b + c$ formulas")
        set_titles(figure, axes, dict.fromkeys(axes, "Fig. 4e"))
        figure.draw_without_rendering()
        wide, narrow = (axes[letter].get_title(loc="left") for letter in "ab")
        assert wide.count("\n") == 0
        assert narrow.count("\n") >= 1
        assert all(line.count("$") % 2 == 0 for line in narrow.split("\n"))
        assert " ".join(narrow.split()) == " ".join(wide.replace("{a}", "{b}").split())
        # the panel of the paper stands between letter and title, where hair spaces leave room
        (source,) = axes["a"].texts
        assert source.get_text() == "Fig. 4e"
        title = axes["a"]._left_title.get_window_extent()
        assert title.x0 < source.get_window_extent().x0
        assert source.get_window_extent().x1 < title.x1
        assert axes["b"]._left_title.get_window_extent().x1 < figure.bbox.x1


def test_title_is_broken_only_before_panels_of_its_row():
    with rc_context():
        figure = Canvas(figsize=(PAGE, 4))
        axes = figure.subplot_mosaic("ab;cc;de")
        for ax in axes.values():
            ax.set_title("A finding of many words, of which not all can stand beside another panel")
        axes["e"].set_title("short")
        set_titles(figure, axes, {})
        figure.draw_without_rendering()
        breaks = [ax.get_title(loc="left").count("\n") for ax in axes.values()]
        assert breaks == [1, 1, 0, 1, 0]
        for one, other in ("ab", "de"):
            start = axes[other].get_window_extent().x0
            assert axes[one]._left_title.get_window_extent().x1 < start


def test_title_is_above_an_axis_on_top_and_fixed_elsewhere():
    with rc_context():
        figure = Canvas(figsize=(PAGE, 2))
        axes = figure.subplot_mosaic("ab")
        for ax in axes.values():
            ax.set_title("A finding")
        above = axes["a"].secondary_xaxis("top")
        above.set_xlabel("epochs")
        set_titles(figure, axes, {})
        figure.draw_without_rendering()
        raised, fixed = (ax._left_title for ax in axes.values())
        assert raised.get_window_extent().y0 >= above.get_tightbbox().y1 - 1
        assert fixed.get_position()[1] == 1
        assert fixed.get_window_extent().y0 >= axes["b"].get_window_extent().y1


def test_title_with_nan_becomes_not_reached():
    with rc_context():
        figure = Canvas(figsize=(PAGE, 2))
        axes = figure.subplot_mosaic("ab")
        axes["a"].set_title("One takes nan times as long")
        axes["b"].set_title("Nanometres of information")
        set_titles(figure, axes, {"a": "Fig. 4e"})
        assert axes["a"].get_title(loc="left").endswith("Not reached")
        assert axes["b"].get_title(loc="left").endswith("Nanometres of information")


def test_title_of_a_split_panel_is_above_its_parts():
    with rc_context():
        figure = Canvas(figsize=(PAGE, 2))
        left, right = figure.subplots(1, 2)
        right.plot([0, 1])
        left.set_title("above")
        parts = split(left, 2, 3, sharex=True)
        for ax in parts.flat:
            ax.plot([0, 1])
            ax.set_title("part")
        figure.draw_without_rendering()
        assert parts.shape == (2, 3)
        lowest = left._left_title.get_window_extent().y0
        assert all(ax.get_tightbbox().y1 <= lowest for ax in parts.flat)
        assert all(ax.get_tightbbox().x1 < right.get_window_extent().x0 for ax in parts.flat)
        with pytest.raises(ValueError, match="in no grid"):
            split(figure.add_axes((0, 0, 1, 1)), 2)


def test_scaling_to_a_plane_keeps_the_distances_of_plane_points():
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(5, 2))
    growing = np.array([0.1, 0.5, 1.0])[:, None, None] * (shape - shape.mean(axis=0))
    distances = np.linalg.norm(growing.reshape(-1, 1, 2) - growing.reshape(-1, 2), axis=-1)
    scaled = scaled_to_plane(distances, growing[-1] + 0.1 * rng.normal(size=(5, 2))).reshape(-1, 2)
    kept = np.linalg.norm(scaled[:, None] - scaled, axis=-1)
    np.testing.assert_allclose(kept, distances, atol=1e-3)


def test_vectors_of_equal_modes_do_not_depend_on_their_basis():
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.normal(size=(6, 4)))[0] for _ in range(2))
    s = np.array([3.0, 2.0, 2.0, 1.0])
    turn = np.diag([-1.0, 1.0, 1.0, 1.0])
    turn[1:3, 1:3] = [[0.6, 0.8], [0.8, -0.6]]
    one, other = (fixed_basis(a, s, b) for a, b in ((u, v), (u @ turn, v @ turn)))
    np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose((one[0] * s) @ one[1].T, (u * s) @ v.T, atol=1e-12)
    assert equal_modes(s) == [[0], [1, 2], [3]]


def test_labels_at_ends_keep_apart_and_in_order():
    figure = Canvas(figsize=(PAGE, 2), layout="none")
    ax = figure.subplots()
    ax.set_ylim(0, 1)
    label_ends(ax, [(0.5, "two\nlines", "red"), (0.52, "above", "blue"), (0.9, "far", "green")])
    figure.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert boxes["two\nlines"].y1 <= boxes["above"].y0 < boxes["above"].y1 < boxes["far"].y0
    top = ax.transData.transform((0, 0.9))[1]
    assert (boxes["far"].y0 + boxes["far"].y1) / 2 == pytest.approx(top, abs=2)


def test_labels_at_ends_stay_below_the_title():
    figure = Canvas(figsize=(PAGE, 2), layout="none")
    ax = figure.subplots()
    ax.set(ylim=(0, 1))
    label_ends(ax, [(0.98, "one", "red"), (0.99, "other", "blue"), (1.0, "third", "green")])
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert boxes[-1].y1 <= ax.get_window_extent().y1 + 1
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
