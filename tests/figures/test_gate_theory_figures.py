"""Figures on frozen, refreshed and exclusive gates draw their metrics and formulas."""

import numpy as np
import pytest
from drawn_panels import drawn, means, points

from neuralrace.errors import UserError
from neuralrace.figures import frozen_gates, receptive_fields
from neuralrace.figures.localization import (
    best_gates,
    closed_forms,
    evolving,
    fourier,
    gating,
    one_unit,
    prediction,
)
from neuralrace.figures.style import GUIDE
from neuralrace.networks.gates.always_on import AlwaysOnSamples
from neuralrace.networks.gates.bumps import Bumps
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.networks.gates.tiling import Tiling
from neuralrace.results.cells import CellResults
from neuralrace.theory.ring import joint_blocks


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        (AlwaysOnSamples(name="always_on"), "always on"),
        (HalfSpace(name="half_space", pathways=3), "half-spaces"),
        (HalfSpace(name="half_space", pathways=3, antipodal=True), "antipodal pairs"),
        (HalfSpace(name="half_space", pathways=3, copies=2), "half-spaces, 2 copies"),
        (Bumps(name="bumps", pathways=3, width=0), "single inputs"),
        (Bumps(name="bumps", pathways=3, width=1.5), "bumps, width 1.5"),
        (Tiling(name="tiling", pathways=3, directions="random"), "tiling, random"),
        (Tiling(name="tiling", pathways=3, directions="bumps", width=0), "tiling, single inputs"),
        (Tiling(name="tiling", pathways=3, directions="bumps", width=2), "tiling, width 2"),
    ],
)
def test_every_gating_scheme_has_a_name(scheme, name: str):
    assert frozen_gates.scheme_name(scheme) == name


def test_networks_without_gates_by_sample_are_refused(results_of):
    results = results_of("localization/")
    with pytest.raises(UserError, match=r"evolving.*'layered': has no gates by sample"):
        frozen_gates.gates(results.cells("evolving")[0])


