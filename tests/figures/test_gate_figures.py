"""Figures on margins, patterns of gates and clusters: selection, derived values, errors."""

from pathlib import Path

import numpy as np
import pytest
from drawn_panels import drawn
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from neuralrace.errors import UserError
from neuralrace.figures import contextual, margins
from neuralrace.figures.make_haste import clusters, lemma, semantic, xor_boundary, xor_margin
from neuralrace.results.cells import Results, open_results
from neuralrace.results.files import read_result, write_result


def pictures(ax: Axes) -> np.ndarray:
    """The matrix that a panel shows as shades."""
    (image,) = ax.get_images()
    return np.asarray(image.get_array())


def markers(ax: Axes, colour: object) -> list[float]:
    """x of the markers of a colour, row by row."""
    marked = [line for line in ax.lines if line.get_marker() not in ("", "None")]
    own = [line for line in marked if line.get_color() == colour]
    return [float(line.get_xdata()[0]) for line in sorted(own, key=lambda m: m.get_ydata()[0])]


@pytest.mark.parametrize(
    ("values", "positions"),
    [
        ([0.25, 0.5, 0.7, 0.8165, 1.0, 1.3, 1.6, 2.0], [1, 3, 5]),
        ([0.25, 0.5], [0, 1]),
        ([1.0, 1.5, 2.0], [0, 1]),
        ([0.8], [0]),
    ],
)
def test_losses_are_drawn_near_equal_speed_and_on_either_side(
    values: list[float], positions: list[int]
):
    assert margins.example_indices(values) == positions


def test_half_times_are_those_of_the_race_at_the_smallest_scale(results_of):
    results = results_of("make_haste/xor_margin")
    (times,) = drawn(xor_margin.panel_d, Results(reversed(list(results.values()))))
    shown = margins.by_margin(results, "xor_margin")
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


def test_margins_that_one_kind_alone_does_not_learn_have_a_cross(copy_of, tmp_path: Path):
    results = copy_of("make_haste/xor_margin")
    shown = margins.by_margin(results, "xor_margin")
    path = shown[1].path("metrics")
    metrics = read_result(path)
    times = metrics["predicted_loss_half_time"]
    times.loc[{"solution": "margin_linear"}] = 5.0
    times.loc[{"solution": "margin_xor"}] = 4.0
    times.loc[{"solution": "margin_xor", "seed": 1}] = np.nan
    write_result(metrics, path)
    (ax,) = drawn(xor_margin.panel_d, open_results(tmp_path, results))
    crosses = {line.get_color(): line for line in ax.lines if line.get_marker() == "x"}
    assert 0.5 not in crosses[margins.LINEAR["color"]].get_xdata()
    assert 0.5 in crosses[margins.XOR["color"]].get_xdata()


def test_gated_networks_are_paired_by_margin(results_of):
    pairs = margins.gated_pairs(results_of("make_haste/"))
    assert [margins.margin(cell) for cell, _ in pairs] == [0.5, 0.8165]
    for linear, xor in pairs:
        assert margins.margin(linear) == margins.margin(xor)
        assert contextual.pathway_gates(linear).sum(axis=1).tolist() == [2, 2]
        assert contextual.pathway_gates(xor).sum(axis=1).tolist() == [1, 1, 1, 1]


def test_faster_kind_has_the_smaller_half_time(copy_of, tmp_path: Path):
    results = copy_of("make_haste/xor_race")
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


def test_maps_are_outputs_of_the_network_at_margin_zero(results_of):
    cell = margins.by_margin(results_of("make_haste/"), "xor_margin")[1]
    output = xor_boundary.output(cell)
    assert np.argmin(cell.spec.init_scales) == 3
    encoder, readout = (weight[3, :, -1] for weight in cell.weights())
    up, across = 7, 50
    side = np.linspace(-xor_boundary.SIDE, xor_boundary.SIDE, xor_boundary.DOTS)
    x = np.array([side[across], side[::-1][up], 0.0])
    expected = (readout @ np.maximum(encoder @ x, 0)[..., None]).mean()
    assert output[up, across] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("figure", "experiment", "dataset"),
    [
        ("neural_race/xor", "neural_race.xor_gated", "'xor'"),
        ("deep_linear/semantic", "deep_linear.semantic_deep", "'hierarchy'"),
    ],
)
def test_task_without_a_margin_is_refused(results_of, figure: str, experiment: str, dataset: str):
    cell = results_of(figure).cell(experiment.partition(".")[2])
    with pytest.raises(UserError, match="has no margin") as error:
        margins.margin(cell)
    assert error.value.key == f"experiments.{experiment}.dataset.name"
    assert error.value.value == dataset


