"""The race of routing networks, against integrated equations and trained networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from neuralrace.theory.routing import routing_fixed_point, routing_mode, routing_start

S, D = np.array([3.4, 1.6, 0.75]), np.full(3, 0.25)
positive = st.floats(0.2, 4)
strength = st.floats(0.05, 1.5)
domain_counts = st.sampled_from([1, 2, 7, 10])


def balanced(outer, hidden, modes=1):
    """A start with b_in = b_out, equal in all modes."""
    return np.array([outer, hidden, outer])[:, None] * np.ones(modes)


def rates(b, s, d, domains, share):
    """The reduced equation: db_in/dt, db_h/dt, db_out/dt of every mode."""
    error = share * (s - d * b.prod(0))
    return error * np.stack([b[1] * b[2], domains * b[0] * b[2], b[0] * b[1]])


def flow(time, s, d, start, domains, share):
    """The reduced equation by a general solver, (time, 3, modes)."""

    def velocity(_, b):
        return rates(b.reshape(start.shape), s, d, domains, share).ravel()

    end = time[-1]
    path = solve_ivp(
        velocity, (0, end), start.ravel(), "DOP853", t_eval=time, rtol=1e-13, atol=1e-16
    )
    return path.y.T.reshape(-1, *start.shape)


def time_to(hidden, s, d, start, domains, share):
    """Time at which the hidden strength of one mode reaches a value, by quadrature."""
    c = domains * start[0] ** 2 - start[1] ** 2

    def slowness(b):
        return 1 / (share * (b**2 + c) * (s - d * b * (b**2 + c) / domains))

    return quad(slowness, start[1], hidden, epsabs=0, epsrel=1e-11)[0]


def escape_time(start, domains):
    """Time at which a mode would be infinite if its error stayed s, multiplied by share s."""
    c = domains * start[0] ** 2 - start[1] ** 2
    return quad(lambda b: 1 / (b**2 + c), start[1], np.inf, epsabs=0, epsrel=1e-11)[0]


def orthogonal(rng, rows, columns):
    q = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))[0]
    return q if rows >= columns else q.T


def train(encoders, hidden, decoders, u, s, v, d, pairs, rate, steps):
    """Gradient descent of the routing network itself; mode strengths averaged over trained pairs.

    Inputs of a domain are the v_i: sigma_xx = d V V^T. `pairs` is the 0/1 mask of trained ones.
    """
    target = np.einsum("jok,k,iyk->ijoy", u, s, v)
    covariance = d * v @ v.mT
    share = pairs[..., None, None] / pairs.sum()
    path = []
    for step in range(steps + 1):
        below = hidden @ encoders
        total = decoders @ below[:, None]
        path.append(np.einsum("jok,ijoy,iyk,ij->k", u, total, v, pairs) / pairs.sum())
        if step < steps:
            error = share * (target - total @ covariance[:, None])
            back = np.einsum("joh,ijoy->ihy", decoders, error)
            slopes = (
                hidden.T @ back,
                np.einsum("ihy,iky->hk", back, encoders),
                np.einsum("ijoy,ihy->joh", error, below),
            )
            encoders, hidden, decoders = (
                w + rate * slope
                for w, slope in zip((encoders, hidden, decoders), slopes, strict=True)
            )
    return np.stack(path), (encoders, hidden, decoders)


def band(domains, partners):
    """Input i is trained with outputs i, ..., i + K - 1, modulo the number of domains."""
    return sum(np.roll(np.eye(domains), shift, axis=1) for shift in range(partners))


@pytest.mark.parametrize("partners", [1, 3, 4])
def test_descent_is_an_aligned_network_to_rounding(partners):
    """The number K of partners enters the reduction only through the share of a domain, 1/4."""
    rng, domains, width = np.random.default_rng(0), 4, 5
    u = np.stack([orthogonal(rng, 6, 3) for _ in range(domains)])
    v = np.stack([orthogonal(rng, 4, 3) for _ in range(domains)])
    below, above = orthogonal(rng, width, 3), orthogonal(rng, width, 3)
    start = np.array([[0.2, 0.3, 0.25], [0.4, 0.1, 0.3], [0.3, 0.2, 0.15]])
    weights = (
        below @ (start[0][:, None] * v.mT),
        above @ (start[1][:, None] * below.T),
        (u * start[2]) @ above.T,
    )
    s, steps, rate = np.array([2.0, 1.0, 0.5]), 60, 0.1
    pairs = band(domains, partners)
    path, (encoders, hidden, decoders) = train(*weights, u, s, v, 0.5, pairs, rate, steps)
    reduced = [start]
    for _ in range(steps):
        reduced.append(reduced[-1] + rate * rates(reduced[-1], s, 0.5, domains, 1 / domains))
    reduced = np.stack(reduced)
    np.testing.assert_allclose(reduced.prod(-2), path, rtol=1e-12)
    np.testing.assert_allclose(below * reduced[-1, 0], (encoders @ v)[2], atol=1e-13)
    np.testing.assert_allclose(np.diag(reduced[-1, 1]), above.T @ hidden @ below, atol=1e-13)
    np.testing.assert_allclose(above * reduced[-1, 2], (decoders.mT @ u)[1], atol=1e-13)


@pytest.mark.parametrize("domains", [1, 7])
@pytest.mark.parametrize(
    ("outer", "hidden"),
    [
        (0.2, 0.2),
        (0.07, 0.2),
        (0.02, 0.1),
        (3.0, 0.1),
        (0.2, 3.0),
        (5.0, 6.0),
        (0.3, -0.05),
        (-0.1, 0.2),
        (0.01, 0.01),
    ],
)
def test_closed_form_is_the_flow(outer, hidden, domains):
    """For c of both signs, starts below and above the target, and strengths of both signs."""
    start = balanced(outer, hidden, 3)
    time = np.linspace(0, 2, 15) * escape_time(start[:, -1], domains) / (0.1 * S[-1])
    closed = routing_mode(time, S, D, start, domains, 0.1)
    # the solver's own errors, which differ between processors by their rounding
    np.testing.assert_allclose(closed, flow(time, S, D, start, domains, 0.1), rtol=2e-8)


@pytest.mark.parametrize("tilt", [0.0, 1e-14, -1e-14, 1e-9, -1e-9])
def test_closed_form_has_no_seam_at_equal_layers(tilt):
    """At c = 0, the atan and the artanh have the common limit 1/b."""
    q, b = 7, 0.1
    start = balanced(b * np.sqrt(1 + tilt) / np.sqrt(q), b)
    time = np.linspace(0, 40, 9)
    mode = routing_mode(time, S[:1], D[:1], start, q, 1 / q)
    equal = flow(time, S[:1], D[:1], balanced(b / np.sqrt(q), b), q, 1 / q)
    np.testing.assert_allclose(mode, equal, rtol=1e-7)


@settings(max_examples=30)
@given(s=positive, d=positive, outer=strength, hidden=strength, domains=domain_counts)
def test_mode_is_where_the_integral_of_the_rate_puts_it(s, d, outer, hidden, domains):
    share, start = 0.3, balanced(outer, hidden)
    c = domains * outer**2 - hidden**2
    (end,) = routing_fixed_point(np.array([s]), np.array([d]), np.array([c]), domains)
    value = hidden + 0.7 * (end - hidden)
    time = time_to(value, s, d, start[:, 0], domains, share)
    (mode,) = routing_mode(np.array([time]), np.array([s]), np.array([d]), start, domains, share)
    np.testing.assert_allclose(mode[1], value, rtol=1e-8)
    np.testing.assert_allclose(domains * mode[0] ** 2 - mode[1] ** 2, c, atol=1e-9)


def test_mode_at_the_ends_of_time():
    start = balanced(1e-3, 1e-3, 3)
    mode = routing_mode(np.array([0.0, 1e300, 1e-300, np.inf]), S, D, start, 7, 1 / 7)
    end = routing_fixed_point(S, D, np.full(3, 6e-6), 7)
    np.testing.assert_allclose(mode[[0, 2]], np.stack([start, start]), rtol=1e-14)
    np.testing.assert_allclose(mode[[1, 3], 1], np.stack([end, end]), rtol=1e-14)


def test_start_that_is_learned_stays():
    end = routing_fixed_point(S, D, np.zeros(3), 4)
    start = np.stack([end / 2, end, end / 2])
    mode = routing_mode(np.array([0.0, 3.0, 1e5]), S, D, start, 4, 0.25)
    np.testing.assert_allclose(mode, np.broadcast_to(start, (3, 3, 3)), rtol=1e-12)


@settings(max_examples=60)
@given(s=positive, d=positive, c=st.floats(-1e3, 1e3), domains=domain_counts)
def test_fixed_point_is_learned(s, d, c, domains):
    hidden = routing_fixed_point(np.array([s]), np.array([d]), np.array([c]), domains)
    outer2 = (hidden**2 + c) / domains
    assert hidden > 0
    assert outer2 > 0
    # for c << 0 the outer layers are small differences of large numbers
    np.testing.assert_allclose(outer2 * hidden, s / d, rtol=1e-11 + 1e-13 * max(-c, 0) ** 1.5)


def test_hidden_layer_outgrows_the_outer_ones_by_the_root_of_domains():
    hidden = routing_fixed_point(S, D, np.zeros(3), 7)
    np.testing.assert_allclose(hidden, (7 * S / D) ** (1 / 3), rtol=1e-14)
    path = flow(np.array([0.0, 1e3]), S, D, balanced(1e-2, 1e-2, 3), 7, 1 / 7)
    np.testing.assert_allclose(path[-1, 1] / path[-1, 0], np.sqrt(7), rtol=1e-4)


@pytest.mark.parametrize("mirror", [False, True])
def test_start_of_aligned_weights_is_exact(mirror):
    """For p = q there is nothing to align, in any run; u and v may both change sign."""
    rng, domains, width = np.random.default_rng(1), 3, 12
    rotation = orthogonal(rng, width, width)
    modes = 0.3 * orthogonal(rng, width, 2)
    v = np.stack([orthogonal(rng, 4, 2) for _ in range(domains)])
    u = np.stack([orthogonal(rng, 5, 2) for _ in range(domains)])
    encoders = rotation.T @ modes @ v.mT
    decoders = u @ modes.T
    sign = -1 if mirror else 1
    batch = [np.stack([w, 2 * w]) for w in (encoders, 0.7 * rotation, decoders)]
    start = routing_start(*batch, sign * u, sign * v)
    expected = balanced(0.3, 0.7, 2)
    np.testing.assert_allclose(start, np.stack([expected, 2 * expected]), rtol=1e-6)


@pytest.mark.parametrize("length", [0.15, 0.2 / np.sqrt(7), 0.03])
@pytest.mark.parametrize("angle", [0.3, np.pi / 2, 2.2])
def test_start_escapes_as_the_unaligned_mean_network(length, angle):
    """Against p, q and their hidden weights, integrated until they are aligned."""
    q, sigma = 7, 0.2
    turn = np.array([np.cos(angle), np.sin(angle)])
    p0, q0 = length * np.array([1.0, 0.0]), length * turn

    def velocity(_, flat):
        p, back, W = flat[:2], flat[2:4], flat[4:].reshape(2, 2)
        return np.concatenate([W.T @ back, W @ p, q * np.outer(back, p).ravel()])

    def escaped(_, flat):
        return flat[:2] @ flat[:2] - 1e6

    escaped.terminal = True
    path = solve_ivp(
        velocity,
        (0, 1e3),
        np.concatenate([p0, q0, sigma * np.eye(2).ravel()]),
        "DOP853",
        events=escaped,
        rtol=1e-12,
        atol=1e-14,
    )
    assert path.status == 1
    end = np.linalg.svd(path.y[4:, -1].reshape(2, 2), compute_uv=False)[0]

    encoders = np.zeros((q, 2, 1)) + p0[:, None]
    decoders = np.zeros((q, 1, 2)) + q0
    start = routing_start(encoders, sigma * np.eye(2), decoders, *np.ones((2, q, 1, 1)))
    c = q * start[0] ** 2 - start[1] ** 2
    time = escape_time(start[:, 0], q)
    np.testing.assert_allclose(time, path.t[-1] + 1 / end, rtol=1e-6)
    direction = path.y[:2, -1] / np.linalg.norm(path.y[:2, -1])
    expected = q * (p0 @ direction) ** 2 - sigma**2  # conserved along the final direction
    np.testing.assert_allclose(c, expected, atol=1e-5 * sigma**2)


def test_start_predicts_when_random_networks_learn():
    """Half times of the two strongest modes, nothing fitted, one network for each seed."""
    domains, partners, width, sigma, steps = 5, 4, 48, 0.2, 700
    pairs, s, d = band(domains, partners), S[:2], 0.25
    measured, predicted = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u = np.stack([orthogonal(rng, 4, 2) for _ in range(domains)])
        v = np.stack([orthogonal(rng, 4, 2) for _ in range(domains)])
        encoders = sigma * np.stack([orthogonal(rng, width, 4) for _ in range(domains)])
        decoders = sigma * np.stack([orthogonal(rng, 4, width) for _ in range(domains)])
        hidden = sigma * orthogonal(rng, width, width)
        start = routing_start(encoders, hidden, decoders, u, v)
        c = domains * start[0] ** 2 - start[1] ** 2
        level = routing_fixed_point(s / 2, np.full(2, d), c, domains)
        half = np.array([
            time_to(level[mode], s[mode], d, start[:, mode], domains, 1 / domains)
            for mode in range(2)
        ])  # fmt: skip
        rate = 1.3 * half.max() / steps
        path, _ = train(encoders, hidden, decoders, u, s, v, d, pairs, rate, steps)
        measured.append(rate * np.argmax(path > s / d / 2, axis=0))
        predicted.append(half)
    error = np.array(predicted) / np.array(measured) - 1
    assert np.all(np.abs(error[:, 0]) < 0.03)
    assert np.all(np.abs(error[:, 1]) < 0.06)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**16),
    scale=st.floats(1e-4, 10),
    domains=st.sampled_from([1, 2, 5]),
)
def test_start_scales_with_the_weights_and_ignores_hidden_coordinates(seed, scale, domains):
    rng = np.random.default_rng(seed)
    encoders = rng.standard_normal((domains, 6, 3))
    decoders = rng.standard_normal((domains, 4, 6))
    hidden, first, second = (orthogonal(rng, 6, 6) for _ in range(3))
    u = np.stack([orthogonal(rng, 4, 2) for _ in range(domains)])
    v = np.stack([orthogonal(rng, 3, 2) for _ in range(domains)])
    start = routing_start(encoders, hidden, decoders, u, v)
    rotated = routing_start(
        scale * first @ encoders,
        scale * second @ hidden @ first.T,
        scale * decoders @ second.T,
        u,
        v,
    )
    np.testing.assert_allclose(rotated, scale * start, rtol=1e-8)
    assert np.all(start[[0, 2]] > 0)


def test_start_of_a_later_mode_has_no_part_along_an_earlier_one():
    rng, q, width = np.random.default_rng(3), 4, 6
    encoders = 0.1 * rng.standard_normal((q, width, 2))
    decoders = 0.1 * rng.standard_normal((q, 2, width))
    basis = np.broadcast_to(np.eye(2), (q, 2, 2))
    start = routing_start(encoders, 0.2 * np.eye(width), decoders, basis, basis)
    first = (encoders.mean(0) + decoders.mean(0).T)[:, 0]
    encoders[..., 1] += 0.7 * first
    decoders[:, 1] -= 1.3 * first
    tilted = routing_start(encoders, 0.2 * np.eye(width), decoders, basis, basis)
    np.testing.assert_allclose(tilted, start, rtol=1e-10)


def test_start_of_a_wide_random_network_is_universal():
    """p and q orthogonal, |p| = |q| = sigma0/sqrt(q): the escape is at theta tanh(theta) = 1."""
    q, sigma, theta = 7, 0.2, 1.1996786402577
    p0, q0 = sigma / np.sqrt(q) * np.eye(2)
    encoders = np.zeros((q, 2, 1)) + p0[:, None]
    decoders = np.zeros((q, 1, 2)) + q0
    start = routing_start(encoders, sigma * np.eye(2), decoders, *np.ones((2, q, 1, 1)))
    np.testing.assert_allclose(escape_time(start[:, 0], q), theta / sigma, rtol=1e-10)
    np.testing.assert_allclose(start[:2, 0] / sigma, [0.7754 / np.sqrt(q), 0.9521], atol=1e-4)


def test_starts_outside_the_closed_form_are_refused():
    start, time = balanced(0.1, 0.2), np.array([1.0])
    s, d = S[:1], D[:1]
    with pytest.raises(ValueError, match="b_in = b_out"):
        routing_mode(time, s, d, start * np.array([[1.0], [1.0], [2.0]]), 7, 1 / 7)
    for never in (balanced(0.0, 0.2), balanced(0.01, -0.2)):
        with pytest.raises(ValueError, match="never learned"):
            routing_mode(time, s, d, never, 7, 1 / 7)
    with pytest.raises(ValueError, match="must be positive"):
        routing_mode(time, -s, d, start, 7, 1 / 7)
    with pytest.raises(ValueError, match="must not be negative"):
        routing_mode(-time, s, d, start, 7, 1 / 7)
    vectors = np.ones((2, 3, 1))
    with pytest.raises(ValueError, match="multiple of an orthogonal"):
        routing_start(vectors, np.diag([1.0, 2.0, 1.0]), vectors.mT, *np.ones((2, 2, 1, 1)))
    with pytest.raises(ValueError, match="starts at 0"):
        routing_start(0 * vectors, np.eye(3), 0 * vectors.mT, *np.ones((2, 2, 1, 1)))
