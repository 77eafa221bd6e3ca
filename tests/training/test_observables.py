"""Observables against NumPy.

Observables of layered networks are tested on the weights that the same run recorded, those of gated
networks at random weights.
"""

import warnings
from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.config.requirements import unmet
from neuralrace.datasets import Domains
from neuralrace.extensions.registry import OBSERVABLES, Observable
from neuralrace.networks.tasks.domains import RoutingTask
from neuralrace.training.observables.view import View
from neuralrace.training.settings import Training
from neuralrace.training.trainer import train

TRAINING = Training(learning_rate=0.1, steps=1)
SMALL = {"atol": 1e-11, "rtol": 1e-10}


@pytest.fixture(scope="module")
def linear(make_run):
    """Two linear layers on rotated modes, with all observables of the theory of modes."""
    return observe(
        make_run(
            dataset={
                "name": "modes",
                "singular_values": [3.0, -2.0],
                "inputs": 4,
                "outputs": 3,
                "basis": "random",
            },
            network={"name": "layered", "hidden": [5]},
            record={
                "every": 1,
                "snapshots": 12,
                "observables": [
                    "weights",
                    "gram",
                    "imbalance",
                    "layer_norm",
                    "linear_map",
                    "mode_strength",
                    "rate_gap",
                    "singular_values",
                    "weight_cosine",
                ],
            },
        )
    )


@pytest.fixture(scope="module")
def relu(make_run):
    """A classifier with biases and a fixed readout."""
    return observe(
        make_run(
            dataset={"name": "digits", "samples": 15},
            network={
                "name": "layered",
                "hidden": [6, 4],
                "activation": "relu",
                "bias": True,
                "readout": "fixed",
            },
            record={
                "every": 1,
                "snapshots": 12,
                "observables": [
                    "weights",
                    "accuracy",
                    "bias_norm",
                    "imbalance",
                    "output_curve",
                    "outputs",
                    "rate_gap",
                ],
            },
        )
    )


def observe(ensemble):
    """The ensemble, recorded variables, and weights and biases by layer, (run, time, ...)."""
    variables = {
        name: values.reshape(-1, *values.shape[2:])
        for name, values in train(ensemble).variables.items()
    }
    layers = range(1, len(ensemble.network.hidden) + 2)
    weights = [variables[f"weight_{n}"] for n in layers]
    biases = [variables.get(f"bias_{n}", np.zeros(weights[n - 1].shape[:3])) for n in layers]
    return ensemble, variables, weights, biases


def changing(variables, *names):
    """The variables with these names, which must change in time: no test compares zeros."""
    for name in names:
        assert np.nanmax(np.ptp(variables[name], axis=1)) > 1e-6
    return [variables[name] for name in names]


def transposed(w):
    return np.swapaxes(w, -1, -2)


def frobenius(m):
    return np.sqrt(np.einsum("...ij,...ij->...", m, m))


def test_layer_norm_and_singular_values_are_those_of_the_weights(linear):
    _, variables, weights, _ = linear
    norm, values = changing(variables, "layer_norm", "singular_values")
    np.testing.assert_allclose(norm, np.stack([frobenius(w) for w in weights], axis=-1), **SMALL)
    for layer, w in enumerate(weights):
        grams = w @ transposed(w), transposed(w) @ w
        expected = np.sqrt(np.linalg.eigvalsh(min(grams, key=lambda gram: gram.shape[-1])))
        count = expected.shape[-1]
        np.testing.assert_allclose(values[:, :, layer, :count], expected[..., ::-1], **SMALL)
        assert np.isnan(values[:, :, layer, count:]).all()  # padded to the widest layer
    np.testing.assert_allclose(np.nansum(values**2, axis=-1), norm**2, **SMALL)


def test_weight_cosine_follows_the_law_of_cosines(linear):
    """From the norms of weights, initial weights and their difference."""
    _, variables, weights, _ = linear
    (cosine,) = changing(variables, "weight_cosine")
    for layer, w in enumerate(weights):
        now, start, gap = frobenius(w), frobenius(w[:, :1]), frobenius(w - w[:, :1])
        expected = (now**2 + start**2 - gap**2) / (2 * now * start)
        np.testing.assert_allclose(cosine[..., layer], expected, **SMALL)
    np.testing.assert_allclose(cosine[:, 0], 1, **SMALL)


