"""Networks whose hidden units are averaged, against gradient descent written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from builders import build_cell
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import OBSERVABLES, SOLUTIONS
from neuralrace.training.loss import LOSSES
from neuralrace.training.trainer import train
from neuralrace.workflow.checkpoints import FileCheckpoints

# Two orders of summation in double precision, over a few steps.
ROUNDING = {"rtol": 1e-11, "atol": 1e-12}
STEPS, RATE = 6, 0.3
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 3)), (np.arange(8) % 2.0)[:, None]
TABLE = {"name": "table", "x": X.tolist(), "y": Y.tolist()}
EVERY_STEP = {"every": 1, "snapshots": STEPS}
GATED = {
    "dataset": TABLE,
    "network": {
        "name": "gated",
        "hidden": [1],
        "readout": "mean",
        "gates": {"name": "half_space", "pathways": 4},
    },
    "training": {"learning_rate": RATE, "steps": STEPS},
    "record": EVERY_STEP | {"observables": ["pathway_maps"]},
}


def layered(**network):
    return {
        "dataset": TABLE,
        "network": {"name": "layered", "hidden": [4], "readout": "mean"} | network,
        "training": {"learning_rate": RATE, "steps": STEPS},
        "record": EVERY_STEP | {"observables": ["weights"]},
    }


@pytest.mark.parametrize("activation", ["relu", "erf", "sigmoid"])
def test_units_are_averaged_and_learn_alone(make_run, activation):
    """yhat = (1/K) sum_k s(w_k.x + b_k) and b_2 = 0, by a gradient written here."""
    ensemble = make_run(**layered(activation=activation, bias=True))
    recorded = train(ensemble).variables
    act = {
        "relu": lambda h: jnp.maximum(h, 0),
        "erf": lambda h: jax.scipy.special.erf(h / jnp.sqrt(2.0)),
        "sigmoid": lambda h: 1 / (1 + jnp.exp(-h)),
    }[activation]
    assert (recorded["weight_2"] == 0.25).all()  # at every step, scale and seed
    assert not recorded["bias_2"].any()

    def loss(parameters):
        w, b = parameters
        return jnp.mean((jnp.mean(act(X @ w.T + b[None]), axis=1) - Y[:, 0]) ** 2) / 2

    with jax.enable_x64(True):
        w, b = jnp.asarray(recorded["weight_1"][1, 1, 0]), jnp.zeros(4)
        for step in range(STEPS):
            np.testing.assert_allclose(recorded["weight_1"][1, 1, step], w, **ROUNDING)
            np.testing.assert_allclose(recorded["bias_1"][1, 1, step], b, **ROUNDING)
            np.testing.assert_allclose(recorded["loss"][1, 1, step], loss((w, b)), **ROUNDING)
            by_w, by_b = jax.grad(loss)((w, b))
            w, b = w - RATE * by_w, b - RATE * by_b


def test_gated_units_are_averaged(make_run):
    """yhat = (1/K) sum_k g_k(x) w_k.x (notes on localisation, eq. 3)."""
    ensemble = make_run(**GATED)
    recorded = train(ensemble).variables
    gates = ensemble.network.gates.gates(ensemble.dataset.load())
    w = recorded["pathway_maps"][0, 1, 0, :, 0] * 4
    for step in range(STEPS + 1):
        np.testing.assert_allclose(recorded["pathway_maps"][0, 1, step, :, 0] * 4, w, **ROUNDING)
        error = (gates * (w @ X.T)).mean(axis=0) - Y[:, 0]
        np.testing.assert_allclose(recorded["loss"][0, 1, step], (error**2).mean() / 2, **ROUNDING)
        w = w - RATE * (gates * error) @ X / (4 * len(X))
    scales = recorded["pathway_maps"][:, :, 0]
    np.testing.assert_allclose(scales[1], 2 * scales[0], **ROUNDING)  # 0.3 and 0.6, once


def test_averaged_units_may_all_be_closed(make_run):
    """As units of a ReLU network may; a pathway that is never open is still refused."""
    one = GATED["network"] | {"gates": {"name": "half_space", "pathways": 1}}
    assert np.isfinite(train(make_run(**GATED | {"network": one})).variables["loss"]).all()
    with pytest.raises(UserError, match=r"no pathway is open on"):
        train(make_run(**GATED | {"network": one | {"readout": "trained"}}))
    dead = GATED["network"] | {"gates": {"name": "listed", "rows": [[1.0] * 8, [0.0] * 8]}}
    with pytest.raises(UserError, match=r"1 of 2 pathways open on no sample, .* pathway 2"):
        train(make_run(**GATED | {"network": dead}))


def test_learned_gates_of_averaged_units_are_a_relu_network(make_run):
    learned = GATED["network"] | {"hidden": [4], "gates": {"name": "learned"}}
    parts = layered(activation="relu")
    gated = train(make_run(**parts | {"network": learned})).variables
    relu = train(make_run(**parts)).variables
    assert (relu["weight_2"] == 0.25).all()
    for name in ("loss", "weight_1", "weight_2"):
        np.testing.assert_array_equal(gated[name], relu[name])


def test_cross_entropy_of_one_output_equals_that_of_two_with_one_at_zero():
    with jax.enable_x64(True):
        out = jnp.linspace(-40.0, 40.0, 9)[:, None]
        y = jnp.asarray(np.arange(9) % 2.0)[:, None]
        one = LOSSES["cross_entropy"](out, y)
        two = LOSSES["cross_entropy"](
            jnp.hstack([jnp.zeros_like(out), out]), jnp.hstack([1 - y, y])
        )
        np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-14)  # -log(1 - 1e-18) rounds to 0


def test_one_output_is_a_probability_and_has_no_largest_class(make_run):
    entropy = {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
    parts = layered(activation="relu")
    parts["training"] = parts["training"] | entropy
    assert np.isfinite(train(make_run(**parts)).variables["loss"]).all()
    beyond = TABLE | {"y": (2 * Y).tolist()}
    with pytest.raises(UserError, match="are no class probabilities"):
        train(make_run(**parts | {"dataset": beyond}))
    counted = parts | {"record": EVERY_STEP | {"observables": ["accuracy"]}}
    needs = OBSERVABLES["accuracy"].declaration.requires
    assert "has one output" in str(unmet(make_run(**counted), needs, data=True))


@pytest.mark.parametrize(
    ("activation", "bias", "rate"),
    [("erf", False, 1.0), ("erf", True, 0.25), ("linear", False, 0.25)],
)
def test_output_bias_is_trained_beside_a_fixed_readout(make_run, activation, bias, rate):
    """yhat = (1/K) sum_k s(w_k.x + b_k) + c, by a gradient written here.

    The moments on which linear networks are trained elsewhere do not hold the means it needs.
    """
    parts = layered(activation=activation, bias=bias, output_bias="trained", output_bias_rate=rate)
    recorded = train(make_run(**parts)).variables
    assert (recorded["weight_2"] == 0.25).all()
    assert recorded["bias_1"].any() == bias

    def loss(parameters):
        w, b, c = parameters
        hidden = X @ w.T + b[None]
        if activation == "erf":
            hidden = jax.scipy.special.erf(hidden / jnp.sqrt(2.0))
        return jnp.mean((jnp.mean(hidden, axis=1) + c - Y[:, 0]) ** 2) / 2

    with jax.enable_x64(True):
        w, b, c = jnp.asarray(recorded["weight_1"][1, 1, 0]), jnp.zeros(4), jnp.asarray(0.0)
        for step in range(STEPS + 1):
            np.testing.assert_allclose(recorded["weight_1"][1, 1, step], w, **ROUNDING)
            np.testing.assert_allclose(recorded["bias_1"][1, 1, step], b, **ROUNDING)
            np.testing.assert_allclose(recorded["bias_2"][1, 1, step], c[None], **ROUNDING)
            np.testing.assert_allclose(recorded["loss"][1, 1, step], loss((w, b, c)), **ROUNDING)
            by_w, by_b, by_c = jax.grad(loss)((w, b, c))
            w, b, c = w - RATE * by_w, b - RATE * bias * by_b, c - RATE * rate * by_c


def test_the_rate_of_the_output_bias_is_one_of_steps_and_not_of_gradients(make_run):
    """The first step of Adam is the learning rate, however small the gradient is."""
    parts = layered(activation="erf", output_bias="trained", output_bias_rate=0.25)
    parts["training"] = parts["training"] | {"optimiser": {"name": "adam"}}
    recorded = train(make_run(**parts)).variables
    for name, step in (("bias_2", 0.25 * RATE), ("weight_1", RATE)):
        moved = abs(recorded[name][:, :, 1] - recorded[name][:, :, 0])
        np.testing.assert_allclose(moved, step, rtol=1e-4)  # Adam adds 1e-8 to each gradient


def test_a_fixed_output_bias_stays_and_lowers_the_targets(make_run):
    raised = train(make_run(**layered(activation="relu", bias=True, output_bias=0.5))).variables
    assert (raised["bias_2"] == 0.5).all()
    lower = layered(activation="relu", bias=True) | {"dataset": TABLE | {"y": (Y - 0.5).tolist()}}
    lowered = train(make_run(**lower)).variables
    for name in ("loss", "weight_1", "bias_1"):
        np.testing.assert_allclose(raised[name], lowered[name], **ROUNDING)


def test_an_output_bias_may_be_fixed_below_a_trained_readout(make_run):
    parts = layered(activation="relu", bias=True, readout="trained", output_bias=0.5)
    recorded = train(make_run(**parts)).variables
    assert (recorded["bias_2"] == 0.5).all()
    assert np.ptp(recorded["weight_2"], axis=2).all()


def test_the_output_bias_of_a_trained_readout_is_trained_unless_it_is_fixed(make_run):
    parts = {"activation": "relu", "bias": True, "readout": "trained"}
    usual = train(make_run(**layered(**parts))).variables
    named = train(make_run(**layered(**parts, output_bias="trained"))).variables
    assert (usual["bias_2"][:, :, 1:] != 0).all()
    for name in ("loss", "weight_1", "weight_2", "bias_1", "bias_2"):
        np.testing.assert_array_equal(usual[name], named[name])


def test_training_with_an_output_bias_resumes_from_its_checkpoint(make_run, tmp_path):
    parts = layered(activation="erf", bias=True, output_bias="trained", output_bias_rate=0.25)
    ensemble = make_run(**parts)
    whole = train(ensemble).variables

    class StopsAtOnce(FileCheckpoints):
        def due(self):
            return True

        def save(self, state):
            super().save(state)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(ensemble, checkpoints=StopsAtOnce(tmp_path / "part.npz", "key", 60.0))
    lines = []
    resumed = train(ensemble, lines.append, FileCheckpoints(tmp_path / "part.npz", "key", 60.0))
    assert any(line.startswith("continuing at step 1") for line in lines)
    for name, values in whole.items():
        np.testing.assert_array_equal(resumed.variables[name], values)


def test_specifications_name_an_output_bias_only_where_one_is_given(make_run):
    without = make_run(**layered())
    assert "output_bias" not in without.canonical()
    for given in ({"output_bias": 0.5}, {"output_bias": "trained", "output_bias_rate": 0.25}):
        ensemble = make_run(**layered(**given))
        assert type(ensemble).model_validate_json(ensemble.canonical()) == ensemble
        assert ensemble.sha256() != without.sha256()


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("readout", ["trained", "mean"])
def test_theories_refuse_an_output_bias(activation, readout):
    network = {"name": "layered", "hidden": [4], "activation": activation, "readout": readout}
    applicable = build_cell(network=network).applicable_solutions()
    assert "linearised" in applicable
    for output_bias in ("trained", 0.5):
        cell = build_cell(network=network | {"output_bias": output_bias})
        for name in applicable:
            error = unmet(cell, SOLUTIONS[name].declaration.requires)
            assert error
            assert error.key == "network.output_bias"
