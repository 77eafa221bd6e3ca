"""Losses computed from correlations, against sums over samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.datasets import Domains
from neuralrace.errors import UserError
from neuralrace.networks.modules.graph import GatedNetwork
from neuralrace.networks.tasks.domains import RoutingTask, domain_moments, squared_errors
from neuralrace.networks.tasks.gated import ParallelTask
from neuralrace.networks.tasks.graph import GraphTask
from neuralrace.networks.tasks.layered import LayeredTask

GRAPH = {
    "name": "graph",
    "nodes": {"a": 2, "b": 1, "h": 3, "y": 2, "z": 1},
    "edges": [["a", "h"], ["b", "h"], ["h", "y"], ["h", "z"], ["a", "z"]],
    "gates": {"a": [1, 1, 0], "b": [1, 0, 0.5], "h->z": [0.25, 0, 1], "y": [0, 1, 1]},
}
"""Shortcuts, and a context in which both inputs are on."""


CROSS_ENTROPY = {
    "learning_rate": 0.1,
    "steps": 1,
    "loss": {"name": "cross_entropy", "normalisation": "mean"},
}


def table(seed=0, samples=6, classes=False):
    """Random samples in three contexts."""
    rng = np.random.default_rng(seed)
    y = np.eye(3)[rng.integers(3, size=samples)] if classes else rng.normal(size=(samples, 3))
    return {
        "name": "table",
        "x": rng.normal(size=(samples, 3)).tolist(),
        "y": y.tolist(),
        "contexts": [number % 3 for number in range(samples)],
    }


def repeated(rows, times):
    """The same samples, several times each."""
    return {**rows, **{key: list(rows[key]) * times for key in ("x", "y", "contexts")}}


LISTED = {
    "name": "gated",
    "hidden": [2, 1],
    "gates": {"name": "listed", "rows": [[1, 0.5, 0], [0, 1, 1]]},
    "widths": [1, 3],
}
"""By context, with pathways of unequal width."""
PARALLEL = {
    "few samples": (
        table(),
        {"name": "gated", "hidden": [2], "gates": {"name": "half_space", "pathways": 3, "seed": 2}},
    ),
    "many samples": (table(samples=40), LISTED),
    "some inputs": (
        {"name": "contextual", "contexts": 3, "objects": 4},
        {"name": "gated", "hidden": [2], "gates": {"name": "contexts", "open_in": [2]}},
    ),
}
"""Samples, and parallel pathways."""


def on_device(tree):
    return jax.tree.map(jnp.asarray, tree)


def weights_of(task, scale=1.0):
    return jax.tree.map(lambda w: w[0, 0], task.weights((scale,), (0,)))


# Gated networks --------------------------------------------------------------------------------


def outputs(wiring, weights):
    """Outputs of the network on its graph, sample by sample."""
    gates = on_device(dict(wiring.gates))
    return GatedNetwork(wiring.architecture, weights)(jnp.asarray(wiring.data.x), gates)


def half_mean(wiring, weights):
    return jnp.mean(jnp.sum((wiring.data.y - outputs(wiring, weights)) ** 2, axis=1)) / 2


def value_and_gradient(function, weights):
    with jax.enable_x64(True):
        return jax.jit(jax.value_and_grad(function))(weights)


@pytest.mark.parametrize("case", ["graph", *PARALLEL])
def test_loss_from_moments_equals_the_loss_of_the_samples(make_run, case):
    rows, network = {"graph": (table(), GRAPH), **PARALLEL}[case]
    ensemble = make_run(dataset=rows, network=network, record={"every": 1})
    task = ensemble.task()
    assert isinstance(task, GraphTask if case == "graph" else ParallelTask)
    if case != "graph":
        x, y = task.arrays["loss"]
        assert len(x) == len(y) == min(task.samples, x.shape[1] + y.shape[1])
        assert (len(x) < task.samples) == (case == "many samples")
    with jax.enable_x64(True):
        batch, stacks = on_device(task.arrays["loss"]), on_device(weights_of(task))
        edges = task.network(stacks).weights
    wiring = ensemble.network.wiring(ensemble.dataset.load())
    loss, slopes = value_and_gradient(lambda w: task.loss(task.network(w), batch, {}), stacks)
    expected_loss, expected = value_and_gradient(lambda w: half_mean(wiring, w), edges)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-13)
    with jax.enable_x64(True):
        slopes = task.network(slopes).weights
    assert bool(wiring.visible_inputs) == (case == "some inputs")
    for edge, (one, other) in enumerate(zip(slopes, expected, strict=True)):
        # weights from inputs that a pathway does not receive have no gradient
        visible = wiring.visible_inputs.get(wiring.architecture.edge_name(edge), True)
        assert np.abs(one).max() > 1e-3
        np.testing.assert_allclose(one, np.where(visible, other, 0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("network", [GRAPH, LISTED], ids=lambda network: network["name"])
def test_loss_does_not_depend_on_repeats_of_the_samples(make_run, network):
    once, thrice = (
        make_run(dataset=rows, network=network, record={"every": 1}).task()
        for rows in (table(), repeated(table(), 3))
    )
    assert (once.samples, thrice.samples) == (6, 18)
    with jax.enable_x64(True):
        weights = on_device(weights_of(once))
    one_by_one, repeats = (
        value_and_gradient(
            lambda w, task=task, batch=task.arrays["loss"]: task.loss(
                task.network(w), on_device(batch), {}
            ),
            weights,
        )
        for task in (once, thrice)
    )
    for one, other in zip(jax.tree.leaves(one_by_one), jax.tree.leaves(repeats), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("network", [GRAPH, LISTED], ids=lambda network: network["name"])
def test_cross_entropy_of_a_gated_network_is_that_of_its_outputs(make_run, network):
    ensemble = make_run(
        dataset=table(classes=True), network=network, training=CROSS_ENTROPY, record={"every": 1}
    )
    task, data = ensemble.task(), ensemble.dataset.load()
    with jax.enable_x64(True):
        weights = on_device(weights_of(task))
        loss = task.loss(task.network(weights), on_device(task.arrays["loss"]), {})
        out = np.asarray(outputs(ensemble.network.wiring(data), task.network(weights).weights))
    share = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
    expected = -np.log(share[np.arange(6), data.y.argmax(axis=1)]).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-13)


# Routing networks ------------------------------------------------------------------------------


def domains_of(count=3, items=5, inputs=2, outputs=4):
    rng = np.random.default_rng(count)
    return Domains(
        inputs=rng.normal(size=(count, items, inputs)),
        targets=rng.normal(size=(count, items, outputs)),
    )


def routing(make_run, pairs, gates=None, **parts):
    return make_run(
        dataset={"name": "routing", "count": 3},
        network=BETWEEN_DOMAINS
        | {"hidden": [4], "gates": gates or {"name": "always_on"}, "pairs": pairs},
        **{"record": {"every": 1}} | parts,
    )


def test_squared_errors_on_few_items_equal_means_over_all_items():
    domains = domains_of()
    items, targets, constant = domain_moments(domains)
    assert items.shape[1] < domains.inputs.shape[1], "as many items would show nothing"
    maps = np.random.default_rng(0).normal(size=(3, 3, 4, 2))
    outputs = np.einsum("ijyx,inx->injy", maps, items)
    with jax.enable_x64(True):
        squares = squared_errors(*on_device((outputs, targets, constant)))
    for i in range(3):
        for j in range(3):
            errors = [
                np.sum((y - maps[i, j] @ x) ** 2)
                for x, y in zip(domains.inputs[i], domains.targets[j], strict=True)
            ]
            np.testing.assert_allclose(squares[i, j], np.mean(errors), rtol=1e-12)


def test_pair_errors_are_relative_to_outputs_of_zero(make_run):
    ensemble, domains = routing(make_run, {"name": "all"}), domains_of()
    task = RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)
    assert np.ptp(domains.y_power) > 0.1, "a power of one would show nothing"
    with jax.enable_x64(True):
        zero = task.network(jax.tree.map(jnp.zeros_like, on_device(weights_of(task))))
        errors = task.pair_errors(zero, on_device(task.arrays))
    np.testing.assert_allclose(errors, np.ones((3, 3)), rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_routing_loss_equals_that_of_the_trained_samples(make_run, seed):
    ensemble = routing(make_run, {"name": "random_regular", "partners": 2})
    domains = domains_of()
    task = RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)
    per_run = {name: values[0] for name, values in task.per_run([seed]).items()}
    with jax.enable_x64(True):
        network = task.network(on_device(weights_of(task)))
        data = on_device((task.arrays, per_run))
        loss = task.loss(network, data[0]["loss"], data[1])
        whole_loss = task.whole_loss(network, *data)
        maps = np.asarray(network.maps())
    mask = ensemble.network.mask(3, seed)
    errors = [
        np.sum((y - maps[i, j] @ x) ** 2)
        for i, j in np.argwhere(mask)
        for x, y in zip(domains.inputs[i], domains.targets[j], strict=True)
    ]
    assert task.samples == len(errors) == 30
    np.testing.assert_allclose([loss, whole_loss], np.mean(errors) / 2, rtol=1e-12)


def test_every_run_has_its_own_pairs(make_run):
    ensemble = routing(make_run, {"name": "random_regular", "partners": 1}, seeds=5)
    task = ensemble.task()
    masks = task.per_run([4, 0, 2])["mask"]
    for mask, seed in zip(masks, (4, 0, 2), strict=True):
        np.testing.assert_array_equal(mask, ensemble.network.mask(3, seed))
    assert len({mask.tobytes() for mask in masks}) > 1


@pytest.mark.parametrize(
    "gates",
    [{"name": "always_on"}, {"name": "parallel", "dedicated": 4}],
    ids=lambda gates: gates["name"],
)
def test_aligned_start_carries_every_mode_of_every_pair(make_run, gates):
    ensemble = routing(
        make_run,
        {"name": "band", "partners": 2},
        gates,
        init={"name": "aligned", "layer_strengths": [2.0, 3.0]},
    )
    task = ensemble.task()
    with jax.enable_x64(True):
        maps = np.asarray(task.network(on_device(weights_of(task, scale=0.5))).maps())
    dedicated = len(ensemble.network.families(3)) > 1
    mask = ensemble.network.mask(3, 0)
    for i in range(3):
        for j in range(3):
            sigma = task.domains.sigma_yx[i, j]
            u, _, vt = np.linalg.svd(sigma, full_matrices=False)
            # a dedicated pathway that no sample opens has no modes to start in
            pathways = 1 + (dedicated and mask[i, j])
            # equal singular values leave the basis free; the map is the same in all bases
            expected = pathways * (0.5 * 2) * (0.5 * 3) * u @ vt
            np.testing.assert_allclose(maps[i, j], expected, atol=1e-9)


# Choice of task --------------------------------------------------------------------------------


def test_networks_have_their_tasks(make_run):
    learned = make_run(network={"name": "gated", "hidden": [4], "gates": {"name": "learned"}})
    task = learned.task()
    assert isinstance(task, LayeredTask)
    assert (task.spec.activation, task.spec.hidden, task.spec.bias) == ("relu", (4,), False)
    assert isinstance(make_run().task(), LayeredTask)
    assert isinstance(routing(make_run, {"name": "all"}).task(), RoutingTask)


BETWEEN_DOMAINS = {
    "name": "routing",
    "hidden": [2],
    "gates": {"name": "always_on"},
    "pairs": {"name": "all"},
}


@pytest.mark.parametrize(
    ("network", "dataset", "key", "problem"),
    [
        (
            {**GRAPH, "gates": {"a": [1, 0]}},
            table(),
            "network.gates.a",
            "has 2 values, and the dataset has 3 contexts",
        ),
        (
            {**GRAPH, "nodes": {**GRAPH["nodes"], "a": 3}},
            table(),
            "network.nodes",
            "a, b together have 4 units, but x of the dataset has 3 columns",
        ),
        (
            {"name": "gated", "hidden": [2], "gates": {"name": "half_space", "pathways": 1}},
            table(),
            "network.gates",
            "no pathway is open on",
        ),
        (
            BETWEEN_DOMAINS | {"gates": {"name": "groups", "size": 2}},
            {"name": "routing", "count": 3},
            "network.gates.size",
            "3 domains do not divide",
        ),
        (
            BETWEEN_DOMAINS | {"pairs": {"name": "band", "partners": 4}},
            {"name": "routing", "count": 3},
            "network.pairs.partners",
            "there are 3 domains",
        ),
    ],
    ids=["gates", "units", "closed sample", "groups", "partners"],
)
def test_networks_that_do_not_fit_the_dataset_are_refused(make_run, network, dataset, key, problem):
    ensemble = make_run(network=network, dataset=dataset, record={"every": 1})
    with pytest.raises(UserError, match=problem) as error:
        ensemble.task()
    assert error.value.key == key


def test_cross_entropy_needs_class_probabilities(make_run):
    ensemble = make_run(dataset=table(), network=GRAPH, training=CROSS_ENTROPY, record={"every": 1})
    with pytest.raises(UserError, match="no class probabilities") as error:
        ensemble.task()
    assert (error.value.key, error.value.remedy) == ("training.loss.name", "use squared_error")
