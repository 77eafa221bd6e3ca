"""Imitation, against gradient descent by hand and interpolation output by output."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.config.cell import Ensemble, Record
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.theory.reln.imitation import altered, at_loss, imitate, loss_gap, output_error
from neuralrace.training.trainer import Trajectory

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
SPEC = {
    "dataset": {"name": "table", "x": X.tolist(), "y": Y.tolist()},
    "network": {"name": "layered", "hidden": [6], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.3, 0.5],
    "seeds": 2,
    "training": {
        "learning_rate": 0.02,
        "steps": 12,
        "optimiser": {"name": "momentum", "momentum": 0.5},
        "loss": {"normalisation": "half_sum"},
    },
    "record": {"every": 3, "snapshots": 2, "observables": ["weights", "rate_gap"]},
}
GATES = np.array([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1.0]])
WIDTHS = (2, 4)


def run_of(**parts):
    return Ensemble.model_validate_json(json.dumps(SPEC | parts))


def gated():
    gates = {"name": "listed", "rows": GATES.tolist()}
    spec = {"name": "gated", "hidden": [1], "widths": WIDTHS, "gates": gates}
    return Gated.model_validate_json(json.dumps(spec))


def trajectory(loss, outputs):
    loss, outputs = np.asarray(loss, float), np.asarray(outputs, float)
    variables = {"loss": loss, "outputs": outputs}
    return Trajectory(variables, np.full(loss.shape[:2], -1), outputs.shape[-2])


# Training --------------------------------------------------------------------------------------


def descent(encoders, decoders):
    """Losses and outputs at every third step of gradient descent with momentum."""
    weights = [np.array(w) for w in (*encoders, *decoders)]
    velocity = [np.zeros_like(w) for w in weights]
    count = len(encoders)
    losses, outputs = [], []
    for step in range(13):
        shown = [gate[:, None] * X for gate in GATES]
        hidden = [x @ w.T for x, w in zip(shown, weights[:count], strict=True)]
        out = sum(h @ w.T for h, w in zip(hidden, weights[count:], strict=True))
        if step % 3 == 0:
            losses.append(0.5 * ((Y - out) ** 2).sum())
            outputs.append(out)
        error = out - Y
        gradient = [(error @ d).T @ x for d, x in zip(weights[count:], shown, strict=True)]
        gradient += [error.T @ h for h in hidden]
        velocity = [0.5 * v + g for v, g in zip(velocity, gradient, strict=True)]
        weights = [w - 0.02 * v for w, v in zip(weights, velocity, strict=True)]
    return losses, outputs


def test_imitation_is_trained_as_the_network_is():
    ensemble = run_of()
    found = imitate(ensemble, gated())
    wiring = gated().wiring(ensemble.dataset.load())
    edges = initial_edges(
        ensemble.init,
        wiring.architecture,
        lambda _: wiring.effective,
        ensemble.init_scales,
        range(2),
    )
    assert found.variables["sample_similarity"].shape == (2, 2, 5, 5, 5)
    for scale in range(2):
        for seed in range(2):
            own = [edge[scale, seed] for edge in edges]
            losses, outputs = descent(own[::2], own[1::2])
            np.testing.assert_allclose(found.variables["loss"][scale, seed], losses, rtol=1e-10)
            np.testing.assert_allclose(
                found.variables["outputs"][scale, seed], outputs, rtol=1e-9, atol=1e-12
            )


def test_imitations_see_all_samples():
    training = SPEC["training"] | {"batch": {"name": "mini", "size": 2}}
    with pytest.raises(UserError, match=r"training.batch.name: 'mini': .* use full"):
        imitate(run_of(training=training), gated())


def test_altered_runs_are_checked():
    ensemble = run_of()
    record = Record(every=4, snapshots=3)
    assert altered(ensemble, record=record).record == record
    assert altered(ensemble, record=record).training == ensemble.training
    with pytest.raises(ValueError, match=r"training.steps: 12: must be a multiple"):
        altered(ensemble, record=Record(every=5))


# Outputs at equal loss -------------------------------------------------------------------------


falling = st.lists(st.floats(0.01, 1), min_size=2, max_size=8)


@given(falling, st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=5), st.integers(0, 99))
def test_outputs_follow_the_loss_by_straight_lines(drops, shares, seed):
    loss = np.cumsum(drops)[::-1]
    outputs = np.random.default_rng(seed).normal(size=(len(loss), 3, 2))
    levels = loss[-1] + np.array(shares) * (loss[0] - loss[-1])
    found = at_loss(levels[None, None], trajectory(loss[None, None], outputs[None, None]))[0, 0]
    flat = outputs.reshape(len(loss), -1)
    for level, out in zip(levels, found, strict=True):
        if level < loss[-1]:
            assert np.isnan(out).all()
        else:
            expected = [np.interp(level, loss[::-1], column[::-1]) for column in flat.T]
            np.testing.assert_allclose(out.ravel(), expected, atol=1e-9)


def test_the_first_crossing_counts():
    loss = [4.0, 4, 2, 3, 1, 1]
    outputs = np.arange(6.0)[:, None, None]
    levels = np.array([5.0, 4, 3, 2, 1.5, 1, 0.5, np.nan])
    found = at_loss(levels[None, None], trajectory([[loss]], [[outputs]]))[0, 0, :, 0, 0]
    np.testing.assert_array_equal(found, [0, 0, 1.5, 2, 3.75, 4, np.nan, np.nan])


def test_every_run_has_levels_of_its_own():
    loss = np.array([[[4.0, 2, 0]], [[4, 0, 0]]])
    outputs = np.tile(np.arange(3.0)[:, None, None], (2, 1, 1, 1, 1))
    levels = np.array([[[3.0, 1]], [[1, 3]]])
    found = at_loss(levels, trajectory(loss, outputs))[..., 0, 0]
    np.testing.assert_array_equal(found, [[[0.5, 1.5]], [[0.75, 0.25]]])


def test_outputs_must_be_dense():
    imitation = trajectory(np.ones((1, 1, 5)), np.ones((1, 1, 3, 2, 2)))
    with pytest.raises(ValueError, match="outputs must be recorded as often as the loss"):
        at_loss(np.ones((1, 1, 1)), imitation)


def test_a_network_is_its_own_imitation_at_any_speed():
    found = imitate(run_of(), gated())
    loss, outputs = found.variables["loss"], found.variables["outputs"]
    np.testing.assert_array_less(np.diff(loss), 0)  # as first crossings need
    np.testing.assert_allclose(output_error(loss, outputs, found, Y), 0, atol=1e-25)
    slow = trajectory(loss.repeat(3, axis=2), outputs.repeat(3, axis=2))
    np.testing.assert_allclose(output_error(loss, outputs, slow, Y), 0, atol=1e-25)
    np.testing.assert_allclose(
        output_error(loss, 0 * outputs, found, Y), (outputs**2).sum((-2, -1)) / (Y**2).sum()
    )


def test_what_is_never_learned_is_an_error():
    outputs = np.array([0.0, 1, 1.5])[:, None, None]
    imitation = trajectory([[[1.0, 0.25, 0.125]]], [[outputs]])
    losses, own = np.array([[[1.0, 0.125, 0]]]), np.array([0.0, 2, 3])[None, None, :, None, None]
    found = output_error(losses, own, imitation, np.array([[2.0]]))
    np.testing.assert_allclose(found, [[[0, 0.25 / 4, 2.25 / 4]]])


def test_a_diverged_imitation_has_no_error():
    imitation = trajectory([[[1.0, np.nan]]], [[np.zeros((2, 1, 1))]])
    found = output_error(np.ones((1, 1, 1)), np.zeros((1, 1, 1, 1, 1)), imitation, np.ones((1, 1)))
    assert np.isnan(found).all()


def test_gap_of_losses():
    loss = np.array([[4.0, 3, 0], [2, 1, 1]])
    other = np.array([[4.0, 1, 1], [3, 1, np.nan]])
    np.testing.assert_array_equal(loss_gap(loss, other), [0.5, np.nan])
