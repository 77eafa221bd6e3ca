"""Figures of receptive fields draw their metrics and recorded weights."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from drawn_panels import curves, drawn, has_curve, means, points
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.errors import UserError
from neuralrace.figures import receptive_fields
from neuralrace.figures.localization import (
    classes,
    data,
    gate_flips,
    growth,
    marginals,
    single_pulse,
)
from neuralrace.figures.localization import receptive_fields as fields_figure
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import Results, open_results
from neuralrace.results.files import write_result

draws = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.fixture(scope="module")
def results(results_of) -> Results:
    return results_of("localization/")


def bars(ax: Axes) -> np.ndarray:
    """Widths of bars in the order they are drawn, a row for each condition."""
    return np.array([patch.get_width() for patch in ax.patches]).reshape(-1, 3)


def shares(cell) -> list[float]:
    names = ("localised_share", "neither_share", "oscillating_share")
    return [float(means(cell, name)) for name in names]


@given(draws, st.integers(1, 12), st.integers(1, 5))
def test_examples_are_sorted_by_centre(rng: np.random.Generator, units: int, count: int):
    inputs = 16
    positions = rng.permutation(inputs)[:units]
    fields = np.zeros((units, inputs))
    fields[np.arange(units), positions] = rng.choice([-1, 1], units) * rng.uniform(0.1, 10, units)
    chosen = receptive_fields.examples(fields, count)
    assert len(chosen) == min(count, units)
    centres = np.abs(chosen).argmax(axis=1)
    assert np.all(np.diff(centres) > 0)
    assert set(centres) <= set(positions)


def test_examples_are_spread_over_the_ring():
    fields = np.eye(12)
    np.testing.assert_array_equal(receptive_fields.examples(fields, 3).argmax(axis=1), [2, 6, 10])


@given(draws)
def test_a_field_is_drawn_over_its_largest_weight(rng: np.random.Generator):
    fields = rng.normal(size=(3, 8)) * 10.0 ** rng.integers(-6, 6, (3, 1))
    ax = Figure().subplots()
    receptive_fields.draw_fields(ax, fields)
    shapes = [curve + receptive_fields.SPACING * row for row, curve in enumerate(curves(ax))]
    largest = np.abs(fields).max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.array(shapes) * largest, fields, atol=1e-12 * largest.max())
    low, high = ax.get_ylim()
    assert low < min(map(np.min, curves(ax)))
    assert high > max(map(np.max, curves(ax)))


@given(draws)
def test_centred_fields_have_their_largest_weight_in_the_middle(rng: np.random.Generator):
    fields = rng.normal(size=(3, 8))
    moved = receptive_fields.centred(fields)
    np.testing.assert_allclose(moved[:, 4], np.abs(fields).max(axis=1))
    for before, after in zip(fields, moved, strict=True):
        around = [sign * np.roll(before, step) for step in range(8) for sign in (1, -1)]
        assert np.isclose(around, after).all(axis=1).any()


@given(draws, st.integers(2, 9))
def test_moments_around_the_ring_are_means_over_places(rng: np.random.Generator, inputs: int):
    x = rng.normal(size=(5, inputs)) + rng.normal()
    expected = [np.mean(x * np.roll(x, -step, axis=1)) for step in range(inputs // 2 + 1)]
    np.testing.assert_allclose(data.around_ring(x), expected, atol=1e-12)


def test_conditions_have_names(results: Results):
    cells = results.cells("relu_low_gain")
    assert [receptive_fields.lengths_label(cell) for cell in cells] == ["5, 1", "2, 1"]
    assert receptive_fields.marginal_name(cells[0]) == "gain 0.05"
    names = [receptive_fields.marginal_name(cell) for cell in results.cells("marginals")]
    assert names == ["Laplace", "Gaussian"]


def test_cells_without_the_drawn_part_are_refused(results: Results):
    pulse, process = results.cells("single_pulse")[0], results.cells("relu")[0]
    with pytest.raises(UserError, match=r"'single_pulse': has no correlation lengths"):
        receptive_fields.process(pulse)
    with pytest.raises(UserError, match=r"'nonlinear_gaussian': has no pulses"):
        receptive_fields.pulses(process)
    with pytest.raises(UserError, match=r"'gated': has no activation"):
        classes._network(results.cells("gating")[0])


def test_moments_of_samples_and_of_their_distribution_are_drawn(results: Results):
    shown = {
        "relu": (data.panel_a, data.panel_e),
        "relu_low_gain": (data.panel_b, data.panel_e),
        "single_pulse": (data.panel_c, data.panel_f),
    }
    for name, (samples, moments) in shown.items():
        cell = results.cells(name)[0]
        sample, law = cell.data, cell.spec.dataset.mixture()
        (measured,) = drawn(moments, results)
        for ax, target, closed in zip(
            drawn(samples, results), law.targets, law.covariances, strict=True
        ):
            members = sample.x[sample.y[:, 0] == target]
            assert len(curves(ax)) == data.SHOWN
            assert all(any(np.array_equal(curve, x) for x in members) for curve in curves(ax))
            assert has_curve(measured, data.around_ring(members))
            assert has_curve(measured, closed[0, :21])
    # every pulse is equally often in the fixed sample
    markers, line, *_ = curves(measured)
    np.testing.assert_allclose(markers, line, atol=1e-12)


def test_density_of_an_input_is_that_of_its_distribution(results: Results):
    (ax,) = drawn(data.panel_d, results)
    for line, name in zip(ax.lines, ("relu", "relu_low_gain"), strict=True):
        law = receptive_fields.process(results.cells(name)[0]).marginal
        x, density = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        middle = np.abs(x) < 0.8
        between = np.trapezoid(density[middle], x[middle])
        values, weights = law.quadrature
        assert between == pytest.approx(weights[np.abs(values) < 0.8].sum(), abs=0.02)


def test_receptive_fields_are_of_the_first_run_and_bars_of_all_runs(results: Results):
    relu = [cell for name in ("relu", "relu_low_gain") for cell in results.cells(name)]
    lengths = {receptive_fields.lengths_label(cell) for cell in results.cells("erf")}
    shown = {
        fields_figure.panel_a: [
            cell for cell in relu if receptive_fields.lengths_label(cell) in lengths
        ],
        fields_figure.panel_b: results.cells("erf"),
        fields_figure.panel_c: results.cells("sigmoid"),
    }
    for panel, cells in shown.items():
        axes = [ax for ax in drawn(panel, results) if curves(ax)]
        assert len(axes) == len(cells) >= 2
        by_shares = {tuple(np.round(bars(ax)[0], 9)): ax for ax in axes}
        for cell in cells:
            ax = by_shares[tuple(np.round(shares(cell), 9))]
            np.testing.assert_allclose(bars(ax), [shares(cell)])
        shown_fields = np.array([curves(ax)[0] for ax in axes])
        for cell in cells:
            weights = cell.trajectory["weight_1"].values[0, 0, -1]
            shapes = weights / np.abs(weights).max(axis=1, keepdims=True)
            assert np.isclose(shown_fields[:, None], shapes).all(axis=-1).any()


@pytest.mark.parametrize(
    ("panel", "experiment", "names"),
    [
        (fields_figure.panel_d, "relu", ["dominant_frequency"]),
        (single_pulse.panel_c, "single_pulse", ["participation_ratio"]),
        (single_pulse.panel_d, "single_pulse", ["localised_share"]),
        (growth.panel_d, "gate_flips", list(growth.MODES)),
    ],
)
def test_points_are_means_of_metrics(results: Results, panel, experiment: str, names: list[str]):
    (ax,) = drawn(panel, results)
    # the panel of growth shows several metrics of the first cell, the others one of all cells
    cells = results.cells(experiment)[: 1 if len(names) > 1 else None]
    expected = [float(means(cell, name)) for name in names for cell in cells]
    np.testing.assert_allclose(points(ax)[:, 1], expected)


def test_bars_are_mean_shares_and_lines_their_ranges(results: Results, tmp_path: Path):
    rng = np.random.default_rng(0)
    panels = {
        classes.panel_a: ("relu",),
        classes.panel_d: ("relu_biases",),
        classes.panel_e: ("erf_without_biases", "sigmoid_without_biases"),
        classes.panel_f: ("relu_sizes", "trained_readout"),
    }
    for cell in results.values():
        if cell.name.split("/")[1] in sum(panels.values(), ()):
            metrics = cell.metrics.copy()
            for name, share in zip(
                receptive_fields.CLASS_STYLES, rng.dirichlet([1, 1, 1], 2).T, strict=True
            ):
                metrics[f"{name}_share"] = metrics[f"{name}_share"].copy(data=[share])
            write_result(metrics, tmp_path / cell.name / "metrics.nc")
    results = open_results(tmp_path, results)
    names = {}
    for panel, experiments in panels.items():
        cells = [cell for name in experiments for cell in results.cells(name)]
        (ax,) = drawn(panel, results)
        names[panel] = [tick.get_text() for tick in ax.get_yticklabels()]
        np.testing.assert_allclose(bars(ax), [shares(cell) for cell in cells])
        lefts = np.reshape([patch.get_x() for patch in ax.patches], (-1, 3))
        np.testing.assert_allclose((lefts + bars(ax))[:, :-1], lefts[:, 1:])
        np.testing.assert_allclose((lefts + bars(ax))[:, -1], 1)
        thin = np.array([line.get_xdata() for line in ax.lines[1::2]]).reshape(len(cells), 2, 2)
        heights = np.reshape([line.get_ydata()[0] for line in ax.lines[1::2]], (-1, 2))
        assert np.all(np.diff(heights) > 0)  # rows go down: the localised range is the upper one
        for (localised, oscillating), cell in zip(thin, cells, strict=True):
            share = smallest_scale(cell.metrics["localised_share"])
            np.testing.assert_allclose(localised, [share.min(), share.max()])
            share = 1 - smallest_scale(cell.metrics["oscillating_share"])
            np.testing.assert_allclose(oscillating, [share.min(), share.max()])
    assert names[classes.panel_d] == ["5, 1", "5, 1; cross-entropy", "1, 5", "1, 5; cross-entropy"]
    assert names[classes.panel_e][0] == "erf 5, 1"
    assert names[classes.panel_f][-1].endswith("; own readout")


def test_low_gains_and_other_activations_have_separate_panels(results: Results):
    (low,), (high,) = drawn(classes.panel_b, results), drawn(classes.panel_c, results)
    others = [cell for name in ("erf", "sigmoid") for cell in results.cells(name)]
    expected = [
        *results.cells("relu_low_gain"),
        *(cell for cell in others if receptive_fields.marginal_name(cell) == "gain 0.05"),
    ]
    np.testing.assert_allclose(bars(low), [shares(cell) for cell in expected])
    cells = [cell for name in ("erf", "erf_offset", "sigmoid") for cell in results.cells(name)]
    expected = [cell for cell in cells if receptive_fields.marginal_name(cell) == "gain 3"]
    np.testing.assert_allclose(bars(high), [shares(cell) for cell in expected])
    names = [tick.get_text() for tick in high.get_yticklabels()]
    assert "erf 5, 1; $b_2 = 1/2$" in names


def test_losses_are_the_metrics(results: Results):
    (ax,) = drawn(classes.panel_g, results)
    lengths = {receptive_fields.lengths_label(cell) for cell in results.cells("trained_readout")}
    expected = [
        float(cell.metrics["relative_loss"].mean())
        for name in classes.LOSSES
        for cell in results.cells(name)
        if receptive_fields.lengths_label(cell) in lengths
        and receptive_fields.marginal_name(cell) == "gain 3"
    ]
    np.testing.assert_allclose(points(ax)[:, 1], expected)


def test_marginals_are_drawn_at_their_kurtosis(results: Results):
    xi = (5.0, 1.0)
    cells = results.cells("marginals") + [
        cell
        for name in ("relu", "relu_low_gain")
        for cell in results.cells(name)
        if receptive_fields.process(cell).xi == xi
    ]
    kurtosis = {
        receptive_fields.marginal_name(cell): receptive_fields.process(cell).marginal.kurtosis
        for cell in cells
    }
    for panel, measure in (
        (marginals.panel_b, "participation_ratio"),
        (marginals.panel_c, "localised_share"),
        (marginals.panel_d, "participation"),
    ):
        (ax,) = drawn(panel, results)
        shown = sorted(points(ax).tolist())
        expected = [
            (kurtosis[receptive_fields.marginal_name(cell)], float(means(cell, measure)))
            for cell in cells
        ]
        np.testing.assert_allclose(shown, sorted(expected))
        assert shown[-1][0] == pytest.approx(3)
    fields = drawn(marginals.panel_a, results)
    assert len(fields) == len(cells)
    assert [kurtosis[ax.get_xlabel()] for ax in fields] == sorted(kurtosis.values())


def test_pulses_are_drawn_by_order_of_their_widths(results: Results):
    cells = results.cells("single_pulse")
    orders = {single_pulse.panel_a: cells[:4], single_pulse.panel_b: cells[4:]}
    assert {receptive_fields.pulses(cell).widths[0][0] for cell in cells[:4]} == {11}
    for panel, shown in orders.items():
        axes = drawn(panel, results)
        for ax, cell in zip(axes, shown, strict=True):
            weights = cell.trajectory["weight_1"].values[0, 0, -1]
            shapes = weights / np.abs(weights).max(axis=1, keepdims=True)
            assert np.isclose(shapes, curves(ax)[0]).all(axis=1).any()
        assert axes[2].get_xlabel() == "0 and 1,\nexchanged"


def test_gate_flips_are_the_metrics(results: Results):
    cells = results.cells("gate_flips")
    for panel, cell in zip((gate_flips.panel_a, gate_flips.panel_b), cells, strict=True):
        (ax,) = drawn(panel, results)
        for scale in cell.metrics["init_scale"]:
            at: xr.Dataset = cell.metrics.sel(init_scale=scale).mean("seed")
            assert has_curve(ax, at["gate_flip_fraction"].sel(layer=1))
            assert has_curve(ax, at["predicted_gate_flips"])
    *pairs, _ = drawn(gate_flips.panel_d, results)
    for ax, cell in zip(pairs, cells, strict=True):
        slowest = cell.metrics.sel(init_scale=cell.metrics["init_scale"].max(), layer=1)
        (mesh,) = ax.collections
        np.testing.assert_allclose(mesh.get_array(), slowest["gate_flips_between"].mean("seed"))
    (ax,) = drawn(gate_flips.panel_c, results)
    expected = [
        float(cell.metrics[metric].sel(init_scale=scale, layer=1).mean())
        for cell in cells
        for metric in ("final_gate_flips", "never_changed")
        for scale in sorted(cell.spec.init_scales)
    ]
    np.testing.assert_allclose(points(ax)[:, 1], expected)


def test_growth_is_from_start_to_end_of_each_run(results: Results):
    cell = results.cells("gate_flips")[0]
    (ax,) = drawn(growth.panel_a, results)
    for curve in (
        smallest_scale(cell.metrics["field_norm_curve"]) ** 2,
        smallest_scale(cell.metrics["participation_curve"]),
    ):
        values = curve.values
        way = (values - values[:, :1]) / (values[:, -1:] - values[:, :1])
        assert has_curve(ax, way.mean(axis=0))


def test_largest_weight_of_a_unit_ends_in_the_middle(results: Results):
    cell = results.cells("gate_flips")[0]
    ax, _ = drawn(growth.panel_b, results)
    (mesh,) = ax.collections
    shown = np.asarray(mesh.get_array())
    weights = cell.trajectory["weight_1"].sel(init_scale=min(cell.spec.init_scales))[0, :, 0].values
    assert np.abs(shown[:, -1]).argmax() == weights.shape[1] // 2
    np.testing.assert_allclose(
        np.sort(shown, axis=0).T,
        np.sort(weights / np.abs(weights).max(axis=1, keepdims=True), axis=1),
    )
