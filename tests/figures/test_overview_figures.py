"""The figure of all papers together: which cells it shows, and its half times."""

from dataclasses import astuple

import numpy as np
from drawn_panels import drawn

from neuralrace.config.variables import why_absent
from neuralrace.figures import matching_cells
from neuralrace.figures.overview import parity

NAME = "overview/parity"


def test_all_cells_with_a_loss_in_theory_are_shown(cells):
    solved = [name for name, cell in cells.items() if not why_absent(cell, "theory", "loss")]
    assert matching_cells(NAME, cells) == solved


def test_half_times_are_half_way_of_the_simulation(results_of):
    results = results_of(NAME)
    name = next(name for name in results if name.startswith("deep_linear/staircase/"))
    cell = results[name]
    found = [
        dot for dot in parity.half_times(results)
        if (dot.paper, dot.experiment, dot.solution) == ("deep_linear", "staircase", "flow")
    ]  # fmt: skip
    assert found
    loss = cell.trajectory["loss"]
    level = (loss[..., 0] + loss[..., -1]) / 2
    for dot in found[: loss.sizes["init_scale"]]:
        assert dot.ratio == dot.theory / dot.simulation
        assert all(astuple(dot)[:3])
    times = [
        np.interp(-level.values[0, seed], -loss.values[0, seed], cell.flow_time)
        for seed in range(loss.sizes["seed"])
    ]
    np.testing.assert_allclose(found[0].simulation, np.median(times))


def test_rows_are_solutions_that_are_off_and_all_others():
    def dot(solution: str, theory: float) -> parity.HalfTimes:
        return parity.HalfTimes("paper", "experiment", solution, 2.0, theory)

    exact, close = dot("exact", 2.0), dot("flow", 2.1)
    off, late = dot("tied", 3.0), dot("tied", 2.0)
    race, part = dot("routing_race", 0.2), dot("margin_xor", 2.6)
    rows = parity.rows_of([late, part, exact, race, off, close])
    assert list(rows.values()) == [[exact, close], [late, off], [race], [], [part]]
    names = ["2 others (2 dots)", "tied", "routing race", parity.LEFT_OUT, "XoR alone"]
    assert list(rows) == names


def test_every_dot_has_a_row(results_of):
    results = results_of(NAME)
    dots = list(parity.half_times(results))
    rows = next(ax for ax in drawn(parity.panel_b, results) if ax.get_yticklabels())
    groups = parity.rows_of(dots)
    assert [label.get_text() for label in rows.get_yticklabels()] == list(groups)
    assert sum(map(len, groups.values())) == len(dots)


def test_dots_of_equal_ratios_do_not_hide_one_another():
    shifts = parity._shifts([1.0, 1.0, 1.0001, 2.0])
    assert len(set(shifts)) == 4 - 1 + (shifts[3] != shifts[1])
    assert max(abs(shifts)) < 0.5
