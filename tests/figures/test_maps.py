"""Phase diagrams: maps over two settings, and the boundaries that theory predicts."""

import numpy as np
import pytest
from drawn_panels import drawn
from matplotlib.figure import Figure

from neuralrace.errors import UserError
from neuralrace.figures import maps
from neuralrace.figures.localization import length_map
from neuralrace.figures.make_haste import xor_map
from neuralrace.figures.neural_race import race_map, zero_shot_map
from neuralrace.results.cells import Results


@pytest.fixture
def table():
    """A map with a gap, whose settings are given out of order."""
    return maps.grid({(3.0, 0.1): 0.2, (1.0, 0.1): 0.0, (1.0, 0.001): 1.0})


def test_settings_ascend_and_absent_values_are_nan(table):
    assert table["x"].values.tolist() == [1.0, 3.0]
    assert table["y"].values.tolist() == [0.001, 0.1]
    np.testing.assert_array_equal(table.values, [[1.0, np.nan], [0.0, 0.2]])


def test_small_settings_are_at_the_lower_left(table):
    ax = Figure().subplots()
    maps.draw_map(ax, table, "share")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.001", "0.1"]
    assert ax.get_ylim() == (-0.5, 1.5)


def test_positions_are_between_the_middles_of_cells(table):
    np.testing.assert_allclose(maps.position(table, "x", [1, 2, 3]), [0, 0.5, 1])
    np.testing.assert_allclose(maps.position(table, "y", [0.01], log=True), [0.5])


def test_a_level_that_is_not_reached_has_no_boundary():
    ax = Figure().subplots()
    full = maps.grid({(x, y): x + 2 * y for x in (0, 1) for y in (0, 1)})
    maps.draw_boundary(ax, full, 5, **maps.BOUNDARY)
    assert not ax.collections
    maps.draw_boundary(ax, full, 1.5, **maps.BOUNDARY)
    (line,) = ax.collections[0].get_paths()
    np.testing.assert_allclose(np.asarray(line.vertices) @ [1, 2], 1.5)


def test_untrained_errors_are_medians_over_runs(results_of):
    results = results_of("neural_race/zero_shot_map")
    table = zero_shot_map.untrained_errors(results)
    assert table["x"].values.tolist() == [0.1, 0.2]
    for cell in results.values():
        share = cell.routing.partners(10) / 10
        for scale in cell.spec.init_scales:
            errors = cell.metrics["final_untrained_error"].sel(init_scale=scale)
            assert float(table.sel(x=share, y=scale)) == pytest.approx(float(errors.median()))


def test_learned_scale_is_where_outer_layers_balance_the_hidden_one(results_of):
    cell = results_of("neural_race/zero_shot_map").cells("zero_shot_map")[0]
    outer = zero_shot_map.learned_scale(cell)
    assert outer * np.sqrt(10) * outer * outer == pytest.approx(np.sqrt(185))


def test_half_time_of_a_block_approaches_its_escape_from_small_weights():
    angle = 1.19968  # the root of x tanh(x) = 1
    for domains, share in ((1, 0.5), (6, 1 / 6)):
        time = race_map.half_time(2.0, 0.25, domains, share, 0.001)
        assert time == pytest.approx(angle / (share * 2.0 * 0.001), rel=2e-3)


def test_equal_partners_exceed_the_ratio_of_scales_by_a_little(results_of):
    results = results_of("neural_race/race_map")
    (partners,) = race_map.equal_partners(results.cells("race_map")).values()
    assert 4 < partners < 5


def test_an_initialiser_without_a_factor_is_refused(results_of):
    cells = results_of("neural_race/zero_shot_map").cells("zero_shot_map")
    with pytest.raises(UserError, match="no factor of the shared pathway"):
        race_map.equal_partners(cells)


def test_theory_of_equal_margins_is_drawn_at_init_scales(results_of):
    results = results_of("make_haste/xor_map")
    (ax,) = drawn(xor_map.panel_b, Results(reversed(list(results.values()))))
    (theory,) = [line for line in ax.lines if line.get_color() == "black"]
    scales = results.cells("xor_map")[0].metrics["init_scale"].values
    np.testing.assert_array_equal(theory.get_xdata(), scales)


def test_lengths_of_class_one_are_along_x(results_of):
    results = results_of("localization/length_map")
    ax, *_ = drawn(length_map.panel_a, results)
    cells = results.cells("lengths_relu")
    assert [cell.spec.dataset.xi for cell in cells] == [(1.0, 2.0), (1.0, 3.0)]
    shares = [[float(cell.metrics["localised_share"].mean())] for cell in cells]
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), shares)


def test_orders_of_one_task_share_an_entry():
    shares = {(1.0, 2.0): 0.25, (2.0, 1.0): 0.75, (1.0, 3.0): 0.2}
    means = {(1.0, 2.0): 0.5, (2.0, 1.0): 0.5, (1.0, 3.0): 0.2}
    assert length_map.over_orders(shares) == means
