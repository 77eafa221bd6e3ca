"""Finding rectified linear networks, of the contextual task and others, from training."""

import numpy as np
import pytest

from builders import build_ensemble
from neuralrace.errors import UserError
from neuralrace.theory.modes import deep_mode, mode_loss
from neuralrace.theory.reln.find import find_reln

SPEC = {
    "dataset": {"name": "contextual", "contexts": 3, "objects": 4},
    "network": {"name": "layered", "hidden": [100], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.01],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 800, "loss": {"normalisation": "half_sum"}},
    "record": {"every": 8},
}


@pytest.fixture(scope="module")
def reln():
    return find_reln(build_ensemble(SPEC), pathways=4)


def test_contextual_gates_are_one_of_all_contexts_and_each_of_all_but_one(reln):
    by_context = reln.gating.gates.reshape(4, 3, 4)
    assert (by_context == by_context[:, :, :1]).all()
    np.testing.assert_array_equal(by_context[:, :, 0], [[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]])


@pytest.fixture(scope="module")
def linear():
    return find_reln(build_ensemble(SPEC), pathways=1, controls=False)


def test_reln_imitates_better_than_a_linear_network(reln, linear):
    assert (reln.relu.variables["loss"][..., -1] < 1e-3 * reln.relu.variables["loss"][..., 0]).all()
    assert reln.output_error.shape == (1, 3, 21)
    assert reln.output_error.max() < 0.05
    np.testing.assert_array_equal(linear.gating.gates, np.ones((1, 12)))
    assert linear.controls == {}
    assert (linear.output_error.max(axis=-1) > 2 * reln.output_error.max(axis=-1)).all()
    assert (linear.loss_gap > reln.loss_gap).all()
    np.testing.assert_array_equal(linear.relu.variables["loss"], reln.relu.variables["loss"])


def test_errors_are_computed_at_equal_loss_at_the_snapshots(reln):
    relu, imitation = reln.relu.variables, reln.imitation.variables
    gap = abs(relu["loss"] - imitation["loss"]).max(axis=-1) / relu["loss"][..., 0]
    np.testing.assert_allclose(reln.loss_gap, gap)
    y = build_ensemble(SPEC).dataset.load().y
    snapshot = 9  # of 20 intervals with five records each
    for seed in range(3):
        loss, outputs = imitation["loss"][0, seed], imitation["outputs"][0, seed]
        level = relu["loss"][0, seed, 5 * snapshot]
        after = int(np.argmax(loss <= level))
        share = (loss[after - 1] - level) / (loss[after - 1] - loss[after])
        out = (1 - share) * outputs[after - 1] + share * outputs[after]
        error = ((relu["outputs"][0, seed, snapshot] - out) ** 2).sum() / (y**2).sum()
        np.testing.assert_allclose(reln.output_error[0, seed, snapshot], error, rtol=1e-9)


def test_predicted_loss_of_the_linear_network_follows_its_modes(linear):
    ensemble, data = build_ensemble(SPEC), build_ensemble(SPEC).dataset.load()
    time = 0.5 * len(data.x) * 0.01 * 2 * np.arange(0, 801, 8)  # half of the sum
    modes = data.modes
    learned = modes.s > 1e-9
    s, d = modes.s[learned], modes.d[learned]
    start = np.full(len(s), 100 * 0.01**2 / 2)
    expected = mode_loss(deep_mode(time, s, d, start), s, d, data.y_power)
    assert ensemble.training.flow_step(len(data.x)) == time[1] / 8
    np.testing.assert_allclose(linear.predicted_loss, len(data.x) * expected, rtol=1e-5)


def test_theory_predicts_the_imitation_without_training(reln, linear):
    loss = reln.imitation.variables["loss"].mean(axis=1)[0]
    gaps = [abs(loss - other.predicted_loss).max() / loss[0] for other in (reln, linear)]
    assert gaps[0] < 0.5 * gaps[1]


def test_controls_use_the_gates_before_and_after_training(reln):
    assert set(reln.controls) <= {"start", "end"}
    assert "end" in reln.controls
    for control in reln.controls.values():
        np.testing.assert_array_equal(control.relu.variables["loss"], reln.relu.variables["loss"])
        assert (control.gating.centroids.shape != reln.gating.centroids.shape) or (
            control.gating.centroids != reln.gating.centroids
        ).any()


def test_other_initialisers_have_no_predicted_loss():
    ensemble = build_ensemble(
        SPEC,
        dataset={"name": "xor"},
        init={"name": "orthogonal"},
        network=SPEC["network"] | {"hidden": [8]},
        training={"learning_rate": 0.1, "steps": 80},
    )
    reln = find_reln(ensemble, pathways=4, snapshots=2, controls=False)
    assert reln.predicted_loss is None
    assert reln.relu.variables["weight_1"].shape == (1, 3, 3, 8, 2)


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"init_scales": [0.1, 0.2]}, "init_scales", "one init scale"),
        ({"network": {"name": "layered", "hidden": [3]}}, "network", "find_reln is for ReLU"),
    ],
)
def test_other_ensembles_are_refused(changes, key, words):
    with pytest.raises(UserError, match=words) as error:
        find_reln(build_ensemble(SPEC, **changes), pathways=2)
    assert error.value.key == key


def test_too_many_pathways_are_refused():
    ensemble = build_ensemble(
        SPEC,
        network=SPEC["network"] | {"hidden": [3]},
        training=SPEC["training"] | {"steps": 8},
        record={"every": 1},
    )
    with pytest.raises(UserError, match="only 3 hidden units") as error:
        find_reln(ensemble, pathways=4, snapshots=1)
    assert (error.value.key, error.value.value) == ("pathways", "4")


def test_snapshots_must_divide_the_records():
    with pytest.raises(ValueError, match=r"record.snapshots \(7\)"):
        find_reln(build_ensemble(SPEC), pathways=2, snapshots=7)
