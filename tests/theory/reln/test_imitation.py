"""Imitation, against gradient descent written out here and interpolation of each output."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build_ensemble
from neuralrace.config.cell import Record
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.theory.reln.imitation import (
    SmallestTask,
    altered,
    at_loss,
    imitate,
    loss_gap,
    output_error,
    with_fewest_units,
)
from neuralrace.training.trainer import Trajectory, train

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
        gated_x = [gate[:, None] * X for gate in GATES]
        hidden = [x @ w.T for x, w in zip(gated_x, weights[:count], strict=True)]
        out = sum(h @ w.T for h, w in zip(hidden, weights[count:], strict=True))
        if step % 3 == 0:
            losses.append(0.5 * ((Y - out) ** 2).sum())
            outputs.append(out)
        error = out - Y
        gradient = [(error @ d).T @ x for d, x in zip(weights[count:], gated_x, strict=True)]
        gradient += [error.T @ h for h in hidden]
        velocity = [0.5 * v + g for v, g in zip(velocity, gradient, strict=True)]
        weights = [w - 0.02 * v for w, v in zip(weights, velocity, strict=True)]
    return losses, outputs


def test_imitation_has_the_training_of_the_network():
    ensemble = build_ensemble(SPEC)
    imitation = imitate(ensemble, gated())
    wiring = gated().wiring(ensemble.dataset.load())
    edges = initial_edges(
        ensemble.init,
        wiring.architecture,
        lambda _: wiring.effective,
        ensemble.init_scales,
        range(2),
    )
    assert imitation.variables["sample_similarity"].shape == (2, 2, 5, 5, 5)
    for scale in range(2):
        for seed in range(2):
            own = [edge[scale, seed] for edge in edges]
            losses, outputs = descent(own[::2], own[1::2])
            np.testing.assert_allclose(imitation.variables["loss"][scale, seed], losses, rtol=1e-10)
            np.testing.assert_allclose(
                imitation.variables["outputs"][scale, seed], outputs, rtol=1e-9, atol=1e-12
            )


def test_smallest_pathways_train_as_the_given_ones():
    """Ten and twenty units, of which inputs and outputs leave four: one input repeats another."""
    x = np.hstack([X[:, :2], X[:, :1]])
    network = gated().model_copy(update={"widths": (10, 20)})
    changes = {"dataset": {"name": "table", "x": x.tolist(), "y": Y.tolist()}}
    ensemble = build_ensemble(SPEC, **changes)
    record = Record(every=3, snapshots=4, observables=("outputs", "similarity"))
    plain = train(altered(ensemble, network=network, record=record)).variables
    examples = network.examples(ensemble.dataset)
    task = SmallestTask(network, examples, ensemble.init, ensemble.training)
    shapes = [[layer.shape[2:] for layer in s] for s in task.weights((0.3,), range(2))]
    assert shapes == [[(2, 4, 2), (2, 2, 4)]]
    assert task.arrays["x"].shape == (5, 4)
    smallest = imitate(ensemble, network).variables
    for name, values in plain.items():
        np.testing.assert_allclose(smallest[name], values, rtol=1e-10, atol=1e-13, err_msg=name)


def test_context_pathways_train_on_the_rank_of_the_objects_that_they_receive():
    """Four objects in two contexts: rank 5 of all inputs, rank 4 of the objects alone."""
    network = Gated(name="gated", hidden=(12,), gates=Contexts(name="contexts", open_in=(1,)))
    ensemble = build_ensemble(SPEC, dataset={"name": "contextual", "contexts": 2, "objects": 4})
    record = Record(every=3, snapshots=2, observables=("outputs", "similarity"))
    plain = train(altered(ensemble, network=network, record=record)).variables
    examples = network.examples(ensemble.dataset)
    task = SmallestTask(network, examples, ensemble.init, ensemble.training)
    shapes = [[layer.shape[2:] for layer in s] for s in task.weights((0.3,), range(2))]
    assert shapes == [[(1, 12, 5), (1, 21, 12)], [(2, 12, 4), (2, 21, 12)]]
    smallest = imitate(ensemble, network).variables
    assert smallest["outputs"].shape[2] == 5
    np.testing.assert_allclose(smallest["loss"], plain["loss"], rtol=1e-10)
    for name in ("outputs", "sample_similarity"):
        np.testing.assert_allclose(
            smallest[name][:, :, ::2], plain[name], rtol=1e-10, atol=1e-13, err_msg=name
        )


def test_steps_of_adam_depend_on_the_basis_and_keep_all_units():
    training = SPEC["training"] | {"optimiser": {"name": "adam"}}
    ensemble = build_ensemble(SPEC, training=training)
    network = gated().model_copy(update={"widths": (10, 20)})
    record = Record(every=3, snapshots=4, observables=("outputs", "similarity"))
    plain = train(altered(ensemble, network=network, record=record)).variables
    for name, values in imitate(ensemble, network).variables.items():
        np.testing.assert_array_equal(values, plain[name], err_msg=name)


@given(st.integers(1, 9), st.integers(0, 99))
def test_fewest_units_keep_all_inner_products(units, seed):
    rng = np.random.default_rng(seed)
    into, out = rng.normal(size=(2, units, 3)), rng.normal(size=(2, 2, units))
    fewer = with_fewest_units(into, out)
    assert fewer[0].shape == (2, min(units, 5), 3)
    np.testing.assert_allclose(fewer[1] @ fewer[0], out @ into, atol=1e-12)
    np.testing.assert_allclose(fewer[0].mT @ fewer[0], into.mT @ into, atol=1e-12)
    np.testing.assert_allclose(fewer[1] @ fewer[1].mT, out @ out.mT, atol=1e-12)


def test_mini_batches_are_refused():
    training = SPEC["training"] | {"batch": {"name": "mini", "size": 2}}
    with pytest.raises(UserError, match="trained on all samples") as error:
        imitate(build_ensemble(SPEC, training=training), gated())
    assert (error.value.key, error.value.value) == ("training.batch.name", "'mini'")
    assert error.value.remedy == "use full"


def test_altered_ensembles_are_validated():
    ensemble = build_ensemble(SPEC)
    record = Record(every=4, snapshots=3)
    assert altered(ensemble, record=record).record == record
    assert altered(ensemble, record=record).training == ensemble.training
    with pytest.raises(ValueError, match=r"training.steps: 12: must be a multiple"):
        altered(ensemble, record=Record(every=5))


# Outputs at equal loss -------------------------------------------------------------------------


falling = st.lists(st.floats(0.01, 1), min_size=2, max_size=8)


@given(falling, st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=5), st.integers(0, 99))
def test_outputs_are_interpolated_linearly_in_the_loss(drops, shares, seed):
    loss = np.cumsum(drops)[::-1]
    outputs = np.random.default_rng(seed).normal(size=(len(loss), 3, 2))
    levels = loss[-1] + np.array(shares) * (loss[0] - loss[-1])
    at_levels = at_loss(levels[None, None], trajectory(loss[None, None], outputs[None, None]))
    flat = outputs.reshape(len(loss), -1)
    for level, out in zip(levels, at_levels[0, 0], strict=True):
        if level < loss[-1]:
            assert np.isnan(out).all()
        else:
            expected = [np.interp(level, loss[::-1], column[::-1]) for column in flat.T]
            np.testing.assert_allclose(out.ravel(), expected, atol=1e-9)


def test_outputs_are_read_where_the_loss_first_falls_to_the_level():
    loss = [4.0, 4, 2, 3, 1, 1]
    outputs = np.arange(6.0)[:, None, None]
    levels = np.array([5.0, 4, 3, 2, 1.5, 1, 0.5, np.nan])
    at_levels = at_loss(levels[None, None], trajectory([[loss]], [[outputs]]))[0, 0, :, 0, 0]
    np.testing.assert_array_equal(at_levels, [0, 0, 1.5, 2, 3.75, 4, np.nan, np.nan])


def test_every_run_may_have_other_levels():
    loss = np.array([[[4.0, 2, 0]], [[4, 0, 0]]])
    outputs = np.tile(np.arange(3.0)[:, None, None], (2, 1, 1, 1, 1))
    levels = np.array([[[3.0, 1]], [[1, 3]]])
    at_levels = at_loss(levels, trajectory(loss, outputs))[..., 0, 0]
    np.testing.assert_array_equal(at_levels, [[[0.5, 1.5]], [[0.75, 0.25]]])


def test_outputs_must_be_recorded_as_often_as_the_loss():
    imitation = trajectory(np.ones((1, 1, 5)), np.ones((1, 1, 3, 2, 2)))
    with pytest.raises(ValueError, match="outputs must be recorded as often as the loss"):
        at_loss(np.ones((1, 1, 1)), imitation)


def test_a_network_imitates_itself_without_error_at_any_speed():
    imitation = imitate(build_ensemble(SPEC), gated())
    loss, outputs = imitation.variables["loss"], imitation.variables["outputs"]
    np.testing.assert_array_less(np.diff(loss), 0)  # so that every level is crossed once
    np.testing.assert_allclose(output_error(loss, outputs, imitation, Y), 0, atol=1e-25)
    slow = trajectory(loss.repeat(3, axis=2), outputs.repeat(3, axis=2))
    np.testing.assert_allclose(output_error(loss, outputs, slow, Y), 0, atol=1e-25)
    np.testing.assert_allclose(
        output_error(loss, 0 * outputs, imitation, Y), (outputs**2).sum((-2, -1)) / (Y**2).sum()
    )


def test_loss_below_the_lowest_of_the_imitation_counts_as_error():
    outputs = np.array([0.0, 1, 1.5])[:, None, None]
    imitation = trajectory([[[1.0, 0.25, 0.125]]], [[outputs]])
    losses, own = np.array([[[1.0, 0.125, 0]]]), np.array([0.0, 2, 3])[None, None, :, None, None]
    error = output_error(losses, own, imitation, np.array([[2.0]]))
    np.testing.assert_allclose(error, [[[0, 0.25 / 4, 2.25 / 4]]])


def test_error_of_a_diverged_imitation_is_nan():
    imitation = trajectory([[[1.0, np.nan]]], [[np.zeros((2, 1, 1))]])
    error = output_error(np.ones((1, 1, 1)), np.zeros((1, 1, 1, 1, 1)), imitation, np.ones((1, 1)))
    assert np.isnan(error).all()


def test_loss_gap_is_the_largest_difference_over_the_initial_loss():
    loss = np.array([[4.0, 3, 0], [2, 1, 1]])
    other = np.array([[4.0, 1, 1], [3, 1, np.nan]])
    np.testing.assert_array_equal(loss_gap(loss, other), [0.5, np.nan])
