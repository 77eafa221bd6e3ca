"""Diverged runs are results, and change no other run."""

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.training.trainer import DIVERGENCE_FACTOR, train

SCALES = [0.3, 40.0]  # the larger one is far beyond the learning rate's reach
TRAINING = {"learning_rate": 0.02, "steps": 12}


@pytest.fixture(scope="module")
def mixed(make_run):
    observables = ["weights", "layer_norm", "singular_values"]
    record = {"every": 1, "snapshots": 12, "observables": observables}
    return make_run(
        init_scales=SCALES,
        training=TRAINING | {"optimiser": {"name": "momentum", "momentum": 0.5}},
        record=record,
    )


@pytest.fixture(scope="module")
def trajectory(mixed):
    return train(mixed)


def numpy_divergence(ensemble, weights):
    """First step with a loss beyond the limit before it, by plain heavy-ball descent."""
    data = ensemble.dataset.load()
    w1, w2 = weights
    v1, v2 = 0 * w1, 0 * w2
    limit = None
    with np.errstate(all="ignore"):
        for step in range(ensemble.training.steps + 1):
            error = data.x @ (w2 @ w1).T - data.y
            loss = np.sum(error**2) / (2 * len(data.x))
            limit = DIVERGENCE_FACTOR * loss if limit is None else limit
            if not loss <= limit:
                return step
            slope = error.T @ data.x / len(data.x)
            v1 = ensemble.training.optimiser.momentum * v1 + w2.T @ slope
            v2 = ensemble.training.optimiser.momentum * v2 + slope @ w1.T
            w1, w2 = (w - ensemble.training.learning_rate * v for w, v in ((w1, v1), (w2, v2)))
    return -1


def test_divergence_is_detected_at_the_step_of_a_plain_loop(mixed, trajectory):
    for scale in range(2):
        for seed in range(2):
            start = [trajectory.variables[f"weight_{n}"][scale, seed, 0] for n in (1, 2)]
            assert trajectory.diverged_at[scale, seed] == numpy_divergence(mixed, start)
    assert (trajectory.diverged_at[0] == -1).all()
    assert (trajectory.diverged_at[1] > 0).all()


def test_diverged_runs_hold_values_before_and_nan_after(trajectory):
    for name, values in trajectory.variables.items():
        padding = np.isnan(values[0, 0, 0])  # of singular values, in healthy runs too
        for seed in range(2):
            at = trajectory.diverged_at[1, seed]
            assert np.isnan(values[1, seed, at:]).all(), name
            assert (np.isnan(values[1, seed, :at]) == padding).all(), name


def test_other_runs_are_as_without_the_diverged_run(mixed, trajectory):
    alone = train(mixed.model_copy(update={"init_scales": mixed.init_scales[:1]}))
    assert (alone.diverged_at == -1).all()
    for name, values in alone.variables.items():
        np.testing.assert_allclose(
            trajectory.variables[name][:1], values, rtol=1e-13, atol=1e-14, err_msg=name
        )


def test_divergence_in_the_last_step_is_detected(mixed, trajectory, make_run):
    last = int(trajectory.diverged_at[1].max())
    ensemble = make_run(
        init_scales=SCALES,
        training=TRAINING | {"optimiser": {"name": "momentum", "momentum": 0.5}, "steps": last},
        record={"every": last},
    )
    short = train(ensemble)
    np.testing.assert_array_equal(short.diverged_at, trajectory.diverged_at)
    np.testing.assert_array_equal(np.isnan(short.variables["loss"][:, :, -1]), [[0, 0], [1, 1]])


def test_divergence_of_all_runs_is_an_error(make_run):
    lines = []
    ensemble = make_run(init_scales=[40.0, 50.0], training=TRAINING, record={"every": 12})
    with pytest.raises(UserError, match=r"every run diverged, the first at step \d") as error:
        train(ensemble, report=lines.append)
    assert (error.value.key, error.value.value) == ("training.learning_rate", "0.02")
    assert "all diverged" in lines[-1]
