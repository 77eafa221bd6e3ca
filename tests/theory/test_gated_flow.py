"""Flow and descent of gated networks, against forward passes of the networks by sample."""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config

from neuralrace.datasets import Data
from neuralrace.networks.gates.architecture import Architecture, chain
from neuralrace.networks.gates.effective import effective_data
from neuralrace.theory.gated_flow import (
    gated_descent,
    gated_flow,
    gated_gradient,
    gated_loss,
    pathway_maps,
)
from neuralrace.theory.gradient_flow import linear_descent, linear_flow

GRAPH = Architecture(
    nodes={"a": 3, "b": 2, "h": 4, "k": 3, "y": 2, "z": 3},
    edges=(("a", "h"), ("b", "h"), ("h", "k"), ("k", "y"), ("k", "z"), ("a", "k"), ("h", "y"),
           ("b", "z")),
)  # fmt: skip


class Net:
    """A graph with random real gates on all nodes and edges, and random samples."""

    def __init__(self, graph, seed, samples=7):
        rng = np.random.default_rng(seed)
        self.graph = graph
        self.nodes = {name: rng.uniform(size=samples) for name in graph.nodes}
        self.edges = rng.uniform(size=(len(graph.edges), samples))
        self.x = {name: rng.normal(size=(samples, graph.nodes[name])) for name in graph.inputs}
        self.y = {name: rng.normal(size=(samples, graph.nodes[name])) for name in graph.outputs}
        gates = np.stack([
            np.prod([self.nodes[name] for name in pathway.nodes], axis=0)
            * self.edges[list(pathway.edges)].prod(axis=0)
            for pathway in graph.pathways
        ])  # fmt: skip
        x, y = (np.hstack(list(side.values())) for side in (self.x, self.y))
        self.effective = effective_data(graph, gates, Data(x=x, y=y))

    def weights(self, seed, runs=(), scale=0.7):
        rng = np.random.default_rng([seed, 1])
        return [
            scale * rng.normal(size=(*runs, self.graph.nodes[target], self.graph.nodes[source]))
            for source, target in self.graph.edges
        ]

    def loss(self, weights):
        """A forward pass node by node, in which no pathway occurs."""
        activity, loss = {}, 0.0
        for name in self.graph.order:
            drive = self.x.get(name, 0.0)
            for edge in self.graph.incoming[name]:
                source = self.graph.edges[edge][0]
                drive = drive + self.edges[edge][:, None] * (activity[source] @ weights[edge].T)
            activity[name] = self.nodes[name][:, None] * drive
            if name in self.y:
                loss += 0.5 * ((self.y[name] - activity[name]) ** 2).sum(axis=1).mean()
        return loss


def junction_imbalances(graph, weights):
    """At every hidden node, W^T W summed over outgoing edges minus W W^T over incoming edges."""
    return [
        sum(weights[edge].mT @ weights[edge] for edge in graph.outgoing[name])
        - sum(weights[edge] @ weights[edge].mT for edge in graph.incoming[name])
        for name in graph.hidden
    ]


@st.composite
def graphs(draw):
    """Random acyclic graphs in random order, in which every node has an edge."""
    count = draw(st.integers(2, 6))
    later = {n: draw(st.sets(st.integers(n + 1, count - 1), max_size=3)) for n in range(count - 1)}
    edges = {(n, m) for n, targets in later.items() for m in targets}
    for n in range(count):
        if not any(n in edge for edge in edges):
            edges.add((n - 1, n) if n else (0, 1))
    order = draw(st.permutations(range(count)))
    return Architecture(
        nodes={str(n): draw(st.integers(1, 3)) for n in order},
        edges=tuple((str(n), str(m)) for n, m in draw(st.permutations(sorted(edges)))),
    )


@settings(max_examples=12)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_path_sum_is_autodiff_of_the_forward_pass(graph, seed):
    net = Net(graph, seed)
    weights = net.weights(seed)
    with jax.enable_x64(True):
        value, slopes = jax.value_and_grad(net.loss)([jnp.asarray(w) for w in weights])
    np.testing.assert_allclose(gated_loss(net.effective, weights), value, rtol=1e-13)
    for learning, slope in zip(gated_gradient(net.effective, weights), slopes, strict=True):
        np.testing.assert_allclose(learning, -slope, rtol=0, atol=1e-13 * (1 + np.abs(slope).max()))


@settings(max_examples=12)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_every_junction_is_conserved(graph, seed):
    """First-order terms cancel, so that a step changes it by the imbalance of the gradients."""
    net = Net(graph, seed)
    weights, rate = net.weights(seed), 0.1
    step = gated_descent(np.array([1]), rate, net.effective, weights)
    before = junction_imbalances(graph, weights)
    after = junction_imbalances(graph, [w[0] for w in step])
    second = junction_imbalances(graph, gated_gradient(net.effective, weights))
    assert len(before) == len(graph.hidden)
    for old, new, change in zip(before, after, second, strict=True):
        np.testing.assert_allclose(new, old + rate**2 * change, rtol=0, atol=1e-12)


