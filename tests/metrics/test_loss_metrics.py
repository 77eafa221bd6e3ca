"""Metrics of the loss curve, on curves in closed form."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import minimize_scalar

from builders import (
    RELU,
    assert_close,
    cell_with_requirements,
    flow_time,
    for_all_runs,
    metrics_of,
    recorded_trajectory,
    solved_theory,
    theory_in_memory,
)
from neuralrace.extensions.registry import METRICS
from neuralrace.metrics.loss.plateaus import plateaus_of as first_plateaus
from neuralrace.theory.modes import deep_mode, mode_loss, shallow_mode

few = settings(max_examples=20)
XOR = RELU | {"init_scales": [0.2, 0.5], "record": {"every": 4}}
xor_cell = partial(cell_with_requirements, base=XOR)


def drop(time, centre, size, width=0.3):
    """A drop of the loss around a time."""
    return size / (1 + np.exp((time - centre) / width))


# Half times --------------------------------------------------------------------------------------


def test_half_time_of_the_xor_loss():
    cell = xor_cell(
        ["half_times"],
    )
    s, d, time = np.sqrt(2) / 4, 0.5, flow_time(cell)
    start = np.array([[1e-5, 1e-4, 1e-3], [1e-6, 2e-5, 3e-4]])
    a = deep_mode(time, np.array([s]), np.array([d]), start[..., None])[..., 0]
    loss = (1 - np.sqrt(2) * a) ** 2 / 2
    half = (np.log((1 - np.sqrt(0.5)) / np.sqrt(0.5)) + np.log(s / (d * start) - 1)) / (2 * s)
    late = np.stack([loss, np.interp(time, 2 * time, loss[0, 0]) + 0 * loss], axis=2)
    solved = theory_in_memory(cell, ("xor_race", "reduction"), loss=late)
    metrics = metrics_of(cell, theory=solved, loss=loss)
    # the level is half of the initial loss, which a start of 1e-3 takes to slightly below 1/4
    assert_close(metrics["loss_half_time"], half, rtol=5e-3)
    assert_close(metrics["loss_half_time"].isel(init_scale=1, seed=0), half[1, 0], rtol=1e-4)
    over = metrics["loss_half_time_over_predicted"]
    assert_close(over.sel(solution="xor_race"), np.ones((2, 3)))
    assert_close(over.sel(solution="reduction")[0, 0], 0.5, rtol=1e-3)
    assert_close(
        metrics["predicted_loss_half_time"].sel(solution="xor_race"), metrics["loss_half_time"]
    )


def test_half_time_ratio_is_undefined_for_theory_that_starts_half_way():
    cell = xor_cell(
        ["half_times"],
    )
    loss = for_all_runs(cell, np.exp(-flow_time(cell)))
    metrics = metrics_of(
        cell, theory=theory_in_memory(cell, ("xor_race",), loss=0.4 * loss[:, :, None]), loss=loss
    )
    assert_close(metrics["predicted_loss_half_time"], np.zeros((2, 3, 1)))
    assert metrics["loss_half_time_over_predicted"].isnull().all()


def test_loss_that_is_never_halved_has_no_half_time():
    cell = xor_cell(["half_times"])
    metrics = metrics_of(cell, loss=for_all_runs(cell, 1.01 + np.exp(-flow_time(cell))))
    assert metrics["loss_half_time"].isnull().all()
    assert "predicted_loss_half_time" not in metrics


# Relative loss -----------------------------------------------------------------------------------

Y = [[0.0], [0.0], [1.0], [0.0]]
ONE_HOT = [[1 - y, y] for (y,) in Y]


def relative_losses(curve, y, **training):
    """The metric for one init scale and two seeds, by seed."""
    cell = xor_cell(
        ["relative_loss"],
        dataset={"name": "table", "x": [[1.0], [2.0], [3.0], [4.0]], "y": y},
        network={"name": "layered", "hidden": []},
        init_scales=[0.1],
        seeds=2,
        training={"learning_rate": 0.1, "steps": 2} | training,
        record={"every": 1},
    )
    return metrics_of(cell, loss=np.array(curve)[None])["relative_loss"][0]


@pytest.mark.parametrize("normalisation", ["half_mean", "half_sum", "mean", "sum"])
def test_relative_squared_error_of_the_mean_target_is_one(normalisation):
    errors = (np.array(Y) - 0.25) ** 2
    constant = {
        "half_mean": errors.mean() / 2,
        "half_sum": errors.sum() / 2,
        "mean": errors.mean(),
        "sum": errors.sum(),
    }[normalisation]
    loss = [[9, 9, constant], [9, 9, np.nan]]
    metrics = relative_losses(loss, Y, loss={"normalisation": normalisation})
    np.testing.assert_allclose(metrics, [1, np.nan])


@pytest.mark.parametrize("y", [Y, ONE_HOT])
def test_relative_cross_entropy_of_the_class_frequencies_is_one(y):
    constant = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    entropy = {"name": "cross_entropy", "normalisation": "mean"}
    metrics = relative_losses([[9, 9, constant], [9, 9, 3 * constant]], y, loss=entropy)
    np.testing.assert_allclose(metrics, [1, 3])


# Stages ------------------------------------------------------------------------------------------


def stages_of(loss, clock=1.0):
    """Number of stages and initial share, from a curve of flow time."""
    cell = xor_cell(["stages"], init_scales=[1.0], seeds=1)
    trajectory = recorded_trajectory(cell, loss=for_all_runs(cell, loss(flow_time(cell))))
    trajectory["flow_time"] = clock * trajectory["flow_time"]
    metrics = metrics_of(cell, trajectory).isel(init_scale=0, seed=0)
    return float(metrics["stages"]), float(metrics["initial_rate_share"])


@pytest.mark.parametrize(
    ("drops", "count"),
    [
        ([(10, 1)], 1),
        ([(5, 5), (15, 1), (30, 0.1)], 3),
        ([(10, 1), (10.5, 1)], 1),
        ([(10, 1), (20, 1e-4)], 1),
        ([(10, 1), (20, 2e-3)], 2),
        ([(39.9, 1)], 0),
    ],
    ids=["one", "three", "two in one", "too small", "small", "not over yet"],
)
def test_stages_are_separate_drops(drops, count):
    number, share = stages_of(lambda t: sum(drop(t, *each) for each in drops))
    assert number == count
    assert share < 1e-4


@few
@given(st.lists(st.tuples(st.floats(0.01, 3), st.floats(0.01, 9)), min_size=1, max_size=4))
def test_decaying_exponentials_have_no_stages(terms):
    number, share = stages_of(lambda t: sum(size * np.exp(-rate * t) for rate, size in terms))
    assert (number, share) == (0, 1)


@settings(max_examples=10)
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_stages_do_not_depend_on_units(unit, clock):
    def loss(t):
        return drop(t, 4, 2, 0.8) + drop(t, 20, 1) + 0.1 * np.exp(-t)

    number, share = stages_of(lambda t: unit * loss(t), clock)
    assert number == 2
    np.testing.assert_allclose(share, stages_of(loss)[1], rtol=1e-9)


def test_deep_networks_learn_modes_in_stages_and_shallow_ones_at_once():
    s, d = np.array([9.0, 4, 1.5]), np.ones(3)

    def loss(mode, start):
        return lambda t: mode_loss(mode(t, s, d, np.full(3, start)), s, d, float(s @ s))

    deep, share = stages_of(loss(deep_mode, 1e-5))
    assert deep == 3
    assert share < 1e-3
    assert stages_of(loss(shallow_mode, 0.0)) == (0, 1)


def test_diverged_run_has_no_stages():
    numbers = stages_of(lambda t: np.where(t < 20, drop(t, 5, 1), np.nan))
    assert np.isnan(numbers).all()


# Plateaus ----------------------------------------------------------------------------------------


def plateaus_of(loss, **parts):
    """Metrics of curves, a function of flow time and seed."""
    cell = xor_cell(["plateaus"], init_scales=[1.0], **parts)
    curves = [loss(flow_time(cell), seed) for seed in range(cell.seeds)]
    return metrics_of(cell, loss=np.array([curves])).isel(init_scale=0)


def test_times_of_levels_and_their_variation():
    rates = np.array([1.0, 2.0, 4.0])
    metrics = plateaus_of(lambda t, seed: 3 * np.exp(-rates[seed] * t), record={"every": 1})
    levels = np.array([0.5, 0.2, 0.1, 0.05, 0.02])
    np.testing.assert_array_equal(metrics["loss_level"], levels)
    times = -np.log(levels) / rates[:, None]
    interpolation = 0.01**2 * rates.max() / 8
    assert_close(metrics["level_time"], times, rtol=0, atol=1.1 * interpolation)
    assert metrics["level_time_variation"].dims == ("loss_level",)
    variation = np.std(1 / rates, ddof=1) / np.mean(1 / rates)
    assert_close(metrics["level_time_variation"], np.full(5, variation), rtol=1e-3)
    off = np.abs(1 / rates - np.mean(1 / rates)) / np.mean(1 / rates)
    assert_close(metrics["level_time_deviation"], np.tile(off[:, None], 5), rtol=1e-3)
    assert metrics["plateau_level"].isnull().all()  # exponentials have no drops


def test_variation_needs_several_runs_that_reach_the_level():
    metrics = plateaus_of(lambda t, seed: np.maximum(np.exp(-t), 0.15 if seed == 1 else 0))
    assert_close(metrics["level_time_variation"], [0, 0, np.nan, np.nan, np.nan], atol=1e-12)
    assert metrics["level_time"].sel(loss_level=0.1).isnull().sum() == 1
    alone = plateaus_of(lambda t, seed: np.exp(-t), seeds=1)
    assert alone["level_time"].notnull().all()
    assert alone["level_time_variation"].isnull().all()


def two_drops(time, last=0.3):
    return drop(time, 8, 1 - last, 0.5) + drop(time, 25, last, 0.8) + 1e-4


@given(
    last=st.floats(0.1, 0.8),
    unit=st.floats(0.01, 100),
    learning_rate=st.sampled_from([0.01, 0.002]),
)
@few
def test_plateau_is_where_the_log_loss_falls_most_slowly(last, unit, learning_rate):
    """The minimum of -d log L/dt on the curve itself, in different units of loss and time."""
    slower = 0.01 / learning_rate

    def loss(t):
        return two_drops(t * slower, last)

    training = XOR["training"] | {"learning_rate": learning_rate}
    metrics = plateaus_of(lambda t, seed: unit * loss(t), seeds=1, training=training).isel(seed=0)
    step = 1e-4 / slower
    slowest = minimize_scalar(
        lambda t: np.log(loss(t - step) / loss(t + step)),
        bounds=(9 / slower, 24 / slower),
        method="bounded",
    )
    assert_close(metrics["plateau_level"][0], loss(slowest.x) / loss(0.0), rtol=1e-4)
    assert_close(metrics["plateau_time"][0], slowest.x, rtol=2e-2)
    assert abs(metrics["plateau_level"][0] - last) < 0.01
    # a drop falls fastest at its centre; the record is every 0.04 of the time of the curve
    assert_close(metrics["plateau_length"][0], 17 / slower, rtol=0, atol=0.1 / slower)
    assert metrics["plateau_level"][1].isnull()


def test_plateaus_are_numbered_from_the_first():
    def loss(t, seed):
        small = drop(t, 35, 0.1, 0.4) if seed == 2 else 0  # beyond the second plateau
        return drop(t, 5, 0.5, 0.5) + drop(t, 10, 0.3, 0.5) + drop(t, 30, 0.2, 0.5) + small

    metrics = plateaus_of(loss)
    small = np.array([0, 0, 0.1])[:, None]
    levels = (np.array([0.5, 0.2]) + small) / (1 + small)
    assert_close(metrics["plateau_level"], levels, rtol=2e-2)
    assert_close(metrics["plateau_length"], np.tile([5.0, 20.0], (3, 1)), rtol=0, atol=0.1)
    between = np.array([[5, 10], [10, 30]])
    assert (
        (metrics["plateau_time"] > between[:, 0]) & (metrics["plateau_time"] < between[:, 1])
    ).all()


@pytest.mark.parametrize(("low", "found"), [(0.6, True), (0.75, False)])
def test_rate_falls_by_a_third_between_drops(low, found):
    """A low peak of the rate behind a high one, and a valley between them."""
    time = np.arange(0, 40, 0.1)
    rate = np.interp(time, [5, 10, 15, 20, 25], [0, 1, 0.9 * low, 0.9, 0])
    loss = 20 - cumulative_trapezoid(rate, time, initial=0)
    level, at, length = first_plateaus(loss, time)
    assert np.isfinite([level[0], at[0], length[0]]).all() == found
    if found:
        assert_close(length[0], 10, rtol=0, atol=0.25)


@pytest.mark.parametrize(
    "loss",
    [
        lambda t, seed: drop(t, 10, 1.0, 1) + 0.2,
        lambda t, seed: np.ones_like(t),
        lambda t, seed: np.where(t < 20, two_drops(t), np.nan),
    ],
    ids=["one drop", "none", "diverged"],
)
def test_plateau_needs_two_drops(loss):
    metrics = plateaus_of(loss)
    for name in ("level", "time", "length"):
        assert metrics[f"plateau_{name}"].isnull().all()


# Alignment and onset of modes --------------------------------------------------------------------


def test_times_since_alignment_and_onset_of_a_turning_map():
    """The map u_1 (v_1 cos a + v_2 sin a)^T, with an angle a that falls to 0, and a growing size.

    Its alignment with the first mode is the root of cos a: C v_1 has the direction of u_1, and
    C^T u_1 is at an angle a to v_1. Its strength is the size times cos a.
    """
    cell = cell_with_requirements(
        ["mode_timing"], seeds=3, init_scales=[0.1], training={"learning_rate": 0.02, "steps": 400}
    )
    task, time = cell.dataset.load(), np.linspace(0, 1, 41)
    u, v = task.modes.u, task.modes.v
    late = np.array([0, 0.1, 0.3])
    angle = np.pi / 2 * np.clip(1 + late[:, None] - 1.5 * time, 0, 1)
    size = 0.05 * time**2
    maps = size[:, None, None] * (
        u[:, 0, None]
        * (np.cos(angle)[..., None] * v[:, 0] + np.sin(angle)[..., None] * v[:, 1])[..., None, :]
    )
    outputs = maps @ (task.x @ np.linalg.inv(task.sigma_xx)).T
    loss = np.exp(-np.array([1.0, 1.5, 3.0])[:, None] * 4 * time)
    metrics = metrics_of(cell, loss=loss[None], output_curve=np.swapaxes(outputs, -2, -1)[None])
    metrics, clock = metrics.isel(init_scale=0), flow_time(cell)
    unit = clock[-1]
    aligned = (1 + late - 2 / np.pi * np.arccos(0.81)) / 1.5
    assert_close(
        metrics["mode_alignment_time"].sel(mode=1), unit * aligned, rtol=0, atol=0.01 * unit
    )
    begun = []
    fine = np.linspace(0, 1, 40001)
    for delay in late:
        strength = 0.05 * fine**2 * np.cos(np.pi / 2 * np.clip(1 + delay - 1.5 * fine, 0, 1))
        begun.append(fine[np.argmax(strength >= 0.01 * task.modes.s[0])])
    assert_close(
        metrics["mode_onset_time"].sel(mode=1), unit * np.array(begun), rtol=0, atol=0.01 * unit
    )
    half = unit * np.log(2) / 4 / np.array([1.0, 1.5, 3.0])
    for name, event in (("alignment", aligned), ("onset", np.array(begun))):
        since = half - unit * event
        off = abs(since - since.mean()) / half.mean()
        measured = metrics[f"deviation_since_{name}"].sel(mode=1, loss_level=0.5)
        assert_close(measured, off, rtol=0, atol=0.05)


# Distance from theory ----------------------------------------------------------------------------


def test_analytic_fit_needs_a_solution_with_a_loss():
    absent = METRICS["analytic_fit"].declaration.absent
    assert absent((), ("flow",)) is None
    for solutions in ((), ("candidate_modes",)):
        error = absent((), solutions)
        assert str(error) == "needs a solution that gives loss; add one to solutions"


def test_analytic_fit_splits_the_distance():
    cell = cell_with_requirements(["analytic_fit"], solutions=["aligned_modes", "flow"])
    theory = solved_theory(cell)
    rng = np.random.default_rng(4)
    loss = rng.uniform(1, 2, size=(2, 2, 5))
    strength = rng.normal(size=(2, 2, 5, 2))
    trajectory = recorded_trajectory(cell, loss=loss, mode_strength=strength)
    metrics = metrics_of(cell, trajectory, theory)
    first = loss[:, :, 0]
    predicted, modes = theory["loss"].values, theory["mode_strength"].values
    for row, name in enumerate(cell.solutions):
        one = metrics.sel(solution=name)
        error = abs(predicted[:, :, row] - loss)
        assert_close(one["loss_error_sup"], error.max(axis=-1) / first)
        assert_close(one["loss_error_mean"], error.mean(axis=-1) / first)
        split = abs(predicted[:, :, row] - predicted[:, :, 1])
        assert_close(one["approximation_error"], split.max(axis=-1) / first)
        assert_close(
            one["mode_error_sup"], abs(modes[:, :, row] - strength).max(axis=(-2, -1)) / 2.0
        )
    error = abs(predicted[:, :, 1] - loss)
    assert_close(metrics["discretisation_error"], error.max(axis=-1) / first)


def test_diverged_run_has_no_analytic_fit():
    cell = cell_with_requirements(["analytic_fit"], solutions=["aligned_modes"])
    loss = np.ones((2, 2, 5))
    loss[1, 0, 3:] = np.nan
    metrics = metrics_of(cell, theory=solved_theory(cell), loss=loss)
    undefined = metrics["loss_error_sup"].isnull().values[:, :, 0]
    np.testing.assert_array_equal(undefined, [[False, False], [True, False]])


# Batches -----------------------------------------------------------------------------------------


def test_distance_from_full_batches_at_equal_time():
    """The reference is gradient descent on all samples, step by step."""
    cell = cell_with_requirements(
        ["full_batch_distance"],
        training={"learning_rate": 0.02, "steps": 40, "batch": {"name": "mini", "size": 1}},
    )
    data = cell.dataset.load()
    scale = np.array(cell.init_scales)[:, None, None, None]
    first, second = cell.resolved.initial(cell.init, data, (1.0,), cell.seed_numbers)
    first, second, losses = first * scale, second * scale, []
    for step in range(41):
        error = data.sigma_yx - second @ first  # inputs are white
        if step % 10 == 0:
            losses.append((error**2).sum((-2, -1)) / 2)
        first, second = first + 0.02 * second.mT @ error, second + 0.02 * error @ first.mT
    full = np.stack(losses, axis=-1)
    shift = np.array([0.0, 0.1, -0.3, 0.2, 0.0])
    metrics = metrics_of(cell, loss=full + shift)
    assert_close(metrics["full_batch_distance"], 0.3 / full[:, :, 0])


def test_distance_from_full_batches_needs_mini_batches():
    with pytest.raises(ValidationError, match=r"training\.batch\.name: 'full': use mini"):
        cell_with_requirements(["full_batch_distance"])
