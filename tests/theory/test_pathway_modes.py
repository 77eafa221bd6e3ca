"""The theory of pathway modes against networks trained sample by sample, and in solved cases."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import polar

from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture, chain
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.theory.gated_flow import gated_flow, gated_loss
from neuralrace.theory.modes import deep_mode, mode_loss
from neuralrace.theory.pathway_modes import (
    mean_start,
    pathway_modes_descent,
    pathway_modes_flow,
    weight_start,
)
from neuralrace.theory.tied import tied_gram


class Net:
    """Parallel pathways with any gates and any selection of inputs."""

    def __init__(self, x, y, gates, sees, width):
        self.y, self.shown = y, gates[:, :, None] * x * sees[:, None]
        self.width, samples, count = width, len(x), len(gates)
        nodes = {f"x{p}": x.shape[1] for p in range(count)}
        nodes |= {f"h{p}": width for p in range(count)} | {"y": y.shape[1]}
        edges = [edge for p in range(count) for edge in ((f"x{p}", f"h{p}"), (f"h{p}", "y"))]
        self.effective = EffectiveData(
            Architecture(nodes=nodes, edges=tuple(edges)),
            tuple(y.T @ part / samples for part in self.shown),
            {
                (j, p): left.T @ right / samples
                for j, left in enumerate(self.shown)
                for p, right in enumerate(self.shown)
            },
            float((y**2).sum() / samples),
        )
        self.gates = gates

    def weights(self, seed, scale, runs=()):
        rng, nodes = np.random.default_rng(seed), self.effective.architecture.nodes
        return [
            scale * rng.normal(size=(*runs, nodes[target], nodes[source]))
            for source, target in self.effective.architecture.edges
        ]

    def train(self, weights, learning_rate, steps, every):
        """Losses of gradient descent by forward and backward passes of all samples."""
        encoders, decoders = np.stack(weights[::2]), np.stack(weights[1::2])
        rate, losses = learning_rate / len(self.y), []
        for step in range(steps + 1):
            hidden = self.shown @ encoders.mT
            error = self.y - (self.gates[:, :, None] * (hidden @ decoders.mT)).sum(axis=0)
            if step % every == 0:
                losses.append((error**2).sum() / len(self.y) / 2)
            back = self.gates[:, :, None] * error
            encoders, decoders = (
                encoders + rate * (back @ decoders).mT @ self.shown,
                decoders + rate * back.mT @ hidden,
            )
        return np.array(losses)


def contextual(contexts, open_in, width, objects=4):
    """A common pathway and, for each q, all pathways open in q contexts, which see objects only."""
    tree = [np.kron(np.eye(objects // m), np.ones(m)) for m in (objects, objects // 2, 1)]
    context, item = np.divmod(np.arange(objects * contexts), objects)
    x = np.hstack([np.eye(objects)[item], np.eye(contexts)[context]])
    y = np.vstack(tree).T[item]
    y = np.hstack([y, *(y * (context == c)[:, None] for c in range(contexts))])
    sets = [chosen for q in open_in for chosen in combinations(range(contexts), q)]
    gates = np.stack([np.isin(context, chosen) for chosen in [range(contexts), *sets]])
    sees = (
        np.arange(x.shape[1]) < np.where(np.arange(len(gates)) == 0, x.shape[1], objects)[:, None]
    )
    return Net(x, y, gates.astype(float), sees, width)


def random_net(seed, width=20, pathways=3):
    """Gates between 0 and 1, some of them closed."""
    rng = np.random.default_rng(seed)
    gates = rng.uniform(size=(pathways, 9)) * (rng.uniform(size=(pathways, 9)) < 0.6)
    x, y = rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    return Net(x, y, gates, np.ones((pathways, 4), bool), width)


def gap(ours, theirs):
    return np.abs(ours - theirs).max() / theirs[0]


@pytest.mark.parametrize("open_in", [(2,), (1, 2)])
def test_theory_is_gradient_descent_of_the_full_network(open_in):
    """Three contexts, 60 units per pathway from 1e-4: within 1e-4, where single modes miss 1e-2."""
    net = contextual(3, open_in, width=60)
    weights, rate, steps = net.weights(0, 1e-4), 0.1, 1500
    descent = net.train(weights, rate, steps, every=10)
    assert descent[-1] < 0.02 * descent[0]
    step = np.arange(0, steps + 1, 10)
    start = weight_start(net.effective, weights)
    mean = mean_start(net.effective, [60] * len(net.gates), 1e-4)
    assert gap(pathway_modes_descent(step, rate, net.effective, start).loss, descent) < 1e-4
    assert 1e-3 < gap(pathway_modes_descent(step, rate, net.effective, mean).loss, descent) < 0.04
    # the flow differs by the step, to first order
    flow = pathway_modes_flow(rate * step, net.effective, start).loss
    halved = net.train(weights, rate / 2, 2 * steps, every=20)
    np.testing.assert_allclose(gap(flow, descent) / gap(flow, halved), 2, rtol=0.2)


@pytest.mark.parametrize("seed", [0, 1])
def test_theory_holds_for_any_gates_and_better_for_smaller_starts(seed, monkeypatch):
    """Correlations without common modes, three runs solved at once."""
    sufficient = 1e-7  # far below the bounds on the gaps
    monkeypatch.setattr("neuralrace.theory.pathway_modes.RTOL", sufficient)
    net, time = random_net(seed, width=12), np.linspace(0, 200, 200)
    assert not net.effective.modes.joint
    gaps = []
    for scale in (1e-2, 1e-5):
        weights = net.weights(seed, scale, runs=(3,))
        full = gated_flow(time, net.effective, weights, sufficient, sufficient * scale)
        loss = gated_loss(net.effective, full)
        ours = pathway_modes_flow(time, net.effective, weight_start(net.effective, weights)).loss
        gaps.append(np.mean([gap(*pair) for pair in zip(ours, loss, strict=True)]))
    assert gaps[0] < 0.02
    assert gaps[1] < gaps[0] / 5


def test_pathways_of_all_contexts_but_one_win_the_race():
    """Four contexts: pathways of two are faster on the residual only, and learn too late."""
    net = contextual(4, (2, 3), width=60)
    start = mean_start(net.effective, [60] * len(net.gates), 1e-6)
    learned = pathway_modes_flow(np.array([400.0]), net.effective, start)
    assert learned.loss[0] < 1e-3
    double, triple = np.split(learned.singular_values[0, 1:, 0], [6])
    assert triple.min() > 20 * double.max()


def test_one_open_pathway_with_whitened_inputs_is_solved():
    """Single modes from the mean start, and the exact Gram matrix from interfering weights."""
    rng, time = np.random.default_rng(2), np.linspace(0, 60, 40)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (5, 4))
    s = np.array([1.0, 0.6, 0.6, 0.3])
    x = 2 * v  # sigma_xx = 1
    net = Net(x, 4 * (x / 4 @ v * s) @ u[:, :4].T, np.ones((1, 4)), np.ones((1, 4), bool), 30)
    np.testing.assert_allclose(net.effective.sigma_yx[0], (u[:, :4] * s) @ v.T, atol=1e-12)
    mean = pathway_modes_flow(time, net.effective, mean_start(net.effective, [30], 1e-3))
    mode = deep_mode(time, s, np.ones(4), np.full(4, 15e-6))
    np.testing.assert_allclose(mean.singular_values[:, 0], mode, rtol=1e-6)
    y_power = net.effective.y_power
    np.testing.assert_allclose(mean.loss, mode_loss(mode, s, np.ones(4), y_power), atol=1e-7)
    weights = net.weights(5, 0.05)
    ours = pathway_modes_flow(time, net.effective, weight_start(net.effective, weights))
    grows = (weights[0] @ v + weights[1].T @ u[:, :4]) / 2
    gram = tied_gram(time, grows.T, np.diag(s))
    exact = y_power / 2 - np.einsum("tkk,k->t", gram, s) + (gram**2).sum((1, 2)) / 2
    np.testing.assert_allclose(ours.loss, exact, atol=1e-7)
    np.testing.assert_allclose(
        ours.singular_values[:, 0], np.linalg.svd(gram, compute_uv=False), atol=1e-7
    )


@settings(max_examples=20)
@given(seed=st.integers(0, 99), width=st.sampled_from([1, 2, 20]))
def test_weight_start_needs_no_basis(seed, width):
    """Encoder and decoder by the polar decomposition of sigma_yx, without singular vectors."""
    net = contextual(3, (2,), width) if seed % 2 else random_net(seed, width)
    weights = net.weights(seed, 1.0)
    start = weight_start(net.effective, weights)
    for p, sigma in enumerate(net.effective.sigma_yx):
        onto_inputs = np.linalg.pinv(sigma, rtol=1e-6) @ sigma
        # the partial isometry: an isometry may do as it likes where sigma vanishes
        isometry = polar(sigma)[0] @ onto_inputs
        grows = (weights[2 * p] @ onto_inputs + weights[2 * p + 1].T @ isometry) / 2
        encoder, decoder = start[2 * p : 2 * p + 2]
        assert len(encoder) == min(width, np.linalg.matrix_rank(sigma, rtol=1e-6))
        np.testing.assert_allclose(encoder.T @ encoder, grows.T @ grows, atol=1e-9)
        np.testing.assert_allclose(decoder @ encoder, isometry @ grows.T @ grows, atol=1e-9)
        np.testing.assert_allclose(encoder @ encoder.T, decoder.T @ decoder, atol=1e-9)


def test_mean_start_is_the_mean_of_weight_starts():
    net, scales = contextual(3, (2,), width=400), np.array([1e-4, 1e-2])
    mean = mean_start(net.effective, [400] * 4, scales)
    many = weight_start(net.effective, net.weights(0, 1e-2, runs=(20,)))
    for encoder, decoder, ours in zip(mean[::2], mean[1::2], many[::2], strict=True):
        count = ours.shape[-2]
        assert encoder.shape == (2, count, 7)
        strengths = np.linalg.svd(decoder @ encoder, compute_uv=False)[:, :count]
        np.testing.assert_allclose(strengths, np.tile(200 * scales[:, None] ** 2, count))
        power = (ours**2).sum((-2, -1)).mean() / count
        np.testing.assert_allclose(power, strengths[1, 0], rtol=0.03)


def test_singular_values_are_counted_by_pathway_and_sorted():
    net = contextual(3, (1, 2), width=9)
    start = weight_start(net.effective, net.weights(1, 1e-3, runs=(2,)))
    assert [encoder.shape[-2] for encoder in start[::2]] == [6, 4, 4, 4, 4, 4, 4]
    learning = pathway_modes_flow(np.array([0.0, 5.0, 40.0]), net.effective, start)
    assert learning.loss.shape == (2, 3)
    assert learning.singular_values.shape == (2, 3, 7, 6)
    assert np.all(np.diff(learning.singular_values) <= 0)
    assert np.all(learning.singular_values[..., 1:, 4:] == 0)
    assert np.all(learning.singular_values[..., 1:, :4] > 0)
    first = start[1][0] @ start[0][0]
    np.testing.assert_allclose(
        learning.singular_values[0, 0, 0], np.linalg.svd(first, compute_uv=False)[:6], rtol=1e-8
    )


def test_runs_are_independent():
    net, time = contextual(3, (2,), width=12), np.linspace(0, 150, 30)
    weights = net.weights(3, 1e-3, runs=(2, 2))
    together = pathway_modes_flow(time, net.effective, weight_start(net.effective, weights))
    alone = [w[1, 0] for w in weights]
    one = pathway_modes_flow(time, net.effective, weight_start(net.effective, alone))
    np.testing.assert_allclose(together.loss[1, 0], one.loss, atol=1e-7)
    np.testing.assert_allclose(together.singular_values[1, 0], one.singular_values, atol=1e-5)
    assert np.abs(np.diff(together.loss[:, 0], axis=0)).max() > 1e-3


def test_a_closed_pathway_and_a_start_of_zero_are_solved():
    net = contextual(2, (1,), width=5)
    closed = Net(net.shown[0], net.y, net.gates * [[1], [0], [1]], np.ones((3, 6), bool), 5)
    time = np.array([0.0, 30.0])
    start = weight_start(closed.effective, closed.weights(0, 1e-3))
    assert [len(encoder) for encoder in start[::2]] == [5, 1, 4]
    learning = pathway_modes_flow(time, closed.effective, start)
    np.testing.assert_allclose(*learning.singular_values[:, 1], rtol=1e-6)
    still = pathway_modes_flow(time, closed.effective, [0 * w for w in start])
    np.testing.assert_array_equal(still.singular_values, 0)
    np.testing.assert_allclose(still.loss, closed.effective.y_power / 2)


def test_diverging_descent_returns_infinite_and_nan_values():
    net = contextual(2, (1,), width=5)
    start = weight_start(net.effective, net.weights(0, 1.0))
    learning = pathway_modes_descent(np.array([0, 50]), 50.0, net.effective, start)
    assert np.isfinite(learning.loss[0])
    assert not np.isfinite(learning.loss[1])
    assert np.isnan(learning.singular_values[1, 0]).all()


def test_other_architectures_and_wrong_starts_are_refused():
    net = contextual(2, (1,), width=5)
    architectures = (
        chain((6, 3, 3, 14)),
        Architecture(
            nodes={"a": 2, "b": 2, "h": 3, "y": 14}, edges=(("a", "h"), ("b", "h"), ("h", "y"))
        ),
    )
    for architecture in architectures:
        other = dataclasses.replace(net.effective, architecture=architecture)
        weights = [np.zeros((2, 2))] * len(architecture.edges)
        for attempt in (
            lambda other=other, w=weights: weight_start(other, w),
            lambda other=other: mean_start(other, [3], 1.0),
            lambda other=other, w=weights: pathway_modes_flow(np.ones(1), other, w),
        ):
            with pytest.raises(UserError, match="side by side"):
                attempt()
    start = mean_start(net.effective, [5, 5, 5], 1e-3)
    with pytest.raises(ValueError, match="weights for 6 edges"):
        pathway_modes_flow(np.ones(1), net.effective, [*start, start[0]])
    with pytest.raises(ValueError, match="must increase"):
        pathway_modes_flow(np.zeros(2), net.effective, start)