def test_linear_map_mode_strength_and_gram_are_products_of_weights(linear):
    ensemble, variables, (w1, w2), _ = linear
    total, strength, gram = changing(variables, "linear_map", "mode_strength", "gram")
    np.testing.assert_allclose(total, w2 @ w1, **SMALL)
    u, s, v = ensemble.dataset.load().signed_basis
    rotated = u.T @ w2 @ w1 @ v
    np.testing.assert_allclose(strength, rotated[..., range(len(s)), range(len(s))], **SMALL)
    encoders = [w1 @ v[:, k] for k in range(len(s))]
    decoders = [transposed(w2) @ u[:, k] for k in range(len(s))]
    vectors = np.stack(encoders + decoders, axis=-1)
    np.testing.assert_allclose(gram, transposed(vectors) @ vectors, **SMALL)
    np.testing.assert_allclose(np.diagonal(gram[..., 3:, :3], axis1=2, axis2=3), strength, **SMALL)


@pytest.mark.parametrize("case", ["linear", "relu"])
def test_imbalance_is_that_of_the_weights(case, request):
    _, variables, weights, biases = request.getfixturevalue(case)
    trace, norm, drift, neuron, off = changing(
        variables,
        "imbalance_trace",
        "imbalance_norm",
        "imbalance_drift",
        "neuron_imbalance_drift",
        "offdiagonal_imbalance_drift",
    )
    for pair, (below, above) in enumerate(pairwise(weights)):
        c = transposed(above) @ above - below @ transposed(below)
        change = c - c[:, :1]
        diagonal = np.einsum("...ii->...i", change)
        np.testing.assert_allclose(trace[..., pair], np.einsum("...ii", c), **SMALL)
        np.testing.assert_allclose(norm[..., pair], frobenius(c), **SMALL)
        np.testing.assert_allclose(drift[..., pair], frobenius(change), **SMALL)
        np.testing.assert_allclose(
            off[..., pair] ** 2, frobenius(change) ** 2 - np.sum(diagonal**2, axis=-1), **SMALL
        )
        squared = biases[pair] ** 2
        per_unit = diagonal - (squared - squared[:, :1])
        np.testing.assert_allclose(neuron[..., pair], np.linalg.norm(per_unit, axis=-1), **SMALL)


def forward(weights, biases, x):
    """Outputs of one network with ReLU between its layers, in numpy or JAX."""
    for index, (w, b) in enumerate(zip(weights, biases, strict=True)):
        x = x @ w.T + b[None]
        x = x.clip(min=0) if index < len(weights) - 1 else x
    return x


def test_rate_gap_of_linear_layers_is_zero(linear):
    # C is conserved by the gradient flow of linear layers: its rate vanishes at any weights
    _, variables, _, _ = linear
    for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"):
        np.testing.assert_allclose(variables[name], 0, atol=1e-13)


@pytest.mark.parametrize(("member", "time"), [(0, 3), (1, 5), (3, 12)])
def test_rate_gap_equals_differences_along_the_flow(relu, member, time):
    ensemble, variables, weights, biases = relu
    data = ensemble.dataset.load()
    gaps = changing(variables, "rate_gap", "relative_rate_gap", "relative_norm_rate_gap")
    now = [w[member, time] for w in weights]

    def loss(weights):
        out = forward(weights, [b[member, time] for b in biases], data.x)
        return jnp.sum((out - data.y) ** 2) / (2 * len(data.x))

    with jax.enable_x64(True):
        slopes = [np.asarray(g) for g in jax.grad(loss)(now)]
    slopes[-1] = np.zeros_like(slopes[-1])  # the readout is fixed
    # rates along the flow as central differences, which are exact for quadratics at any step
    later, earlier = (
        [w - sign * g for w, g in zip(now, slopes, strict=True)] for sign in (0.5, -0.5)
    )
    for pair in range(len(now) - 1):
        upper = later[pair + 1].T @ later[pair + 1] - earlier[pair + 1].T @ earlier[pair + 1]
        lower = later[pair] @ later[pair].T - earlier[pair] @ earlier[pair].T
        gap = np.linalg.norm(upper - lower)
        powers = np.trace(upper), np.trace(lower)
        expected = (
            gap,
            gap / (np.linalg.norm(upper) + np.linalg.norm(lower)),
            abs(powers[0] - powers[1]) / (abs(powers[0]) + abs(powers[1])),
        )
        for recorded, value in zip(gaps, expected, strict=True):
            np.testing.assert_allclose(recorded[member, time, pair], value, **SMALL)


