"""What the figures of receptive fields compute for themselves, and that they draw what is there."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.errors import UserError
from neuralrace.figures import receptive
from neuralrace.figures.gated import smallest
from neuralrace.figures.localization import (
    classes,
    data,
    gate_flips,
    marginals,
    receptive_fields,
    single_pulse,
)
from neuralrace.figures.style import SHEET
from neuralrace.records.files import write
from neuralrace.records.results import Results, open_results

draws = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.fixture(scope="module")
def results(results_root: Path, cell_ids: list[str]) -> Results:
    cells = [cell for cell in cell_ids if cell.startswith("localization/")]
    return open_results(results_root, cells)


def drawn(module, results: Results) -> list[Axes]:
    """Axes of a figure, after they are laid out."""
    with mpl.rc_context(SHEET):
        figure = module.draw(results)
        figure.draw_without_rendering()
    return figure.axes


def curves(ax: Axes) -> list[np.ndarray]:
    """Heights of all lines that have a point for each of several places."""
    return [np.asarray(line.get_ydata()) for line in ax.lines if len(line.get_xdata()) > 2]


def has_curve(ax: Axes, values) -> bool:
    return any(
        curve.shape == np.shape(values) and np.allclose(curve, values) for curve in curves(ax)
    )


def bars(ax: Axes) -> np.ndarray:
    """Widths of bars in the order they are drawn, a row for each condition."""
    return np.array([patch.get_width() for patch in ax.patches]).reshape(-1, 3)


def means(cell) -> list[float]:
    names = ("localised_share", "neither_share", "oscillating_share")
    return [float(smallest(cell.metrics[name]).mean()) for name in names]


# Words -----------------------------------------------------------------------------------------


@given(draws, st.integers(1, 12), st.integers(1, 5))
def test_examples_are_in_the_order_of_their_centres(
    rng: np.random.Generator, units: int, count: int
):
    inputs = 16
    places = rng.permutation(inputs)[:units]
    fields = np.zeros((units, inputs))
    fields[np.arange(units), places] = rng.choice([-1, 1], units) * rng.uniform(0.1, 10, units)
    chosen = receptive.examples(fields, count)
    assert len(chosen) == min(count, units)
    found = np.abs(chosen).argmax(axis=1)
    assert np.all(np.diff(found) > 0)
    assert set(found) <= set(places)


def test_examples_are_apart():
    fields = np.eye(12)
    np.testing.assert_array_equal(receptive.examples(fields, 3).argmax(axis=1), [2, 6, 10])


@given(draws)
def test_a_field_is_drawn_over_its_largest_weight(rng: np.random.Generator):
    fields = rng.normal(size=(3, 8)) * 10.0 ** rng.integers(-6, 6, (3, 1))
    ax = Figure().subplots()
    receptive.draw(ax, fields)
    shapes = [curve + receptive.SPACING * row for row, curve in enumerate(curves(ax))]
    largest = np.abs(fields).max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.array(shapes) * largest, fields, atol=1e-12 * largest.max())
    low, high = ax.get_ylim()
    assert low < min(map(np.min, curves(ax)))
    assert high > max(map(np.max, curves(ax)))


@given(draws, st.integers(2, 9))
def test_moments_around_the_ring_are_means_over_places(rng: np.random.Generator, inputs: int):
    x = rng.normal(size=(5, inputs)) + rng.normal()
    expected = [np.mean(x * np.roll(x, -step, axis=1)) for step in range(inputs // 2 + 1)]
    np.testing.assert_allclose(data.around_ring(x), expected, atol=1e-12)


def test_conditions_are_named(results: Results):
    cells = results.cells("relu_low_gain")
    assert [receptive.lengths(cell) for cell in cells] == ["5, 1", "2, 1"]
    assert receptive.marginal(cells[0]) == "gain 0.05"
    names = [receptive.marginal(cell) for cell in results.cells("marginals")]
    assert names == ["Laplace", "Gaussian"]


def test_other_data_are_refused(results: Results):
    pulse, process = results.cells("single_pulse")[0], results.cells("relu")[0]
    with pytest.raises(UserError, match=r"'single_pulse' has no correlation lengths to draw"):
        receptive.process(pulse)
    with pytest.raises(UserError, match=r"'nonlinear_gaussian' has no pulses to draw"):
        single_pulse.pulses(process)


# What is drawn ---------------------------------------------------------------------------------


def test_data_show_moments_of_the_samples_and_of_the_law(results: Results):
    axes = np.reshape(drawn(data, results), (3, 3))
    for column, name in enumerate(("relu", "relu_low_gain", "single_pulse")):
        cell = results.cells(name)[0]
        sample, law = cell.data, cell.spec.dataset.mixture()
        first, second, moments = axes[:, column]
        for ax, target, closed in zip((first, second), law.targets, law.covariances, strict=True):
            of = sample.x[sample.y[:, 0] == target]
            assert len(curves(ax)) == 2
            assert all(any(np.array_equal(curve, x) for x in of) for curve in curves(ax))
            assert has_curve(moments, data.around_ring(of))
            assert has_curve(moments, closed[0, :21])
    # every pulse is equally often in the fixed sample
    markers, line, *_ = curves(axes[2, 2])
    np.testing.assert_allclose(markers, line, atol=1e-12)


def test_fields_are_those_of_the_first_run_and_bars_those_of_all(results: Results):
    axes = drawn(receptive_fields, results)
    cells = [cell for name in ("relu", "relu_low_gain") for cell in results.cells(name)]
    shown = [cell for cell in cells if receptive.lengths(cell) == "5, 1"]
    shown = [*shown, *results.cells("erf"), *results.cells("sigmoid")]
    assert len(axes) == len(shown) == 10
    for ax, cell in zip(axes, shown, strict=True):
        weights = cell.trajectory["weight_1"].values[0, 0, -1]
        shapes = weights / np.abs(weights).max(axis=1, keepdims=True)
        for row, curve in enumerate(curves(ax)):
            shape = curve + receptive.SPACING * row
            assert np.isclose(shapes, shape).all(axis=1).any()
        np.testing.assert_allclose(bars(ax), [means(cell)])


def test_bars_are_mean_shares_and_lines_their_ranges(results: Results, tmp_path: Path):
    rng = np.random.default_rng(0)
    for cell in results.values():
        if cell.name.split("/")[1] in sum(classes.PANELS.values(), ()):
            metrics = cell.metrics.copy()
            for name, share in zip(receptive.CLASSES, rng.dirichlet([1, 1, 1], 2).T, strict=True):
                metrics[f"{name}_share"] = metrics[f"{name}_share"].copy(data=[share])
            write(metrics, tmp_path / cell.name / "metrics.nc")
    results = open_results(tmp_path, results)
    axes = drawn(classes, results)
    shown = [
        [cell for name in names for cell in results.cells(name)]
        for names in classes.PANELS.values()
    ]
    assert all(shown)
    for ax, cells in zip(axes, shown, strict=True):
        np.testing.assert_allclose(bars(ax), [means(cell) for cell in cells])
        lefts = np.reshape([patch.get_x() for patch in ax.patches], (-1, 3))
        np.testing.assert_allclose((lefts + bars(ax))[:, :-1], lefts[:, 1:])
        np.testing.assert_allclose((lefts + bars(ax))[:, -1], 1)
        thin = np.array([line.get_xdata() for line in ax.lines[1::2]]).reshape(len(cells), 2, 2)
        for (localised, oscillating), cell in zip(thin, cells, strict=True):
            share = smallest(cell.metrics["localised_share"])
            np.testing.assert_allclose(localised, [share.min(), share.max()])
            share = 1 - smallest(cell.metrics["oscillating_share"])
            np.testing.assert_allclose(oscillating, [share.min(), share.max()])
    sizes, _, biases = ([tick.get_text() for tick in ax.get_yticklabels()] for ax in axes[1:4])
    assert len(sizes) == 1 or all("; $K$ = " in name for name in sizes)
    assert biases == [f"{xi}; gain 3{loss}" for xi in ("5, 1", "1, 5")
                     for loss in ("", "; cross-entropy")]  # fmt: skip


def test_marginals_are_at_their_kurtosis(results: Results):
    axes = drawn(marginals, results)
    xi = (5.0, 1.0)
    cells = results.cells("marginals") + [
        cell
        for name in ("relu", "relu_low_gain")
        for cell in results.cells(name)
        if receptive.process(cell).xi == xi
    ]
    for ax, measure in zip(axes, marginals.MEASURES, strict=True):
        marks = [line for line in ax.lines if line.get_marker() != "None"]
        found = sorted((float(m.get_xdata()[0]), float(m.get_ydata()[0])) for m in marks)
        expected = sorted(
            (
                receptive.process(cell).marginal.kurtosis,
                float(smallest(cell.metrics[measure]).mean()),
            )
            for cell in cells
        )
        np.testing.assert_allclose(found, expected)
    assert found[-1][0] == pytest.approx(3)


def test_pulses_are_beside_their_participation(results: Results):
    axes = np.reshape(drawn(single_pulse, results), (4, 3))
    cells = results.cells("single_pulse")
    assert {single_pulse.pulses(cell).widths[0][0] for cell in cells[:4]} == {11}
    for column in range(2):
        for row in range(4):
            cell = cells[4 * column + row]
            weights = cell.trajectory["weight_1"].values[0, 0, -1]
            shapes = weights / np.abs(weights).max(axis=1, keepdims=True)
            assert np.isclose(shapes, curves(axes[row, column])[0]).all(axis=1).any()
            mark = axes[row, 2].lines[2 * column + 1]
            np.testing.assert_allclose(mark.get_xdata(), cell.metrics["participation"].mean())
            assert mark.get_ydata() == [column]
            low, high = axes[row, 2].get_xlim()
            assert low < mark.get_xdata()[0] < high
    assert axes[2, 0].get_ylabel() == "0 and 1,\nexchanged"


def test_flips_are_those_of_the_files(results: Results):
    axes = drawn(gate_flips, results)
    cells = results.cells("gate_flips")
    flips, spread, pairs = np.reshape(axes[: 3 * len(cells)], (3, len(cells)))
    for place, cell in enumerate(cells):
        metrics = cell.metrics
        for scale in metrics["init_scale"]:
            at: xr.Dataset = metrics.sel(init_scale=scale).mean("seed")
            assert has_curve(flips[place], at["gate_flip_fraction"].sel(layer=1))
            assert has_curve(flips[place], at["predicted_gate_flips"])
            assert has_curve(spread[place], at["participation_curve"])
        slowest = metrics.sel(init_scale=metrics["init_scale"].max(), layer=1).mean("seed")
        (mesh,) = pairs[place].collections
        np.testing.assert_allclose(mesh.get_array(), slowest["gate_flips_between"])