def test_networks_with_frozen_gates_are_compared_with_the_relu_network(results_of):
    results = results_of("localization/prediction")
    cell = results.cells("prediction")[0]
    (fields,) = drawn(prediction.panel_a, results)
    weights = cell.trajectory["weight_1"].isel(init_scale=0, seed=0, snapshot=-1)
    theory = cell.theory["receptive_fields"].isel(init_scale=0, seed=0)
    lines = [line.get_ydata() for line in fields.lines if len(line.get_xdata()) > 2]
    for unit in range(len(lines) // 2):
        for line, field in (
            (lines[unit], weights[unit]),
            (lines[len(lines) // 2 + unit], theory.sel(solution="initial_gates")[unit]),
        ):
            expected = field.values / np.abs(field.values).max() - receptive_fields.SPACING * unit
            np.testing.assert_allclose(line, expected, atol=1e-6)
    (losses,), (localised,) = drawn(prediction.panel_b, results), drawn(prediction.panel_c, results)
    names = [tick.get_text() for tick in losses.get_yticklabels()]
    assert names[:3] == ["ReLU, at the start", "ReLU, at the end", "half-spaces"]
    assert len(names) == len(set(names)) == cell.metrics.sizes["gates_from"]
    for ax, name, relu in (
        (losses, "frozen_fresh_loss", "relu_fresh_loss"),
        (localised, "frozen_localised_share", "localised_share"),
    ):
        np.testing.assert_allclose(points(ax, "o")[:, 0], means(cell, name))
        np.testing.assert_allclose(np.diff(points(ax, "o")[:, 1]), 1)
        assert ax.lines[-1].get_xdata() == pytest.approx([float(means(cell, relu))] * 2)
    written = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in localised.texts]
    for cosine in means(cell, "frozen_overlap"):
        assert f"{cosine:.2f}" in written


def test_mean_field_flow_is_compared_with_training(results_of):
    results = results_of("localization/one_unit")
    cells = [*results.cells("one_unit"), *results.cells("prediction")]
    at = {"solution": "mean_field"}
    (shares,), (cosines,) = drawn(one_unit.panel_c, results), drawn(one_unit.panel_d, results)
    for marker, values in (
        ("o", [float(means(cell, "localised_share")) for cell in cells]),
        ("D", [float(cell.metrics["predicted_localised_share"].sel(at).mean()) for cell in cells]),
    ):
        expected = np.stack([values, np.arange(len(cells))], axis=1)
        expected[-1, 1] += one_unit.GAP
        np.testing.assert_allclose(points(shares, marker), expected)
    medians = [cell.metrics["field_overlap"].sel(at)[0].median() for cell in cells]
    np.testing.assert_allclose(points(cosines, "|")[:, 0], medians)
    dots = [line.get_xydata() for line in cosines.lines if line.get_marker() == "o"]
    rows = points(cosines, "|")[:, 1]
    for shown, cell, row in zip(dots, cells, rows, strict=True):
        runs = np.sort(cell.metrics["field_overlap"].sel(at)[0])
        np.testing.assert_allclose(shown[:, 0], runs)
        assert (np.abs(shown[:, 1] - row) < 0.5).all()


def test_the_typical_field_and_its_flow_are_moved_together(results_of):
    results = results_of("localization/one_unit")
    single = [
        cell
        for cell in results.cells("one_unit")
        if not 0 < one_unit._gain(cell) < one_unit.SATURATING
    ]
    axes = [ax for ax in drawn(one_unit.panel_a, results) if ax.has_data()]
    for ax, cell in zip(axes, single, strict=True):
        learned, theory = one_unit._both(cell)
        shown, flow = (line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2)
        assert shown[len(shown) // 2] == pytest.approx(1)
        moves = [
            (sign * np.roll(field, shift), sign * np.roll(solution, shift))
            for field, solution in zip(learned, theory, strict=True)
            for shift in range(len(shown))
            for sign in (1, -1)
        ]
        assert any(np.allclose(a, shown) and np.allclose(b, flow) for a, b in moves)
        cosine = shown @ flow / np.linalg.norm(shown) / np.linalg.norm(flow)
        assert ax.get_title().endswith(f"cosine {cosine:.2f}")
        assert np.linalg.norm(flow) == pytest.approx(np.linalg.norm(shown))
        cosines = cell.metrics["field_overlap"].sel(solution="mean_field")[0].values
        localised = cell.metrics["localised_share"][0].values
        typical = np.sort(cosines[localised == (localised.mean() > 0.5)])
        assert cosine == pytest.approx(typical[len(typical) // 2], abs=1e-4)
        low, high = ax.get_ylim()
        assert low < min(*shown, *flow)
        assert high > max(*shown, *flow)


def test_fields_of_a_network_and_its_flow_are_means_over_units(results_of):
    results = results_of("localization/one_unit")
    (cell,) = results.cells("prediction")[:1]
    (ax,) = (ax for ax in drawn(one_unit.panel_b, results) if ax.has_data())
    shown = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
    learned = cell.trajectory["weight_1"].isel(init_scale=0, snapshot=-1).values
    theory = cell.theory["receptive_fields"].sel(solution="mean_field")[0].values
    sizes = np.linalg.norm(learned, axis=-1) / np.abs(learned).max(axis=-1)
    for line, fields in zip(shown, (learned, theory), strict=True):
        scaled = fields / np.linalg.norm(fields, axis=-1, keepdims=True) * sizes[..., None]
        fields = receptive_fields.centred(scaled.reshape(-1, fields.shape[-1]))
        np.testing.assert_allclose(line, fields.mean(axis=0), rtol=1e-5, atol=1e-7)


def test_refreshed_gates_are_drawn_by_interval_and_number(results_of):
    results = results_of("localization/evolving")
    cells = sorted(results.cells("evolving"), key=lambda cell: float(cell.flow_time[-1]))
    (distance,) = drawn(evolving.panel_a, results)
    for cell, marker in zip(cells, "os", strict=True):
        interval = cell.metrics["refresh_interval"].values
        expected = np.stack([interval, means(cell, "refresh_error")], axis=1)
        np.testing.assert_allclose(points(distance, marker), expected)
    (ax,) = drawn(evolving.panel_b, results)
    cell = cells[-1]
    (shown,) = (line.get_ydata() for line in ax.lines if line.get_marker() == "s")
    np.testing.assert_allclose(shown, means(cell, "refresh_localised_share"))
    assert points(ax, "D")[0, 1] == pytest.approx(float(means(cell, "localised_share")))
    runs = np.array([line.get_ydata() for line in ax.lines if line.get_marker() == "."]).T
    refreshed = cell.metrics["refresh_localised_share"][0].transpose("refreshes", "seed")
    np.testing.assert_allclose(runs[:-1], refreshed)
    np.testing.assert_allclose(runs[-1], cell.metrics["localised_share"][0])
    (line,) = (line for line in distance.lines if line.get_color() == GUIDE["color"])
    (x, y), end = line.get_xydata()
    assert y == pytest.approx(means(cells[0], "refresh_error")[-1])
    assert x == pytest.approx(float(cells[0].metrics["refresh_interval"].min()))
    assert end[1] / y == pytest.approx(end[0] / x)


def test_searched_gates_and_errors_by_frequency_are_drawn_run_by_run(results_of):
    results = results_of("localization/best_gates")
    metrics = results.cells("few_units")[0].metrics.isel(init_scale=0)
    (losses,), (errors,) = (
        drawn(panel, results) for panel in (best_gates.panel_a, best_gates.panel_b)
    )
    for line, source in zip(losses.lines, metrics["gates_from"].values, strict=True):
        at = metrics.sel(gates_from=source)
        aside = best_gates.SPREAD if "tiling" in source else 0
        np.testing.assert_allclose(line.get_xdata(), at["descended_diagonality"], atol=aside)
        np.testing.assert_allclose(line.get_ydata(), at["descended_loss"])
    rows = [metrics["shared_gates_error"].sel(refreshes=n) for n in (1, 5, 10)]
    rows += [metrics["shifted_relu_error"], metrics["relu_error"]]
    for row, (line, expected) in enumerate(zip(errors.lines, rows, strict=True)):
        np.testing.assert_allclose(line.get_xdata(), expected)
        assert set(line.get_ydata()) == {row}


def test_equation_7_as_printed_ends_at_the_metric(results_of):
    for cell in results_of("localization/closed_forms").cells("closed_forms"):
        loss = cell.trajectory["loss"].isel(init_scale=0).values
        printed = closed_forms.written_loss(cell)
        np.testing.assert_allclose(printed[:, 0], loss[:, 0], rtol=1e-10)
        expected = cell.metrics["written_loss_error"].sel(equation="7").isel(init_scale=0)
        error = np.abs(printed[:, -1] - loss[:, -1]) / loss[:, 0]
        np.testing.assert_allclose(error, expected, rtol=1e-8)
        assert error.min() > 0.01


def test_losses_and_weights_are_compared_with_closed_forms(results_of):
    results = results_of("localization/closed_forms")
    grouped: dict[str, list[CellResults]] = {}
    for cell in results.cells("closed_forms"):
        grouped.setdefault(frozen_gates.scheme_name(frozen_gates.gates(cell)), []).append(cell)
    assert len(grouped) == 2
    losses = (closed_forms.panel_a, closed_forms.panel_b)
    (rows,) = drawn(closed_forms.panel_d, results)
    row = 0
    for panel, cells in zip(losses, grouped.values(), strict=True):
        (ax,) = drawn(panel, results)
        cells = sorted(cells, key=lambda cell: cell.spec.training.learning_rate)
        simulated, theory, written = ax.lines
        slow = cells[0]
        np.testing.assert_allclose(simulated.get_ydata(), slow.trajectory["loss"][0].mean("seed"))
        closed = slow.theory["loss"].sel(solution="frozen_gates")[0].mean("seed")
        np.testing.assert_allclose(theory.get_ydata(), closed)
        np.testing.assert_allclose(
            written.get_ydata(), closed_forms.written_loss(slow).mean(axis=0)
        )
        for index in np.flatnonzero(np.isfinite(means(slow, "corrected_error"))):
            dots, crosses = (
                shown[np.abs(shown[:, 1] - row) < 0.5, 0]
                for shown in (points(rows, "o"), points(rows, "x"))
            )
            np.testing.assert_allclose(
                dots, [means(cell, "corrected_error")[index] for cell in cells]
            )
            np.testing.assert_allclose(crosses, [means(slow, "written_error")[index]])
            row += 1
    assert len(rows.get_yticklabels()) == row


def test_gates_of_relu_networks_are_from_the_same_task(results_of):
    results = results_of("localization/gating")
    (losses,), (coupling,) = drawn(gating.panel_b, results), drawn(gating.panel_c, results)
    cells = gating._cells(results)
    assert sorted(cell.name for cell in cells) == sorted(c.name for c in results.cells("gating"))
    lengths = receptive_fields.lengths_label(cells[0])
    same_task = (
        c for c in results.cells("prediction") if receptive_fields.lengths_label(c) == lengths
    )
    (relu,) = same_task
    fresh = [float(means(cell, "optimal_fresh_loss")) for cell in cells]
    assert fresh == sorted(fresh)
    at = relu.metrics["gates_from"].values.tolist().index("trained")
    (own,) = points(losses, "*")
    assert own == pytest.approx([float(means(relu, "frozen_limit_fresh_loss")[at]), len(cells)])
    tiles = [isinstance(frozen_gates.gates(cell), Tiling) for cell in cells]
    for marker, tiling in (("o", False), ("s", True)):
        rows = [row for row, tile in enumerate(tiles) if tile == tiling]
        shown = [(fresh[row], row) for row in rows]
        np.testing.assert_allclose(points(losses, marker), np.reshape(shown, (-1, 2)))
        shown = [
            (float(means(cells[row], "precision_diagonality")), fresh[row])
            for row in rows
            if frozen_gates.gates(cells[row]).count(cells[row].spec.dataset) > 1
        ]
        np.testing.assert_allclose(points(coupling, marker), np.reshape(shown, (-1, 2)))


def test_gates_are_drawn_by_scheme(results_of):
    results = results_of("localization/gating")
    (ax,) = drawn(gating.panel_a, results)
    for image, cell in zip(ax.get_images(), gating._cells(results), strict=False):
        scheme = frozen_gates.gates(cell)
        shown = np.asarray(image.get_array())
        assert shown.shape == (scheme.count(cell.spec.dataset), gating.SAMPLES)
        assert set(np.unique(shown)) <= {0.0, 1.0}
        assert np.all(np.diff(shown.argmax(axis=0)) >= 0)
        if isinstance(scheme, Tiling):
            assert np.all(shown.sum(axis=0) == 1)


def test_parts_are_drawn_with_their_distance_from_a_diagonal(results_of):
    results = results_of("localization/fourier")
    axes = [ax for ax in drawn(fourier.panel_a, results) if ax.get_images()]
    cells, measures = results.cells("ring"), [name for _, name in fourier.PARTS.values()]
    shown = np.reshape([ax.get_xlabel() for ax in axes], (len(cells), len(measures)))
    for row, cell in zip(shown, cells, strict=True):
        for text, name in zip(row, measures, strict=True):
            off = float(means(cell, name))
            diagonal = off < fourier.NONE
            assert text in (["diagonal", "zero"] if diagonal else [f"{off:.0%} off-diagonal"])
    for ax in axes:
        (image,) = ax.get_images()
        shades = np.asarray(image.get_array())
        assert -fourier.DECADES <= shades.min() <= shades.max() <= 0


def test_what_one_basis_misses_is_drawn_by_run(results_of):
    results = results_of("localization/fourier")
    (missed,) = drawn(fourier.panel_b, results)
    cell = max(results.cells("evolving"), key=lambda cell: cell.spec.training.learning_rate)
    dots = [line.get_ydata() for line in missed.lines if line.get_marker() == "o"]
    values = cell.metrics["basis_missed"].isel(init_scale=0).sel(moment=list(fourier.MISSED))
    np.testing.assert_allclose(
        dots, np.sort(values.transpose("moment", "seed").values, axis=1), atol=1e-9
    )


def test_a_circulant_matrix_is_its_spectrum_in_the_fourier_basis():
    row = np.random.default_rng(0).normal(size=8)
    circulant = np.array([np.roll(row, shift) for shift in range(8)])
    shown = fourier.in_fourier_basis(circulant)
    np.testing.assert_allclose(shown, np.diag(np.abs(np.fft.fft(row))), atol=1e-12)
    tilted = circulant + np.diag(np.arange(8))
    assert np.linalg.norm(fourier.in_fourier_basis(tilted)) == pytest.approx(np.linalg.norm(tilted))


def test_joint_frequencies_measure_the_part_outside_the_blocks():
    x = np.random.default_rng(0).normal(size=(50, 3 * 6))
    moment = (x.T @ x).reshape(3, 6, 3, 6)
    norms = fourier.by_joint_frequency(moment)
    joint = joint_blocks(moment)
    total = np.linalg.norm(moment)
    assert np.linalg.norm(norms) == pytest.approx(total)
    outside = norms - np.diag(np.diag(norms))
    assert np.linalg.norm(outside) == pytest.approx(joint.violation * total)
    np.testing.assert_allclose(
        np.sort(np.diag(norms)), np.sort(np.linalg.norm(joint.blocks, axis=(1, 2)))
    )
    with pytest.raises(ValueError, match="4 units cannot lie evenly on a ring of 6 inputs"):
        fourier.by_joint_frequency(np.zeros((4, 6, 4, 6)))