def test_outputs_accuracy_and_bias_norms_equal_plain_loops(relu):
    ensemble, variables, weights, biases = relu
    data = ensemble.dataset.load()
    outputs, accuracy, norms = changing(variables, "outputs", "accuracy", "bias_norm")
    for member in range(4):
        for time in range(13):
            layers = [w[member, time] for w in weights], [b[member, time] for b in biases]
            expected = forward(*layers, data.x)
            np.testing.assert_allclose(outputs[member, time], expected, **SMALL)
            np.testing.assert_allclose(variables["output_curve"][member, time], expected, **SMALL)
            hits = expected.argmax(axis=1) == data.y.argmax(axis=1)
            np.testing.assert_allclose(accuracy[member, time], hits.mean())
    np.testing.assert_allclose(
        norms, np.stack([np.linalg.norm(b, axis=-1) for b in biases], axis=-1), **SMALL
    )


@pytest.mark.parametrize("activation", ["linear", "relu", "tanh"])
def test_similarity_is_the_gram_matrix_of_the_first_hidden_layer(make_run, activation):
    ensemble = make_run(
        dataset={"name": "contextual", "contexts": 2, "objects": 2},
        network={"name": "layered", "hidden": [4, 3], "activation": activation},
        record={"every": 1, "snapshots": 4, "observables": ["weights", "similarity"]},
    )
    ensemble, variables, weights, _ = observe(ensemble)
    x, (similarity,) = ensemble.dataset.load().x, changing(variables, "sample_similarity")
    applied = {"linear": lambda h: h, "relu": lambda h: h.clip(min=0), "tanh": np.tanh}[activation]
    hidden = applied(x @ transposed(weights[0]))
    assert similarity.shape == (4, 5, 4, 4)
    np.testing.assert_allclose(similarity, np.einsum("rtnh,rtmh->rtnm", hidden, hidden), **SMALL)


def test_two_observables_with_one_variable_are_refused(make_run, monkeypatch):
    declaration = Observable(variables={"layer_norm": ("time layer", "the same by another way")})
    entry = replace(OBSERVABLES["layer_norm"], name="other", declaration=declaration)
    monkeypatch.setitem(OBSERVABLES._entries, "other", entry)
    record = {"every": 1, "observables": ["layer_norm", "other"]}
    with pytest.raises(ValueError, match="'other': gives 'layer_norm', as 'layer_norm' does"):
        make_run(record=record)


def test_an_observable_listed_twice_is_recorded_once(make_run):
    record = {"every": 1, "observables": ["layer_norm", "layer_norm"]}
    assert train(make_run(record=record)).variables["layer_norm"].shape == (2, 2, 13, 2)


# Gated networks --------------------------------------------------------------------------------


def observed_at_random_weights(task, names, seed=3):
    """Observables of a run at random weights, and the networks now and initially."""
    with jax.enable_x64(True):
        networks = [
            task.network(
                jax.tree.map(lambda w: jnp.asarray(w[0, 0]), task.weights((1.0,), (draw,)))
            )
            for draw in (0, 1)
        ]
        per_run = {name: jnp.asarray(values[0]) for name, values in task.per_run([seed]).items()}
        data = jax.tree.map(jnp.asarray, task.arrays)

        @jax.jit
        def observe_all(data, per_run):
            view = View(TRAINING, task, *networks, data, per_run, gradient=lambda: None)
            return [OBSERVABLES[name].load()(view) for name in names]

        observed = {}
        for variables in observe_all(data, per_run):
            observed |= {name: np.asarray(value) for name, value in variables.items()}
    return observed, *networks


