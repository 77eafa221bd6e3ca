"""The neural race reduction, against full networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture, chain
from neuralrace.networks.gates.effective import effective_data
from neuralrace.theory.gated_flow import gated_descent, gated_flow, gated_loss, pathway_maps
from neuralrace.theory.modes import deep_mode, layered_mode_flow
from neuralrace.theory.reduction import (
    aligned_strengths,
    reduction_descent,
    reduction_flow,
    reduction_loss,
)

GRAPH = Architecture(
    nodes={"a": 5, "b": 4, "h": 6, "k": 5, "y": 4, "z": 3},
    edges=(("a", "h"), ("b", "h"), ("h", "k"), ("k", "y"), ("k", "z"), ("a", "k"), ("h", "y"),
           ("b", "z")),
)  # fmt: skip


def orthonormal(rng, units, modes):
    return np.linalg.qr(rng.normal(size=(units, units)))[0][:, :modes]


def race(seed=0):
    """Three contexts, the last with both inputs on; node z does not carry one of the modes."""
    rng = np.random.default_rng(seed)
    items = orthonormal(rng, 3, 3)
    xa, xb = (items @ orthonormal(rng, GRAPH.nodes[n], 3).T for n in "ab")
    strengths = {"y": np.array([[6.0, 4, 2], [0, 0, 0], [5, -2, 3]]),
                 "z": np.array([[0.0, 0, 0], [4, 0, 2.5], [3, 0, -1]])}  # fmt: skip
    targets = {}
    for name, by_context in strengths.items():
        basis = orthonormal(rng, GRAPH.nodes[name], 3)
        targets[name] = np.vstack([(items * s) @ basis.T for s in by_context])
    on = {"a": [1, 0, 1], "b": [0, 1, 1], "h": [1, 1, 0.5], "k": [0.8, 1, 1],
          "y": [1, 0, 1], "z": [0, 1, 1]}  # fmt: skip
    x = np.hstack([np.vstack([xa] * 3), np.vstack([xb] * 3)])
    gates = np.stack([np.prod([on[name] for name in pathway.nodes], axis=0)
                      for pathway in GRAPH.pathways])  # fmt: skip
    data = Data(x=x, y=np.hstack([targets["y"], targets["z"]]))
    return effective_data(GRAPH, np.repeat(gates, 3, axis=1), data)


EFFECTIVE = race()


def random_bases(effective, rng, runs=()):
    """Bases of all nodes: bases of the modes, and random ones at hidden nodes."""
    modes = effective.modes
    return {
        name: np.broadcast_to(modes.bases[name], (*runs, *modes.bases[name].shape))
        if name in modes.bases
        else np.linalg.qr(rng.normal(size=(*runs, units, units)))[0][..., : modes.s.shape[1]]
        for name, units in effective.architecture.nodes.items()
    }


def random_strengths(effective, rng, runs=(), scale=0.5):
    """Strengths of both signs, 0 where a boundary node does not carry a mode."""
    graph, modes = effective.architecture, effective.modes
    strengths = scale * rng.uniform(0.2, 1, size=(*runs, len(graph.edges), modes.s.shape[1]))
    for edge, (source, target) in enumerate(graph.edges):
        # the first edge into a hidden node says which way its directions point
        if target in graph.outputs or edge != graph.incoming[target][0]:
            strengths[..., edge, :] *= rng.choice([-1, 1], size=strengths[..., edge, :].shape)
        for name in {source, target} & set(modes.bases):
            strengths[..., edge, :] *= modes.bases[name].any(axis=0)
    return strengths


def compose(effective, bases, strengths):
    """Weights R_target B R_source^T."""
    return [
        (bases[target] * strengths[..., edge, None, :]) @ bases[source].mT
        for edge, (source, target) in enumerate(effective.architecture.edges)
    ]


def aligned(effective, rng, runs=(), scale=0.5):
    bases = random_bases(effective, rng, runs)
    strengths = random_strengths(effective, rng, runs, scale)
    return bases, strengths, compose(effective, bases, strengths)


def test_the_race_is_not_trivial():
    """It has cross terms, a mode that an output node lacks, and entries of both signs."""
    modes, pathways = EFFECTIVE.modes, GRAPH.pathways
    assert modes.joint
    assert modes.s.shape == (9, 3)
    assert (modes.s < -0.1).any()
    cross = [modes.d[j, p] for j in range(9) for p in range(9)
             if pathways[j].source != pathways[p].source
             and pathways[j].target == pathways[p].target == "y"]  # fmt: skip
    assert len(cross) == 12
    assert np.abs(cross).min() > 0.01
    assert (~modes.bases["z"].any(axis=0)).sum() == 1


@pytest.mark.parametrize("kind", ["descent", "flow"])
def test_full_network_follows_its_reduction(kind):
    bases, start, weights = aligned(EFFECTIVE, np.random.default_rng(1), runs=(2,))
    if kind == "descent":  # the same integrator and step: equal to rounding
        step, tolerance = np.array([0, 1, 10, 100, 400]), 1e-12
        reduced = reduction_descent(step, 0.05, EFFECTIVE, start)
        full = gated_descent(step, 0.05, EFFECTIVE, weights)
    else:
        time, tolerance = np.array([0.0, 0.05, 0.5, 5.0, 20.0]), 1e-10
        reduced = reduction_flow(time, EFFECTIVE, start)
        full = gated_flow(time, EFFECTIVE, weights)
    assert reduced.shape == (2, 5, 8, 3)
    over_time = {name: basis[:, None] for name, basis in bases.items()}
    for ours, theirs in zip(full, compose(EFFECTIVE, over_time, reduced), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    loss = reduction_loss(EFFECTIVE, reduced)
    np.testing.assert_allclose(loss, gated_loss(EFFECTIVE, full), rtol=0, atol=tolerance)
    assert (np.diff(loss) < 0).all()
    # every edge takes part
    assert (np.abs(reduced[:, -1] - reduced[:, 0]).max(axis=-1) > 0.1).all()


@settings(max_examples=8)
@given(
    widths=st.lists(st.integers(3, 5), min_size=2, max_size=5),
    seed=st.integers(0, 99),
    size=st.floats(-3, 0).map(lambda log: 10**log),
)
def test_a_chain_is_the_layered_mode_flow(widths, seed, size):
    rng = np.random.default_rng(seed)
    s = np.array([3.0, 2.0, 0.5])
    x = np.sqrt(widths[0]) * orthonormal(rng, widths[0], widths[0])
    u, v = orthonormal(rng, widths[-1], 3), orthonormal(rng, widths[0], 3)
    effective = effective_data(
        chain(tuple(widths)), np.ones((1, len(x))), Data(x=x, y=x @ (v * s) @ u.T)
    )
    np.testing.assert_allclose(effective.modes.s, s[None], rtol=1e-12)
    layers = size * rng.uniform(0.5, 1, size=(2, len(widths) - 1, 3))
    time = np.array([0.0, 0.3, 2.0, 9.0])
    ours = reduction_flow(time, effective, layers)
    np.testing.assert_allclose(ours, layered_mode_flow(time, s, layers), rtol=1e-7, atol=1e-12)


def test_pathways_of_one_example_each_learn_by_the_closed_form():
    """XoR has four pathways that share the input and output node but no input basis."""
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    edges = [edge for n in range(4) for edge in (("x", f"h{n}"), (f"h{n}", "y"))]
    graph = Architecture(
        nodes={"x": 2, "y": 1} | {f"h{n}": 3 for n in range(4)}, edges=tuple(edges)
    )
    effective = effective_data(graph, np.eye(4), Data(x=x, y=-x.prod(axis=1, keepdims=True)))
    np.testing.assert_allclose(effective.modes.s, np.full((4, 1), np.sqrt(2) / 4), rtol=1e-12)
    a0, time = np.array([1e-3, 2e-3, 0.1, 0.5]), np.array([0.0, 1.0, 5.0, 20.0])
    path = reduction_flow(time, effective, np.sqrt(np.repeat(a0, 2))[:, None])
    a = path[:, ::2, 0] * path[:, 1::2, 0]
    np.testing.assert_allclose(
        a, deep_mode(time, np.full(4, np.sqrt(2) / 4), np.full(4, 0.5), a0), rtol=1e-9
    )
    loss = 0.5 * ((1 - np.sqrt(2) * a) ** 2).mean(axis=1)
    np.testing.assert_allclose(reduction_loss(effective, path), loss, atol=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 999))
def test_strengths_are_read_from_weights(seed):
    rng = np.random.default_rng(seed)
    bases, strengths, weights = aligned(EFFECTIVE, rng, runs=(2, 2))
    read = aligned_strengths(EFFECTIVE, weights, 1e-12)
    np.testing.assert_allclose(read, strengths, rtol=0, atol=1e-13)
    # without one edge, hidden directions and their signs come from elsewhere
    strengths[..., rng.integers(len(weights)), :] = 0
    weights = compose(EFFECTIVE, bases, strengths)
    read = aligned_strengths(EFFECTIVE, weights, 1e-12)
    np.testing.assert_allclose(np.abs(read), np.abs(strengths), rtol=0, atol=1e-13)
    graph = EFFECTIVE.architecture
    for pathway, ours in zip(graph.pathways, pathway_maps(graph, weights), strict=True):
        product = read[..., list(pathway.edges), :].prod(axis=-2)
        left, right = (EFFECTIVE.modes.bases[name] for name in (pathway.target, pathway.source))
        np.testing.assert_allclose((left * product[..., None, :]) @ right.T, ours, atol=1e-13)


def test_decoders_alone_define_hidden_directions():
    """Both encoders of h are 0: its basis comes from h->k and h->y, hence from the outputs."""
    rng = np.random.default_rng(4)
    bases, strengths, _ = aligned(EFFECTIVE, rng)
    strengths[[0, 1]] = 0
    read = aligned_strengths(EFFECTIVE, compose(EFFECTIVE, bases, strengths), 1e-12)
    np.testing.assert_allclose(np.abs(read), np.abs(strengths), rtol=0, atol=1e-13)


def test_weights_of_zero_have_strength_zero():
    weights = [np.zeros((3, GRAPH.nodes[target], GRAPH.nodes[source]))
               for source, target in GRAPH.edges]  # fmt: skip
    np.testing.assert_array_equal(aligned_strengths(EFFECTIVE, weights, 1e-12), np.zeros((3, 8, 3)))


def test_weights_off_the_modes_are_refused():
    rng = np.random.default_rng(5)
    *_, weights = aligned(EFFECTIVE, rng)
    bent = weights.copy()
    bent[3] = bent[3] + 1e-4 * rng.normal(size=bent[3].shape)
    with pytest.raises(UserError, match=r"solutions: the weights of k->y are not aligned .* up to"):
        aligned_strengths(EFFECTIVE, bent, 1e-8)
    assert aligned_strengths(EFFECTIVE, bent, 1e-2).shape == (8, 3)
    # hidden directions that are not orthogonal let modes interfere
    graph = chain((3, 4, 3))
    x = np.eye(3)
    effective = effective_data(graph, np.ones((1, 3)), Data(x=x, y=x * [3.0, 2.0, 1.0]))
    slanted = [np.vstack([[[1.0, 0.6, 0], [0, 0.8, 0], [0, 0, 1]], np.zeros((1, 3))])]
    decoder = [np.zeros((3, 4))]
    with pytest.raises(UserError, match=r"two modes in 1 have a cosine of 6\.0e-01"):
        aligned_strengths(effective, [*slanted, *decoder], 1e-8)


def test_data_without_common_modes_are_refused_with_the_size():
    rng = np.random.default_rng(6)
    graph = chain((3, 3, 2))
    data = Data(x=rng.normal(size=(9, 3)), y=rng.normal(size=(9, 2)))
    effective = effective_data(graph, np.ones((1, 9)), data)
    assert not effective.modes.joint
    strengths = np.ones((2, 2))
    for call in (
        lambda: reduction_flow(np.array([1.0]), effective, strengths),
        lambda: reduction_descent(np.array([1]), 0.1, effective, strengths),
        lambda: reduction_loss(effective, strengths),
        lambda: aligned_strengths(effective, [np.ones((3, 3)), np.ones((2, 3))], 1e-8),
    ):
        with pytest.raises(UserError, match="not diagonal in common bases") as error:
            call()
        assert error.value.key == "solutions"
        assert f"{effective.modes.violation:.1e}" in error.value.problem


def test_strengths_must_fit():
    with pytest.raises(ValueError, match="strengths of 3 edges and 8 modes; there are 8 edges"):
        reduction_loss(EFFECTIVE, np.ones((3, 8)))
    with pytest.raises(ValueError, match="step must not"):
        reduction_descent(np.array([2, 1]), 0.1, EFFECTIVE, np.ones((8, 3)))
    with pytest.raises(ValueError, match="time must increase"):
        reduction_flow(np.array([-1.0]), EFFECTIVE, np.ones((8, 3)))
