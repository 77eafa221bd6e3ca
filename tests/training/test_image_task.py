"""Routing networks on transformed images, against images spelled out and sums over them."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.config.cell import Ensemble
from neuralrace.errors import UserError
from neuralrace.networks.tasks import domains as domain_tasks
from neuralrace.networks.tasks.domains import ImageTask, RoutingTask
from neuralrace.training import trainer
from neuralrace.training.trainer import train

COUNT, CLASSES, IMAGES = 4, 10, 1757
MINI = {
    "learning_rate": 0.05,
    "steps": 6,
    "optimiser": {"name": "momentum", "momentum": 0.9},
    "loss": {"name": "cross_entropy", "normalisation": "mean"},
    "batch": {"name": "mini", "size": 8},
}
MOMENTS = {"learning_rate": 0.2, "steps": 6, "optimiser": {"name": "momentum", "momentum": 0.5}}


def written(training=MOMENTS, activation="linear", dataset=None, **parts):
    images = {"name": "digits", "samples": IMAGES}
    return {
        "dataset": {"name": "transformed_images", "count": COUNT, "images": images}
        | (dataset or {}),
        "network": {
            "name": "routing",
            "hidden": [12, 10],
            "gates": {"name": "always_on"},
            "pairs": {"name": "random_regular", "share": 0.5},
            "activation": activation,
        },
        "init": {"name": "normal"},
        "init_scales": [0.2],
        "seeds": 2,
        "training": training,
        "record": {"every": 1, "observables": ["pair_accuracy"]},
    } | parts


def run_of(*args, **parts):
    return Ensemble.model_validate_json(json.dumps(written(*args, **parts)))


def on_device(task, tree):
    """As the engine puts it there, in double precision."""
    return jax.tree.map(jnp.asarray, tree)


@pytest.fixture
def made():
    """A function that gives task, network, data and own arrays of one run in double precision."""

    def make(ensemble, seed=1):
        task = ensemble.task()
        assert isinstance(task, ImageTask)
        weights = jax.tree.map(lambda w: jnp.asarray(w[0, 0]), task.weights([0.2], [seed]))
        own = {name: jnp.asarray(each[0]) for name, each in task.own([seed]).items()}
        data = jax.tree.map(jnp.asarray, task.arrays)
        return task, task.network(weights), data, own

    with jax.enable_x64(True):
        yield make


def plain_hidden(network, inputs, relu):
    """The last hidden layer of every image, domain by domain, in NumPy."""
    bend = (lambda h: np.maximum(h, 0)) if relu else (lambda h: h)
    encoder, between, _ = map(np.asarray, network.weights)
    return [[bend(between @ bend(encoder[i] @ x)) for x in inputs[i]] for i in range(len(inputs))]


def plain_outputs(network, inputs, relu=False):
    """Outputs (input domain, output domain, image, class) by plain loops."""
    hidden, decoder = plain_hidden(network, inputs, relu), np.asarray(network.weights[-1])
    return np.array([[[decoder[j] @ h for h in row] for j in range(COUNT)] for row in hidden])


def spelled_out(task, network):
    """The network on inputs as they are shown, from that along the axes of each domain."""
    encoder, *others = network.families[0].weights
    return task.network([[encoder @ task.arrays["axes"].swapaxes(1, 2)[None, None], *others]])


def held_out(task):
    """Held-out images as every input domain shows them, and their classes."""
    domains = task.domains
    arrays = domains.arrays()
    inputs = domains.show(jax.tree.map(jnp.asarray, arrays), jnp.asarray(arrays["held_out_pixels"]))
    return np.asarray(inputs), domains.renamed[:, arrays["held_out_labels"]]


# Squared error on moments ------------------------------------------------------------------------


def test_moments_give_loss_and_gradient_of_the_spelled_out_domains(made):
    ensemble = run_of()
    task, network, data, own = made(ensemble)
    domains = task.domains.spelled_out()
    spelled = RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)
    spelled_data = jax.tree.map(jnp.asarray, spelled.arrays)

    def losses(weights):
        net = task.network([weights])
        there = spelled_out(task, net)
        return task.loss(net, data["loss"], own), spelled.loss(there, spelled_data["loss"], own)

    weights = [weight[...] for weight in network.families[0].weights]
    found, expected = losses(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    one = jax.grad(lambda w: losses(w)[0])(weights)
    other = jax.grad(lambda w: losses(w)[1])(weights)
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())
    np.testing.assert_allclose(
        task.pair_errors(network, data),
        spelled.pair_errors(spelled_out(task, network), spelled_data),
        rtol=1e-10,
    )
    assert task.samples == spelled.samples == IMAGES * own["mask"].sum()


@pytest.mark.parametrize("hidden", [[5], [6, 5, 4]], ids=str)
def test_any_number_of_hidden_layers(made, hidden):
    raw = written()
    raw["network"]["hidden"] = hidden
    ensemble = Ensemble.model_validate_json(json.dumps(raw))
    task, network, data, own = made(ensemble)
    spelled = RoutingTask(
        ensemble.network, task.domains.spelled_out(), ensemble.init, ensemble.training
    )
    there = spelled_out(task, network)
    expected = spelled.loss(there, jax.tree.map(jnp.asarray, spelled.arrays["loss"]), own)
    np.testing.assert_allclose(task.loss(network, data["loss"], own), expected, rtol=1e-12)


def test_a_batch_of_all_images_has_the_loss_of_the_moments(made):
    task, network, data, own = made(run_of())
    on_samples = run_of({**MOMENTS, "batch": {"name": "mini", "size": 8}}).task()
    assert not on_samples.on_moments
    shown, there = on_samples.batch(data, jnp.arange(IMAGES)), spelled_out(task, network)
    np.testing.assert_allclose(
        on_samples.loss(there, shown, own), task.loss(network, data["loss"], own), rtol=1e-12
    )
    np.testing.assert_allclose(
        on_samples.pair_errors(there, data), task.pair_errors(network, data), rtol=1e-10
    )


@pytest.mark.parametrize("optimiser", [{"name": "sgd"}, {"name": "momentum", "momentum": 0.9}])
def test_descent_along_axes_is_descent_on_pairs(optimiser):
    """A hundred steps along the eigenvectors of each domain, and on all pairs as they are."""
    training = {"learning_rate": 0.05, "steps": 100, "optimiser": optimiser}
    observed = {"every": 10, "observables": ["pair_error", "layer_norm", "imbalance"]}
    ensemble = run_of(training, record=observed)
    domains = ensemble.dataset.image_domains().spelled_out()
    direct = RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)
    with jax.enable_x64(True):
        on_pairs = trainer.Trainer(ensemble, task=direct).train().variables
        along_axes = trainer.Trainer(ensemble).train().variables
    assert (on_pairs["loss"][..., -1] < 0.5 * on_pairs["loss"][..., 0]).all()
    for name, values in on_pairs.items():
        scale = np.abs(values).max()
        np.testing.assert_allclose(along_axes[name], values, atol=1e-11 * scale, err_msg=name)


# Samples -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_cross_entropy_of_the_trained_pairs(made, activation):
    task, network, data, own = made(run_of(MINI, activation))
    chosen = np.array([3, 30, 11])
    inputs, classes = task.batch(data, jnp.asarray(chosen))
    outputs = plain_outputs(network, np.asarray(inputs), activation == "relu")
    labels = task.domains.arrays()["labels"][chosen]
    losses = []
    for i, j in np.argwhere(np.asarray(own["mask"])):
        for n, label in enumerate(labels):
            out, answer = outputs[i, j, n], task.domains.renamed[j, label]
            losses.append(np.log(np.sum(np.exp(out))) - out[answer])
            assert classes[j, n] == answer
    assert len(losses) == 3 * COUNT * 2
    np.testing.assert_allclose(
        task.loss(network, (inputs, classes), own), np.mean(losses), rtol=1e-12
    )


def test_partners_are_the_trained_pairs(made):
    _, _, _, own = made(run_of())
    for row, partners in zip(np.asarray(own["mask"]), np.asarray(own["partners"]), strict=True):
        np.testing.assert_array_equal(np.flatnonzero(row), partners)


@pytest.mark.parametrize("parts", [7, 1757, 5000])
@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_all_images_in_parts(made, monkeypatch, activation, parts):
    monkeypatch.setattr(domain_tasks, "IMAGES_AT_ONCE", parts)
    task, network, data, own = made(run_of(MINI, activation))
    together = task.loss(network, task.batch(data, jnp.arange(IMAGES)), own)
    np.testing.assert_allclose(task.whole_loss(network, data, own), together, rtol=1e-12)


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_held_out_images(made, monkeypatch, activation):
    monkeypatch.setattr(domain_tasks, "OUTPUTS_AT_ONCE", 17 * COUNT**2 * CLASSES)
    task, network, data, _ = made(run_of(MINI, activation))
    inputs, classes = held_out(task)
    assert inputs.shape[1] == 40
    outputs = plain_outputs(network, inputs, activation == "relu")
    error, accuracy = task.held_out(network, data)
    for j in range(COUNT):
        hits = outputs[:, j].argmax(axis=-1) == classes[j][None]
        squares = np.sum((outputs[:, j] - np.eye(CLASSES)[classes[j]][None]) ** 2, axis=-1)
        np.testing.assert_allclose(accuracy[:, j], hits.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(error[:, j], squares.mean(axis=1), rtol=1e-10)


# What transformations cannot change --------------------------------------------------------------


def moved(ensemble, transform):
    """The trajectory of a run whose initial encoders and decoders are changed first."""

    class Moved(ImageTask):
        def _initial(self, *given):
            return transform(self.domains, super()._initial(*given))

    def task(ensemble):
        domains = ensemble.dataset.image_domains()
        return Moved(ensemble.network, domains, ensemble.init, ensemble.training)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ensemble, "task", task)
        return train(ensemble)


@pytest.mark.parametrize(
    ("training", "activation"),
    [(MOMENTS, "linear"), (MINI, "linear"), (MINI, "relu")],
    ids=["moments", "mini-batches", "mini-batches of a ReLU network"],
)
def test_permutations_leave_no_trace(training, activation):
    """Pixels and classes that change places are learned as those that stay, from weights that
    changed places with them: in law, where initial weights are exchangeable. Four rotations by
    quarter turns are permutations of pixels."""
    plain = {"inputs": "identity", "outputs": "identity"}
    alone = train(run_of(training, activation, dataset=plain))
    for changed in (
        {"inputs": "pixel_permutation", "outputs": "label_permutation"},
        {"inputs": "rotation", "arc": 360.0, "outputs": "identity"},
    ):
        together = moved(run_of(training, activation, dataset=changed), along)
        for name, values in alone.variables.items():
            np.testing.assert_allclose(together.variables[name], values, rtol=1e-8, err_msg=name)


def along(domains, families):
    """Weights that change places as pixels and classes do."""
    ((encoder, between, decoder),) = families
    encoder, decoder = encoder.copy(), decoder.copy()
    taps, weights = domains.arrays()["taps"], domains.arrays()["tap_weights"]
    pixel = np.take_along_axis(taps, weights.argmax(axis=2)[..., None], axis=2)[..., 0]
    for i in range(COUNT):
        # input q of domain i shows pixel[i, q], and class c is output renamed[i, c]
        encoder[:, :, 0, 0, i] = encoder[:, :, 0, 0, i][..., pixel[i]]
        decoder[:, :, 0, 0, i][:, :, domains.renamed[i]] = decoder[:, :, 0, 0, i].copy()
    return [[encoder, between, decoder]]


def test_interpolated_rotations_are_no_permutations():
    domains = run_of(dataset={"arc": 270.0}).dataset.image_domains()
    spread = domains.arrays()["tap_weights"].max(axis=2)
    assert spread[0].min() == 1
    assert spread[1:].min() < 0.9


# Training ----------------------------------------------------------------------------------------


def test_mini_batches_are_shared_over_init_scales():
    parts = {"seeds": 1, "init_scales": [0.2]}
    alone = train(run_of(MINI, **parts)).variables["loss"]
    beside = train(run_of(MINI, seeds=1, init_scales=[0.2, 0.4])).variables["loss"]
    np.testing.assert_allclose(beside[:1], alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("training", "activation"), [(MOMENTS, "linear"), (MINI, "linear"), (MINI, "relu")]
)
def test_training_learns(training, activation):
    ensemble = run_of({**training, "steps": 150}, activation, record={"every": 150})
    loss = train(ensemble).variables["loss"]
    assert (loss[..., -1] < 0.9 * loss[..., 0]).all()


def test_a_law_that_is_stated_in_modes_is_given_the_spelled_out_domains():
    with pytest.raises(UserError, match="init"):
        train(run_of(init={"name": "decoupled"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": {**MINI, "batch": {"name": "full"}}}, "sees all images at once"),
        ({"training": {**MINI, "batch": {"name": "fresh", "size": 3}}}, "fixed sample"),
        ({"activation": "relu"}, "use mini"),
        (
            {"training": {**MOMENTS, "optimiser": {"name": "adam"}}},
            "training.optimiser.name: 'adam': .* use one of these, or training.batch.name: mini",
        ),
        (
            {"training": MINI, "record": {"every": 1, "observables": ["pair_error"]}},
            "'pair_error': .* training.loss.name: 'cross_entropy': use squared_error",
        ),
        (
            {"record": {"every": 1, "observables": ["similarity"]}},
            "'similarity': .* dataset.name: 'transformed_images': use routing",
        ),
    ],
)
def test_what_images_cannot_be_trained_with_is_refused(changes, message):
    with pytest.raises((ValueError, UserError), match=message):
        train(run_of(**changes))
