"""Routing networks on transformed images, against plain domains and sums over images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from builders import build_ensemble
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
IMAGES_RUN = {
    "dataset": {
        "name": "transformed_images",
        "count": COUNT,
        "images": {"name": "digits", "samples": IMAGES},
    },
    "network": {
        "name": "routing",
        "gates": {"name": "always_on"},
        "pairs": {"name": "random_regular", "share": 0.5},
    },
    "init": {"name": "normal"},
    "init_scales": [0.2],
    "seeds": 2,
    "record": {"every": 1, "observables": ["pair_accuracy"]},
}


def run_of(training=MOMENTS, activation="linear", dataset=None, hidden=(12, 10), **parts):
    return build_ensemble(
        IMAGES_RUN,
        **{
            "dataset": IMAGES_RUN["dataset"] | (dataset or {}),
            "network": IMAGES_RUN["network"] | {"activation": activation, "hidden": list(hidden)},
            "training": training,
        }
        | parts,
    )


@pytest.fixture
def made():
    """A function that returns task, network, data and per-run arrays in double precision."""

    def make(ensemble, seed=1):
        task = ensemble.task()
        assert isinstance(task, ImageTask)
        weights = jax.tree.map(lambda w: jnp.asarray(w[0, 0]), task.weights([0.2], [seed]))
        per_run = {name: jnp.asarray(each[0]) for name, each in task.per_run([seed]).items()}
        data = jax.tree.map(jnp.asarray, task.arrays)
        return task, task.network(weights), data, per_run

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


def on_pixels(task, network):
    """The network with encoders of pixels, from that along the eigenvectors of each domain."""
    encoder, *others = network.families[0].weights
    return task.network([[encoder @ task.arrays["axes"].swapaxes(1, 2)[None, None], *others]])


def test_estimated_arithmetic_of_a_step_is_that_of_its_matrix_products(made):
    ensemble = run_of(MINI, hidden=(12, 12))
    task, network, _, _ = made(ensemble)
    encoder, _, decoder = (np.asarray(weight) for weight in network.weights)
    partners = task.per_run([0])["partners"].shape[-1]
    # each image goes through all encoders, and from each domain to its partners' decoders
    products = encoder.size + partners * decoder.size
    step = ensemble.network.arithmetic(
        ensemble.dataset, ensemble.dataset.sizes, ensemble.init, ensemble.training
    ).step
    assert step == ensemble.training.batch.size * products


def held_out(task):
    """Held-out images in every input domain, and their classes."""
    domains = task.domains
    arrays = domains.arrays()
    inputs = domains.network_inputs(
        jax.tree.map(jnp.asarray, arrays), jnp.asarray(arrays["held_out_pixels"])
    )
    return np.asarray(inputs), domains.class_order[:, arrays["held_out_labels"]]


# Squared error on moments ------------------------------------------------------------------------


def test_moments_have_the_loss_and_gradient_of_plain_domains(made):
    ensemble = run_of()
    task, network, data, per_run = made(ensemble)
    domains = task.domains.in_memory()
    spelled = RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)
    spelled_data = jax.tree.map(jnp.asarray, spelled.arrays)

    @jax.jit  # compiled as a whole, which is faster than operation by operation
    def losses(weights, data, spelled_data):
        net = task.network([weights])
        there = on_pixels(task, net)
        return task.loss(net, data, per_run), spelled.loss(there, spelled_data, per_run)

    weights = [weight[...] for weight in network.families[0].weights]
    shown = data["loss"], spelled_data["loss"]
    np.testing.assert_allclose(*losses(weights, *shown), rtol=1e-12)
    one, other = (
        jax.jit(jax.grad(lambda *args, part=part: losses(*args)[part]))(weights, *shown)
        for part in (0, 1)
    )
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())

    @jax.jit
    def errors(data, spelled_data):
        there = on_pixels(task, network)
        return task.pair_errors(network, data), spelled.pair_errors(there, spelled_data)

    np.testing.assert_allclose(*errors(data, spelled_data), rtol=1e-10)
    assert task.samples == spelled.samples == IMAGES * per_run["mask"].sum()


@pytest.mark.parametrize("hidden", [[5], [6, 5, 4]], ids=str)
def test_moments_serve_any_number_of_hidden_layers(made, hidden):
    ensemble = run_of(hidden=hidden)
    task, network, data, per_run = made(ensemble)
    spelled = RoutingTask(
        ensemble.network, task.domains.in_memory(), ensemble.init, ensemble.training
    )

    @jax.jit
    def losses(data, spelled_data):
        there = on_pixels(task, network)
        return task.loss(network, data, per_run), spelled.loss(there, spelled_data, per_run)

    spelled_data = jax.tree.map(jnp.asarray, spelled.arrays["loss"])
    np.testing.assert_allclose(*losses(data["loss"], spelled_data), rtol=1e-12)


def test_a_batch_of_all_images_has_the_loss_of_moments(made):
    task, network, data, _ = made(run_of())
    on_samples, _, _, per_run = made(run_of({**MOMENTS, "batch": {"name": "mini", "size": 8}}))
    assert not on_samples.on_moments

    @jax.jit
    def both(data):
        there, shown = on_pixels(task, network), on_samples.batch(data, jnp.arange(IMAGES))
        return (
            (on_samples.loss(there, shown, per_run), task.loss(network, data["loss"], per_run)),
            (on_samples.pair_errors(there, data), task.pair_errors(network, data)),
        )

    losses, errors = both(data)
    np.testing.assert_allclose(*losses, rtol=1e-12)
    np.testing.assert_allclose(*errors, rtol=1e-10)


@pytest.mark.parametrize("optimiser", [{"name": "sgd"}, {"name": "momentum", "momentum": 0.9}])
def test_training_along_eigenvectors_equals_training_on_pairs(optimiser):
    """A hundred steps along the eigenvectors of each domain, and on all pairs of plain domains."""
    training = {"learning_rate": 0.05, "steps": 100, "optimiser": optimiser}
    observed = {"every": 10, "observables": ["pair_error", "layer_norm", "imbalance"]}
    ensemble = run_of(training, record=observed)
    domains = ensemble.dataset.image_domains().in_memory()
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
def test_cross_entropy_is_the_mean_over_trained_pairs(made, activation):
    task, network, data, per_run = made(run_of(MINI, activation))
    chosen = np.array([3, 30, 11])
    inputs, classes = task.batch(data, jnp.asarray(chosen))
    outputs = plain_outputs(network, np.asarray(inputs), activation == "relu")
    labels = task.domains.arrays()["labels"][chosen]
    losses = []
    for i, j in np.argwhere(np.asarray(per_run["mask"])):
        for n, label in enumerate(labels):
            out, answer = outputs[i, j, n], task.domains.class_order[j, label]
            losses.append(np.log(np.sum(np.exp(out))) - out[answer])
            assert classes[j, n] == answer
    assert len(losses) == 3 * COUNT * 2
    np.testing.assert_allclose(
        task.loss(network, (inputs, classes), per_run), np.mean(losses), rtol=1e-12
    )


def test_partners_are_the_trained_pairs(made):
    _, _, _, per_run = made(run_of(MINI))
    for row, partners in zip(
        np.asarray(per_run["mask"]), np.asarray(per_run["partners"]), strict=True
    ):
        np.testing.assert_array_equal(np.flatnonzero(row), partners)


def test_cells_with_other_numbers_of_pairs_share_a_program_on_moments(monkeypatch):
    monkeypatch.setattr(trainer, "_PROGRAMS", {})
    for share in (0.25, 0.5):
        pairs = {"name": "random_regular", "share": share}
        train(run_of(network=IMAGES_RUN["network"] | {"hidden": [12, 10], "pairs": pairs}))
    assert len(trainer._PROGRAMS) == 1


@pytest.mark.parametrize("parts", [7, 1757, 5000])
@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_loss_over_images_in_parts_equals_that_of_one_batch(made, monkeypatch, activation, parts):
    monkeypatch.setattr(domain_tasks, "IMAGES_AT_ONCE", parts)
    task, network, data, per_run = made(run_of(MINI, activation))
    together = task.loss(network, task.batch(data, jnp.arange(IMAGES)), per_run)
    np.testing.assert_allclose(task.whole_loss(network, data, per_run), together, rtol=1e-12)


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_scores_of_held_out_images_equal_plain_means(made, monkeypatch, activation):
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
        def _initial(self, *arguments):
            return transform(self.domains, super()._initial(*arguments))

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
def test_permutations_of_pixels_and_classes_change_nothing(training, activation):
    """Permuted pixels and classes are learned like the originals from equally permuted weights.

    Initial weights are exchangeable, so that permutations change no distribution. Rotations by
    quarter turns are permutations of pixels.
    """
    plain = {"inputs": "identity", "outputs": "identity"}
    alone = train(run_of(training, activation, dataset=plain))
    for changed in (
        {"inputs": "pixel_permutation", "outputs": "label_permutation"},
        {"inputs": "rotation", "arc": 360.0, "outputs": "identity"},
    ):
        together = moved(run_of(training, activation, dataset=changed), permuted)
        for name, values in alone.variables.items():
            np.testing.assert_allclose(together.variables[name], values, rtol=1e-8, err_msg=name)


def permuted(domains, families):
    """Weights, permuted as pixels and classes are."""
    ((encoder, between, decoder),) = families
    encoder, decoder = encoder.copy(), decoder.copy()
    taps, weights = domains.arrays()["taps"], domains.arrays()["tap_weights"]
    pixel = np.take_along_axis(taps, weights.argmax(axis=2)[..., None], axis=2)[..., 0]
    for i in range(COUNT):
        # input q of domain i shows pixel[i, q], and class c is output renamed[i, c]
        encoder[:, :, 0, 0, i] = encoder[:, :, 0, 0, i][..., pixel[i]]
        decoder[:, :, 0, 0, i][:, :, domains.class_order[i]] = decoder[:, :, 0, 0, i].copy()
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
    both = train(run_of(MINI, seeds=1, init_scales=[0.2, 0.4])).variables["loss"]
    np.testing.assert_allclose(both[:1], alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("training", "activation"), [(MOMENTS, "linear"), (MINI, "linear"), (MINI, "relu")]
)
def test_training_learns(training, activation):
    ensemble = run_of({**training, "steps": 150}, activation, record={"every": 150})
    loss = train(ensemble).variables["loss"]
    assert (loss[..., -1] < 0.9 * loss[..., 0]).all()


def test_an_initialiser_in_modes_is_refused_for_graphs():
    with pytest.raises(UserError, match="is for layered networks"):
        train(run_of(init={"name": "decoupled"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": {**MINI, "batch": {"name": "full"}}}, "is trained on all images at once"),
        ({"training": {**MINI, "batch": {"name": "fresh", "size": 3}}}, "fixed sample"),
        ({"activation": "relu"}, "use mini"),
        (
            {"training": {**MOMENTS, "optimiser": {"name": "adam"}}},
            "training.optimiser.name: 'adam': .* use sgd or momentum",
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
def test_training_that_does_not_fit_images_is_refused(changes, message):
    with pytest.raises((ValueError, UserError), match=message):
        train(run_of(**changes))
