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


def test_rows_are_solutions_with_the_most_exact_on_top(results_of):
    results = results_of(NAME)
    rows = next(ax for ax in drawn(parity.panel_b, results) if ax.get_yticklabels())
    names = [label.get_text().replace(" ", "_") for label in rows.get_yticklabels()]
    assert set(names) == {dot.solution for dot in parity.half_times(results)}


def test_dots_of_equal_ratios_do_not_hide_one_another():
    shifts = parity._shifts([1.0, 1.0, 1.0001, 2.0])
    assert len(set(shifts)) == 4 - 1 + (shifts[3] != shifts[1])
    assert max(abs(shifts)) < 0.5