@pytest.mark.parametrize(
    ("gates", "pathways"),
    [
        ({"name": "contexts", "open_in": [2]}, [[0, 1, 2], [0, 1], [0, 2], [1, 2]]),
        ({"name": "listed", "rows": [[0, 0.5, 1], [1, 1, 0]]}, [[1, 2], [0, 1]]),
    ],
    ids=["contexts", "listed"],
)
@pytest.mark.parametrize("hidden", [[3], [3, 2]], ids=["one hidden layer", "two"])
def test_observables_of_parallel_pathways(make_run, gates, pathways, hidden):
    """Singular values of pathway maps, outputs and similarities, from weights by edge."""
    ensemble = make_run(
        dataset={"name": "contextual", "contexts": 3, "objects": 2},
        network={
            "name": "gated",
            "hidden": hidden,
            "gates": gates,
            "widths": [2, 1, 1, 1][: len(pathways)],
        },
        record={"every": 1},
    )
    names = ["imbalance", "layer_norm", "outputs", "pathway_values", "similarity"]
    observed, network, initial = observed_at_random_weights(ensemble.task(), names)
    x, depth = ensemble.dataset.load().x, len(hidden) + 1
    chains, start = (
        [list(each)[first : first + depth] for first in range(0, depth * len(pathways), depth)]
        for each in ([np.asarray(w) for w in either.weights] for either in (network, initial))
    )
    context, outputs, inner = np.repeat([0, 1, 2], 2), np.zeros((6, 12)), np.zeros((6, 6))
    for number, (chain, where) in enumerate(zip(chains, pathways, strict=True)):
        gate = np.isin(context, where).astype(float)
        inputs = x.copy()
        if gates["name"] == "listed":
            gate[(context == 1) & (number == 0)] = 0.5
        elif number:
            inputs[:, 2:] = 0  # all but the common pathway receive objects only
        hidden_units = gate[:, None] * inputs @ chain[0].T
        inner += hidden_units @ hidden_units.T
        total = np.linalg.multi_dot([*chain[::-1], np.eye(5)])
        outputs += gate[:, None] * inputs @ total.T
        grams = total @ total.T, total.T @ total
        values = np.sqrt(np.linalg.eigvalsh(min(grams, key=len)).clip(min=0))[::-1]
        recorded = observed["pathway_values"][number]
        assert recorded.shape == values.shape == (5,)
        np.testing.assert_allclose(recorded, values, atol=1e-7)  # a root of rounding errors
        np.testing.assert_allclose(recorded**2, values**2, **SMALL)
    np.testing.assert_allclose(observed["outputs"], outputs, **SMALL)
    np.testing.assert_allclose(observed["sample_similarity"], inner, **SMALL)
    norms = [np.linalg.norm(w) for chain in chains for w in chain]
    np.testing.assert_allclose(observed["layer_norm"], norms, **SMALL)

    def imbalances(chains):
        return [
            above.T @ above - below @ below.T
            for chain in chains
            for below, above in pairwise(chain)
        ]

    assert_imbalances(observed, imbalances(chains), imbalances(start))


def test_pathway_values_of_a_graph_are_those_of_its_maps(make_run):
    """Pathways share a first layer; one of them also begins at a smaller input."""
    ensemble = make_run(
        dataset={"name": "contextual", "contexts": 3, "objects": 2},
        network={
            "name": "graph",
            "nodes": {"object": 2, "context": 3, "first": 4, "a": 3, "b": 3, "y": 12},
            "edges": [
                ["object", "first"],
                ["context", "first"],
                ["first", "a"],
                ["first", "b"],
                ["a", "y"],
                ["b", "y"],
            ],
            "gates": {"b": [1, 1, 0]},
        },
        record={"every": 1},
    )
    observed, network, _ = observed_at_random_weights(ensemble.task(), ["pathway_values"])
    inputs, a, b = (np.asarray(w) for w in network.weights[:2]), *network.weights[2:4]
    values = [
        np.linalg.svd(np.asarray(above) @ np.asarray(hidden) @ first, compute_uv=False)
        for first in inputs
        for hidden, above in zip((a, b), network.weights[4:], strict=True)
    ]
    expected = [[*each, *[0] * (3 - len(each))] for each in values]
    np.testing.assert_allclose(observed["pathway_values"], expected, **SMALL)


class Routed:
    """A routing network on random domains, its observables, and its weights as arrays."""

    def __init__(self, make_run, gates, partners):
        self.ensemble = make_run(
            dataset={"name": "routing", "count": 4},
            network={
                "name": "routing",
                "hidden": [3, 2],
                "gates": gates,
                "pairs": {"name": "random_regular", "partners": partners},
            },
            record={"every": 1},
        )
        rng = np.random.default_rng(8)
        self.domains = Domains(
            inputs=rng.normal(size=(4, 5, 3)), targets=rng.normal(size=(4, 5, 2))
        )
        task = RoutingTask(
            self.ensemble.network, self.domains, self.ensemble.init, self.ensemble.training
        )
        names = [
            name
            for name, entry in OBSERVABLES.items()
            if not unmet(self.ensemble, entry.declaration.requires)
        ]
        self.observed, network, initial = observed_at_random_weights(task, names)
        self.mask = self.ensemble.network.mask(self.domains.count, 3)
        self.families = self.ensemble.network.families(self.domains.count)
        self.weights, self.start = (
            [[np.asarray(w) for w in family.weights] for family in each.families]
            for each in (network, initial)
        )

    def map(self, i, j, family):
        """The map from an input to an output domain through the one block that joins them."""
        size = self.families[family].size
        block = i // size, j // size
        encoder, hidden, decoder = self.weights[family]
        return decoder[*block, j % size] @ hidden[block] @ encoder[*block, i % size]

    def average(self, value, chosen):
        """Mean of a function of the pair over chosen pairs; NaN if there are none."""
        values = [value(i, j) for i, j in np.argwhere(chosen)]
        return np.mean(values, axis=0) if values else np.nan


