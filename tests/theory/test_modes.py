"""Singular modes, against independent solvers and full linear networks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jaxtyping import config
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from neuralrace.theory import modes
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.modes import (
    aligned_initial_mode,
    deep_half_time,
    deep_mode,
    final_strength,
    layered_mode_flow,
    mode_loss,
    shallow_half_time,
    shallow_mode,
    two_layer_limit_ratio,
    untied_mode,
)

signed = st.floats(-4, 4)
positive = st.floats(0.05, 4)
size = st.floats(-8, 0.3).map(lambda log: 10**log)


def solve(velocity, start, time):
    """Solution by an independent solver of another family, at a tight tolerance."""
    solution = solve_ivp(
        velocity, (0, time[-1]), start, "LSODA", t_eval=time, rtol=1e-12, atol=1e-15
    )
    assert solution.success
    return solution.y


@settings(deadline=None, max_examples=40)
@given(
    s=signed,
    d=st.one_of(st.just(0.0), positive),
    a0=st.one_of(st.just(0.0), size, size.map(np.negative)),
)
def test_deep_mode_solves_its_equation(s, d, a0):
    """Against the equations of two scalar weights, without the closed form."""
    assume(d > 0 or s <= 0.5)  # without input variance a growing mode grows for ever
    w = np.array([abs(a0) ** 0.5, np.copysign(abs(a0) ** 0.5, a0)])
    time = np.array([0.0, 0.2, 1.0, 4.0])
    path = solve(lambda _, w: w[::-1] * (s - d * w[0] * w[1]), w, time)
    mode = deep_mode(time, *(np.array([x]) for x in (s, d, a0)))
    np.testing.assert_allclose(mode[:, 0], path.prod(0), rtol=1e-8, atol=1e-9)


def test_deep_mode_is_the_textbook_sigmoid():
    s, d, a0, t = 2.0, 0.5, 0.01, np.array([0.0, 0.7, 3.0])
    sigmoid = (s / d) / (1 - (1 - s / (d * a0)) * np.exp(-2 * s * t))
    mode = deep_mode(t, np.array([s]), np.array([d]), np.array([a0]))
    np.testing.assert_allclose(mode[:, 0], sigmoid, rtol=1e-14)


def test_deep_mode_at_the_ends_of_the_number_line():
    s = np.array([3.0, 3.0, 3.0, 0.0, -2.0, -2.0, 2.0, 0.0])
    d = np.array([1.5, 1.5, 1.5, 2.0, 1.0, 0.5, 1.0, 0.0])
    a0 = np.array([1e-300, 0.0, 3e-308, 0.5, 0.3, -0.1, -0.3, 0.7])
    mode = deep_mode(np.array([0.0, 1.0, 1e8]), s, d, a0)
    np.testing.assert_array_equal(mode[0], a0)
    np.testing.assert_allclose(mode[1, 0], 1e-300 * np.exp(6), rtol=1e-13)
    expected = [2, 0, 2, 1 / (1 / 0.5 + 4e8), 0, -4, 0, 0.7]
    np.testing.assert_allclose(mode[2], expected, rtol=1e-14)


def test_deep_mode_has_no_seam_at_s_equal_zero():
    s = np.array([-1e-9, -1e-300, 0.0, 1e-300, 1e-9])
    mode = deep_mode(np.array([3.0]), s, np.ones(5), np.full(5, 0.2))
    np.testing.assert_allclose(mode, 1 / (1 / 0.2 + 6), rtol=1e-8)


@settings(deadline=None, max_examples=30)
@given(s=positive, d=positive, log_start=st.floats(-300, -0.01), sign=st.sampled_from([-1, 1]))
def test_half_times_are_where_the_modes_cross(s, d, log_start, sign):
    s, d = np.array([s * sign]), np.array([d])
    start = s / d * 10**log_start
    for mode, half_time in [(deep_mode, deep_half_time), (shallow_mode, shallow_half_time)]:
        (time,) = half_time(s, d, start)
        if 10**log_start >= 0.5:
            assert time == 0
            continue
        half = np.abs(s / d)[0] / 2

        def excess(t, mode=mode, half=half):
            return np.abs(mode(np.array([t]), s, d, start)[0, 0]) - half

        assert time == pytest.approx(brentq(excess, 0, 2 * time + 1, xtol=1e-13), abs=1e-9)


def test_half_times_of_modes_above_half_and_of_modes_that_never_learn():
    s, d = np.array([2.0, 2.0, 0.0, -2.0, 2.0, 2.0]), np.array([1.0, 1, 1, 1, 0, 1])
    start = np.array([0.0, -0.1, 0.3, 0.1, 0.1, 1.5])
    np.testing.assert_array_equal(deep_half_time(s, d, start), [np.inf] * 5 + [0])
    shallow = shallow_half_time(s, d, start)
    np.testing.assert_array_equal(np.isinf(shallow), [False, False, True, False, True, False])
    assert shallow[5] == 0


def test_summary_learning_time_is_twice_too_long():
    """From eps to s/2 takes log(s/eps)/(2 s), not the log(s/eps)/s of the summary."""
    s = np.array([0.5, 1.0, 3.0])
    eps = 1e-8 * s
    as_written = np.log(s / eps) / s
    np.testing.assert_allclose(deep_half_time(s, np.ones(3), eps), as_written / 2, rtol=1e-8)
    # and the way from s/2 to s - eps takes as long
    arrived = deep_mode(as_written, s, np.ones(3), eps)
    np.testing.assert_allclose(np.diag(s - arrived), eps, rtol=1e-6)


@settings(deadline=None, max_examples=30)
@given(s=signed, d=st.one_of(st.just(0.0), st.just(1e-12), positive), b0=signed)
def test_shallow_mode_solves_its_equation(s, d, b0):
    time = np.array([0.0, 0.3, 2.0, 5.0])
    (path,) = solve(lambda _, b: s - d * b, [b0], time)
    mode = shallow_mode(time, *(np.array([x]) for x in (s, d, b0)))
    np.testing.assert_allclose(mode[:, 0], path, rtol=1e-8, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(s=signed, seed=st.integers(0, 2**32 - 1), hidden=st.integers(1, 3), scale=st.floats(-3, 0.3))
def test_untied_mode_solves_its_equation_and_keeps_its_invariants(s, seed, hidden, scale):
    rng = np.random.default_rng(seed)
    a0, b0 = 10**scale * rng.normal(size=(2, 1, hidden))
    time = np.array([0.0, 0.1, 1.0, 4.0])

    def velocity(_, flat):
        a, b = flat.reshape(2, hidden)
        return np.concatenate([b, a]) * (s - a @ b)

    path = solve(velocity, np.concatenate([a0[0], b0[0]]), time).reshape(2, hidden, -1)
    a, b = (x[:, 0] for x in untied_mode(time, np.array([s]), a0, b0))
    np.testing.assert_allclose(a, path[0].T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(b, path[1].T, rtol=1e-7, atol=1e-9)
    p, m = (np.linalg.norm(x, axis=-1) for x in (a + b, a - b))
    np.testing.assert_allclose(p * m, (p * m)[0], rtol=1e-9, atol=1e-14)


def test_untied_mode_converges_at_long_times():
    """Long times: learned modes of either sign, no target, and starts that reach the saddle."""
    s = np.array([2.0, -2.0, 0.0, 2.0, -2.0, 2.0])
    a0 = np.array([1e-8, 1e-8, 0.5, 0.3, 0.3, 0.0])[:, None]
    b0 = np.array([3e-8, 3e-8, 0.1, -0.3, 0.3, 0.0])[:, None]
    a, b = (x[-1, :, 0] for x in untied_mode(np.array([0.0, 1e7]), s, a0, b0))
    np.testing.assert_allclose(a * b, [2, -2, 0, 0, 0, 0], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(a**2 - b**2, (a0**2 - b0**2)[:, 0], rtol=0, atol=1e-14)


def test_balanced_untied_mode_is_the_deep_mode():
    s, root = np.array([1.5, 0.2, -1.0]), np.array([1e-3, 0.1, 0.4])
    time = np.linspace(0, 30, 7)
    a, b = untied_mode(time, s, root[:, None], root[:, None])
    np.testing.assert_allclose(
        (a * b)[..., 0], deep_mode(time, s, np.ones(3), root**2), rtol=1e-12, atol=1e-300
    )


def test_alignment_comes_before_growth():
    """log(|m|/|p|) falls at 2 (s - a.b): its initial slope is -2 s."""
    rng = np.random.default_rng(0)
    s = np.array([2.0, 1.0])
    a0, b0 = 1e-4 * rng.normal(size=(2, 5, 2, 8))
    time = np.array([0.0, 1.0, 2.0])
    a, b = untied_mode(time, s, a0, b0)
    assert a.shape == (5, 3, 2, 8)
    log_ratio = np.log(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(a + b, axis=-1))
    slope = np.diff(log_ratio, axis=1)
    np.testing.assert_allclose(slope, np.broadcast_to(-2 * s, slope.shape), rtol=1e-4)
    cosine = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    assert np.all(cosine[:, -1, 0] > 0.95)
    assert np.all((a * b).sum(-1)[:, -1, 0] < 1e-2)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_layered_mode_flow_solves_equation_13(depth):
    rng = np.random.default_rng(depth)
    s, layers0 = np.array([2.0, 0.5, -1.0]), rng.uniform(0.3, 0.9, size=(2, depth, 3))
    time = np.array([0.0, 0.5, 3.0, 20.0])
    path = layered_mode_flow(time, s, layers0)
    assert path.shape == (2, 4, depth, 3)
    for ensemble, mode in np.ndindex(2, 3):

        def velocity(_, x, s=s[mode]):
            others = [np.prod(np.delete(x, layer)) for layer in range(depth)]
            return np.array(others) * (s - x.prod())

        expected = solve(velocity, layers0[ensemble, :, mode], time)
        np.testing.assert_allclose(path[ensemble, :, :, mode], expected.T, rtol=0, atol=2e-8)


def test_layered_mode_flow_equals_the_closed_forms():
    rng = np.random.default_rng(0)
    s, layers0 = np.array([3.0, 1.0, 0.2]), 1e-3 * np.abs(rng.normal(size=(20, 2, 3)))
    time = np.linspace(0, 40, 30)
    a, b = untied_mode(time, s, layers0[:, 0, :, None], layers0[:, 1, :, None])
    path = layered_mode_flow(time, s, layers0)
    np.testing.assert_allclose(path[:, :, 0], a[..., 0], rtol=1e-9)
    np.testing.assert_allclose(path[:, :, 1], b[..., 0], rtol=1e-9)
    single = layered_mode_flow(time, s, layers0[:, :1])
    np.testing.assert_allclose(
        single[:, :, 0], shallow_mode(time, s, np.ones(3), layers0[:, 0]), rtol=1e-9
    )


def test_learning_time_of_equal_layers_is_the_integral_of_the_inverse_rate():
    """For equal layers du/dt = L u^(2 - 2/L) (s - u): time is the quadrature of its inverse."""
    depth, s, u0, u1 = 4, 1.3, 0.02, 1.0
    time = quad(lambda u: 1 / (depth * u ** (2 - 2 / depth) * (s - u)), u0, u1, epsabs=1e-12)[0]
    path = layered_mode_flow(
        np.array([time]), np.array([s]), np.full((depth, 1), u0 ** (1 / depth))
    )
    assert path.prod() == pytest.approx(u1, rel=1e-9)


@settings(deadline=None, max_examples=15)
@given(s=positive, start=st.tuples(st.floats(0.05, 3), st.floats(0.05, 3)))
def test_limit_ratio_is_where_two_layers_end(s, start):
    s, layers0 = np.array([s]), np.array(start)[:, None]
    a, b = untied_mode(np.array([1e6]), s, layers0[0][:, None], layers0[1][:, None])
    ratio = np.maximum(a / b, b / a)[0, 0, 0]
    np.testing.assert_allclose(two_layer_limit_ratio(s, layers0), ratio, rtol=1e-10)


def test_layers_need_not_become_equal():
    """Against corollary 2.4: unequal layers stay unequal, and may even diverge."""
    layers0 = np.array([[1.0], [0.8]])
    for s, parts in [(2.0, False), (0.2, True)]:
        (limit,) = two_layer_limit_ratio(np.array([s]), layers0)
        assert limit > 1.05
        assert (limit > 1 / 0.8) == parts


@pytest.mark.parametrize("hidden", [3, 4, 16])
def test_aligned_initial_mode_needs_no_fit(hidden):
    """The error vanishes with the init scale, for later modes because of the expulsion."""
    rng = np.random.default_rng(hidden)
    s, time = np.array([3.0, 2.0, 1.0]), np.linspace(0, 40, 200)
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0][:, :3] for n in (3, 4))
    unit1, unit2 = rng.normal(size=(10, hidden, 4)), rng.normal(size=(10, 3, hidden))
    worst = []
    for scale in (1e-2, 1e-4, 1e-6):
        w1, w2 = scale * unit1, scale * unit2
        first, second = linear_flow(time, [w1, w2], (U * s) @ V.T, np.eye(4))
        true = np.einsum("oi,...ox,xi->...i", U, second @ first, V)
        a0 = aligned_initial_mode(w1, w2, U, V)
        worst.append(np.abs(deep_mode(time, s, np.ones(3), a0) - true).max(axis=1).mean(0))
    assert np.all(worst[1] < 5e-3)
    assert np.all(worst[2] < 5e-4)
    alone = ((w1 @ V + w2.mT @ U) ** 2).sum(-2) / 4
    np.testing.assert_allclose(a0[:, 0], alone[:, 0], rtol=1e-12)
    ignoring = np.abs(deep_mode(time, s, np.ones(3), alone) - true).max(axis=1).mean(0)
    assert np.all(ignoring[1:] > 5e-3)


def test_aligned_initial_mode_is_zero_beyond_the_width_of_the_hidden_layer():
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(size=(2, 2, 4)), rng.normal(size=(2, 3, 2))
    a0 = aligned_initial_mode(w1, w2, np.eye(3), np.eye(4)[:, :3])
    assert np.all(a0[:, :2] > 0)
    np.testing.assert_array_equal(a0[:, 2], 0)


def test_mode_loss_is_the_loss_over_the_data():
    rng = np.random.default_rng(0)
    n = 50
    frame = np.linalg.qr(rng.normal(size=(n, 3)))[0].T * np.sqrt(n)
    U, V = (np.linalg.qr(rng.normal(size=(k, k)))[0][:, :3] for k in (4, 5))
    d, s = np.array([2.0, 1.0, 0.5]), np.array([3.0, 0.7, 0.1])
    x = V @ (np.sqrt(d)[:, None] * frame)
    y = U @ ((s / np.sqrt(d))[:, None] * frame) + rng.normal(size=(4, 1))
    s_true = np.einsum("oi,ox,xi->i", U, y @ x.T / n, V)
    a = rng.normal(size=(2, 6, 3))
    error = y - (U * a[..., None, :]) @ V.T @ x
    expected = 0.5 * (error**2).sum(-2).mean(-1)
    loss = mode_loss(a, s_true, d, (y**2).sum(0).mean())
    assert loss.shape == (2, 6)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_runs_lead_and_broadcast():
    time = np.linspace(0, 1, 5)
    s, d, start = np.ones(3), np.ones(3), np.full((4, 2, 3), 0.1)
    for closed_form in (deep_mode, shallow_mode):
        assert closed_form(time, s, d, start).shape == (4, 2, 5, 3)
        assert closed_form(time, s + start, d, d).shape == (4, 2, 5, 3)
    for half_time in (deep_half_time, shallow_half_time):
        assert half_time(s, d, start).shape == (4, 2, 3)
    assert layered_mode_flow(time, s, start).shape == (4, 5, 2, 3)


@pytest.mark.parametrize("name", ["deep_mode", "shallow_mode"])
def test_negative_time_and_variance_are_refused(name):
    one = np.ones(1)
    with pytest.raises(ValueError, match="time must not be negative"):
        getattr(modes, name)(-one, one, one, one)
    with pytest.raises(ValueError, match="d must not be negative"):
        getattr(modes, name)(one, one, -one, one)
    with pytest.raises(ValueError, match="d must not be negative"):
        getattr(modes, name.replace("mode", "half_time"))(one, -one, one)


def test_other_bad_input_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    one = np.ones(1)
    with pytest.raises(ValueError, match="time must not be negative"):
        untied_mode(-one, one, one[:, None], one[:, None])
    with pytest.raises(ValueError, match="time must increase"):
        layered_mode_flow(-one, one, np.ones((2, 1)))
    with pytest.raises(ValueError, match="two layers"):
        two_layer_limit_ratio(one, np.ones((3, 1)))
    with pytest.raises(ValueError, match="not learned"):
        two_layer_limit_ratio(0 * one, np.ones((2, 1)))


@pytest.mark.parametrize(("hidden", "deficient"), [(4, False), (2, False), (4, True)])
def test_final_strength_is_where_gradient_flow_ends(hidden, deficient):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 4)) * [2.0, 1, 0.7, 0.0 if deficient else 0.5]
    y = x @ rng.normal(size=(4, 3)) + 0.1 * rng.normal(size=(40, 3))
    sigma_yx, sigma_xx = y.T @ x / 40, x.T @ x / 40
    u, _, vt = np.linalg.svd(sigma_yx, full_matrices=False)
    start = [0.05 * rng.normal(size=(hidden, 4)), 0.05 * rng.normal(size=(3, hidden))]
    first, second = linear_flow(np.array([0.0, 500.0]), start, sigma_yx, sigma_xx)
    reached = np.diag(u.T @ second[-1] @ first[-1] @ vt.T)
    expected = final_strength(sigma_yx, sigma_xx, u, vt.T, min(hidden, 3))
    np.testing.assert_allclose(expected, reached, atol=1e-6)


def test_final_strength_of_whitened_inputs_is_the_singular_value():
    s = np.array([3.0, 2, 1])
    for rank, ends in ((3, s), (2, [3, 2, 0])):
        np.testing.assert_allclose(
            final_strength(np.diag(s), 2 * np.eye(3), np.eye(3), np.eye(3), rank),
            np.divide(ends, 2), atol=1e-12,
        )  # fmt: skip
    equal = final_strength(np.eye(3), np.eye(3), np.eye(3), np.eye(3), 2)
    assert np.isnan(equal).all()
