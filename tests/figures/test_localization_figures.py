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


def test_examples_are_in_proportion_to_classes():
    places = np.arange(12)
    bumps, waves = np.eye(12)[:8], np.cos(np.pi * places) * (1 + 0.1 * np.eye(12)[8:])
    fields = np.random.default_rng(0).permutation(np.concatenate([waves, bumps]))
    chosen = receptive_fields.examples(fields, 3)
    np.testing.assert_array_equal((chosen != 0).sum(axis=1), [1, 1, 12])
    np.testing.assert_array_equal(chosen[:2].argmax(axis=1), [2, 6])


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


def test_receptive_fields_and_bars_are_of_all_runs(results: Results):
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
            weights = cell.trajectory["weight_1"].values[0, :, -1]
            shapes = weights / np.abs(weights).max(axis=-1, keepdims=True)
            shapes = shapes.reshape(-1, shapes.shape[-1])
            assert np.isclose(shown_fields[:, None], shapes).all(axis=-1).any()


def test_frequencies_are_the_metric(results: Results):
    (ax,) = drawn(fields_figure.panel_d, results)
    expected = [float(means(cell, "dominant_frequency")) for cell in results.cells("relu")]
    np.testing.assert_allclose(points(ax)[:, 1], expected)


def test_modes_are_those_of_single_runs(results: Results):
    (ax,) = drawn(growth.panel_d, results)
    cell = results.cells("gate_flips")[0]
    dots = [line.get_ydata() for line in ax.lines if line.get_marker() == "o"]
    for shown, name in zip(dots, growth.MODES, strict=True):
        np.testing.assert_allclose(shown, np.sort(smallest_scale(cell.metrics[name])))


def class_cells(results: Results, panel) -> list:
    """Cells of a panel of classes, by row and then by order of the lengths."""
    low, high = (
        receptive_fields.marginal_name(results.cells(n)[0]) for n in ("relu_low_gain", "relu")
    )
    names, gain = {
        classes.panel_a: (("relu",), high),
        classes.panel_b: (("relu_biases", "trained_readout"), high),
        classes.panel_c: (
            ("erf", "erf_offset", "sigmoid", "erf_without_biases", "sigmoid_without_biases"),
            high,
        ),
        classes.panel_d: (("relu_low_gain", "erf", "sigmoid"), low),
    }[panel]
    cells = [cell for name in names for cell in results.cells(name)]
    lengths = {receptive_fields.lengths_label(cell) for cell in results.cells("erf")}
    return [
        cell
        for cell in cells
        if receptive_fields.marginal_name(cell) == gain
        and (panel is not classes.panel_d or receptive_fields.lengths_label(cell) in lengths)
    ]


def test_bars_are_mean_shares_and_lines_their_ranges(results: Results, tmp_path: Path):
    rng = np.random.default_rng(0)
    panels = (classes.panel_a, classes.panel_b, classes.panel_c, classes.panel_d)
    cells = results.cells("relu_low_gain")
    shown = {cell.name for panel in panels for cell in [*cells, *class_cells(results, panel)]}
    for cell in results.values():
        if cell.name in shown:
            metrics = cell.metrics.copy()
            for name, share in zip(
                receptive_fields.CLASS_STYLES, rng.dirichlet([1, 1, 1], 2).T, strict=True
            ):
                metrics[f"{name}_share"] = metrics[f"{name}_share"].copy(data=[share])
            write_result(metrics, tmp_path / cell.name / "metrics.nc")
    results = open_results(tmp_path, results)
    names = {}
    for panel in panels:
        axes = drawn(panel, results)
        names[panel] = [tick.get_text().strip() for tick in axes[0].get_yticklabels()]
        for ax in axes:
            longer_first = ax.get_title().startswith(classes.ORDERS[True])
            cells = [
                cell
                for cell in class_cells(results, panel)
                if (np.diff(receptive_fields.process(cell).xi)[0] < 0) == longer_first
            ]
            np.testing.assert_allclose(bars(ax), np.reshape([shares(c) for c in cells], (-1, 3)))
            lefts = np.reshape([patch.get_x() for patch in ax.patches], (-1, 3))
            np.testing.assert_allclose((lefts + bars(ax))[:, :-1], lefts[:, 1:])
            np.testing.assert_allclose((lefts + bars(ax))[:, -1], 1)
            thin = [line.get_xdata() for line in ax.lines[1::2]]
            heights = np.reshape([line.get_ydata()[0] for line in ax.lines[1::2]], (-1, 2))
            assert np.all(np.diff(heights) == 0)  # in the middle of their bar
            for (localised, oscillating), cell in zip(
                np.reshape(thin, (len(cells), 2, 2)), cells, strict=True
            ):
                share = smallest_scale(cell.metrics["localised_share"])
                np.testing.assert_allclose(localised, [share.min(), share.max()])
                share = 1 - smallest_scale(cell.metrics["oscillating_share"])
                np.testing.assert_allclose(oscillating, [share.min(), share.max()])
    assert names[classes.panel_b][:2] == ["biases", "biases, cross-entropy"]
    assert names[classes.panel_b][-1] == "trained readout"
    assert {"erf", "erf, $b_2$ = 1/2", "sigmoid, no biases"} <= set(names[classes.panel_c])
    assert names[classes.panel_d][0] == "ReLU"


