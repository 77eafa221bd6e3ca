"""Balance of adjacent layers, against integrated flows, descent and random matrices."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from neuralrace.theory.balance import (
    conservation_residual_as_written,
    expected_imbalance,
    glorot_squared_norm,
    imbalance,
    imbalances,
    norm_gap,
    norm_gap_bound,
    spectral_gap_bound,
    spectral_gap_bound_as_written,
)

SHAPES = [(8, 10), (4, 8), (3, 4)]
SIGMA_YX = np.random.default_rng(0).normal(size=(3, 10))


def any_pair_gap_bound(traces):
    """Constants of corollary 2.1 for every pair of layers, (*runs, layer, layer).

    The traces telescope, |W_k|_F^2 - |W_l|_F^2 = sum_{j=l}^{k-1} tr C_j, so the constant of a
    distant pair needs no sum of adjacent bounds and can be smaller than any of them.
    """
    from_first = np.cumsum(traces, axis=-1)
    offsets = np.concatenate([np.zeros_like(from_first[..., :1]), from_first], axis=-1)
    return norm_gap_bound(offsets[..., None, :] - offsets[..., :, None])


def initial_weights(seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) * np.sqrt(2 / sum(s)) for s in SHAPES]


def rates(w1, w2, w3):
    error = SIGMA_YX - w3 @ w2 @ w1
    return [(w3 @ w2).T @ error, w3.T @ error @ w1.T, error @ (w2 @ w1).T]


@pytest.fixture(scope="module")
def trajectory():
    """Weights of a three-layer linear net along gradient flow, each (time, out, in)."""
    cuts = np.cumsum([np.prod(s) for s in SHAPES])[:-1]

    def unpack(z):
        return [part.reshape(s) for part, s in zip(np.split(z, cuts), SHAPES, strict=True)]

    def velocity(_, z):
        return np.concatenate([r.ravel() for r in rates(*unpack(z))])

    start = np.concatenate([w.ravel() for w in initial_weights()])
    times = np.linspace(0, 5, 30)
    z = solve_ivp(velocity, (0, 5), start, "DOP853", t_eval=times, rtol=1e-11, atol=1e-12).y
    states = [unpack(column) for column in z.T]
    return [np.stack(layer) for layer in zip(*states, strict=True)]


def frobenius(w):
    return np.linalg.norm(w, axis=(-2, -1))


def traces(weights):
    return np.stack([np.trace(c, axis1=-2, axis2=-1) for c in imbalances(weights)], axis=-1)


def test_flow_conserves_the_imbalance_and_eq8_holds_with_the_other_sign(trajectory):
    for below, above in pairwise(trajectory):
        c = imbalance(below, above)
        assert np.abs(imbalance(below, above) - c[0]).max() < 1e-9
        as_written = conservation_residual_as_written(below, above, c[0])
        np.testing.assert_allclose(as_written, np.broadcast_to(-2 * c[0], c.shape), atol=1e-9)
        assert np.ptp(frobenius(below)) > 0.5, (
            "the layers must have moved for this to mean anything"
        )


def test_one_descent_step_drifts_by_the_imbalance_of_the_gradients():
    weights, lr = initial_weights(), 0.05
    velocity = rates(*weights)
    moved = [w + lr * v for w, v in zip(weights, velocity, strict=True)]
    for before, after, predicted in zip(
        imbalances(weights), imbalances(moved), imbalances(velocity), strict=True
    ):
        np.testing.assert_allclose(after - before, lr**2 * predicted, atol=1e-13)


def test_descent_drift_over_a_fixed_flow_time_is_first_order_in_the_learning_rate():
    learning_rates = 2.0 ** -np.arange(7, 11)
    drift = []
    for lr in learning_rates:
        weights = initial_weights()
        start = imbalances(weights)
        for _ in range(int(1 / lr)):
            weights = [w + lr * v for w, v in zip(weights, rates(*weights), strict=True)]
        drift.append(
            max(frobenius(c - c0) for c, c0 in zip(imbalances(weights), start, strict=True))
        )
    slope = np.polyfit(np.log(learning_rates), np.log(drift), 1)[0]
    assert slope == pytest.approx(1, abs=0.05)


def test_norm_gap_from_the_initial_trace_along_the_flow(trajectory):
    norms = np.stack([frobenius(w) for w in trajectory], axis=-1)
    measured = np.abs(norms[:, 1:] - norms[:, :-1])
    initial = traces(trajectory)[0]
    np.testing.assert_allclose(norm_gap(initial, norms[:, 1:] + norms[:, :-1]), measured, atol=1e-9)
    assert (np.ptp(measured, axis=0) > 0.1 * measured[0]).all(), "the gap itself is not invariant"
    assert (measured <= norm_gap_bound(initial)).all()


def test_any_pair_bound_holds_along_the_flow_and_telescopes(trajectory):
    norms = np.stack([frobenius(w) for w in trajectory], axis=-1)
    bound = any_pair_gap_bound(traces(trajectory)[0])
    gaps = np.abs(norms[:, :, None] - norms[:, None, :])
    assert (gaps <= bound + 1e-12).all()
    squares = norms[0] ** 2
    np.testing.assert_allclose(bound**2, np.abs(squares[:, None] - squares), atol=1e-12)
    runs = np.stack([traces(initial_weights(s)) for s in range(6)]).reshape(2, 3, 2)
    np.testing.assert_array_equal(any_pair_gap_bound(runs)[1, 2], any_pair_gap_bound(runs[1, 2]))


def test_norm_gap_bound_is_attained_by_a_vanishing_layer():
    assert norm_gap(9.0, 3.0) == norm_gap_bound(9.0) == 3.0


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    below=st.integers(1, 6),
    mid=st.integers(1, 6),
    above=st.integers(1, 6),
    log_scale=st.floats(-3, 3),
)
def test_gap_bounds_hold_for_any_pair_of_matrices(seed, below, mid, above, log_scale):
    rng = np.random.default_rng(seed)
    scale = 10**log_scale
    lower = scale * rng.normal(size=(mid, below))
    upper = scale * rng.exponential() * rng.normal(size=(above, mid))
    c = imbalance(lower, upper)
    spectral = abs(np.linalg.norm(lower, 2) - np.linalg.norm(upper, 2))
    gap = abs(frobenius(lower) - frobenius(upper))
    slack = 1 + 1e-12
    assert spectral <= spectral_gap_bound(c) * slack + 1e-12 * scale
    assert gap <= norm_gap_bound(np.trace(c)) * slack + 1e-12 * scale
    # what eq. 12 can be replaced by: |tr C| <= n |C|_2
    assert gap <= np.sqrt(mid) * spectral_gap_bound(c) * slack + 1e-12 * scale


def test_eq11_as_written_fails_for_small_weights():
    lower, upper = 0.1 * np.eye(2), 0.2 * np.eye(2)
    c = imbalance(lower, upper)
    assert spectral_gap_bound_as_written(c) == pytest.approx(0.03)
    assert spectral_gap_bound_as_written(c) < 0.1 < spectral_gap_bound(c)


def test_semi_orthogonal_layers_are_not_balanced():
    rng = np.random.default_rng(2)
    lower = np.linalg.qr(rng.normal(size=(10, 6)))[0].T
    upper = np.linalg.qr(rng.normal(size=(6, 3)))[0].T
    # C = (projector of rank 3) - I_6
    assert frobenius(imbalance(lower, upper)) == pytest.approx(np.sqrt(3))


def test_common_singular_values_and_aligned_bases_are_balanced():
    rng = np.random.default_rng(3)
    v, u, out = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (10, 6, 3))
    s = np.diag([2.0, 1.0, 0.5])
    lower, upper = u @ s @ v.T, out @ s @ u.T
    np.testing.assert_allclose(imbalance(lower, upper), 0, atol=1e-14)
    assert frobenius(lower) == pytest.approx(frobenius(upper))


def sampled_imbalance(sampler, shapes, variances, draws=20_000):
    lower, upper = (
        np.sqrt(v) * sampler(size=(draws, *s)) for v, s in zip(variances, shapes, strict=True)
    )
    c = imbalance(lower, upper)
    squares = np.sum(c**2, axis=(-2, -1))
    return c, squares.mean(), squares.std() / np.sqrt(draws)


def normal(size):
    return np.random.default_rng(4).normal(size=size)


def uniform(size):
    return np.random.default_rng(5).uniform(-np.sqrt(3), np.sqrt(3), size=size)


@pytest.mark.parametrize(("sampler", "kurtosis"), [(normal, 0.0), (uniform, -1.2)])
@pytest.mark.parametrize("law", ["paper", "glorot"])
def test_expected_imbalance_against_sampling(sampler, kurtosis, law):
    n_below, n_mid, n_above, beta = 7, 5, 3, 1.7
    shapes = [(n_mid, n_below), (n_above, n_mid)]
    if law == "paper":
        squared = [beta, beta]
    else:
        squared = [glorot_squared_norm(n_below, n_mid), glorot_squared_norm(n_mid, n_above)]
    variances = [q / np.prod(s) for q, s in zip(squared, shapes, strict=True)]
    c, mean, error = sampled_imbalance(sampler, shapes, variances)
    assert expected_imbalance(*squared, n_below, n_mid, n_above, kurtosis) == pytest.approx(
        mean, abs=4 * error
    )
    if law == "paper":  # E C = 0 and yet E|C|_F > 0: the gap in corollary 2.3
        assert np.abs(c.mean(axis=0)).max() < 4 * c.std(axis=0).max() / np.sqrt(len(c))
        assert frobenius(c).min() > 0.1


def test_expected_imbalance_in_the_form_of_the_papers_variance():
    beta, below, mid, above = 2.5, 10, 6, 3
    explicit = 1 / below + 1 / above + 1 / (below * mid) + 1 / (mid * above)
    assert expected_imbalance(beta, beta, below, mid, above) == pytest.approx(beta**2 * explicit)


def test_glorot_layers_of_different_shape_differ_in_expected_norm():
    assert glorot_squared_norm(10, 6) == pytest.approx(60 * 2 / 16)
    assert glorot_squared_norm(10, 6) > glorot_squared_norm(6, 3)


def neuron_imbalance(w_below, w_above, b_below):
    """Conserved at each hidden ReLU: outgoing minus incoming squared weights and bias."""
    return (w_above**2).sum(0) - (w_below**2).sum(1) - b_below**2


@pytest.mark.parametrize("with_biases", [False, True])
def test_relu_descent_conserves_the_neuron_imbalance_to_first_order(with_biases):
    rng = np.random.default_rng(6)
    widths = [5, 7, 6, 3]
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [rng.normal(size=s) for s in shapes]
    biases = [rng.normal(size=s[0]) * with_biases for s in shapes]
    x, y = rng.normal(size=(40, 5)), rng.normal(size=(40, 3))

    def loss(parameters):
        h = jnp.asarray(x)
        for w, b in list(zip(*parameters, strict=True))[:-1]:
            h = jax.nn.relu(h @ w.T + b[None])
        output = h @ parameters[0][-1].T + parameters[1][-1][None]
        return 0.5 * jnp.mean(jnp.sum((y - output) ** 2, axis=-1))

    with jax.enable_x64(True):
        gradients = jax.tree.map(np.asarray, jax.grad(loss)((weights, biases)))
    lr = 0.01
    for layer in range(2):
        pair = slice(layer, layer + 2)
        before, slope = weights[pair], gradients[0][pair]
        after = [w - lr * g for w, g in zip(before, slope, strict=True)]
        b, g = biases[layer], gradients[1][layer]
        if with_biases:
            drift = neuron_imbalance(*after, b - lr * g) - neuron_imbalance(*before, b)
            np.testing.assert_allclose(drift, lr**2 * neuron_imbalance(*slope, g), atol=1e-12)
        drift = imbalance(*after) - imbalance(*before)
        second_order = lr**2 * imbalance(*slope)
        if not with_biases:
            np.testing.assert_allclose(np.diag(drift), np.diag(second_order), atol=1e-12)
        else:
            assert np.abs(np.diag(drift - second_order)).max() > lr * 1e-2
        off_diagonal = (drift - second_order)[~np.eye(len(drift), dtype=bool)]
        assert np.abs(off_diagonal).max() > lr * 1e-2, "the rest of C is not conserved"