def test_patterns_are_grouped_by_realisability(results_of):
    results = results_of("make_haste/lemma")
    panels = lemma.panel_a, lemma.panel_b, lemma.panel_c
    gates, units, outputs = (ax for panel in panels for ax in drawn(panel, results))
    rows = pictures(gates).astype(bool)
    assert len({tuple(row) for row in rows.tolist()}) == 16
    # shut everywhere, open on one sample, in one context or on one object, everywhere
    assert sorted(rows[:10].sum(axis=1)) == [0, 1, 1, 1, 1, 2, 2, 2, 2, 4]
    context, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])  # of the samples
    halves = sorted(half.tolist() for key in (context, item) for half in (key == 0, key == 1))
    assert sorted(rows[5:9].tolist()) == halves
    # open on all samples but one
    assert rows[10:14].sum(axis=1).tolist() == [3, 3, 3, 3]
    assert rows[14:].tolist() == [[False, True, True, False], [True, False, False, True]]
    allowed, frame = gates.patches
    assert (allowed.get_y() + 0.5, allowed.get_height()) == (0, 10)
    assert frame.get_y() + 0.5 == rows.tolist().index([True, True, True, False])
    by_colour = [markers(units, props["color"]) for props in (lemma.START, lemma.END)]
    for shares in (*by_colour, markers(outputs, lemma.END["color"])):
        assert sum(shares) == pytest.approx(1)
        assert shares[14:] == [0, 0]


def test_output_by_pattern_adds_up_to_the_metric(results_of):
    results = results_of("make_haste/lemma")
    (ax,) = drawn(lemma.panel_c, results)
    carried = markers(ax, lemma.END["color"])
    measured = results.cell("lemma").metrics["share_beyond_lemma"].mean()
    assert 0.01 < measured < 0.99
    assert sum(carried[10:14]) == pytest.approx(float(measured))


def test_diverged_runs_have_no_patterns(copy_of, tmp_path: Path):
    results = copy_of("make_haste/lemma")
    path = tmp_path / next(iter(results)) / "trajectory.nc"
    trajectory = read_result(path)
    for layer in (1, 2):
        trajectory[f"weight_{layer}"].loc[{"seed": 1}] = np.nan
    alone = trajectory.sel(seed=[0])
    shown = []
    for content in (trajectory, alone):
        write_result(content, path)
        changed = open_results(tmp_path, results)
        panels = [ax for panel in (lemma.panel_b, lemma.panel_c) for ax in drawn(panel, changed)]
        shown.append([markers(ax, lemma.END["color"]) for ax in panels])
    assert shown[0] == shown[1]


def test_patterns_of_other_tasks_are_refused(results_root: Path, tmp_path: Path, copy_cell):
    cell = "make_haste/lemma/main"
    copy_cell(results_root / "make_haste/three_contexts/main", tmp_path, cell)
    with pytest.raises(UserError, match=r"lemma.*2 objects in 2 contexts"):
        drawn(lemma.panel_a, open_results(tmp_path, [cell]))


def test_absent_clusters_are_left_out(copy_of, tmp_path: Path):
    results = copy_of("make_haste/clusters")
    path = tmp_path / next(iter(results)) / "metrics.nc"
    metrics = read_result(path)
    for lost, left in (([], 4), ([4], 3), ([2, 3], None)):
        for variable in ("gates", "centroids", "share"):
            metrics[f"identified_{variable}"].loc[{"clusters": lost}] = np.nan
        write_result(metrics, path)
        changed = open_results(tmp_path, results)
        if left is None:
            with pytest.raises(UserError, match=r"contextual/main.*2 clusters"):
                drawn(clusters.panel_a, changed)
            continue
        ax = drawn(clusters.panel_a, changed)[clusters.NUMBERS.index(4)]
        assert ax.get_title().startswith(f"$k$ = {left}:")
        at = {"source": "training", "clusters": left}
        centroids = metrics["identified_centroids"].isel(init_scale=0).sel(at)
        centroids = centroids.dropna("pathway").values
        (mesh,) = (artist for artist in ax.collections if isinstance(artist, QuadMesh))
        shades = np.asarray(mesh.get_array())
        assert len(shades) == len(centroids)
        for shade, centroid in zip(shades, centroids, strict=True):
            # Shades go from white, where no gate is open, to the colour of the row.
            away = (1 - shade).sum(axis=-1)
            np.testing.assert_allclose(away * centroid.max(), centroid * away.max(), atol=1e-12)


def test_factors_multiply_to_the_correlation(results_of):
    results = results_of("make_haste/semantic")
    axes = drawn(semantic.panel_a, results)[:4]
    total, u, s, v = map(pictures, axes)
    strengths = results.cell("semantic_deep").target.values
    # strengths are written, on entries without a shade
    assert [text.get_text() for text in axes[2].texts] == [f"{value:.1f}" for value in strengths]
    np.testing.assert_array_equal(s, np.where(np.eye(len(s)), np.nan, 0))
    product = u @ np.diag(strengths) @ v
    # vectors are drawn with nine digits, so that an entry of any is off by half a unit of the last
    atol = len(s) * 2 * 0.5e-9
    np.testing.assert_allclose(product / product.max(), total, atol=atol)
    assert np.all(v.sum(axis=1) > -1e-9)
