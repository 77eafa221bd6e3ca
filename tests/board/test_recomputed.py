"""All scores of real runs, and the board, computed a second time by NumPy and SciPy alone."""

import numpy as np
import pytest
from scipy.interpolate import interp1d
from scipy.stats import sem, t

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
"""Rounding of sums in another order."""
CURVES = {"mode_error": "mode_strength", "layer_norm_error": "layer_norm"}


def time_of(loss, level, time):
    """The time at which a falling curve reaches a level, on straight lines; None if never."""
    if loss[0] <= level:
        return 0.0
    for k in range(1, len(loss)):
        if loss[k] <= level:
            return time[k - 1] + (time[k] - time[k - 1]) * (level - loss[k - 1]) / (
                loss[k] - loss[k - 1]
            )
    return None


def scores_of_loss(simulated, predicted, time):
    """The scores of one curve for one run."""
    if np.isnan(predicted).any() or np.isnan(simulated).any():
        return dict.fromkeys(
            ["loss_error", "loss_shape_error", "halfway_time_log_ratio", "final_loss_error"], np.nan
        ) | {"initial_loss_error": abs(predicted[0] - simulated[0]) / simulated[0]}
    distance = abs(predicted - simulated) / simulated[0]
    level = (simulated[0] + simulated[-1]) / 2
    reached, expected = time_of(simulated, level, time), time_of(predicted, level, time)
    late = 0.0 if expected is None else expected - reached
    moved = interp1d(time, predicted, bounds_error=False, fill_value=(predicted[0], np.nan))
    expected = time[-1] if expected is None else expected
    return {
        "loss_error": distance.max(),
        "initial_loss_error": distance[0],
        "final_loss_error": distance[-1],
        "loss_shape_error": np.nanmax(abs(moved(time + late) - simulated) / simulated[0]),
        "halfway_time_log_ratio": abs(np.log(max(expected, time[1]) / max(reached, time[1]))),
    }


def curves_of(cell, variable):
    """What each entry predicts of a variable, by entry: arrays (init_scale, seed, ...)."""
    simulated = cell.trajectory[variable].values
    seeds = simulated.shape[1]
    others = [
        np.mean([simulated[:, k] for k in range(seeds) if k != own], axis=0) for own in range(seeds)
    ]
    curves = {"other_seeds": np.stack(others, axis=1)}
    if variable in cell.theory:
        solved = cell.theory[variable]
        if "solution" in solved.dims:
            solutions = solved["solution"].values
            curves |= {str(n): solved.sel(solution=n).values for n in solutions}
        else:
            curves["flow"] = solved.values
    return simulated, curves


def recomputed(cell):
    """All scores of a cell: arrays (init_scale, seed) by score and entry."""
    time = cell.trajectory["flow_time"].values
    entries = [*cell.spec.solutions, "other_seeds"]
    runs = (len(cell.spec.init_scales), cell.spec.seeds)
    found: dict = {}

    def put(name, entry, run, value):
        table = found.setdefault(name, {each: np.full(runs, np.nan) for each in entries})
        table[entry][run] = value

    simulated, curves = curves_of(cell, "loss")
    for entry, curve in curves.items():
        for run in np.ndindex(runs):
            for name, value in scores_of_loss(simulated[run], curve[run], time).items():
                put(name, entry, run, value)
    for name, variable in CURVES.items():
        if variable in cell.trajectory and variable in cell.theory:
            simulated, curves = curves_of(cell, variable)
            for entry, curve in curves.items():
                for run in np.ndindex(runs):
                    far = np.max(abs(curve[run] - simulated[run]))
                    put(name, entry, run, far / np.max(abs(simulated[run])))
    if "receptive_fields" in cell.theory:
        fields = cell.trajectory["weight_1"].values[:, :, -1]
        for number, entry in enumerate(cell.theory["solution"].values):
            solved = cell.theory["receptive_fields"].values[:, :, number]
            for run in np.ndindex(runs):
                value = np.linalg.norm(solved[run] - fields[run]) / np.linalg.norm(fields[run])
                put("receptive_field_error", str(entry), run, value)
    return found


@pytest.fixture(scope="module")
def by_hand(cells):
    """The recomputed scores of every cell."""
    return {name: recomputed(cell) for name, cell in cells.items()}


def test_every_score_of_every_run_is_the_recomputed_one(cells, by_hand):
    compared = set()
    for name, cell in cells.items():
        scores = set(cell.metrics) - {"diverged_at"}
        assert scores == set(by_hand[name])
        for score in scores:
            assert set(cell.metrics["entry"].values) == set(by_hand[name][score])
            for entry, expected in by_hand[name][score].items():
                found = cell.metrics[score].sel(entry=entry).values
                np.testing.assert_allclose(found, expected, **CLOSE, err_msg=f"{score} {entry}")
                compared |= {(score, entry)} if np.isfinite(expected).any() else set()
    assert {score for score, _ in compared} >= {*CURVES, "receptive_field_error", "loss_error"}
    assert len({entry for _, entry in compared}) >= 6


def by_task(cells):
    """Identifiers of the cells of each task."""
    tasks: dict = {}
    for name in cells:
        tasks.setdefault(name.split("/")[1], []).append(name)
    return tasks


def test_the_summary_is_the_recomputed_one(cells, by_hand, small_board):
    summary = small_board["summary"]
    rows = 0
    for task, names in by_task(cells).items():
        for entry in summary["entry"].values:
            known = [by_hand[name] for name in names if entry in by_hand[name]["loss_error"]]
            for score in {score for each in known for score in each}:
                points = np.concatenate([each[score][entry] for each in known if score in each])
                if np.isnan(points).all():
                    assert summary[score].sel(task=task, entry=entry).isnull().all()
                    continue
                seeds = np.nanmedian(points, axis=0)
                half = t.ppf(0.975, len(seeds) - 1) * sem(seeds)
                expected = [seeds.mean(), max(seeds.mean() - half, 0), seeds.mean() + half]
                found = summary[score].sel(task=task, entry=entry)
                np.testing.assert_allclose(found, expected, **CLOSE, err_msg=f"{score} {entry}")
                rows += 1
            points = [each["loss_error"][entry] for each in known]
            found = summary["holds_share"].sel(task=task, entry=entry).values
            if not points or np.isnan(points).all():
                assert np.isnan(found).all()
                continue
            grid = sum(len(cells[name].spec.init_scales) for name in names)
            share = (np.concatenate(points) < 0.1).sum(axis=0) / grid
            half = t.ppf(0.975, len(share) - 1) * sem(share)
            expected = [share.mean(), max(share.mean() - half, 0), min(share.mean() + half, 1)]
            np.testing.assert_allclose(found, expected, **CLOSE)
    assert rows > 30


def test_the_points_at_which_a_theory_holds_are_the_recomputed_ones(cells, by_hand, small_board):
    held = set[float]()
    for task, names in by_task(cells).items():
        scores = small_board[task].dataset
        for value, name in zip(scores["value"].values, names, strict=True):
            scales = np.asarray(cells[name].spec.init_scales)
            for entry in scores["entry"].values:
                errors = by_hand[name]["loss_error"].get(entry, np.full((len(scales), 3), np.nan))
                mean = errors.mean(axis=1)
                expected = np.where(np.isnan(mean), np.nan, mean < 0.1)
                found = scores["holds"].sel(value=value, entry=entry)
                np.testing.assert_array_equal(found, expected)
                held |= set(expected[~np.isnan(expected)].tolist())
    assert held == {0, 1}
