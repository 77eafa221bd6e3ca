"""Gradient flow and descent of linear networks, against finite differences and each other."""

import itertools

import numpy as np
import pytest
from jaxtyping import config
from scipy.linalg import expm

from neuralrace.theory.gradient_flow import linear_descent, linear_flow


def random_net(seed, widths, runs=(3,), scale=0.5):
    rng = np.random.default_rng(seed)
    weights = [
        scale * rng.normal(size=(*runs, after, before))
        for before, after in itertools.pairwise(widths)
    ]
    x, y = rng.normal(size=(widths[0], 20)), rng.normal(size=(widths[-1], 20))
    return weights, y @ x.T / 20, x @ x.T / 20, (x, y)


def test_one_step_descends_the_loss_gradient():
    """Against the finite-difference gradient of the loss over the samples."""
    weights, sigma_yx, sigma_xx, (x, y) = random_net(0, [4, 3, 5, 2], runs=())

    def loss(layers):
        error = y - layers[2] @ layers[1] @ layers[0] @ x
        return 0.5 * (error**2).sum(0).mean()

    stepped = linear_descent(np.array([0, 1]), 1.0, weights, sigma_yx, sigma_xx)
    h = 1e-5
    for layer, path in enumerate(stepped):
        for index in np.ndindex(weights[layer].shape):
            sides = []
            for sign in (1, -1):
                moved = [w.copy() for w in weights]
                moved[layer][index] += sign * h
                sides.append(loss(moved))
            slope = (sides[0] - sides[1]) / (2 * h)
            assert path[1][index] - path[0][index] == pytest.approx(-slope, abs=1e-9)


