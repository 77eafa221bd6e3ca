"""Figures on frozen, refreshed and exclusive gates draw their metrics and formulas."""

import numpy as np
import pytest
from drawn_panels import drawn, means, points

from neuralrace.errors import UserError
from neuralrace.figures import frozen_gates, receptive_fields
from neuralrace.figures.localization import (
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
    for panel, name, relu in (
        (prediction.panel_b, "fresh_loss", "relu_fresh_loss"),
        (prediction.panel_d, "localised_share", "localised_share"),
        (prediction.panel_e, "participation", "participation"),
    ):
        (ax,) = drawn(panel, results)
        names = [tick.get_text() for tick in ax.get_yticklabels()]
        assert names[:3] == ["ReLU, at the start", "ReLU, at the end", "half-spaces"]
        assert len(names) == len(set(names)) == cell.metrics.sizes["gates_from"]
        np.testing.assert_allclose(points(ax, "o")[:, 0], means(cell, f"frozen_{name}"))
        np.testing.assert_allclose(points(ax, "s")[:, 0], means(cell, f"frozen_limit_{name}"))
        np.testing.assert_allclose(np.diff(points(ax, "o")[:, 1]), 1)
        assert ax.lines[-1].get_xdata() == pytest.approx([float(means(cell, relu))] * 2)
    (ax,) = drawn(prediction.panel_c, results)
    np.testing.assert_allclose(points(ax, "o")[:, 0], means(cell, "frozen_overlap"))


def test_mean_field_flow_is_compared_with_training(results_of):
    results = results_of("localization/one_unit")
    cells = [*results.cells("one_unit"), *results.cells("prediction")]
    (spread,) = drawn(one_unit.panel_d, results)
    runs = [line for line in spread.lines if line.get_linestyle() == "None"]
    for line, cell in zip(runs, cells, strict=True):
        predicted = cell.metrics["predicted_participation"].sel(solution="mean_field")
        expected = np.stack([predicted[0], cell.metrics["participation"][0]], axis=1)
        np.testing.assert_allclose(line.get_xydata(), expected)
    diagonal = spread.lines[-1]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    for panel, metric in (
        (one_unit.panel_e, "predicted_localised_share"),
        (one_unit.panel_f, "field_overlap"),
    ):
        (rows,) = drawn(panel, results)
        flow = [cell.metrics[metric].sel(solution="mean_field").mean() for cell in cells]
        marks = [
            line.get_xydata()[0]
            for line in rows.lines
            if line.get_linestyle() == "None"
            and (metric != "predicted_localised_share" or line.get_marker() == "|")
        ]
        np.testing.assert_allclose(np.array(marks)[:, 0], flow)
        np.testing.assert_array_equal(np.array(marks)[:, 1], range(len(cells)))


def test_receptive_fields_of_all_runs_are_centred(results_of):
    results = results_of("localization/one_unit")
    cells = results.cells("one_unit")
    lengths = receptive_fields.lengths_label(cells[0])
    first = [cell for cell in cells if receptive_fields.lengths_label(cell) == lengths]
    shown = {one_unit.panel_a: first, one_unit.panel_c: results.cells("prediction")}
    for panel, expected in shown.items():
        for ax, cell in zip(drawn(panel, results), expected, strict=True):
            learned = cell.trajectory["weight_1"].isel(init_scale=0, snapshot=-1).values
            theory = cell.theory["receptive_fields"].sel(solution="mean_field")[0].values
            lines = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
            for line, fields in zip(lines, (learned, theory), strict=True):
                fields = fields.reshape(-1, fields.shape[-1])
                middle = fields.shape[1] // 2
                total = np.zeros(fields.shape[1])
                for field in fields:
                    largest = np.abs(field).argmax()
                    total += np.roll(field, middle - largest) / field[largest]
                np.testing.assert_allclose(line, total / len(fields), atol=1e-6)
                assert line[middle] == pytest.approx(1)


def test_refreshed_gates_are_drawn_by_interval_and_number(results_of):
    results = results_of("localization/evolving")
    cells = sorted(results.cells("evolving"), key=lambda cell: float(cell.flow_time[-1]))
    (distance,) = drawn(evolving.panel_a, results)
    for cell, marker in zip(cells, "os", strict=True):
        interval = cell.metrics["refresh_interval"].values
        expected = np.stack([interval, means(cell, "refresh_error")], axis=1)
        np.testing.assert_allclose(points(distance, marker), expected)
    for panel, metric in (
        (evolving.panel_b, "participation"),
        (evolving.panel_c, "localised_share"),
    ):
        (ax,) = drawn(panel, results)
        levels = [line.get_ydata() for line in ax.lines if list(line.get_xdata()) == [0, 1]]
        for cell, marker, level in zip(cells, "os", levels, strict=True):
            shown = points(ax, marker)
            np.testing.assert_allclose(shown[:, 1], means(cell, f"refresh_{metric}"))
            assert level == pytest.approx([float(means(cell, metric))] * 2)
    (line,) = (line for line in distance.lines if line.get_color() == GUIDE["color"])
    (x, y), end = line.get_xydata()
    assert y == pytest.approx(means(cells[0], "refresh_error")[-1])
    assert x == pytest.approx(float(cells[0].metrics["refresh_interval"].min()))
    assert end[1] / y == pytest.approx(end[0] / x)


def test_equation_7_as_printed_ends_at_the_metric(results_of):
    for cell in results_of("localization/closed_forms").cells("closed_forms"):
        loss = cell.trajectory["loss"].isel(init_scale=0).values
        printed = closed_forms.written_loss(cell)
        np.testing.assert_allclose(printed[:, 0], loss[:, 0], rtol=1e-10)
        expected = cell.metrics["written_loss_error"].sel(equation="7").isel(init_scale=0)
        error = np.abs(printed[:, -1] - loss[:, -1]) / loss[:, 0]
        np.testing.assert_allclose(error, expected, rtol=1e-8)
        assert error.min() > 0.01


def test_closed_forms_are_those_of_the_smallest_learning_rate(results_of):
    results = results_of("localization/closed_forms")
    grouped: dict[str, list[CellResults]] = {}
    for cell in results.cells("closed_forms"):
        grouped.setdefault(frozen_gates.scheme_name(frozen_gates.gates(cell)), []).append(cell)
    assert len(grouped) == 2
    losses = (closed_forms.panel_a, closed_forms.panel_b)
    rates, exact, equations, drift, shares = (
        drawn(getattr(closed_forms, f"panel_{letter}"), results)[0] for letter in "defhi"
    )
    for panel, marker, cells in zip(losses, "os", grouped.values(), strict=True):
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
        errors = [
            float(cell.metrics["field_error"].sel(solution="frozen_gates").mean()) for cell in cells
        ]
        steps = [cell.spec.training.learning_rate for cell in cells]
        np.testing.assert_allclose(points(rates, marker), np.stack([steps, errors], axis=1))
        corrected = means(slow, "corrected_error")
        known = np.flatnonzero(np.isfinite(corrected))
        offset = points(exact, marker)[0, 0]
        expected = np.stack([known + offset, corrected[known]], axis=1)
        np.testing.assert_allclose(points(equations, marker), expected)
        np.testing.assert_allclose(points(exact, marker)[:, 1], means(slow, "loss_error_sup"))
        ((_, level),) = points(drift, marker)
        assert level == pytest.approx(float(means(slow, "difference_drift")))
        expected = [float(means(slow, metric)) for metric in closed_forms.SHARES]
        np.testing.assert_allclose(points(shares, marker)[:, 1], expected)


def test_exclusive_pathways_are_drawn_by_samples_of_least_squares(results_of):
    results = results_of("localization/closed_forms")
    (ax,) = drawn(closed_forms.panel_g, results)
    misfit = results.cells("exclusive_limit")[0].metrics["least_squares_misfit"]
    for marker, samples in zip("os^", ("own gate", "next gate", "all"), strict=True):
        ((_, level),) = points(ax, marker)
        assert level == pytest.approx(float(misfit.sel(fitted_on=samples).mean()))


def test_gates_of_relu_networks_are_from_the_same_task(results_of):
    results = results_of("localization/gating")
    (losses,), (equations,) = drawn(gating.panel_a, results), drawn(gating.panel_b, results)
    cells = results.cells("gating")
    lengths = receptive_fields.lengths_label(cells[0])
    same_task = (
        c for c in results.cells("prediction") if receptive_fields.lengths_label(c) == lengths
    )
    (relu,) = same_task
    fit = [means(cell, "optimal_loss") for cell in cells]
    fresh = [float(means(cell, "optimal_fresh_loss")) for cell in cells]
    at = relu.metrics["gates_from"].values.tolist().index("trained")
    expected = [*fit, means(relu, "frozen_limit_loss")[at]]
    np.testing.assert_allclose(points(losses, "|")[:, 0], expected)
    (own,) = points(losses, "*")
    assert own == pytest.approx([float(means(relu, "frozen_limit_fresh_loss")[at]), len(cells)])
    for row, marker in enumerate("os"):
        assert points(losses, marker)[0] == pytest.approx([fresh[row], row])
        by_equation = dict(
            zip(("12", "14", "15", "17"), means(cells[row], "equation_loss"), strict=True)
        )
        assert points(equations, marker)[0] == pytest.approx([by_equation["12"], row])
        others = points(equations, "x")[2 * row : 2 * row + 2]
        np.testing.assert_allclose(others[:, 0], [by_equation["14"], by_equation["15"]])
        printed = equations.lines[-1].get_xydata()[row]
        np.testing.assert_allclose(printed, [by_equation["17"], row], atol=1e-12)
        for panel, metric in (
            (gating.panel_c, "second_moment_diagonality"),
            (gating.panel_d, "precision_diagonality"),
        ):
            (ax,) = drawn(panel, results)
            assert points(ax, marker)[0] == pytest.approx(
                [float(means(cells[row], metric)), fresh[row]]
            )


def test_distances_from_symmetry_are_the_metrics(results_of):
    results = results_of("localization/fourier")
    (ax,), (missed,) = drawn(fourier.panel_e, results), drawn(fourier.panel_f, results)
    for cell, marker in zip(results.cells("ring"), "os", strict=True):
        expected = [means(cell, name) for name in fourier.DISTANCES]
        np.testing.assert_allclose(points(ax, marker)[:, 0], expected, atol=1e-15)
    cell = max(results.cells("evolving"), key=lambda cell: cell.spec.training.learning_rate)
    shown = np.concatenate([points(missed, marker) for marker in "os^"])
    np.testing.assert_allclose(shown[:, 0], means(cell, "basis_missed"), atol=1e-15)


def test_shades_are_powers_of_ten_below_the_largest_entry(results_of):
    for ax in drawn(fourier.panel_b, results_of("localization/fourier")):
        (image,) = ax.get_images()
        shades = np.asarray(image.get_array())
        assert shades.max() == 0
        assert -fourier.DECADES <= shades.min() < 0


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
