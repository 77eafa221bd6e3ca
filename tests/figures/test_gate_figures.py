"""What the figures on margins, patterns of gates and clusters choose, derive and refuse."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.errors import UserError
from neuralrace.figures import contextual, margins, matching_cells, style
from neuralrace.figures.make_haste import clusters, lemma, semantic, xor_boundary, xor_margin
from neuralrace.results.cells import Results, open_results
from neuralrace.results.files import read_result, write_result


def copied(name: str, source: Path, target: Path, cell_ids: list[str]) -> Results:
    """The results of a figure, to be changed."""
    cells = matching_cells(name, cell_ids)
    for cell in cells:
        shutil.copytree(source / cell, target / cell)
    return open_results(target, cells)


def drawn(panel: Callable[[Results, Axes], None], results: Results) -> Axes:
    """The axes of a panel that is drawn alone."""
    ax = Figure().subplots()
    panel(results, ax)
    return ax


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
    values: list[float], positions: list[int]
):
    assert margins.example_indices(values) == positions


def test_times_are_those_of_the_race_at_the_smallest_scale(results_root: Path, cell_ids: list[str]):
    cells = matching_cells("make_haste/xor_margin", cell_ids)
    times = drawn(xor_margin.panel_d, open_results(results_root, cells[::-1]))
    shown = margins.by_margin(open_results(results_root, cells), "xor_margin")
    assert [margins.margin(cell) for cell in shown] == [0.25, 0.5]
    assert list(margins.scale_styles(shown[0])) == [0.01, 0.001, 0.0001, 0.00001]
    expected = [
        cell.metrics["predicted_loss_half_time"]
        .sel(solution="margin_race", init_scale=0.00001)
        .mean()
        for cell in shown
    ]
    (solved,) = [line for line in times.lines if line.get_color() == "black"]
    np.testing.assert_allclose(solved.get_xydata(), np.c_[[0.25, 0.5], expected])


def test_what_a_kind_alone_never_learns_is_crossed(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    results = copied("make_haste/xor_margin", results_root, tmp_path, cell_ids)
    shown = margins.by_margin(results, "xor_margin")
    path = shown[1].path("metrics")
    metrics = read_result(path)
    times = metrics["predicted_loss_half_time"]
    times.loc[{"solution": "margin_linear"}] = 5.0
    times.loc[{"solution": "margin_xor"}] = 4.0
    times.loc[{"solution": "margin_xor", "seed": 1}] = np.nan
    write_result(metrics, path)
    ax = drawn(xor_margin.panel_d, open_results(tmp_path, results))
    crosses = {line.get_color(): line for line in ax.lines if line.get_marker() == "x"}
    assert 0.5 not in crosses[margins.LINEAR["color"]].get_xdata()
    assert 0.5 in crosses[margins.XOR["color"]].get_xdata()


def test_gated_networks_stand_side_by_side(results_root: Path, cell_ids: list[str]):
    pairs = margins.gated_pairs(open_results(results_root, cell_ids))
    assert [margins.margin(cell) for cell, _ in pairs] == [0.5, 0.8165]
    for linear, xor in pairs:
        assert margins.margin(linear) == margins.margin(xor)
        assert contextual.pathway_gates(linear).sum(axis=1).tolist() == [2, 2]
        assert contextual.pathway_gates(xor).sum(axis=1).tolist() == [1, 1, 1, 1]


def test_theory_of_the_faster_kind_is_the_smaller_time(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    results = copied("make_haste/xor_race", results_root, tmp_path, cell_ids)
    path = margins.by_margin(results, "xor_margin")[0].path("metrics")
    metrics = read_result(path)
    times = metrics["predicted_loss_half_time"]
    for solution, time in (("linear", 4.0), ("xor", np.nan), ("race", 3.0)):
        times.loc[{"solution": f"margin_{solution}"}] = time
    times.loc[{"solution": "margin_xor", "seed": 0}] = 2.0
    metrics["loss_half_time"][:] = 1.0
    write_result(metrics, path)
    cell = margins.by_margin(open_results(tmp_path, results), "xor_margin")[0]
    assert np.unique(margins.over_faster(cell).sel(seed=0)) == 0.5
    assert np.unique(margins.over_faster(cell, "margin_race").sel(seed=1)) == 0.75


def test_maps_are_outputs_of_the_network_without_the_margin(
    results_root: Path, cell_ids: list[str]
):
    cell = margins.by_margin(open_results(results_root, cell_ids), "xor_margin")[1]
    output = xor_boundary.output(cell)
    assert np.argmin(cell.spec.init_scales) == 3
    encoder, readout = (weight[3, :, -1] for weight in cell.weights())
    up, across = 7, 50
    side = np.linspace(-xor_boundary.SIDE, xor_boundary.SIDE, xor_boundary.DOTS)
    x = np.array([side[across], side[::-1][up], 0.0])
    expected = (readout @ np.maximum(encoder @ x, 0)[..., None]).mean()
    assert output[up, across] == pytest.approx(expected)


def test_a_task_without_a_margin_is_refused(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, cell_ids)
    with pytest.raises(UserError, match=r"xor_gated.*'xor' has no margin"):
        margins.margin(results.cell("xor_gated"))
    with pytest.raises(UserError, match=r"semantic_deep.*'hierarchy' has no margin"):
        margins.margin(results.cell("semantic_deep"))


def test_patterns_are_grouped_by_what_can_be(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, matching_cells("make_haste/lemma", cell_ids))
    panels = lemma.panel_a, lemma.panel_b, lemma.panel_c
    gates, units, outputs = (drawn(panel, results) for panel in panels)
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
    allowed, frame = gates.patches
    assert (allowed.get_y() + 0.5, allowed.get_height()) == (0, 10)
    assert frame.get_y() + 0.5 == rows.tolist().index([True, True, True, False])
    found = {props["color"]: markers(units, props["color"]) for props in (lemma.START, lemma.END)}
    for shares in (*found.values(), markers(outputs, lemma.END["color"])):
        assert sum(shares) == pytest.approx(1)
        assert shares[14:] == [0, 0]


def test_output_by_pattern_adds_up_to_what_is_measured(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, matching_cells("make_haste/lemma", cell_ids))
    carried = markers(drawn(lemma.panel_c, results), lemma.END["color"])
    measured = results.cell("lemma").metrics["share_beyond_lemma"].mean()
    assert 0.01 < measured < 0.99
    assert sum(carried[10:14]) == pytest.approx(float(measured))


def test_a_diverged_run_has_no_patterns(results_root: Path, cell_ids: list[str], tmp_path: Path):
    name = "make_haste/lemma"
    results = copied(name, results_root, tmp_path, cell_ids)
    path = tmp_path / next(iter(results)) / "trajectory.nc"
    trajectory = read_result(path)
    for layer in (1, 2):
        trajectory[f"weight_{layer}"].loc[{"seed": 1}] = np.nan
    alone = trajectory.sel(seed=[0])
    shown = []
    for content in (trajectory, alone):
        write_result(content, path)
        changed = open_results(tmp_path, matching_cells(name, cell_ids))
        panels = [drawn(panel, changed) for panel in (lemma.panel_b, lemma.panel_c)]
        shown.append([markers(ax, lemma.END["color"]) for ax in panels])
    assert shown[0] == shown[1]


def test_patterns_are_those_of_two_objects_in_two_contexts(
    results_root: Path, cell_ids: list[str], tmp_path: Path, retold
):
    (cell,) = matching_cells("make_haste/lemma", cell_ids)
    retold(results_root / "make_haste/three_contexts/main", tmp_path, cell)
    with pytest.raises(UserError, match=r"lemma.*2 objects in 2 contexts"):
        drawn(lemma.panel_a, open_results(tmp_path, [cell]))


def test_clusters_that_were_not_found_are_left_out(
    results_root: Path, cell_ids: list[str], tmp_path: Path
):
    name = "make_haste/clusters"
    results = copied(name, results_root, tmp_path, cell_ids)
    path = tmp_path / next(iter(results)) / "metrics.nc"
    metrics = read_result(path)
    for lost, left in (([], 4), ([4], 3), ([2, 3], None)):
        for variable in ("gates", "centroids", "share"):
            metrics[f"identified_{variable}"].loc[{"clusters": lost}] = np.nan
        write_result(metrics, path)
        changed = open_results(tmp_path, results)
        if left is None:
            with pytest.raises(UserError, match=r"contextual/main.*2 clusters"):
                drawn(clusters.panel_b, changed)
            continue
        ax = drawn(clusters.panel_b, changed)
        assert ax.get_title().startswith(f"$k$ = {left}:")
        at = {"source": "training", "clusters": left}
        centroids = metrics["identified_centroids"].isel(init_scale=0).sel(at)
        centroids = centroids.dropna("pathway").values
        shades = pictures(ax)
        assert len(shades) == len(centroids)
        for shade, centroid in zip(shades, centroids, strict=True):
            # from white where none is open on towards the colour of the row
            away = (1 - shade).sum(axis=-1)
            np.testing.assert_allclose(away * centroid.max(), centroid * away.max(), atol=1e-12)


def test_decomposition_gives_the_correlation_back(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, matching_cells("make_haste/semantic", cell_ids))
    ax = style.Canvas().subplots()
    semantic.panel_a(results, ax)
    total, u, s, v = (pictures(each) for each in ax.figure.axes[1:5])
    product = u @ s @ v
    np.testing.assert_allclose(product / product.max(), total, atol=1e-12)
    assert np.all(v.sum(axis=1) > -1e-9)
