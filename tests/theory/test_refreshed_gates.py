"""Refreshed gates, against ReLU networks that are integrated and trained sample by sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from neuralrace.theory.refreshed_gates import relinearised_descent, relinearised_flow


def problem(units=4, inputs=6, samples=200, scale=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(samples, inputs)) * np.linspace(0.5, 1.5, inputs)
    return scale * rng.normal(size=(units, inputs)), x, np.where(x[:, 0] > 0.5, 1.0, 0.0)


def relu_gradient(w, x, y):
    """-dloss/dw of the ReLU network, as a sum over samples."""
    total = np.zeros_like(w)
    for inputs, target in zip(x, y, strict=True):
        h = w @ inputs
        total += (target - np.maximum(h, 0).mean()) * np.outer(h > 0, inputs) / len(w)
    return total / len(x)


def frozen(time, start, x, y):
    """The closed form with the initial gates, by eigenvectors of A."""
    units, inputs = start.shape
    on = (start @ x.T > 0).astype(float)
    gated = (on[:, :, None] * x).swapaxes(0, 1).reshape(len(x), -1)
    rates, modes = np.linalg.eigh(gated.T @ gated / len(x))
    b, w = modes.T @ (gated.T @ y / len(x)), modes.T @ start.ravel()
    dead = rates <= 1e-12 * rates[-1]  # all of them where no gate is open
    limit = np.where(dead, w, units * b / np.where(dead, 1, rates))
    decay = np.exp(-np.outer(time, np.where(dead, 0, rates)) / units**2)
    return ((limit + decay * (w - limit)) @ modes.T).reshape(-1, units, inputs)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    units=st.integers(1, 4),
    samples=st.sampled_from([1, 3, 50]),
    scale=st.floats(0.01, 10),
)
@example(seed=0, units=1, samples=3, scale=1.0)  # no gate is open
def test_kept_gates_are_the_closed_form_and_null_components_stay(seed, units, samples, scale):
    start, x, y = problem(units, 5, samples, scale, seed)
    time = np.array([0.0, 0.01, 1.0, 1.0, 300.0])
    path = relinearised_flow(time, np.inf, start, x, y)
    exact = frozen(time, start, x, y)
    np.testing.assert_allclose(path, exact, rtol=0, atol=1e-12 * np.abs(exact).max())
    assert path.shape == (5, units, 5)
    silent = ~(start @ x.T > 0).any(1)
    np.testing.assert_array_equal(path[:, silent], np.tile(start[silent], (5, 1, 1)))


def test_refreshed_flow_is_a_chain_of_matrix_exponentials():
    start, x, y = problem(units=3, inputs=4)
    time, refresh, w, got = np.array([0.9, 2.5, 4.0]), 1.0, start, []
    path = relinearised_flow(time, refresh, start, x, y)

    def generator(w):
        on = (w @ x.T > 0).astype(float)
        gated = (on[:, :, None] * x).swapaxes(0, 1).reshape(len(x), -1)
        M = np.zeros((13, 13))
        M[:12, :12], M[:12, 12] = -gated.T @ gated / 9 / len(x), gated.T @ y / 3 / len(x)
        return M

    for n in range(5):
        M = generator(w)
        for t in time[(time >= n) & (time < n + 1)]:
            got.append((expm(M * (t - n)) @ np.append(w.ravel(), 1))[:-1].reshape(3, 4))
        w = (expm(M) @ np.append(w.ravel(), 1))[:-1].reshape(3, 4)
    np.testing.assert_allclose(path, got, rtol=0, atol=1e-13)
    assert np.abs(path - relinearised_flow(time, np.inf, start, x, y)).max() > 1e-3


def test_recording_more_often_changes_nothing():
    start, x, y = problem()
    few, many = np.array([0.3, 2.0]), np.linspace(0, 2, 21)
    sparse = relinearised_flow(few, 0.25, start, x, y)
    dense = relinearised_flow(many, 0.25, start, x, y)
    np.testing.assert_allclose(dense[[3, 20]], sparse, rtol=0, atol=1e-13)
    sparse = relinearised_descent(np.array([4, 33]), 0.1, 5, start, x, y)
    dense = relinearised_descent(np.arange(34), 0.1, 5, start, x, y)
    np.testing.assert_array_equal(dense[[4, 33]], sparse)


def test_flow_meets_the_relu_network_integrated_step_by_step():
    start, x, y = problem(samples=60)
    steps = solve_ivp(
        lambda _, w: relu_gradient(w.reshape(4, 6), x, y).ravel(),
        (0, 3),
        start.ravel(),
        max_step=0.02,
        rtol=1e-6,
        atol=1e-9,
    )
    w = steps.y[:, -1].reshape(4, 6)
    gaps = [
        np.abs(relinearised_flow(np.array([3.0]), refresh, start, x, y)[0] - w).max()
        for refresh in (4e-3, np.inf)
    ]
    assert gaps[0] < 1e-4
    assert gaps[1] > 50 * gaps[0]


def test_convergence_is_of_first_order_in_the_refresh():
    """Halving the interval halves the distance to a fine reference, on a smooth sample."""
    start, x, y = problem(units=4, inputs=12, samples=4000, seed=3)
    refresh = np.array([0.8, 0.4, 0.2, 0.1])
    reference = relinearised_flow(np.array([4.0]), 0.01, start, x, y)
    errors = [
        np.linalg.norm(relinearised_flow(np.array([4.0]), each, start, x, y) - reference)
        for each in refresh
    ]
    order = np.polyfit(np.log(refresh), np.log(errors), 1)[0]
    assert abs(order - 1) < 0.15
    assert errors[0] > 1e-3


@pytest.mark.parametrize("units", [1, 5])
def test_refresh_at_every_step_is_descent_of_the_relu_network(units):
    start, x, y = problem(units, samples=80)
    path = relinearised_descent(np.array([0, 1, 30]), 0.2 * units, 1, start, x, y)
    np.testing.assert_array_equal(path[0], start)
    with jax.enable_x64(True):
        inputs, targets = jnp.asarray(x), jnp.asarray(y)

        def loss(w):
            return ((targets - jax.nn.relu(inputs @ w.T).mean(1)) ** 2).mean() / 2

        step = jax.jit(lambda w: w - 0.2 * units * jax.grad(loss)(w))
        w = jnp.asarray(start)
        for n in range(1, 31):
            w = step(w)
            if n in (1, 30):
                np.testing.assert_allclose(path[1 if n == 1 else 2], w, rtol=0, atol=1e-13)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), every=st.integers(1, 6), units=st.integers(1, 3))
def test_descent_keeps_gates_for_the_requested_number_of_steps(seed, every, units):
    start, x, y = problem(units, 3, 20, seed=seed)
    path, w = relinearised_descent(np.arange(14), 0.5, every, start, x, y), start
    for n, recorded in enumerate(path):
        np.testing.assert_allclose(recorded, w, rtol=0, atol=1e-12)
        if n % every == 0:
            on = w @ x.T > 0
        outputs = np.einsum("kn,ki,ni->n", on, w, x) / units
        w = w + 0.5 * np.einsum("n,kn,ni->ki", y - outputs, on, x) / (units * len(x))


def test_other_normals_set_the_gates_at_every_refresh():
    start, x, y = problem(3, 4, 20)
    path, w = (
        relinearised_descent(np.arange(7), 0.5, 3, start, x, y, lambda w: -w[..., ::-1, :]),
        start,
    )
    for n, recorded in enumerate(path):
        np.testing.assert_allclose(recorded, w, rtol=0, atol=1e-12)
        if n % 3 == 0:
            on = w[::-1] @ x.T < 0
        outputs = np.einsum("kn,ki,ni->n", on, w, x) / 3
        w = w + 0.5 * np.einsum("n,kn,ni->ki", y - outputs, on, x) / (3 * len(x))


def test_flow_is_the_limit_of_descent_with_the_same_refreshes():
    """Steps are so small that descent and flow have the same gates at every refresh."""
    start, x, y = problem()
    flow = relinearised_flow(np.array([3.0]), 0.5, start, x, y)
    coarse, fine = (
        relinearised_descent(np.array([6 * n]), 0.5 / n, n, start, x, y) - flow for n in (400, 800)
    )
    assert np.abs(coarse).max() > 1e-6
    np.testing.assert_allclose(2 * fine, coarse, rtol=0, atol=0.02 * np.abs(coarse).max())


def test_a_sample_on_the_boundary_is_outside():
    x, y, start = np.array([[0.0, 2.0]]), np.array([1.0]), np.array([[1.0, 0.0]])
    np.testing.assert_array_equal(relinearised_flow(np.array([1.0]), 0.1, start, x, y)[0], start)
    np.testing.assert_array_equal(
        relinearised_descent(np.array([9]), 0.1, 2, start, x, y)[0], start
    )


def test_too_large_a_step_diverges_without_warning():
    start, x, y = problem()
    path = relinearised_descent(np.array([0, 2000]), 1e3, 3, start, x, y)
    assert np.isfinite(path[0]).all()
    assert not np.isfinite(path[1]).any()


def test_bad_times_and_refreshes_are_refused():
    start, x, y = problem()
    time, step = np.array([0.0, 1.0]), np.array([0, 1])
    with pytest.raises(ValueError, match="time must not be negative or decrease"):
        relinearised_flow(time[::-1], 0.1, start, x, y)
    with pytest.raises(ValueError, match="after a positive time, not 0"):
        relinearised_flow(time, 0.0, start, x, y)
    with pytest.raises(ValueError, match="step must not be negative or decrease"):
        relinearised_descent(step - 1, 0.1, 1, start, x, y)
    with pytest.raises(ValueError, match="after a positive step, not -2"):
        relinearised_descent(step, 0.1, -2, start, x, y)