@pytest.mark.parametrize("learning_rate", [1e-3, 0.1, 0.6])
def test_descent_of_an_aligned_network_is_descent_of_its_modes(learning_rate):
    """Balanced networks of one and two layers, with a non-white input."""
    s, d = np.array([2.0, 1.0, 0.3, -0.5]), np.array([1.0, 2.0, 1e-3, 1.0])
    sign, root = np.array([1, 1, 1, -1]), np.array([0.3, 0.05, 0.2, 0.3])
    layers, step = [np.diag(root), np.diag(sign * root)], np.arange(61)
    first, second = linear_descent(step, learning_rate, layers, np.diag(s), np.diag(d))
    (single,) = linear_descent(step, learning_rate, layers[:1], np.diag(s), np.diag(d))
    deep, shallow = sign * root**2, root
    for n in step:
        np.testing.assert_allclose(second[n] @ first[n], np.diag(deep), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(single[n], np.diag(shallow), rtol=1e-12, atol=1e-15)
        deep = deep * (1 + learning_rate * sign * (s - d * deep)) ** 2
        shallow = shallow + learning_rate * (s - d * shallow)


def test_flow_of_one_layer_is_the_matrix_exponential():
    weights, sigma_yx, sigma_xx, _ = random_net(1, [4, 3])
    time = np.array([0.0, 0.3, 2.0, 50.0])
    (path,) = linear_flow(time, weights, sigma_yx, sigma_xx)
    optimum = sigma_yx @ np.linalg.inv(sigma_xx)
    for k, t in enumerate(time):
        expected = optimum + (weights[0] - optimum) @ expm(-sigma_xx * t)
        np.testing.assert_allclose(path[:, k], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("widths", [[4, 3, 2], [3, 5, 2, 4]])
def test_flow_is_the_limit_of_descent(widths):
    """Two Richardson extrapolations over halved learning rates meet the flow."""
    weights, sigma_yx, sigma_xx, _ = random_net(2, widths)
    flow = linear_flow(np.array([1.0, 3.0]), weights, sigma_yx, sigma_xx)
    fine, finer, finest = (
        linear_descent(np.array([n, 3 * n]), 1 / n, weights, sigma_yx, sigma_xx)
        for n in (200, 400, 800)
    )
    for exact, a, b, c in zip(flow, fine, finer, finest, strict=True):
        once = 2 * b - a, 2 * c - b
        error = np.abs((4 * once[1] - once[0]) / 3 - exact).max()
        assert error < 1e-7
        assert error < 1e-4 * np.abs(a - exact).max()


def test_runs_do_not_touch_each_other():
    weights, sigma_yx, sigma_xx, _ = random_net(3, [3, 4, 2], runs=(2, 2))
    time = np.array([0.0, 1.0, 10.0])
    together = linear_flow(time, weights, sigma_yx, sigma_xx)
    alone = linear_flow(time, [w[1, 0] for w in weights], sigma_yx, sigma_xx)
    for both, one in zip(together, alone, strict=True):
        assert both.shape[:3] == (2, 2, 3)
        np.testing.assert_allclose(both[1, 0], one, rtol=0, atol=1e-11)
    step = np.array([0, 4, 4, 7])
    together = linear_descent(step, 0.1, weights, sigma_yx, sigma_xx)
    alone = linear_descent(step, 0.1, [w[1, 0] for w in weights], sigma_yx, sigma_xx)
    for both, one, start in zip(together, alone, weights, strict=True):
        np.testing.assert_allclose(both[1, 0], one, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(both[..., 0, :, :], start)
        np.testing.assert_array_equal(both[..., 1, :, :], both[..., 2, :, :])


def test_each_run_may_have_its_own_data():
    weights, sigma_yx, sigma_xx, _ = random_net(4, [3, 2], runs=(2,))
    own = np.stack([sigma_yx, 2 * sigma_yx])
    (path,) = linear_flow(np.array([1.0]), weights, own, sigma_xx)
    (second,) = linear_flow(np.array([1.0]), [weights[0][1]], own[1], sigma_xx)
    np.testing.assert_allclose(path[1], second, rtol=0, atol=1e-12)


def test_divergence_is_a_result_and_stays_in_its_run():
    weights, sigma_yx, sigma_xx, _ = random_net(5, [3, 3, 2], runs=(2,))
    weights = [w * np.array([1.0, 1e3])[:, None, None] for w in weights]
    path = linear_descent(np.array([0, 50]), 0.05, weights, sigma_yx, sigma_xx)
    for layer in path:
        assert np.isfinite(layer[0]).all()
        assert not np.isfinite(layer[1, 1]).all()


def test_bad_input_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    weights, sigma_yx, sigma_xx, _ = random_net(6, [4, 3, 2])
    time, step = np.array([0.0, 1.0]), np.array([0, 1])
    with pytest.raises(ValueError, match="do not chain"):
        linear_flow(time, weights[::-1], sigma_yx, sigma_xx)
    with pytest.raises(ValueError, match="differ in runs"):
        linear_descent(step, 0.1, [weights[0], weights[1][0]], sigma_yx, sigma_xx)
    with pytest.raises(ValueError, match="sigma_yx has shape"):
        linear_flow(time, weights, sigma_yx.T, sigma_xx)
    with pytest.raises(ValueError, match="sigma_xx has shape"):
        linear_descent(step, 0.1, weights, sigma_yx, np.eye(3))
    with pytest.raises(ValueError, match="time must increase"):
        linear_flow(time - 1, weights, sigma_yx, sigma_xx)
    with pytest.raises(ValueError, match="time must increase"):
        linear_flow(np.array([0.5, 0.5]), weights, sigma_yx, sigma_xx)
    with pytest.raises(ValueError, match="step must not"):
        linear_descent(np.array([3, 1]), 0.1, weights, sigma_yx, sigma_xx)


def test_solver_failure_is_reported():
    weights, sigma_yx, sigma_xx, _ = random_net(7, [2, 2])
    weights[0][0, 0, 0] = 1e200  # a second layer of the same size overflows the gradient
    weights.append(weights[0].copy())
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="not solved to t = 1"):
        linear_flow(np.array([1.0]), weights, sigma_yx, sigma_xx)