def test_flow_conserves_junctions_and_lowers_the_loss():
    net = Net(GRAPH, 3)
    weights = net.weights(3, runs=(2,))
    time = np.array([0.0, 0.5, 3.0, 20.0])
    path = gated_flow(time, net.effective, weights)
    for start, name, kept in zip(
        junction_imbalances(GRAPH, weights), GRAPH.hidden, junction_imbalances(GRAPH, path),
        strict=True,
    ):  # fmt: skip
        assert kept.shape == (2, 4, GRAPH.nodes[name], GRAPH.nodes[name])
        np.testing.assert_allclose(kept, np.broadcast_to(start[:, None], kept.shape), atol=1e-10)
        assert np.abs(start).max() > 0.1
    loss = gated_loss(net.effective, path)
    assert loss.shape == (2, 4)
    assert (np.diff(loss) < 0).all()


def test_a_chain_with_open_gates_is_the_layered_network():
    graph, rng = chain((4, 3, 5, 2)), np.random.default_rng(4)
    data = Data(x=rng.normal(size=(20, 4)), y=rng.normal(size=(20, 2)))
    effective = effective_data(graph, np.ones((1, 20)), data)
    weights = [0.5 * rng.normal(size=(3, n, m)) for m, n in ((4, 3), (3, 5), (5, 2))]
    time, step = np.array([0.0, 1.0, 5.0]), np.array([0, 3, 3, 40])
    sigmas = data.sigma_yx, data.sigma_xx
    for ours, theirs, atol in (
        (gated_flow(time, effective, weights), linear_flow(time, weights, *sigmas), 1e-11),
        (gated_descent(step, 0.1, effective, weights),
         linear_descent(step, 0.1, weights, *sigmas), 1e-14),
        (pathway_maps(graph, weights), [reduce(lambda below, w: w @ below, weights)], 1e-15),
    ):  # fmt: skip
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def test_flow_is_the_limit_of_descent():
    """Two Richardson extrapolations over halved learning rates meet the flow."""
    net = Net(GRAPH, 5)
    weights = net.weights(5)
    flow = gated_flow(np.array([2.0]), net.effective, weights)
    fine, finer, finest = (
        gated_descent(np.array([2 * n]), 1 / n, net.effective, weights) for n in (50, 100, 200)
    )
    for exact, a, b, c in zip(flow, fine, finer, finest, strict=True):
        error = np.abs((8 * c - 6 * b + a) / 3 - exact).max()
        assert error < 1e-3 * np.abs(c - exact).max()


def test_runs_do_not_touch_each_other():
    net = Net(GRAPH, 6)
    weights = net.weights(6, runs=(2, 2))
    weights = [w * np.array([1.0, 1e3])[:, None, None, None] for w in weights]
    together = gated_descent(np.array([0, 30]), 0.05, net.effective, weights)
    alone = gated_descent(np.array([0, 30]), 0.05, net.effective, [w[0, 1] for w in weights])
    for both, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(both[0, 1], one, rtol=0, atol=1e-13)
    assert not np.isfinite(together[0][1, :, 1]).any()  # divergence is a result
    time = np.array([0.0, 2.0])
    calm = [w[0] for w in weights]
    together = gated_flow(time, net.effective, calm)
    alone = gated_flow(time, net.effective, [w[1] for w in calm])
    for both, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(both[1], one, rtol=0, atol=1e-11)


def test_a_pathway_that_never_opens_moves_no_weight():
    graph = Architecture(nodes={"a": 2, "b": 3, "y": 2}, edges=(("a", "y"), ("b", "y")))
    rng = np.random.default_rng(7)
    data = Data(x=rng.normal(size=(5, 5)), y=rng.normal(size=(5, 2)))
    effective = effective_data(graph, np.array([[1.0] * 5, [0.0] * 5]), data)
    weights = [rng.normal(size=(2, 2)), rng.normal(size=(2, 3))]
    open_, closed = gated_gradient(effective, weights)
    assert np.abs(open_).min() > 0
    np.testing.assert_array_equal(closed, 0)


def test_bad_input_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    net = Net(GRAPH, 8)
    weights, time, step = net.weights(8), np.array([0.0, 1.0]), np.array([0, 1])
    with pytest.raises(ValueError, match="7 weights for 8 edges"):
        pathway_maps(GRAPH, weights[1:])
    with pytest.raises(ValueError, match=r"weights of b->h are \(4, 3\), not \(4, 2\)"):
        pathway_maps(GRAPH, [weights[0], weights[0], *weights[2:]])
    with pytest.raises(ValueError, match="5 weights for 8 edges"):
        gated_loss(net.effective, weights[3:])
    with pytest.raises(ValueError, match="differ in runs"):
        gated_flow(time, net.effective, [weights[0][None], *weights[1:]])
    with pytest.raises(ValueError, match="time must increase"):
        gated_flow(time - 1, net.effective, weights)
    with pytest.raises(ValueError, match="time must increase"):
        gated_flow(np.array([0.5, 0.5]), net.effective, weights)
    with pytest.raises(ValueError, match="step must not"):
        gated_descent(step[::-1], 0.1, net.effective, weights)


def test_solver_failure_is_reported():
    net = Net(GRAPH, 9)
    weights = [1e160 * w for w in net.weights(9)]
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="not solved to t = 1"):
        gated_flow(np.array([1.0]), net.effective, weights)