ROUTED = {
    "always_on": ({"name": "always_on"}, 4),
    "groups": ({"name": "groups", "size": 2}, 3),
    "parallel": ({"name": "parallel", "dedicated": 2}, 1),
}


@pytest.fixture(scope="module", params=ROUTED)
def routed(request, make_run):
    return Routed(make_run, *ROUTED[request.param])


def test_outputs_and_errors_of_pairs_equal_plain_loops(routed):
    families = range(len(routed.families))
    domains, answers = routed.domains, np.zeros((4, 4, 5, 2))
    for i in range(4):
        for j in range(4):
            for n, item in enumerate(domains.inputs[i]):
                answers[i, j, n] = sum(routed.map(i, j, family) @ item for family in families)
    np.testing.assert_allclose(routed.observed["pair_outputs"], answers, **SMALL)
    np.testing.assert_array_equal(routed.observed["trained_pair"], routed.mask)

    def error(i, j):
        return np.sum((domains.targets[j] - answers[i, j]) ** 2) / np.sum(domains.targets[j] ** 2)

    trained, untrained = routed.observed["trained_error"], routed.observed["untrained_error"]
    np.testing.assert_allclose(trained, routed.average(error, routed.mask), **SMALL)
    np.testing.assert_allclose(untrained, routed.average(error, ~routed.mask), **SMALL)


def test_pathway_power_is_the_squared_norm_of_maps(routed):
    trained, untrained = routed.observed["trained_power"], routed.observed["untrained_power"]
    assert trained.shape == untrained.shape == (len(routed.families),)
    for family in range(len(routed.families)):

        def power(i, j, family=family):
            return np.sum(np.linalg.svd(routed.map(i, j, family), compute_uv=False) ** 2)

        np.testing.assert_allclose(trained[family], routed.average(power, routed.mask), **SMALL)
        np.testing.assert_allclose(untrained[family], routed.average(power, ~routed.mask), **SMALL)


def test_mode_strength_is_the_mean_over_trained_pairs(routed):
    def strength(i, j):
        u, _, vt = np.linalg.svd(routed.domains.targets[j].T @ routed.domains.inputs[i])
        total = sum(routed.map(i, j, family) for family in range(len(routed.families)))
        return [u[:, k] @ total @ vt[k] for k in range(2)]

    recorded = routed.observed["mode_strength"]
    np.testing.assert_allclose(recorded, routed.average(strength, routed.mask), **SMALL)


