"""What the figures on frozen, refreshed and exclusive gates draw, and what they refuse."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from neuralrace.errors import UserError
from neuralrace.figures import frozen, matching, receptive
from neuralrace.figures.localization import (
    closed_forms,
    evolving,
    fourier,
    gating,
    one_unit,
    prediction,
)
from neuralrace.figures.style import GUIDE
from neuralrace.gates.always_on import AlwaysOnSamples
from neuralrace.gates.bumps import Bumps
from neuralrace.gates.half_space import HalfSpace
from neuralrace.gates.tiling import Tiling
from neuralrace.records.results import CellResults, Results, open_results


def of_figure(name: str, root: Path, cell_ids: list[str]) -> Results:
    """The results that a figure is drawn from."""
    return open_results(root, matching(f"localization/{name}", cell_ids))


def places(ax: Axes, marker: str) -> np.ndarray:
    """Where single markers of a kind stand, (marker, x and y), in the order drawn."""
    found = [line for line in ax.lines if line.get_marker() == marker]
    return np.array([line.get_xydata()[0] for line in found if len(line.get_xdata()) == 1])


def means(cell: CellResults, metric: str) -> np.ndarray:
    """A metric of the smallest init scale, mean over seeds."""
    values = cell.metrics[metric]
    if "init_scale" in values.dims:
        values = values.sel(init_scale=values["init_scale"].min())
    return values.mean("seed").values


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
def test_schemes_are_told_apart(scheme, name: str):
    assert frozen.scheme(scheme) == name


def test_networks_without_gates_by_sample_are_refused(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, cell_ids)
    with pytest.raises(UserError, match=r"evolving.*'layered' has no gates by sample"):
        frozen.gates(results.cells("evolving")[0])


def test_frozen_gates_stand_beside_the_relu_network(results_root: Path, cell_ids: list[str]):
    results = of_figure("prediction", results_root, cell_ids)
    figure = prediction.draw(results)
    cells = results.cells("prediction")
    losses, spreads, fields = np.reshape(figure.axes, (3, len(cells)))
    names = [tick.get_text() for tick in losses[0].get_yticklabels()]
    assert names[:3] == ["ReLU, at the start", "ReLU, at the end", "half-spaces"]
    assert len(names) == len(set(names)) == cells[0].metrics.sizes["gates_from"]
    for column, metrics in ((losses, prediction.LOSSES), (spreads, prediction.SPREADS)):
        for ax, cell in zip(column, cells, strict=True):
            matched, limit, relu = (means(cell, metric) for metric in metrics)
            np.testing.assert_allclose(places(ax, "o")[:, 0], matched)
            np.testing.assert_allclose(places(ax, "s")[:, 0], limit)
            assert np.all(np.diff(places(ax, "o")[:, 1]) == 1)
            assert ax.lines[-1].get_xdata() == pytest.approx([float(relu)] * 2)
    for ax, cell in zip(fields, cells, strict=True):
        weights = cell.trajectory["weight_1"].isel(init_scale=0, seed=0, snapshot=-1)
        theory = cell.theory["receptive_fields"].isel(init_scale=0, seed=0)
        drawn = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
        for unit in range(prediction.UNITS):
            for line, field in (
                (drawn[unit], weights[unit]),
                (drawn[prediction.UNITS + unit], theory.sel(solution="initial_gates")[unit]),
            ):
                expected = field.values / np.abs(field.values).max() - receptive.SPACING * unit
                np.testing.assert_allclose(line, expected, atol=1e-6)


def test_mean_field_stands_against_training(results_root: Path, cell_ids: list[str]):
    results = of_figure("one_unit", results_root, cell_ids)
    spread, *units = one_unit.draw(results).axes
    cells = [*results.cells("one_unit"), *results.cells("prediction")]
    assert len(units) == len(cells)
    runs = [line for line in spread.lines if line.get_linestyle() == "None"]
    for line, ax, cell in zip(runs, units, cells, strict=True):
        predicted = cell.metrics["predicted_participation"].sel(solution="mean_field")
        expected = np.stack([predicted[0], cell.metrics["participation"][0]], axis=1)
        np.testing.assert_allclose(line.get_xydata(), expected)
        _, learned, _, flow = (shown.get_ydata() for shown in ax.lines)
        weights = cell.trajectory["weight_1"].isel(init_scale=0, seed=0, snapshot=-1, unit_1=0)
        theory = cell.theory["receptive_fields"].sel(solution="mean_field")[0, 0, 0]
        for line_data, field in ((learned, weights), (flow, theory)):
            np.testing.assert_allclose(line_data, field / abs(field).max(), atol=1e-6)
    diagonal = spread.lines[-1]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_refreshed_gates_stand_by_interval_and_number(results_root: Path, cell_ids: list[str]):
    results = of_figure("evolving", results_root, cell_ids)
    cells = sorted(results.cells("evolving"), key=lambda cell: float(cell.flow_time[-1]))
    distance, *panels = evolving.draw(results).axes
    for cell, marker, spread, share in zip(cells, "os", panels[::2], panels[1::2], strict=True):
        interval = cell.metrics["refresh_interval"].values
        expected = np.stack([interval, means(cell, "refresh_error")], axis=1)
        np.testing.assert_allclose(places(distance, marker), expected)
        for ax, metric in ((spread, "participation"), (share, "localised_share")):
            shown = places(ax, marker)
            np.testing.assert_allclose(shown[:, 1], means(cell, f"refresh_{metric}"))
            assert ax.lines[-1].get_ydata() == pytest.approx([float(means(cell, metric))] * 2)
    (line,) = (line for line in distance.lines if line.get_color() == GUIDE["color"])
    (x, y), end = line.get_xydata()
    assert y == pytest.approx(means(cells[0], "refresh_error")[-1])
    assert x == pytest.approx(float(cells[0].metrics["refresh_interval"].min()))
    assert end[1] / y == pytest.approx(end[0] / x)


def test_eq_7_as_written_ends_where_it_was_measured(results_root: Path, cell_ids: list[str]):
    for cell in of_figure("closed_forms", results_root, cell_ids).values():
        loss = cell.trajectory["loss"].isel(init_scale=0).values
        drawn = closed_forms.written_loss(cell)
        np.testing.assert_allclose(drawn[:, 0], loss[:, 0], rtol=1e-10)
        expected = cell.metrics["written_loss_error"].sel(equation="7").isel(init_scale=0)
        error = np.abs(drawn[:, -1] - loss[:, -1]) / loss[:, 0]
        np.testing.assert_allclose(error, expected, rtol=1e-8)
        assert error.min() > 0.01


def test_closed_forms_are_those_of_the_smallest_learning_rate(
    results_root: Path, cell_ids: list[str]
):
    results = of_figure("closed_forms", results_root, cell_ids)
    *losses, rates, equations = closed_forms.draw(open_results(results_root, cell_ids)).axes
    grouped: dict[str, list[CellResults]] = {}
    for cell in results.values():
        grouped.setdefault(frozen.scheme(frozen.gates(cell)), []).append(cell)
    assert len(losses) == len(grouped) == 2
    for ax, marker, cells in zip(losses, "os", grouped.values(), strict=True):
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
        np.testing.assert_allclose(places(rates, marker), np.stack([steps, errors], axis=1))
        corrected = means(slow, "corrected_error")
        np.testing.assert_allclose(
            places(equations, marker)[:, 1], corrected[np.isfinite(corrected)]
        )


def test_gates_of_relu_networks_are_those_of_the_same_task(results_root: Path, cell_ids: list[str]):
    results = of_figure("gating", results_root, cell_ids)
    losses, *coupled = gating.draw(results).axes
    cells = results.cells("gating")
    (relu,) = [
        cell
        for cell in results.cells("prediction")
        if receptive.lengths(cell) == receptive.lengths(cells[0])
    ]
    fit = [means(cell, "optimal_loss") for cell in cells]
    fresh = [float(means(cell, "optimal_fresh_loss")) for cell in cells]
    at = relu.metrics["gates_from"].values.tolist().index("trained")
    expected = [*fit, means(relu, "frozen_limit_loss")[at]]
    np.testing.assert_allclose(places(losses, "|")[:, 0], expected)
    (own,) = places(losses, "*")
    assert own == pytest.approx([float(means(relu, "frozen_limit_fresh_loss")[at]), len(cells)])
    for row, marker in enumerate("os"):
        assert places(losses, marker)[0] == pytest.approx([fresh[row], row])
        for ax, metric in zip(coupled, gating.COUPLING, strict=True):
            assert places(ax, marker)[0] == pytest.approx(
                [float(means(cells[row], metric)), fresh[row]]
            )


def test_distances_from_symmetry_are_those_of_the_files(results_root: Path, cell_ids: list[str]):
    results = of_figure("fourier", results_root, cell_ids)
    circulant, joint = fourier.draw(results).axes
    moments = ("input_circulance_law", "input_circulance_samples")
    moments += ("block_circulance_same", "block_circulance_other")
    shifts = ("joint_violation", "joint_eigenvalue_error")
    for cell, marker in zip(results.values(), "os", strict=True):
        for ax, names in ((circulant, moments), (joint, shifts)):
            shown = places(ax, marker)[:, 0]
            np.testing.assert_allclose(shown, [means(cell, name) for name in names], atol=1e-15)
