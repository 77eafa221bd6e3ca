"""The trainer against plain loops: gradients, batches and flow time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from neuralrace.datasets.random_streams import stable_hash
from neuralrace.errors import UserError
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.training import progress, trainer
from neuralrace.training.trainer import train

ROUNDING = 1e-12
"""Two orders of summation in double precision, over a few dozen steps."""

ACTIVATIONS = {
    "linear": lambda h: h,
    "relu": lambda h: jnp.where(h > 0, h, 0),  # slope 0 at 0, which dead units meet exactly
    "erf": lambda h: jax.scipy.special.erf(h / np.sqrt(2)),
    "sigmoid": lambda h: 1 / (1 + jnp.exp(-h)),
    "tanh": lambda h: (jnp.exp(h) - jnp.exp(-h)) / (jnp.exp(h) + jnp.exp(-h)),
}
FACTORS = {
    "half_mean": lambda n: 1 / 2,
    "half_sum": lambda n: n / 2,
    "mean": lambda n: 1.0,
    "sum": float,
    0.7: lambda n: 0.7,
}


def training_with(rate=0.1, steps=12, **parts):
    return {"learning_rate": rate, "steps": steps, **parts}


def starts(ensemble):
    """Initial weights of every run, (init_scale, seed) -> [W_1 ... W_L]."""
    data = ensemble.dataset.load()
    widths = (data.x.shape[1], *ensemble.network.hidden, data.y.shape[1])
    weights = initial_weights(
        ensemble.init, widths, data.modes, ensemble.init_scales, range(ensemble.seeds)
    )
    return {
        (i, k): [w[i, k] for w in weights]
        for i in range(len(ensemble.init_scales))
        for k in range(ensemble.seeds)
    }


def recorded(trajectory, member, kind="weight"):
    """Weights (or biases) of one run at every step, [W_1 ... W_L], time first."""
    names = sorted(n for n in trajectory.variables if n.startswith(kind + "_"))
    return [trajectory.variables[name][member] for name in names]


def plain_loss(ensemble, samples):
    """The loss of a batch, written out; `samples` is the size of the dataset."""
    loss, activation = ensemble.training.loss, ACTIVATIONS[ensemble.network.activation]

    def value(params, x, y):
        h = x
        for index, (w, b) in enumerate(params):
            h = h @ w.T + b[None]
            h = activation(h) if index < len(params) - 1 else h
        if loss.name == "squared_error":
            errors = jnp.sum((h - y) ** 2, axis=1)
        else:
            errors = jnp.log(jnp.sum(jnp.exp(h), axis=1)) - jnp.sum(h * y, axis=1)
        return FACTORS[loss.normalisation](samples) * jnp.mean(errors)

    return value


def plain_descent(ensemble, weights, batches):
    """Weights, biases and loss over the whole dataset at every step of gradient descent."""
    data = ensemble.dataset.load()
    value = plain_loss(ensemble, len(data.x))
    slope = jax.jit(jax.grad(value))
    params = [(w, np.zeros(len(w))) for w in weights]
    speed = [(0 * w, 0 * b) for w, b in params]
    kept = getattr(ensemble.training.optimiser, "momentum", 0)
    history, losses = [params], [value(params, data.x, data.y)]
    for x, y in batches:
        gradient = slope(params, x, y)
        moved = []
        for index, ((w, b), (v, u), (g, h)) in enumerate(zip(params, speed, gradient, strict=True)):
            trained = ensemble.network.readout == "trained" or index < len(params) - 1
            v = kept * v + trained * np.asarray(g)
            u = kept * u + (trained and ensemble.network.bias) * np.asarray(h)
            speed[index] = v, u
            moved.append(
                (w - ensemble.training.learning_rate * v, b - ensemble.training.learning_rate * u)
            )
        params = moved
        history.append(params)
        losses.append(value(params, data.x, data.y))
    layers = list(zip(*history, strict=True))
    weights = [np.stack([w for w, _ in layer]) for layer in layers]
    biases = [np.stack([b for _, b in layer]) for layer in layers]
    return weights, biases, np.array(losses)


def assert_same(ensemble, trajectory, member, batches):
    with jax.enable_x64(True):
        weights, biases, losses = plain_descent(ensemble, starts(ensemble)[member], batches)
    kinds = [("weight", weights)] + ([("bias", biases)] if ensemble.network.bias else [])
    for kind, plain in kinds:
        for layer, expected in zip(recorded(trajectory, member, kind), plain, strict=True):
            np.testing.assert_allclose(layer, expected, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(trajectory.variables["loss"][member], losses, rtol=ROUNDING)


# Full batch ------------------------------------------------------------------------------------


def numpy_descent(ensemble, weights):
    """Gradient descent of a deep linear network with the gradient by hand, sample by sample."""
    data = ensemble.dataset.load()
    rate = (
        ensemble.training.learning_rate
        * 2
        * FACTORS[ensemble.training.loss.normalisation](len(data.x))
    )
    weights = list(weights)
    history = [list(weights)]
    for _ in range(ensemble.training.steps):
        layers = [data.x.T]
        for w in weights:
            layers.append(w @ layers[-1])
        error = (layers.pop() - data.y.T) / len(data.x)
        for index in reversed(range(len(weights))):
            gradient = error @ layers[index].T
            error = weights[index].T @ error
            weights[index] = weights[index] - rate * gradient
        history.append(list(weights))
    return [np.stack(layer) for layer in zip(*history, strict=True)]


@given(data=st.data())
@settings(max_examples=4, phases=[Phase.generate])  # each compiles: shrinking takes minutes
def test_linear_networks_descend_as_by_hand(make_run, data):
    unit = st.integers(1, 4)
    inputs = data.draw(unit)
    ensemble = make_run(
        dataset={
            "name": "gaussian_mixture",
            "components": 2,
            "samples_per_component": inputs + data.draw(unit),
            "inputs": inputs,
            "outputs": data.draw(unit),
            "whiten": data.draw(st.booleans()),
        },
        network={"name": "layered", "hidden": data.draw(st.lists(unit, max_size=3))},
        init_scales=[data.draw(st.floats(0.05, 0.8))],
        training=training_with(
            1e-3, loss={"normalisation": data.draw(st.sampled_from([*FACTORS]))}
        ),
    )
    trajectory = train(ensemble)
    task = ensemble.dataset.load()
    for member, weights in starts(ensemble).items():
        plain = numpy_descent(ensemble, weights)
        for layer, expected in zip(recorded(trajectory, member), plain, strict=True):
            np.testing.assert_allclose(layer, expected, rtol=ROUNDING, atol=ROUNDING)
        # the trainer computes the loss from second moments, this line from samples
        outputs = np.broadcast_to(task.x.T, (13, *task.x.T.shape))
        for w in plain:
            outputs = w @ outputs
        errors = np.sum((outputs - task.y.T) ** 2, axis=1).mean(axis=1)
        factor = FACTORS[ensemble.training.loss.normalisation](len(task.x))
        np.testing.assert_allclose(
            trajectory.variables["loss"][member], factor * errors, rtol=ROUNDING
        )


DIGITS = {"name": "digits", "samples": 12}
MEAN_CROSS_ENTROPY = {"name": "cross_entropy", "normalisation": "mean"}
SUM_CROSS_ENTROPY = {"name": "cross_entropy", "normalisation": "sum"}


def momentum(kept):
    return {"name": "momentum", "momentum": kept}


def layered(*hidden, **parts):
    return {"name": "layered", "hidden": list(hidden), **parts}


NETWORKS = {
    "relu with biases": {"network": layered(4, 5, activation="relu", bias=True)},
    "erf, momentum, half sum": {
        "network": layered(4, activation="erf"),
        "training": training_with(
            2e-3, optimiser=momentum(0.7), loss={"normalisation": "half_sum"}
        ),
    },
    "sigmoid, cross-entropy mean": {
        "dataset": DIGITS,
        "network": layered(4, activation="sigmoid", bias=True),
        "training": training_with(0.1, loss=MEAN_CROSS_ENTROPY),
    },
    "tanh, fixed readout, mean": {
        "network": layered(4, activation="tanh", bias=True, readout="fixed"),
        "training": training_with(0.02, loss={"normalisation": "mean"}),
    },
    "linear, cross-entropy sum, momentum": {
        "dataset": DIGITS,
        "network": layered(3),
        "training": training_with(1e-3, optimiser=momentum(0.5), loss=SUM_CROSS_ENTROPY),
    },
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_descend_as_in_a_plain_loop(make_run, name):
    ensemble = make_run(**NETWORKS[name], init_scales=[0.3, 0.6])
    trajectory = train(ensemble)
    data = ensemble.dataset.load()
    for member in [(0, 0), (1, 1)]:
        assert_same(ensemble, trajectory, member, [(data.x, data.y)] * ensemble.training.steps)
    if ensemble.network.readout == "fixed":
        readout = recorded(trajectory, (0, 0))[-1]
        np.testing.assert_array_equal(readout, readout[:1].repeat(13, axis=0))


def test_single_precision_agrees_to_its_rounding(make_run):
    ensemble = make_run(precision="float32")
    double = train(ensemble.model_copy(update={"precision": "float64"})).variables
    single = train(ensemble).variables
    for name, values in single.items():
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, double[name], rtol=2e-5, atol=2e-6)


# Batches ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mini(make_run):
    """A single linear layer on one-hot inputs: the columns that move are the samples of a step."""
    ensemble = make_run(
        dataset={"name": "modes", "singular_values": [3.0, 2.0], "inputs": 7, "outputs": 2},
        network=layered(),
        training=training_with(
            0.01, batch={"name": "mini", "size": 2}, loss={"normalisation": "sum"}
        ),
    )
    trajectory = train(ensemble)
    moved = np.diff(trajectory.variables["weight_1"], axis=2) != 0
    return ensemble, trajectory, moved.any(axis=3)


def test_mini_batches_use_each_sample_once_an_epoch(mini):
    _, _, seen = mini
    np.testing.assert_array_equal(seen.sum(axis=3), 2)
    epochs = seen.reshape(2, 2, 4, 3, 7).sum(axis=3)
    assert epochs.max() == 1  # disjoint within an epoch of three steps ...
    np.testing.assert_array_equal(epochs.sum(axis=3), 6)  # ... that leaves one sample over
    assert len(np.unique(epochs[0, 0], axis=0)) > 1  # and not the same one every time


def test_mini_batches_depend_on_the_seed_alone(mini, make_run):
    ensemble, trajectory, seen = mini
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0, 0], seen[0, 1])
    assert not np.array_equal(seen[0, 0, :3], seen[0, 0, 3:6])
    # one run that is trained alone uses the same samples
    alone = {"init_scales": ensemble.init_scales[1:], "first_seed": 1, "seeds": 1}
    part = train(ensemble.model_copy(update=alone)).variables
    for name, values in trajectory.variables.items():
        np.testing.assert_allclose(part[name][0, 0], values[1, 1], rtol=ROUNDING, atol=ROUNDING)


def test_mini_batches_descend_as_in_a_plain_loop(mini):
    ensemble, trajectory, seen = mini
    data = ensemble.dataset.load()
    for member in [(0, 0), (1, 1)]:
        batches = [(data.x[chosen], data.y[chosen]) for chosen in seen[member]]
        assert_same(ensemble, trajectory, member, batches)


def test_fresh_samples_descend_as_in_a_plain_loop(make_run):
    ensemble = make_run(
        network=layered(4, activation="relu"),
        training=training_with(0.02, batch={"name": "fresh", "size": 5}),
    )
    trajectory = train(ensemble)
    with jax.enable_x64(True):
        sample = jax.jit(ensemble.dataset.sampler(), static_argnums=1)
        for scale, seed in [(0, 0), (1, 1)]:
            stream = jax.random.fold_in(jax.random.key(seed), stable_hash("batches"))
            batches = [sample(jax.random.fold_in(stream, step), 5) for step in range(12)]
            assert_same(ensemble, trajectory, (scale, seed), batches)


@pytest.mark.parametrize(
    ("parts", "key", "problem"),
    [
        (
            {"training": training_with(batch={"name": "mini", "size": 21})},
            "training.batch.size",
            "the dataset has 20 samples",
        ),
        (
            {
                "dataset": {"name": "hierarchy"},
                "training": training_with(batch={"name": "fresh", "size": 2}),
            },
            "training.batch.name",
            "dataset Hierarchy is a fixed sample",
        ),
        (
            {"training": training_with(loss=MEAN_CROSS_ENTROPY)},
            "training.loss.name",
            "the targets of the dataset are no class",
        ),
        (
            {"init": {"name": "tied"}, "network": layered()},
            "init.name",
            "needs one hidden layer",
        ),
    ],
    ids=["batch larger than dataset", "fixed sample", "no class targets", "initialiser"],
)
def test_impossible_training_is_refused(make_run, parts, key, problem):
    with pytest.raises(UserError, match=problem) as error:
        train(make_run(**parts))
    assert error.value.key == key


def test_cross_entropy_is_not_halved(make_run):
    loss = {"name": "cross_entropy"}
    assert make_run(training=training_with(loss=loss)).training.loss.normalisation == "mean"
    with pytest.raises(ValueError, match="normalisation: 'half_mean': is for squared_error"):
        make_run(training=training_with(loss=loss | {"normalisation": "half_mean"}))


# Axes and parts --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dense(make_run):
    ensemble = make_run(
        record={"every": 1, "snapshots": 12, "observables": ["weights", "layer_norm"]}
    )
    return ensemble, train(ensemble).variables


def test_strides_take_entries_of_the_dense_record(make_run, dense):
    _, every = dense
    record = {"every": 2, "snapshots": 3, "observables": ["weights", "layer_norm"]}
    sparse = train(make_run(record=record)).variables
    assert set(sparse) == set(every)
    for name, values in sparse.items():
        stride = 4 if name.startswith("weight") else 2
        assert values.shape[:2] == (2, 2)
        np.testing.assert_allclose(values, every[name][:, :, ::stride], rtol=ROUNDING)


def test_record_starts_with_the_initial_weights(dense):
    ensemble, variables = dense
    for member, weights in starts(ensemble).items():
        for number, w in enumerate(weights, start=1):
            np.testing.assert_array_equal(variables[f"weight_{number}"][member][0], w)


def test_runs_trained_alone_agree_with_the_whole(dense):
    ensemble, whole = dense
    for part, index in [
        ({"first_seed": 1, "seeds": 1}, np.s_[:, 1:]),
        ({"init_scales": ensemble.init_scales[1:], "seeds": 1}, np.s_[1:, :1]),
    ]:
        for name, values in train(ensemble.model_copy(update=part)).variables.items():
            np.testing.assert_allclose(values, whole[name][index], rtol=ROUNDING, atol=ROUNDING)


def test_progress_is_reported(make_run, monkeypatch):
    lines = []
    train(make_run(), report=lines.append)
    assert lines[-1].startswith("step 12/12, median loss ")
    assert lines[-1].endswith(", 0 s left")
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    lines.clear()
    train(make_run(record={"every": 1, "snapshots": 3}), report=lines.append)
    assert [line.split(",")[0] for line in lines] == [f"step {n}/12" for n in range(1, 13)]


def test_memory_is_reported_only_where_it_is_worth_a_line(make_run, monkeypatch):
    lines = []
    monkeypatch.setattr(trainer.memory, "WORTH_A_LINE", 10)
    train(make_run(), report=lines.append)
    assert lines[0].startswith("memory: ")


def test_cells_that_differ_in_numbers_alone_share_their_programs(make_run, monkeypatch):
    """Learning rate, init scale, seeds, steps and strides are arguments.

    Snapshots have a program of their own where they are less frequent than records.
    """
    monkeypatch.setattr(trainer, "_PROGRAMS", {})
    train(make_run(record={"every": 1, "snapshots": 4, "observables": ["weights"]}, seeds=3))
    compiled = len(trainer._PROGRAMS)
    training = {"learning_rate": 0.003, "steps": 30}
    record = {"every": 3, "snapshots": 2, "observables": ["weights"]}
    train(make_run(training=training, record=record, init_scales=[0.2, 0.4], seeds=3, first_seed=5))
    assert len(trainer._PROGRAMS) == compiled
    train(make_run(network=layered(7), seeds=3))
    assert len(trainer._PROGRAMS) > compiled


# Clock -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalisation", ["half_sum", "mean", "sum"])
def test_flow_step_is_the_clock_of_the_averaged_loss(make_run, normalisation):
    def trained(steps):
        training = training_with(1.0, steps, loss={"normalisation": normalisation})
        record = {"every": steps, "snapshots": 1, "observables": ["weights"]}
        ensemble = make_run(init_scales=[0.5], seeds=1, training=training, record=record)
        # total flow time 0.8 for any normalisation
        rate = 0.8 / steps / ensemble.training.flow_step(20)
        return make_run(
            init_scales=[0.5], seeds=1, training=training | {"learning_rate": rate}, record=record
        )

    ensemble = trained(200)
    data, ((first, second),) = ensemble.dataset.load(), starts(ensemble).values()

    def flow(_, flat):
        w1, w2 = flat[:12].reshape(4, 3), flat[12:].reshape(2, 4)
        error = data.sigma_yx - w2 @ w1 @ data.sigma_xx
        return np.concatenate([(w2.T @ error).ravel(), (error @ w1.T).ravel()])

    start = np.concatenate([first.ravel(), second.ravel()])
    exact = solve_ivp(flow, (0, 0.8), start, rtol=1e-11, atol=1e-12).y[:, -1]

    def distance(ensemble):
        end = [w[-1].ravel() for w in recorded(train(ensemble), (0, 0))]
        return np.linalg.norm(np.concatenate(end) - exact)

    coarse, fine = distance(ensemble), distance(trained(400))
    assert fine < 2e-3 * np.linalg.norm(exact - start)
    # Euler's error is of first order: half the step, half the distance
    np.testing.assert_allclose(coarse / fine, 2, rtol=0.02)


def test_datasets_that_differ_in_a_gain_share_their_programs(make_run, monkeypatch):
    monkeypatch.setattr(trainer, "_PROGRAMS", {})

    def losses(gain):
        ensemble = make_run(
            dataset={
                "name": "nonlinear_gaussian",
                "inputs": 8,
                "samples": 20,
                "xi": [1.0, 0.3],
                "marginal": {"name": "erf", "gain": gain},
            },
            network=layered(2, activation="relu"),
            init={"name": "glorot"},
            training=training_with(0.1, batch={"name": "fresh", "size": 5}),
            record={"every": 6},
        )
        return train(ensemble).variables["loss"], len(trainer._PROGRAMS)

    (low, compiled), (high, again) = losses(0.3), losses(3.0)
    assert again == compiled
    assert not np.allclose(low, high), "the gain is used"
