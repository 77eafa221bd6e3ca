"""Effective data from samples, and recovery of planted common modes."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neuralrace.datasets import Data
from neuralrace.datasets.contextual import Contextual
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.architecture import Architecture, chain
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.networks.gates.effective import EffectiveData, effective_data
from neuralrace.networks.gates.wiring import Wiring


def graph_of(*edges, units=4):
    return Architecture(
        nodes={name: units for edge in edges for name in edge.split("->")},
        edges=tuple(tuple(edge.split("->")) for edge in edges),
    )


def orthonormal(rng, units, modes):
    return np.linalg.qr(rng.normal(size=(units, units)))[0][:, :modes]


def plant(graph, s, d, seed=0, outside=0.0):
    """Effective data with modes in random bases.

    Args:
        graph: the graph.
        s: strengths, (pathway, mode).
        d: input correlations by pathways (j, p), (mode,).
        seed: seed of the bases.
        outside: size of arbitrary input correlations outside of all modes.
    """
    rng, pathways = np.random.default_rng(seed), graph.pathways
    s = np.asarray(s, dtype=float)
    whole = {name: orthonormal(rng, graph.nodes[name], None) for name in graph.nodes}
    bases = {name: basis[:, : s.shape[1]] for name, basis in whole.items()}
    free = {name: basis[:, s.shape[1] :] for name, basis in whole.items()}
    sigma_yx = tuple(
        (bases[p.target] * row) @ bases[p.source].T for p, row in zip(pathways, s, strict=True)
    )
    sigma_xx = {}
    for (j, p), row in d.items():
        left, right = pathways[j].source, pathways[p].source
        own = rng.normal(size=(free[left].shape[1], free[right].shape[1]))
        sigma_xx[j, p] = (bases[left] * np.asarray(row)) @ bases[right].T + (
            outside * free[left] @ own @ free[right].T
        )
    return EffectiveData(graph, sigma_yx, sigma_xx, 1.0), bases


def whitened(pathways, modes):
    return {(p, p): np.ones(modes) for p in range(pathways)}


def assert_diagonal(effective, tolerance=1e-10):
    """What `modes` states, computed from its arrays and not from its `violation`."""
    modes, pathways = effective.modes, effective.architecture.pathways
    assert modes.joint
    assert modes.violation < tolerance
    for basis in modes.bases.values():
        on = basis.any(axis=0).astype(float)
        np.testing.assert_allclose(basis.T @ basis, np.diag(on), atol=tolerance)
    for p, (pathway, sigma) in enumerate(zip(pathways, effective.sigma_yx, strict=True)):
        left, right = modes.bases[pathway.target], modes.bases[pathway.source]
        np.testing.assert_allclose((left * modes.s[p]) @ right.T, sigma, atol=tolerance)
    for (j, p), sigma in effective.sigma_xx.items():
        left, right = (modes.bases[pathways[n].source] for n in (j, p))
        np.testing.assert_allclose(sigma @ right, left * modes.d[j, p], atol=tolerance)
        np.testing.assert_allclose(left.T @ sigma, (right * modes.d[j, p]).T, atol=tolerance)


def test_correlations_are_means_over_samples():
    graph = Architecture(
        nodes={"a": 2, "b": 3, "h": 4, "y": 2, "z": 1},
        edges=(("a", "h"), ("b", "h"), ("h", "y"), ("b", "z")),
    )
    rng = np.random.default_rng(0)
    data = Data(x=rng.normal(size=(6, 5)), y=rng.normal(size=(6, 3)))
    gates = rng.uniform(size=(3, 6))  # a-h-y, b-h-y, b-z
    gates[0, :3], gates[1, 3:] = 0, 0
    effective = effective_data(graph, gates, data)
    assert effective.y_power == pytest.approx((data.y**2).sum(axis=1).mean(), rel=1e-14)
    inputs = [data.x[:, :2], data.x[:, 2:], data.x[:, 2:]]
    outputs = [data.y[:, :2], data.y[:, :2], data.y[:, 2:]]
    for p in range(3):
        one_by_one = [gates[p, n] * np.outer(outputs[p][n], inputs[p][n]) for n in range(6)]
        np.testing.assert_allclose(effective.sigma_yx[p], np.mean(one_by_one, axis=0), atol=1e-15)
    # the first two pathways are never open together, the third has another output
    assert set(effective.sigma_xx) == {(0, 0), (1, 1), (2, 2)}
    for p in range(3):
        one_by_one = [gates[p, n] ** 2 * np.outer(inputs[p][n], inputs[p][n]) for n in range(6)]
        np.testing.assert_allclose(
            effective.sigma_xx[p, p], np.mean(one_by_one, axis=0), atol=1e-15
        )
    gates[1, 5] = 0.5
    together = effective_data(graph, gates, data).sigma_xx
    expected = 0.5 * gates[0, 5] * np.outer(inputs[0][5], inputs[1][5]) / 6
    np.testing.assert_allclose(together[0, 1], expected, atol=1e-15)
    np.testing.assert_allclose(together[1, 0], expected.T, atol=1e-15)


def test_input_and_output_nodes_are_split_where_no_basis_is_shared():
    """Each edge out of an input, and each edge into an output that no sample reaches by two."""
    graph = graph_of("a->h", "b->h", "h->y", "a->y", "a->k", "k->z", "b->z", units=1)
    rng = np.random.default_rng(2)
    data = Data(x=rng.normal(size=(6, 2)), y=rng.normal(size=(6, 2)))
    closed = [pathway.nodes == ("a", "k", "z") for pathway in graph.pathways]
    gates = np.ones((len(closed), 6))
    gates[closed, :3] = 0  # a-k-z and b-z are never open on the same sample
    gates[[pathway.nodes == ("b", "z") for pathway in graph.pathways], 3:] = 0
    copied = effective_data(graph, gates, data).architecture
    assert [pathway.edges for pathway in copied.pathways] == [p.edges for p in graph.pathways]
    assert len({copied.edges[edge][0] for edge in (0, 3, 4)}) == 3  # a
    assert len({copied.edges[edge][0] for edge in (1, 6)}) == 2  # b
    assert len({copied.edges[edge][1] for edge in (5, 6)}) == 2  # z
    assert {copied.edges[edge][1] for edge in (2, 3)} == {"y"}
    assert copied.hidden == graph.hidden


def test_invisible_inputs_are_correlated_with_nothing():
    """The same graph as above, with some units of each input hidden from one edge."""
    graph = Architecture(
        nodes={"a": 2, "b": 3, "h": 4, "y": 2, "z": 1},
        edges=(("a", "h"), ("b", "h"), ("h", "y"), ("b", "z")),
    )
    rng = np.random.default_rng(3)
    data = Data(x=rng.normal(size=(6, 5)), y=rng.normal(size=(6, 3)))
    gates = rng.uniform(size=(3, 6))
    visible = {"a->h": np.array([True, False]), "b->z": np.array([False, False, True])}
    effective = effective_data(graph, gates, data, visible)
    inputs = [data.x[:, :2] * [1, 0], data.x[:, 2:], data.x[:, 2:] * [0, 0, 1]]
    outputs = [data.y[:, :2], data.y[:, :2], data.y[:, 2:]]
    for p in range(3):
        expected = np.mean(
            [g * np.outer(y, x) for g, x, y in zip(gates[p], inputs[p], outputs[p], strict=True)],
            axis=0,
        )
        np.testing.assert_allclose(effective.sigma_yx[p], expected, atol=1e-15)
    for j, p in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2)):
        expected = np.mean(
            [gates[j, n] * gates[p, n] * np.outer(inputs[j][n], inputs[p][n]) for n in range(6)],
            axis=0,
        )
        np.testing.assert_allclose(effective.sigma_xx[j, p], expected, atol=1e-15)
    assert set(effective.sigma_xx) == {(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)}


def test_pathways_without_common_nonzero_inputs_have_no_correlation():
    """Both gates are open, but on each sample one of the pathways receives zeros."""
    graph = graph_of("a->h", "h->y", "a->y", units=2)
    x = np.array([[1.0, 0], [0, 2], [0, 3]])
    data = Data(x=x, y=x)
    visible = {"a->h": np.array([True, False]), "a->y": np.array([False, True])}
    effective = effective_data(graph, np.ones((2, 3)), data, visible)
    assert set(effective.sigma_xx) == {(0, 0), (1, 1)}
    assert len({effective.architecture.edges[edge][1] for edge in (1, 2)}) == 2  # copies of y


@pytest.mark.parametrize("contexts", [3, 4, 5])
def test_modes_of_context_pathways_are_those_of_the_contextual_task(contexts):
    """Pathways open in q of C contexts that receive objects only, on the residual targets.

    By hand: s = h sqrt(q (C - q)/C) along output vectors that overlap, d = q; per sample 1/(8C).
    """
    data = Contextual(name="contextual", contexts=contexts, part="residual").load()
    for q in range(1, contexts):
        network = Gated(
            name="gated",
            hidden=(8,),
            gates=Contexts(name="contexts", open_in=(q,), common=False),
        )
        effective = network.wiring(data).effective
        h = np.sqrt([7, 3, 3, 1, 1, 1, 1])
        for p, sigma in enumerate(effective.sigma_yx):
            s = np.linalg.svd(sigma, compute_uv=False)
            expected = h * np.sqrt(q * (contexts - q) / contexts) / (8 * contexts)
            np.testing.assert_allclose(s[:7], expected, rtol=1e-12)
            np.testing.assert_allclose(s[7:], 0, atol=1e-14)
            objects = q * np.eye(8) / (8 * contexts)
            np.testing.assert_allclose(effective.sigma_xx[p, p][:8, :8], objects, atol=1e-15)
            assert not effective.sigma_xx[p, p][8:].any()


@pytest.mark.parametrize(("columns", "letter"), [((4, 3), "x"), ((5, 2), "y")])
def test_data_of_other_width_are_refused(columns, letter):
    data = Data(x=np.ones((2, columns[0])), y=np.ones((2, columns[1])))
    with pytest.raises(UserError, match=f"units, but {letter} of the dataset has") as error:
        Wiring(chain((5, 3)), {}, data)
    assert error.value.key == "network.nodes"


@st.composite
def tangles(draw):
    """Edges between a few inputs and outputs, direct, through a hidden node, or both."""
    edges = []
    for i in range(draw(st.integers(1, 3))):
        for o in range(draw(st.integers(1, 3))):
            ways = draw(st.sampled_from(["", "direct", "hidden", "direct hidden"]))
            edges += [f"in{i}->out{o}"] * ("direct" in ways)
            edges += [f"in{i}->h{i}{o}", f"h{i}{o}->out{o}"] * ("hidden" in ways)
    assume(edges)
    return edges


@settings(max_examples=60)
@given(
    edges=tangles(),
    modes=st.integers(1, 3),
    seed=st.integers(0, 999),
    outside=st.sampled_from([0.0, 0.3]),
)
def test_planted_modes_are_recovered(edges, modes, seed, outside):
    """Of repeated, negative, weak and vanishing strength, and with correlated inputs."""
    graph, rng = graph_of(*edges), np.random.default_rng(seed)
    targets = [pathway.target for pathway in graph.pathways]
    s = rng.choice([0.0, 0, 1, 1, -1, 2, 0.5, 0.01], size=(len(targets), modes))
    shared = {name: rng.choice([0, 0.5], size=modes) for name in graph.outputs}
    d = {
        (j, p): shared[one] + (j == p) * rng.choice([1, 1, 2], size=modes)
        for j, one in enumerate(targets)
        for p, other in enumerate(targets)
        if one == other
    }
    effective, _ = plant(graph, s, d, seed, outside)
    # hardest: a weak mode that only weak modes distinguish from others
    assert_diagonal(effective, 1e-8)
    # where no mode repeats, strengths are the singular values of each pathway
    for s, sigma in zip(effective.modes.s, effective.sigma_yx, strict=True):
        strengths = np.sort(np.abs(s[np.abs(s) > 1e-9]))
        singular = np.linalg.svd(sigma, compute_uv=False)
        np.testing.assert_allclose(strengths, np.sort(singular[singular > 1e-9]), rtol=1e-8)
    strength = np.sqrt((effective.modes.s**2).sum(axis=0))
    assert (np.diff(strength) <= 1e-12).all()


ONE = np.ones(3)
LADDER = graph_of("a->y", "b->y", "b->z", "c->z")
"""Pathways in order: a->y, b->y, b->z, c->z."""


def test_modes_that_differ_only_at_distant_nodes_are_recovered():
    """At y, all strengths are equal; they differ three correlations away."""
    assert_diagonal(plant(LADDER, [ONE, ONE, ONE, [3.0, 2, 1]], whitened(4, 3))[0])
    spread = whitened(4, 3) | {(3, 3): np.array([1.0, 2, 3])}
    assert_diagonal(plant(LADDER, [ONE, ONE, ONE, ONE], spread)[0])


def test_modes_that_differ_only_by_a_relative_sign_are_recovered():
    graph = graph_of("a->y", "a->h", "h->y")
    effective, bases = plant(graph, [ONE, [1.0, -1, 1]], whitened(2, 3))
    assert_diagonal(effective)
    odd = np.argmin(effective.modes.s.prod(axis=0))
    assert abs(bases["y"][:, 1] @ effective.modes.bases["y"][:, odd]) == pytest.approx(1, abs=1e-10)


def test_an_input_without_any_target_may_still_interfere():
    """A suppressor: b predicts nothing by itself, but correlates with a, which does."""
    graph = graph_of("a->y", "b->y")
    d = whitened(2, 3) | {(0, 1): ONE / 2, (1, 0): ONE / 2}
    effective, bases = plant(graph, [[3.0, 2, 1], 0 * ONE], d)
    assert_diagonal(effective)
    overlap = bases["b"].T @ effective.modes.bases["b"]
    np.testing.assert_allclose(np.abs(overlap), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(np.abs(effective.modes.d[0, 1]), 0.5, rtol=1e-10)


def test_modes_are_recovered_with_cross_terms_of_any_sign():
    """Correlations that make the generic combination of all that acts on y indefinite."""
    graph = graph_of("a->y", "b->y")
    for seed in range(40):
        rng = np.random.default_rng(seed)
        s, d = np.zeros((2, 3)), np.zeros((2, 2, 3))
        for mode in range(3):
            _, axes = np.linalg.eigh(np.cov(rng.normal(size=(2, 9))))
            s[:, mode], d[..., mode] = axes[:, 0], (axes * [1e-3, 1]) @ axes.T
        effective, _ = plant(graph, s, {(j, p): d[j, p] for j in (0, 1) for p in (0, 1)}, seed)
        assert effective.modes.s.shape == (2, 3)
        assert_diagonal(effective)


def test_correlations_of_rounding_size_are_no_violation():
    effective, _ = plant(graph_of("a->y", "b->y"), [[3.0, 2, 1], ONE], whitened(2, 3))
    noise = 1e-17 * np.random.default_rng(1).normal(size=(4, 4))
    quiet = dataclasses.replace(
        effective,
        sigma_yx=(effective.sigma_yx[0], noise),
        sigma_xx=dict(effective.sigma_xx) | {(0, 1): noise, (1, 0): noise.T},
    )
    assert quiet.modes.violation < 1e-13
    np.testing.assert_allclose(quiet.modes.s[1], 0, atol=1e-15)


def test_a_mode_may_belong_to_one_output_node_only():
    s = [[2.0, 1, 0], [0, 0.5, 0], [0, 1.5, 3], [0, 0, 0]]
    effective, _ = plant(LADDER, s, whitened(4, 3))
    assert_diagonal(effective)
    expected = np.array(s)[:, [2, 0, 1]]  # in order of strength over all pathways
    np.testing.assert_allclose(effective.modes.s, expected, atol=1e-12)
    reach = {name: basis.any(axis=0).tolist() for name, basis in effective.modes.bases.items()}
    assert reach["y"] == [False, True, True]
    assert reach["z"] == [True, False, True]


def test_parts_that_share_nothing_are_matched_by_strength():
    graph = graph_of("a->y", "b->z")
    effective, _ = plant(graph, [[1.0, 3, 2], [0.5, 0, 4]], whitened(2, 3))
    assert_diagonal(effective)
    np.testing.assert_allclose(effective.modes.s, [[3, 2, 1], [4, 0.5, 0]], atol=1e-12)
    assert not effective.modes.bases["z"][:, 2].any()


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1])
def test_a_planted_violation_is_reported_with_its_size(size):
    """An entry off the diagonal of one of four correlations that are otherwise distinct."""
    effective, bases = plant(LADDER, np.tile([3.0, 2, 1], (4, 1)), whitened(4, 3))
    off = size * np.outer(bases["z"][:, 0], bases["c"][:, 2])
    bent = dataclasses.replace(
        effective, sigma_yx=(*effective.sigma_yx[:3], effective.sigma_yx[3] + off)
    )
    assert not bent.modes.joint
    share = size / np.linalg.norm([3, 2, 1])
    # bases adapt, and so may spread the violation over correlations
    assert share / 5 < bent.modes.violation < 5 * share
    off = size * np.outer(bases["a"][:, 0], bases["a"][:, 1])
    sigma_xx = {**effective.sigma_xx, (0, 0): effective.sigma_xx[0, 0] + off + off.T}
    skew = dataclasses.replace(effective, sigma_xx=sigma_xx)
    assert not skew.modes.joint
    assert size / 5 < skew.modes.violation < 5 * size


def test_without_correlations_there_are_no_modes():
    effective, _ = plant(LADDER, np.zeros((4, 3)), {})
    assert effective.modes.s.shape == (4, 0)
    assert effective.modes.joint