def test_shares_are_drawn_against_the_offset(results: Results):
    for ax in drawn(classes.panel_e, results):
        expected = []
        for number, experiments in enumerate(classes.BY_OFFSET.values()):
            for column, name in enumerate(experiments):
                (cell,) = [
                    cell
                    for cell in results.cells(name)
                    if ax.get_title().endswith(f": {receptive_fields.lengths_label(cell)}")
                    and receptive_fields.marginal_name(cell) == "gain 3"
                    and cell.spec.training.loss.squared
                ]
                share = smallest_scale(cell.metrics["localised_share"])
                expected.append((column + 0.12 * (number - 1), float(share.mean())))
                bar = ax.lines[2 * (3 * number + column)]
                np.testing.assert_allclose(bar.get_ydata(), [share.min(), share.max()])
        np.testing.assert_allclose(points(ax), expected)
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1/2", "trained"]


def test_offsets_are_drawn_without_cells_of_one_order(results: Results):
    """As at a fraction of the size, where some experiments have one order of the lengths only."""
    relu = classes.BY_OFFSET["ReLU"]
    kept = [
        cell
        for name, cell in results.items()
        if name.split("/")[1] not in relu
        or receptive_fields.process(cell).xi[0] > receptive_fields.process(cell).xi[1]
    ]
    first, second = drawn(classes.panel_e, Results(kept))
    assert len(points(first)) == 9
    assert len(points(second)) == 6


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
        (marginals.panel_b, "localised_share"),
        (marginals.panel_c, "participation_ratio"),
    ):
        axes = drawn(panel, results)
        shown = sorted(point for ax in axes for point in points(ax).tolist())
        expected = [
            (kurtosis[receptive_fields.marginal_name(cell)], float(means(cell, measure)))
            for cell in cells
        ]
        np.testing.assert_allclose(shown, sorted(expected))
        assert shown[-1][0] == pytest.approx(3)
    fields = drawn(marginals.panel_a, results)
    names = [ax.get_title().partition("\n")[0] for ax in fields]
    written = [round(kurtosis[name], 1) for name in names]
    assert written == sorted({round(value, 1) for value in kurtosis.values()})
    assert {"Gaussian", "Laplace"} <= set(names)


def test_pulses_are_drawn_by_order_of_their_widths(results: Results):
    cells = results.cells("single_pulse")
    assert {receptive_fields.pulses(cell).widths[0][0] for cell in cells[:4]} == {11}
    framed = []
    for ax, cell in zip(drawn(single_pulse.panel_a, results)[4:], cells, strict=True):
        weights = cell.trajectory["weight_1"].values[0, :, -1].reshape(-1, 40)
        fields = receptive_fields.centred(weights)
        assert has_curve(ax, (fields / fields.max(axis=1, keepdims=True)).mean(axis=0))
        energy = fields[:, abs(np.arange(40) - 20) < 40 / 6] ** 2
        inside = np.mean(energy.sum(axis=1) / (fields**2).sum(axis=1))
        excess = float(means(cell, "participation_ratio"))
        assert ax.get_title() == f"{excess:.1f} × spectrum, {inside:.0%} in box"
        shuffled = np.full(40, np.delete(fields / fields.max(axis=1, keepdims=True), 20, 1).mean())
        shuffled[20] = 1
        assert has_curve(ax, shuffled)
        if ax.spines["top"].get_visible():
            framed.append(excess)
    assert framed == [max(float(means(cell, "participation_ratio")) for cell in cells)]


def test_samples_of_pulses_are_exchanged_where_some_are(results: Results):
    axes = drawn(single_pulse.panel_a, results)[:4]
    for ax, cell in zip(axes, results.cells("single_pulse")[:4], strict=True):
        wide, narrow = curves(ax)
        exchanged = receptive_fields.pulses(cell).complement
        assert np.sum(wide == wide.max()) == 11
        assert np.sum(narrow == (narrow.min() if exchanged else narrow.max())) == 3
    assert axes[2].get_title() == "0 and 1, half inverted"


def test_gate_flips_are_the_metrics(results: Results):
    cells = results.cells("gate_flips")
    for panel, cell in zip((gate_flips.panel_a, gate_flips.panel_b), cells, strict=True):
        (ax,) = drawn(panel, results)
        for scale in cell.metrics["init_scale"]:
            at: xr.Dataset = cell.metrics.sel(init_scale=scale).mean("seed")
            assert has_curve(ax, at["gate_flip_fraction"].sel(layer=1))
            assert has_curve(ax, at["predicted_gate_flips"])
    pairs, _ = drawn(gate_flips.panel_d, results)
    slowest = cells[0].metrics.sel(init_scale=cells[0].metrics["init_scale"].max(), layer=1)
    (mesh,) = pairs.collections
    np.testing.assert_allclose(mesh.get_array(), slowest["gate_flips_between"].mean("seed"))
    (ax,) = drawn(gate_flips.panel_c, results)
    shares = np.reshape([bar.get_height() for bar in ax.patches], (len(cells), 3, -1))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for (differ, _, never), cell in zip(shares, cells, strict=True):
        for shown, metric in ((differ, "final_gate_flips"), (never, "never_changed")):
            share = cell.metrics[metric].sel(layer=1).mean("seed")
            np.testing.assert_allclose(shown, share.sel(init_scale=sorted(cell.spec.init_scales)))


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
    assert shown[:, -1].max() == pytest.approx(1)
    signed = weights * np.sign(weights[-1, np.abs(weights[-1]).argmax()])
    np.testing.assert_allclose(
        np.sort(shown, axis=0).T,
        np.sort(signed / np.abs(weights).max(axis=1, keepdims=True), axis=1),
    )
