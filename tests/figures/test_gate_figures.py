"""What the figures on margins, patterns of gates and clusters choose, derive and refuse."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from neuralrace.errors import UserError
from neuralrace.figures import margins, matching, style
from neuralrace.figures.make_haste import clusters, lemma, semantic, xor_margin
from neuralrace.records.files import read, write
from neuralrace.records.results import Results, open_results


def copied(name: str, source: Path, target: Path, cell_ids: list[str]) -> Results:
    """The results of a figure, to be changed."""
    cells = matching(name, cell_ids)
    for cell in cells:
        shutil.copytree(source / cell, target / cell)
    return open_results(target, cells)


def pictures(ax: Axes) -> np.ndarray:
    """The matrix that a panel shows as shades."""
    (image,) = ax.get_images()
    return np.asarray(image.get_array())


def markers(ax: Axes, colour: object) -> list[float]:
    """Where markers of a colour stand along x, row by row."""
    found = [line for line in ax.lines if line.get_marker() not in ("", "None")]
    own = [line for line in found if line.get_color() == colour]
    return [float(line.get_xdata()[0]) for line in sorted(own, key=lambda m: m.get_ydata()[0])]


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([0.25, 0.5, 0.7, 0.8165, 1.0, 1.3, 1.6, 2.0], [1, 3, 5]),
        ([0.25, 0.5], [0, 1]),
        ([1.0, 1.5, 2.0], [0, 1]),
        ([0.8], [0]),
    ],
)
def test_losses_are_shown_near_equal_speed_and_to_either_side(
    values: list[float], places: list[int]
):
    assert xor_margin.examples(values) == places


def test_times_to_half_of_the_loss_are_those_of_all_scales(results_root: Path, cell_ids: list[str]):
    cells = matching("make_haste/xor_margin", cell_ids)
    figure = xor_margin.draw(open_results(results_root, cells[::-1]))
    shown = margins.by_margin(open_results(results_root, cells), "xor_margin")
    assert [margins.margin(cell) for cell in shown] == [0.25, 0.5]
    times, *losses = figure.axes
    assert len(losses) == len(shown)
    scales = margins.scales(shown[0])
    assert list(scales) == [0.01, 0.001, 0.0001, 0.00001]
    solved = [line for line in times.lines if line.get_color() == "black"]
    for scale, line in zip(scales, solved, strict=True):
        expected = [
            cell.metrics["predicted_loss_half_time"]
            .sel(solution="margin_race", init_scale=scale)
            .mean()
            for cell in shown
        ]
        np.testing.assert_allclose(line.get_xydata(), np.c_[[0.25, 0.5], expected])


def test_a_task_without_a_margin_is_refused(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, cell_ids)
    with pytest.raises(UserError, match=r"xor_gated.*'xor' has no margin"):
        margins.margin(results.cell("xor_gated"))
    with pytest.raises(UserError, match=r"semantic_deep.*'hierarchy' has no margin"):
        margins.margin(results.cell("semantic_deep"))


def test_patterns_are_grouped_by_what_can_be(results_root: Path, cell_ids: list[str]):
    figure = lemma.draw(open_results(results_root, matching("make_haste/lemma", cell_ids)))
    gates, units, outputs = figure.axes
    rows = pictures(gates).astype(bool)
    assert len({tuple(row) for row in rows.tolist()}) == 16
    # shut everywhere, open on one sample, in one context or on one object, everywhere
    assert sorted(rows[:10].sum(axis=1)) == [0, 1, 1, 1, 1, 2, 2, 2, 2, 4]
    context, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])  # of the samples
    halves = sorted(half.tolist() for of in (context, item) for half in (of == 0, of == 1))
    assert sorted(rows[5:9].tolist()) == halves
    # open on all samples but one
    assert rows[10:14].sum(axis=1).tolist() == [3, 3, 3, 3]
    assert rows[14:].tolist() == [[False, True, True, False], [True, False, False, True]]
    (frame,) = gates.patches
    assert frame.get_y() + 0.5 == rows.tolist().index([True, True, True, False])
    found = {look["color"]: markers(units, look["color"]) for look in (lemma.START, lemma.END)}
    for shares in (*found.values(), markers(outputs, lemma.END["color"])):
        assert sum(shares) == pytest.approx(1)
        assert shares[14:] == [0, 0]


def test_output_by_pattern_adds_up_to_what_is_measured(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, matching("make_haste/lemma", cell_ids))
    carried = markers(lemma.draw(results).axes[2], lemma.END["color"])
    measured = results.cell("lemma").metrics["share_beyond_lemma"].mean()
    assert 0.01 < measured < 0.99
    assert sum(carried[10:14]) == pytest.approx(float(measured))


def test_a_diverged_run_has_no_patterns(results_root: Path, cell_ids: list[str], tmp_path: Path):
    name = "make_haste/lemma"
    results = copied(name, results_root, tmp_path, cell_ids)
    path = tmp_path / next(iter(results)) / "trajectory.nc"
    trajectory = read(path)
    for layer in (1, 2):
        trajectory[f"weight_{layer}"].loc[{"seed": 1}] = np.nan
    alone = trajectory.sel(seed=[0])
    shown = []
    for content in (trajectory, alone):
        write(content, path)
        figure = lemma.draw(open_results(tmp_path, matching(name, cell_ids)))
        shown.append([markers(ax, lemma.END["color"]) for ax in figure.axes[1:]])
    assert shown[0] == shown[1]


def test_patterns_are_those_of_two_objects_in_two_contexts(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    (cell,) = matching("make_haste/lemma", cell_ids)
    shutil.copytree(results_root / "make_haste/three_contexts/main", tmp_path / cell)
    with pytest.raises(UserError, match=r"lemma.*2 objects in 2 contexts"):
        lemma.draw(open_results(tmp_path, [cell]))


def test_clusters_that_were_not_found_are_left_out(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    name = "make_haste/clusters"
    results = copied(name, results_root, tmp_path, cell_ids)
    path = tmp_path / next(iter(results)) / "metrics.nc"
    metrics = read(path)
    for lost, left in (([3], (2, 4)), ([2, 4], ())):
        for variable in ("gates", "centroids", "share"):
            metrics[f"identified_{variable}"].loc[{"clusters": lost}] = np.nan
        write(metrics, path)
        changed = open_results(tmp_path, results)
        if not left:
            with pytest.raises(UserError, match=r"contextual/main.*2 clusters"):
                clusters.draw(changed)
            continue
        *panels, _ = clusters.draw(changed).axes
        assert [len(pictures(ax)) for ax in panels[::2]] == list(left)
        for centroids, gates in zip(panels[::2], panels[1::2], strict=True):
            np.testing.assert_array_equal(pictures(gates), pictures(centroids) > 0.5)


def test_decomposition_gives_the_correlation_back(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, matching("make_haste/semantic", cell_ids))
    ax = style.Canvas().subplots()
    semantic.panel_a(results, ax)
    total, u, s, v = (pictures(each) for each in ax.figure.axes[1:5])
    product = u @ s @ v
    np.testing.assert_allclose(product / product.max(), total, atol=1e-12)
    assert np.all(v.sum(axis=1) > -1e-9)
