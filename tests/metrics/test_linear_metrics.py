"""Metrics of linear networks by mode, against definitions and known paths of weights."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from weight_paths import (
    TWO_MODES,
    arbitrary_path,
    gradient_flow,
    initial_weights,
    linear_cell,
    observe,
)

from builders import (
    assert_close,
    flow_time,
    for_all_runs,
    metrics_of,
    recorded_trajectory,
    solved_theory,
)
from neuralrace.theory.tied import tied_weights

# Learning times ----------------------------------------------------------------------------------


def test_learning_times_need_no_theory():
    cell = linear_cell(["learning_times"])
    metrics = metrics_of(cell, observe(cell, arbitrary_path(cell)))
    assert "half_time" in metrics
    assert "half_time_over_predicted" not in metrics


def logistic_cell(singular_values, **parts):
    return linear_cell(
        ["learning_times"],
        **{
            "dataset": {
                "name": "modes",
                "singular_values": singular_values,
                "inputs": 4,
                "outputs": len(singular_values),
            },
            "init": {"name": "aligned"},
            "training": {"learning_rate": 0.002, "steps": 3000},
            "solutions": ["aligned_modes"],
        }
        | parts,
    )


def test_learning_times_of_logistic_modes():
    cell = logistic_cell([3.0, 1.0, 0.0])
    s = np.array([3.0, 1.0])
    eps = np.array(cell.init_scales)[:, None, None] ** 2 * np.ones((1, 2, 1))
    time = flow_time(cell)[:, None]
    strength = s / (1 + (s / eps[:, :, None] - 1) * np.exp(-2 * s * time))
    without_target = np.zeros((*strength.shape[:-1], 1))
    trajectory = recorded_trajectory(
        cell, mode_strength=np.concatenate([strength, without_target], -1)
    )
    metrics = metrics_of(cell, trajectory, solved_theory(cell))
    half = np.log(s / eps - 1) / (2 * s)
    learned = metrics.isel(mode=slice(0, 2))
    assert_close(learned["half_time"], half, rtol=1e-6)
    assert_close(learned["half_time_over_predicted"], np.ones_like(half), rtol=1e-6)
    assert_close(learned["half_time_over_theory"].isel(solution=0), np.ones_like(half), rtol=1e-6)
    assert_close(learned["half_time_over_written"], half * s / np.log(s / eps), rtol=1e-6)
    assert_close(learned["second_half_over_first"], np.ones_like(half), rtol=1e-4)
    assert_close(learned["second_half_over_written"], half * s / np.log(s / eps), rtol=1e-4)
    assert_close(learned["half_time_times_s"], half * s, rtol=1e-6)
    assert_close(metrics["half_time_spread"], half.max(-1) / half.min(-1), rtol=1e-6)
    assert_close(metrics["modes_in_order"], np.ones((2, 2)))
    assert_close(learned["logistic_rate"], np.ones_like(half), rtol=1e-6)
    odds = eps[..., 0] / (s[1] - eps[..., 0]) * np.exp(2 * s[1] * half[..., 0])
    share = odds / (1 + odds)
    assert_close(
        metrics["later_share"], share, rtol=5e-3
    )  # read at the next entry of the time axis
    for name in ("half_time", "half_time_over_predicted", "half_time_over_written"):
        assert metrics[name].sel(mode=3).isnull().all()


@pytest.mark.parametrize(
    ("s", "half", "in_order", "later"),
    [
        ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], 1, 2 / 6),
        ([3.0, 2.0, 1.0], [1.0, 3.0, 2.0], 0, 3 / 4),
        ([2.0, 2.0, 1.0], [2.0, 1.0, 3.0], 1, 2 / 6),
        ([2.0, 1.0, 1.0], [1.0, 3.0, 2.0], 1, 1 / 4),
        ([2.0, 2.0, 1.0], [3.0, 1.0, 2.0], 0, 3 / 4),
        ([2.0, 1.0], [1.0, 50.0], 0, 1 / 100),
        ([2.0, 0.0, 0.0], [1.0, 1.0, 1.0], 0, np.nan),
    ],
    ids=[
        "in order",
        "swapped",
        "degenerate pair first",
        "degenerate pair last",
        "degenerate mode behind a weaker one",
        "one never learned",
        "nothing to compare",
    ],
)
def test_stronger_modes_are_learned_first(s, half, in_order, later):
    cell = logistic_cell(s)
    ramp = np.array(s) * flow_time(cell)[:, None] / (2 * np.array(half))
    trajectory = recorded_trajectory(cell, mode_strength=np.tile(ramp, (2, 2, 1, 1)))
    metrics = metrics_of(cell, trajectory, solved_theory(cell))
    assert_close(metrics["modes_in_order"], np.full((2, 2), in_order))
    assert_close(metrics["later_share"], np.full((2, 2), later), rtol=1e-3)


def test_half_times_of_a_shallow_network_follow_the_exponential():
    cell = logistic_cell(
        [3.0, 1.0],
        network={"name": "layered", "hidden": []},
        init={"name": "normal"},
        init_scales=[0.05],
        solutions=["shallow_modes"],
    )
    data, (w,) = cell.dataset.load(), initial_weights(cell)
    b0 = np.einsum("ok,...oi,ik->...k", data.modes.u, w, data.modes.v)
    s = np.array([3.0, 1.0])
    strength = s + (b0 - s)[..., None, :] * np.exp(-flow_time(cell)[:, None])
    metrics = metrics_of(cell, theory=solved_theory(cell), mode_strength=strength)
    assert_close(metrics["half_time"], np.log((s - b0) / (s / 2)), rtol=1e-5)
    assert_close(metrics["half_time_over_predicted"], np.ones((1, 2, 2)), rtol=1e-5)
    # log(u/(s - u)) of 1 - exp(-t) between .1 and .9, by quadrature: far from the 2 s of a logistic
    ends = -np.log([0.9, 0.1])
    middle = ends.mean()
    logit = np.vectorize(lambda t: np.log(np.expm1(t)))
    slope = quad(lambda t: (t - middle) * logit(t), *ends)[0] / (np.diff(ends)[0] ** 3 / 12)
    assert_close(metrics["logistic_rate"] * 2 * s, np.full((1, 2, 2), slope), rtol=0.02)


# Alignment and interference ----------------------------------------------------------------------


def test_alignment_at_both_ends_of_an_arbitrary_path():
    cell = linear_cell(
        ["alignment"],
        dataset=TWO_MODES["dataset"] | {"singular_values": [3.0, -1.0, 0.0], "outputs": 3},
    )
    path = arbitrary_path(cell)
    metrics = metrics_of(cell, observe(cell, path))
    modes = cell.dataset.load().modes
    for scale, seed in np.ndindex(2, 2):
        ensemble = {"init_scale": scale, "seed": seed}
        for at, name in ((0, "initial_overlap"), (-1, "final_overlap")):
            a = [path[0][scale, seed, at] @ modes.v[:, k] for k in range(2)]
            b = [path[1][scale, seed, at].T @ modes.u[:, k] for k in range(2)]
            a_unit, b_unit = ([x / np.linalg.norm(x) for x in side] for side in (a, b))
            largest = max(abs(a_unit[0] @ b_unit[1]), abs(a_unit[1] @ b_unit[0]))
            assert_close(metrics[name].isel(ensemble), largest)
        cosine = [x @ y for x, y in zip(a_unit, b_unit, strict=True)]
        lengths = np.linalg.norm(a, axis=1) / np.sqrt([3.0, 1.0])
        assert_close(metrics["final_cosine"].isel(ensemble), [*cosine, np.nan])
        assert_close(metrics["final_encoder_length"].isel(ensemble), [*lengths, np.nan])
        decoders = np.linalg.norm(b, axis=1) / np.sqrt([3.0, 1.0])
        assert_close(metrics["final_decoder_length"].isel(ensemble), [*decoders, np.nan])
        gap = [  # the second mode is negative
            np.linalg.norm(x - sign * y) / np.sqrt((x @ x + y @ y) / 2)
            for x, y, sign in zip(a, b, (1, -1), strict=True)
        ]
        assert_close(metrics["final_gap"].isel(ensemble), [*gap, np.nan])
        first_a, first_b = (
            path[0][scale, seed, 0] @ modes.v[:, 0],
            path[1][scale, seed, 0].T @ modes.u[:, 0],
        )
        sizes = np.linalg.norm(first_a), np.linalg.norm(first_b)
        assert_close(metrics["initial_length_ratio"].isel(ensemble)[0], min(sizes) / max(sizes))
        assert_close(
            metrics["initial_cosine"].isel(ensemble)[0], first_a @ first_b / np.prod(sizes)
        )
        first_gap = np.linalg.norm(first_a - first_b) / np.sqrt(np.sum(np.square(sizes)) / 2)
        assert_close(metrics["initial_gap"].isel(ensemble)[0], first_gap)
    assert (metrics["largest_gap"] >= metrics["final_gap"]).sel(mode=[1, 2]).all()
    assert (metrics["largest_overlap"] >= metrics["initial_overlap"]).all()


def test_overlaps_when_the_first_mode_is_learned():
    """A hand-made path: the second mode is learned first, and overlaps with the third one."""
    cell = linear_cell(
        ["alignment"],
        dataset={"name": "modes", "singular_values": [4.0, -1.0, 1.0], "inputs": 3, "outputs": 3},
        network={"name": "layered", "hidden": [3]},
        init_scales=[1.0],
        seeds=1,
        training={"learning_rate": 1.0, "steps": 3},
        record={"every": 1},
    )
    e = np.eye(3)
    start = [0.1 * e[0], 0.1 * (e[1] + e[0]), 0.1 * e[2]]
    learned = [0.1 * e[0], 1.0 * e[1], 0.1 * (e[2] + 3**0.5 * e[1])]
    end = [2.0 * e[0], 1.0 * e[1], 1.0 * e[2]]
    encoder = np.array([start, start, learned, end])  # (time, mode, hidden)
    decoder = encoder * np.array([1.0, -1.0, 1.0])[:, None]
    decoder[:2, 0] = 0.05 * e[0]
    decoder[2, 2] = 0.1 * e[2]  # so that only an encoder overlaps with the learned decoder
    path = [encoder.swapaxes(-2, -1)[None, None], decoder[None, None]]
    metrics = metrics_of(cell, observe(cell, path)).isel(init_scale=0, seed=0)
    # strengths of mode 2 are .02 and then 1: half at .48/.98 of the way from step 1 to step 2
    between = 1 + (0.5 - 0.02) / (1 - 0.02)
    assert_close(metrics["growth_time"], [2 + 1.99 / 3.99, between, 2 + (0.5 - 0.01) / 0.99])
    assert_close(metrics["overlap_with_learned"], 3**0.5 / 2)
    assert_close(metrics["overlap_of_others"], 0.0, atol=1e-12)
    assert_close(metrics["initial_length_ratio"], [0.5, 1.0, 1.0])
    assert_close(metrics["grown_length_ratio"], [1.0, 1.0, 1.0])
    gaps = [0.05 / np.sqrt(0.0125 / 2), 0.0, 0.1 * 3**0.5 / np.sqrt(0.05 / 2)]
    assert_close(metrics["largest_gap"], gaps, atol=1e-7)


def test_kurtosis_and_correlation_of_initial_weights():
    cell = linear_cell(["gaussian_start"], dataset={
            "name": "modes", "singular_values": [3.0, 1.0], "inputs": 2, "outputs": 2,
            "basis": "random",
        },
        network={"name": "layered", "hidden": [4]},
        init_scales=[0.5],
        seeds=1,
    )  # fmt: skip
    modes = cell.dataset.load().modes
    # signs in the singular basis; columns are orthogonal, or the last one repeats another
    encoder = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    for last, correlation in (([1.0, 1, 1, 1], 0.0), ([1.0, -1, -1, 1], 1.0)):
        decoder = np.stack([[1.0, -1, -1, 1], last], axis=1)
        weights = [encoder @ modes.input_basis.T, modes.output_basis @ decoder.T]
        path = [w[None, None, None].repeat(201, axis=2) for w in weights]
        metrics = metrics_of(cell, observe(cell, path))
        assert_close(metrics["start_kurtosis"], [[1 / 3]])  # signs have a kurtosis of 1
        assert_close(metrics["start_correlation"], [[correlation]], atol=1e-12)


DECOUPLED = {
    "dataset": {"name": "modes", "singular_values": [3.0, -1.5], "inputs": 2, "outputs": 2},
    "network": {"name": "layered", "hidden": [6]},
    "init": {"name": "decoupled"},
    "training": {"learning_rate": 0.005, "steps": 1200},
}


def sum_and_difference_norms(cell, path):
    """|p| and |m| of each mode along a path."""
    modes = cell.dataset.load().modes
    a, b = (path[0] @ modes.v).mT, (path[1].mT @ modes.u).mT
    return np.linalg.norm(a + b, axis=-1), np.linalg.norm(a - b, axis=-1)


def test_alignment_comes_before_growth():
    training = {"learning_rate": 0.001, "steps": 6000}
    cell = linear_cell(["alignment"], init_scales=[0.05], **DECOUPLED | {"training": training})
    path, modes = gradient_flow(cell), cell.dataset.load().modes
    a, b = (path[0][:, :, 0] @ modes.v).mT[0], (path[1][:, :, 0].mT @ modes.u).mT[0]
    metrics = metrics_of(cell, observe(cell, path))["alignment_over_growth"].values[0]
    for (seed, mode), s in zip(np.ndindex(2, 2), [3.0, -1.5] * 2, strict=True):
        start_a, start_b = a[seed, mode], b[seed, mode]
        skew = start_a @ start_a - start_b @ start_b  # conserved
        # of |p|^2 and |m|^2 alone: a.b = (P - M)/4 and |a|^2 + |b|^2 = (P + M)/2
        squares = solve_ivp(
            lambda _, y, s=s: 2 * (s - (y[0] - y[1]) / 4) * np.array([y[0], -y[1]]),
            (0, 6),
            [np.sum((start_a + start_b) ** 2), np.sum((start_a - start_b) ** 2)],
            "DOP853",
            rtol=1e-11,
            atol=1e-14,
            dense_output=True,
        ).sol
        grid = np.linspace(0, 6, 2001)

        def first(curve, squares=squares, grid=grid):
            """When a curve of P and M first rises through zero."""
            after = int(np.argmax(curve(*squares(grid)) >= 0))
            if after == 0:
                return 0.0
            return brentq(lambda t: curve(*squares(t)), grid[after - 1], grid[after])

        grown = first(lambda P, M, s=s: np.sign(s) * (P - M) / 4 - abs(s) / 2)
        aligned = first(
            lambda P, M, skew=skew: abs(P - M) / 4 - 0.9 * np.sqrt(((P + M) / 2) ** 2 - skew**2) / 2
        )
        assert 0 < aligned < grown
        np.testing.assert_allclose(metrics[seed, mode], aligned / grown, rtol=1e-4)


def test_unaligned_growth_of_decoupled_flow():
    cell = linear_cell(["unaligned_growth"], **DECOUPLED)
    trajectory = observe(cell, gradient_flow(cell))
    metrics = metrics_of(cell, trajectory)
    assert_close(metrics["log_ratio_slope"], np.full((2, 2, 2), 2.0), rtol=1e-6)
    assert (metrics["product_drift"] < 1e-4).all()  # |m| of the order of 1e-8 from a difference
    # in a time that is twice as fast, the slope is half as large
    fast = trajectory.assign_coords(flow_time=2 * trajectory["flow_time"])
    assert_close(metrics_of(cell, fast)["log_ratio_slope"], np.ones((2, 2, 2)), rtol=1e-6)


def test_product_drift_of_an_arbitrary_path():
    cell = linear_cell(["unaligned_growth"], **DECOUPLED)
    path = arbitrary_path(cell)
    p, m = sum_and_difference_norms(cell, path)
    change = p * m / (p * m)[:, :, :1] - 1
    metrics = metrics_of(cell, observe(cell, path))
    assert_close(metrics["product_drift"], abs(change).max(axis=2))


def test_interference_of_two_tied_modes():
    cell = linear_cell(
        ["interference"],
        dataset={"name": "modes", "singular_values": [2.0, 1.0], "inputs": 2, "outputs": 2},
        network={"name": "layered", "hidden": [10]},
        init={"name": "tied"},
        init_scales=[0.1],
        seeds=4,
        training={"learning_rate": 0.002, "steps": 3000},
    )
    time = flow_time(cell)
    rows = tied_weights(time, initial_weights(cell)[0].mT, np.diag([2.0, 1.0]))
    metrics = metrics_of(cell, observe(cell, [rows.mT, rows]))
    assert metrics["mode_pair"].values.tolist() == ["1-2"]
    one, other = (np.sum(rows[..., k, :] ** 2, axis=-1) for k in range(2))
    cosine = np.sum(rows[..., 0, :] * rows[..., 1, :], axis=-1) / np.sqrt(one * other)
    assert_close(metrics["initial_cosine_between_modes"], abs(cosine[:, :, :1]))
    assert_close(metrics["final_cosine_between_modes"], abs(cosine[:, :, -1:]), atol=1e-14)
    # exactly, d log|cos|/dt = -(|W_1|^2 + |W_2|^2)(1 - cos^2): both integrals by the trapezoid rule
    for seed in range(4):
        share = cosine[0, seed] / cosine[0, seed, 0]
        until = int(np.argmax(share <= np.exp(-2))) + 1
        total, larger = (one + other)[0, seed], np.maximum(one, other)[0, seed]
        over = {
            name: np.trapezoid(rate[:until], time[:until])
            for name, rate in (("sum", total), ("larger", larger), ("smaller", total - larger))
        }
        decay = np.trapezoid((total * (1 - cosine[0, seed] ** 2))[:until], time[:until])
        ensemble = {"seed": seed, "init_scale": 0, "mode_pair": 0}
        assert_close(metrics["decay_over_sum"].isel(ensemble), decay / over["sum"], rtol=1e-5)
        assert_close(metrics["decay_over_larger"].isel(ensemble), decay / over["larger"], rtol=1e-5)
        assert_close(
            metrics["decay_over_smaller"].isel(ensemble), decay / over["smaller"], rtol=1e-5
        )
        assert decay < over["sum"]
        assert decay > over["larger"]
        grown = int(np.argmax(larger >= larger[-1] / 2))
        log_share = np.log(share)
        assert_close(metrics["fall_before_growth"].isel(ensemble), -log_share[grown])
        fall_after = log_share[grown] - log_share[2 * grown]
        assert_close(metrics["fall_after_growth"].isel(ensemble), fall_after)
        steps = np.diff(time) * (total[1:] + total[:-1]) / 2
        first_order = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
        error = abs(share - first_order).max()
        assert_close(metrics["first_order_error"].isel(ensemble), error, atol=1e-5)


def test_constant_weights_have_no_decay():
    cell = linear_cell(
        ["interference"], network={"name": "layered", "hidden": [5]}, training=TWO_MODES["training"]
    )
    path = [layer[:, :, :1].repeat(201, axis=2) for layer in arbitrary_path(cell)]
    metrics = metrics_of(cell, observe(cell, path))
    assert metrics["decay_over_sum"].isnull().all()  # nothing moves, so nothing decays


# Layers and convergence --------------------------------------------------------------------------


def test_layer_ratio_reaches_its_limit():
    cell = linear_cell(
        ["layer_ratio"],
        dataset=DECOUPLED["dataset"] | {"singular_values": [3.0, 1.0]},
        init={"name": "aligned", "layer_strengths": [0.2, 3.0]},
        training={"learning_rate": 0.02, "steps": 1200},
    )
    path = gradient_flow(cell)
    metrics = metrics_of(cell, observe(cell, path))
    scale = np.array(cell.init_scales)[:, None, None] * np.ones((1, 2, 2))
    # a b = s and b^2 - a^2 = delta at the end
    delta, s = scale**2 * (9 - 0.04), np.array([3.0, 1.0])
    smaller = np.sqrt((-delta + np.sqrt(delta**2 + 4 * s**2)) / 2)
    assert_close(metrics["initial_layer_ratio"], np.full((2, 2, 2), 15.0))
    assert_close(metrics["final_layer_ratio"], s / smaller**2, rtol=1e-6)
    assert_close(metrics["final_layer_ratio_over_limit"], np.ones((2, 2, 2)), rtol=1e-6)
    assert_close(metrics["layer_ratio_growth"], np.ones((2, 2, 2)))


def test_convergence_of_a_known_curve():
    """A map on a straight way to its target, with times computed by hand."""
    data = {"name": "table", "x": [[2.0, 0.0], [0.0, 2.0]], "y": [[3.0], [1.0]]}
    cell = linear_cell(
        ["convergence"], dataset=data, training={"learning_rate": 0.01, "steps": 200}
    )
    target = np.array([[1.5, 0.5]])
    time = np.linspace(0, 2, 201)
    share = np.where(time < 1, time**2, 1.0)
    path = np.broadcast_to(share[:, None, None] * target, (2, 2, 201, 1, 2))
    metrics = metrics_of(cell, linear_map=path)
    everywhere = np.ones((2, 2))
    assert_close(metrics["final_residual"], 0 * everywhere, atol=1e-12)
    assert_close(metrics["convergence_time"], np.sqrt(0.9) * everywhere, rtol=1e-4)
    assert_close(metrics["plateau_share"], everywhere / 3, rtol=1e-3)
    assert_close(metrics["peak_growth"], 1.99 * everywhere)
    assert_close(metrics["mean_growth"], np.sqrt(0.9) * everywhere, rtol=1e-4)
    late = metrics_of(cell, linear_map=(path + target) / 2)
    assert (late["plateau_share"] == 0).all()
    half = metrics_of(cell, linear_map=path / 2)
    assert half["convergence_time"].isnull().all()
    assert half["mean_growth"].isnull().all()
    assert_close(half["final_residual"], everywhere / 2)


# Outputs and ranks -------------------------------------------------------------------------------


def test_half_times_of_outputs_that_are_late():
    """Modes of the outputs follow logistic curves at a fraction of their speed."""
    cell = linear_cell(
        ["output_modes"],
        dataset=TWO_MODES["dataset"] | {"basis": "random"},
        network={"name": "layered", "hidden": [2], "activation": "tanh"},
        init={"name": "aligned"},
        init_scales=[0.01, 0.1],
        training={"learning_rate": 0.01, "steps": 3000},
        record={"every": 5, "snapshots": 600},
    )
    data, slower = cell.dataset.load(), np.array([1.5, 2.0])
    s, time = data.modes.s[:2], flow_time(cell)
    eps = np.array(cell.init_scales)[:, None, None, None] ** 2 * np.ones((1, cell.seeds, 1, 1))
    strength = s / (1 + (s / eps - 1) * np.exp(-2 * s * time[:, None] / slower))
    maps = np.einsum("ok,...k,ik->...oi", data.modes.u[:, :2], strength, data.modes.v[:, :2])
    outputs = np.einsum("...oi,ni->...no", maps, data.x)
    metrics = metrics_of(cell, outputs=outputs)
    half = np.log(s / eps[:, :, 0] - 1) / (2 * s) * slower
    assert_close(metrics["output_half_time"], half, rtol=1e-4)
    assert_close(
        metrics["output_half_time_over_linear"], np.broadcast_to(slower, half.shape), rtol=1e-4
    )
    assert_close(metrics["output_modes_in_order"], np.ones(half.shape[:2]))
    swapped = metrics_of(cell, outputs=outputs[:, :, ::-1])  # both have half at the start
    assert_close(swapped["output_modes_in_order"], np.zeros(half.shape[:2]))


def test_effective_rank_of_known_singular_values():
    """Modes of strengths 3, 1, 1 are learned at given times; the map has no other entries."""
    cell = linear_cell(
        ["effective_rank"],
        dataset={"name": "modes", "singular_values": [3.0, 1.0, 1.0], "inputs": 4, "outputs": 3},
        network={"name": "layered", "hidden": [3]},
        training={"learning_rate": 0.01, "steps": 5},
        record={"every": 1},
    )
    strength = np.array([
        [0.1, 0.1, 0.1], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0],
        [3.0, 0.7, 0.7], [3.0, 0.9, 0.9], [2.0, 2.0, 0.0],
    ])  # fmt: skip
    maps = np.zeros((6, 3, 4))
    maps[:, range(3), range(3)] = strength
    path = np.tile(maps, (len(cell.init_scales), cell.seeds, 1, 1, 1))
    path[1, 0, 3:] = np.nan  # diverged
    metrics = metrics_of(cell, linear_map=path)

    def entropy_rank(*values):
        return np.prod([(sum(values) / value) ** (value / sum(values)) for value in values])

    run = metrics.isel(init_scale=0, seed=0)
    late = entropy_rank(3.0, 0.7, 0.7), entropy_rank(3.0, 0.9, 0.9)
    assert_close(run["effective_rank"], [3, 1, 1, *late, 2])
    assert_close(run["lowest_effective_rank"], 1)
    assert_close(run["final_effective_rank"], 2)
    assert_close(run["half_effective_rank"], [1, late[0], late[0]])
    sequence = entropy_rank(3.0, 0.5, 0.5)
    over = late[0] / sequence
    assert_close(run["half_effective_rank_over_sequential"], [1, over, over])
    diverged = metrics.isel(init_scale=1, seed=0)
    assert diverged["lowest_effective_rank"].isnull()
    assert diverged["effective_rank"].isnull().values.tolist() == [False] * 3 + [True] * 3
    assert diverged["half_effective_rank"].isnull().values.tolist() == [False, True, True]


def test_explained_outputs_of_known_errors():
    """Two outputs: one is explained to nine tenths, one is worse than a constant until the end."""
    cell = linear_cell(["explained_outputs"], training={"learning_rate": 0.1, "steps": 4},
                       record={"every": 1})  # fmt: skip
    errors = np.array([[1.0, 1.0], [0.6, 1.2], [0.4, 1.1], [0.2, 1.0], [0.1, 0.8]])
    metrics = metrics_of(cell, output_error=for_all_runs(cell, errors))
    run = metrics.isel(init_scale=1, seed=0)
    assert_close(run["final_explained"], [0.9, 0.2])
    assert_close(run["explained_outputs"], 1.1)
    time = flow_time(cell)
    assert_close(run["explained_half_time"], [(time[1] + time[2]) / 2, np.nan])