def test_similarity_between_domains_is_that_of_all_encoders(routed):
    """Units of all blocks that an item's domain belongs to count, each block by itself."""
    size, encoders = routed.families[0].size, routed.weights[0][0]
    rows, columns, _, units, _ = encoders.shape
    hidden = np.zeros((4, 5, rows, columns, units))
    for i in range(4):
        for n, item in enumerate(routed.domains.inputs[i]):
            for column in range(columns):
                encoder = encoders[i // size, column, i % size]
                hidden[i, n, i // size, column] = encoder @ item
    items = hidden.reshape(20, -1)
    np.testing.assert_allclose(routed.observed["similarity"], items @ items.T, **SMALL)


def test_layers_of_a_routing_network_are_those_of_its_first_block(routed):
    encoders, hidden, decoders = (w[0, 0] for w in routed.weights[0])
    stacks = (encoders, hidden[None], decoders)
    norms = [np.sqrt(sum(np.sum(w**2) for w in stack)) for stack in stacks]
    np.testing.assert_allclose(routed.observed["layer_norm"], norms, **SMALL)
    for recorded, stack in zip(routed.observed["singular_values"], stacks, strict=True):
        values = np.mean([np.sqrt(np.linalg.eigvalsh(narrow(w))[::-1]) for w in stack], axis=0)
        np.testing.assert_allclose(recorded[: len(values)], values, **SMALL)
        assert np.isnan(recorded[len(values) :]).all()


def test_singular_values_of_domains_are_those_of_single_matrices(routed):
    encoders, hidden, decoders = (w[0, 0] for w in routed.weights[0])
    recorded, size = routed.observed["domain_singular_values"], routed.families[0].size
    assert recorded.shape == (3, size, 3)
    expected = np.full((3, size, 3), np.nan)
    for layer, stack in enumerate((encoders, hidden[None], decoders)):
        for domain, w in enumerate(stack):
            values = np.sqrt(np.linalg.eigvalsh(narrow(w))[::-1])
            expected[layer, domain, : len(values)] = values
    np.testing.assert_allclose(recorded, expected, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of padding alone
        means = np.nanmean(recorded, axis=1)
    np.testing.assert_allclose(means, routed.observed["singular_values"], **SMALL)


def test_imbalance_of_a_routing_network_is_that_of_its_first_block(routed):
    def imbalances(weights):
        encoders, hidden, decoders = (w[0, 0] for w in weights[0])
        return [
            hidden.T @ hidden - sum(w @ w.T for w in encoders),
            sum(w.T @ w for w in decoders) - hidden @ hidden.T,
        ]

    assert_imbalances(routed.observed, imbalances(routed.weights), imbalances(routed.start))


def narrow(w):
    """The smaller of the two Gram matrices of W."""
    return min(w @ w.T, w.T @ w, key=len)


def assert_imbalances(observed, now, start):
    for pair, (c, c0) in enumerate(zip(now, start, strict=True)):
        change = c - c0
        diagonal = np.diag(np.diag(change))
        np.testing.assert_allclose(observed["imbalance_trace"][pair], np.trace(c), **SMALL)
        for name, matrix in (
            ("imbalance_norm", c),
            ("imbalance_drift", change),
            ("neuron_imbalance_drift", diagonal),
            ("offdiagonal_imbalance_drift", change - diagonal),
        ):
            np.testing.assert_allclose(observed[name][pair], np.linalg.norm(matrix), **SMALL)
    assert len(now) == len(observed["imbalance_drift"])


def test_observables_of_a_graph(make_run):
    rng = np.random.default_rng(2)
    edges = [["a", "h"], ["b", "h"], ["h", "k"], ["k", "y"], ["k", "z"], ["a", "k"], ["h", "y"]]
    ensemble = make_run(
        dataset={
            "name": "table",
            "x": rng.normal(size=(4, 3)).tolist(),
            "y": rng.normal(size=(4, 3)).tolist(),
        },
        network={
            "name": "graph",
            "nodes": {"a": 2, "b": 1, "h": 3, "k": 2, "y": 1, "z": 2},
            "edges": edges,
        },
        record={"every": 1},
    )
    names = ["imbalance", "layer_norm", "singular_values", "outputs", "output_curve"]
    observed, network, initial = observed_at_random_weights(ensemble.task(), names)
    weights, start = ([np.asarray(w) for w in each.weights] for each in (network, initial))
    for number, w in enumerate(weights):
        values = np.sqrt(np.linalg.eigvalsh(narrow(w))[::-1])
        recorded = observed["singular_values"][number]
        np.testing.assert_allclose(recorded[: len(values)], values, **SMALL)
        assert np.isnan(recorded[len(values) :]).all()
        np.testing.assert_allclose(observed["layer_norm"][number], frobenius(w), **SMALL)

    def imbalances(weights):
        w = {a + b: matrix for (a, b), matrix in zip(edges, weights, strict=True)}
        return [
            w["hk"].T @ w["hk"] + w["hy"].T @ w["hy"] - w["ah"] @ w["ah"].T - w["bh"] @ w["bh"].T,
            w["ky"].T @ w["ky"] + w["kz"].T @ w["kz"] - w["hk"] @ w["hk"].T - w["ak"] @ w["ak"].T,
        ]

    assert_imbalances(observed, imbalances(weights), imbalances(start))
    w, x = dict(zip(map("".join, edges), weights, strict=True)), ensemble.dataset.load().x.T
    h = w["ah"] @ x[:2] + w["bh"] @ x[2:]
    k = w["hk"] @ h + w["ak"] @ x[:2]
    outputs = np.vstack([w["ky"] @ k + w["hy"] @ h, w["kz"] @ k])
    for name in ("outputs", "output_curve"):
        np.testing.assert_allclose(observed[name], outputs.T, **SMALL)
