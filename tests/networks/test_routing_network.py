"""The routing network equals the gated network on its graph, with weights in stacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.datasets import Domains
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.always_on import AlwaysOnDomains
from neuralrace.networks.gates.groups import Groups
from neuralrace.networks.gates.pairs import Band
from neuralrace.networks.gates.parallel import Parallel
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.networks.initialisers.normal import Normal
from neuralrace.networks.modules.graph import GatedNetwork
from neuralrace.networks.modules.routing import RoutingNetwork, stacked

HIDDEN = (3, 2, 4)
ALWAYS_ON, GROUPS = AlwaysOnDomains(name="always_on"), Groups(name="groups", size=2)
PARALLEL = Parallel(name="parallel", dedicated=2)
CASES = [(ALWAYS_ON, 1, 3), (GROUPS, 2, 4), (PARALLEL, 1, 3), (PARALLEL, 3, 2)]
"""Scheme, hidden layers, and domains on either side."""


class Both:
    """One set of weights as both networks, on the trained pairs of a band."""

    def __init__(self, scheme, depth, count):
        self.count = count
        rng = np.random.default_rng(depth)
        self.domains = Domains(
            inputs=rng.normal(size=(count, 3, 2)), targets=rng.normal(size=(count, 3, 2))
        )
        self.families = scheme.families(count, HIDDEN[:depth])
        self.mask = Band(name="band", partners=count - 1).mask(count, 0)
        self.wiring = wiring.routing(self.domains, self.families, self.mask)
        edges = initial_edges(Normal(name="normal"), self.wiring.architecture, dict, (0.5,), (1,))
        self.edges = [w[0, 0] for w in edges]
        self.stacks = stacked(self.edges, self.families, count)

    def graph_loss(self, edges):
        gates = jax.tree.map(jnp.asarray, dict(self.wiring.gates))
        out = GatedNetwork(self.wiring.architecture, edges)(jnp.asarray(self.wiring.data.x), gates)
        return jnp.mean(jnp.sum((self.wiring.data.y - out) ** 2, axis=1)) / 2

    def stacked_loss(self, stacks):
        maps = RoutingNetwork(stacks).maps()
        outputs_by_pair = jnp.einsum("ijyx,inx->ijny", maps, self.domains.inputs)
        errors = jnp.sum((self.domains.targets[None] - outputs_by_pair) ** 2, axis=(2, 3))
        samples = 3 * self.mask.sum()
        return jnp.sum(self.mask / (2 * samples) * errors)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].name}-{case[1]}", scope="module")
def both(request):
    return Both(*request.param)


def test_maps_of_all_pairs(both):
    """Including untrained pairs: outputs on every item of every domain."""
    everything = np.ones((both.count, both.count), dtype=bool)
    all_pairs = wiring.routing(both.domains, both.families, everything)
    with jax.enable_x64(True):
        edges, x, gates = jax.tree.map(
            jnp.asarray, (both.edges, all_pairs.data.x, dict(all_pairs.gates))
        )
        outputs = np.asarray(GatedNetwork(all_pairs.architecture, edges)(x, gates))
        maps = np.asarray(RoutingNetwork(jax.tree.map(jnp.asarray, both.stacks)).maps())
    count = both.count
    outputs_by_pair = outputs.reshape(count, count, 3, count, 2)  # (shown, asked, item, at, unit)
    for i in range(count):
        for j in range(count):
            for n, item in enumerate(both.domains.inputs[i]):
                np.testing.assert_allclose(
                    outputs_by_pair[i, j, n, j], maps[i, j] @ item, rtol=1e-12
                )
            others = np.delete(outputs_by_pair[i, j], j, axis=1)
            np.testing.assert_array_equal(others, 0)  # no other domain outputs_by_pair
    assert np.abs(maps).min() > 0


def test_training_is_the_same(both):
    """Loss and weights along a few steps of gradient descent."""

    def descended(loss, start):
        value_and_slope = jax.jit(jax.value_and_grad(loss))
        weights, losses = jax.tree.map(jnp.asarray, start), []
        for _ in range(4):
            value, slope = value_and_slope(weights)
            weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, slope)
            losses.append(float(value))
        return jax.tree.map(np.asarray, weights), losses

    with jax.enable_x64(True):
        edges, losses = descended(both.graph_loss, both.edges)
        stacks, stacked_losses = descended(both.stacked_loss, both.stacks)
    np.testing.assert_allclose(stacked_losses, losses, rtol=1e-13)
    assert np.ptp(losses) > 1e-3
    for one, other in zip(
        jax.tree.leaves(stacks),
        jax.tree.leaves(stacked(edges, both.families, both.count)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_stacks_keep_the_axes_of_runs_in_front():
    both = Both(PARALLEL, 2, 3)
    scaled = [np.multiply.outer([[1.0, 2.0, 3.0]], w) for w in both.edges]
    for many, one in zip(
        jax.tree.leaves(stacked(scaled, both.families, both.count)),
        jax.tree.leaves(both.stacks),
        strict=True,
    ):
        assert many.shape == (1, 3, *one.shape)
        np.testing.assert_array_equal(many[0, 2], 3 * one)


def test_weights_and_junctions_are_those_of_the_first_block():
    both = Both(GROUPS, 2, 4)
    ((encoder, hidden, decoder),) = both.stacks
    assert (encoder.shape, hidden.shape, decoder.shape) == (
        (2, 2, 2, 3, 2), (2, 2, 2, 3), (2, 2, 2, 2, 2)
    )  # fmt: skip
    with jax.enable_x64(True):
        network = RoutingNetwork(jax.tree.map(jnp.asarray, both.stacks))
        weights = network.weights
        (into_first, out_of_first), (into_second, out_of_second) = network.junctions
    for weight, stack in zip(weights, (encoder, hidden, decoder), strict=True):
        np.testing.assert_array_equal(weight, stack[0, 0])
    # the first block joins the first two domains on either side
    names = dict(zip(both.wiring.architecture.edges, both.edges, strict=True))
    block = [f"hidden {layer} of family 1, block 1, 1" for layer in (1, 2)]
    expected = (
        [names[f"input {i}", block[0]] for i in (1, 2)],
        [names[block[0], block[1]]],
        [names[block[1], f"output {j}"] for j in (1, 2)],
    )
    for junction, matrices in zip(
        (into_first, out_of_first, into_second, out_of_second),
        (expected[0], expected[1], expected[1], expected[2]),
        strict=True,
    ):
        for one, other in zip(junction, matrices, strict=True):
            np.testing.assert_array_equal(one, other)
