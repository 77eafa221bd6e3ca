"""Ridge regression from moments, against scikit-learn on the samples themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.linear_model import Ridge as SampleRidge
from sklearn.linear_model import RidgeCV

from neuralrace.datasets.second_moments import eigenmodes
from neuralrace.theory.ridge import relative_squared_error, ridge


def sample(seed, items=60, inputs=8, outputs=3, rank=None, noise=0.5):
    """Correlated inputs of a given rank, and targets that are a noisy linear map of them."""
    rng = np.random.default_rng(seed)
    rank = rank or inputs
    x = rng.normal(size=(items, rank)) * np.geomspace(3, 0.1, rank)
    x = x @ np.linalg.qr(rng.normal(size=(inputs, rank)))[0].T
    y = x @ rng.normal(size=(inputs, outputs)) + noise * rng.normal(size=(items, outputs))
    return x, y


def moments(x, y):
    n = len(x)
    return x.T @ x / n, y.T @ x / n, float(np.sum(y**2) / n)


def fitted(x, y):
    sigma_xx, *others = moments(x, y)
    return ridge(*eigenmodes(sigma_xx, "sigma_xx")[:2], *others, len(x))


def sample_weights(x, y, penalty):
    """Weights by scikit-learn, whose penalty is for the sum over items, not for the mean."""
    model = SampleRidge(alpha=penalty * len(x), fit_intercept=False, solver="svd", tol=0)
    return model.fit(x, y).coef_


def loss(weights, x, y):
    return np.sum((y - x @ weights.T) ** 2) / np.sum(y**2)


@pytest.mark.parametrize("case", [{}, {"items": 5}, {"rank": 4}, {"outputs": 1}])
def test_weights_and_errors_are_those_of_the_samples(case):
    x, y = sample(1, **case)
    fit = fitted(x, y)
    penalties = np.array([1e-3, 0.02, 1.0, 30.0])
    for penalty, error in zip(penalties, fit.training_error(penalties), strict=True):
        weights = fit.weights(penalty)
        expected = sample_weights(x, y, penalty).reshape(weights.shape)
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(error, loss(weights, x, y), rtol=1e-9)
        fresh_x, fresh_y = sample(2, **case)
        error = relative_squared_error(weights, *moments(fresh_x, fresh_y))
        np.testing.assert_allclose(error, loss(weights, fresh_x, fresh_y), rtol=1e-9)


@pytest.mark.parametrize("case", [{}, {"items": 5}, {"rank": 4}])
def test_no_penalty_is_the_shortest_least_squares_fit(case):
    x, y = sample(3, **case)
    fit = fitted(x, y)
    expected = np.linalg.lstsq(x, y)[0].T
    np.testing.assert_allclose(fit.weights(0.0), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        fit.training_error(np.zeros(1))[0], loss(expected, x, y), rtol=1e-9, atol=1e-14
    )


@pytest.mark.parametrize("case", [{}, {"items": 6}, {"rank": 4}])
def test_cross_validation_equals_the_form_with_the_hat_matrix(case):
    x, y = sample(4, **case)
    n = len(x)
    penalties = np.array([0.01, 0.3, 4.0])
    expected = []
    for penalty in penalties:
        hat = x @ np.linalg.solve(x.T @ x + n * penalty * np.eye(x.shape[1]), x.T)
        left = np.eye(n) - hat
        expected.append(np.sum((left @ y) ** 2) / np.sum(y**2) / (np.trace(left) / n) ** 2)
    np.testing.assert_allclose(fitted(x, y).cross_validation(penalties), expected, rtol=1e-9)


def test_cross_validation_of_equal_leverages_is_leaving_one_out():
    # rows of a Hadamard matrix have equal leverages, where the two estimates are one
    rng = np.random.default_rng(5)
    signs = np.array([[1, 1], [1, -1]])
    x = np.kron(np.kron(signs, signs), signs)[:, 1:5].astype(float)
    y = x @ rng.normal(size=(4, 2)) + rng.normal(size=(8, 2))
    fit = fitted(x, y)
    penalties = np.array([0.05, 0.4, 2.0])
    left_out = RidgeCV(alphas=8 * penalties, fit_intercept=False, store_cv_results=True).fit(x, y)
    expected = left_out.cv_results_.mean(axis=(0, 1)) * 2 / (np.sum(y**2) / 8)
    np.testing.assert_allclose(fit.cross_validation(penalties), expected, rtol=1e-10)


@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
def test_best_penalty_is_near_the_optimum_over_all_penalties(noise):
    fit = fitted(*sample(6, items=30, inputs=20, noise=noise))
    at_best, none = fit.cross_validation(np.array([fit.best_penalty, 0.0]))
    anywhere = minimize_scalar(
        lambda log: fit.cross_validation(np.exp([log]))[0], bounds=(-15, 5), method="bounded"
    )
    assert at_best <= none
    assert 1 - 1e-9 <= at_best / anywhere.fun < 1.02


def test_a_fit_through_every_item_is_never_the_best():
    fit = fitted(*sample(7, items=6))
    assert fit.penalties[0] == 0
    assert fit.cross_validation(np.zeros(1))[0] == np.inf
    assert fit.best_penalty > 0


def test_targets_without_inputs_are_not_explained():
    fit = ridge(np.zeros(3), np.eye(3), np.zeros((2, 3)), 1.0, 10)
    assert fit.best_penalty == 0
    np.testing.assert_array_equal(fit.weights(0.0), np.zeros((2, 3)))
    np.testing.assert_array_equal(fit.training_error(np.array([0.0, 1.0])), 1.0)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    items=st.integers(2, 20),
    inputs=st.integers(1, 10),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_renaming_outputs_renames_weights_and_units_do_not_matter(seed, items, inputs, scale):
    x, y = sample(seed, items=items, inputs=inputs)
    fit = fitted(x, y)
    order = np.random.default_rng(seed).permutation(y.shape[1])
    renamed, scaled = fitted(x, y[:, order]), fitted(scale * x, y)
    penalties = np.array([0.1, 1.0])
    np.testing.assert_allclose(
        renamed.weights(fit.eigenvalues[-1]), fit.weights(fit.eigenvalues[-1])[order], rtol=1e-9
    )
    for other, unit in ((renamed, 1.0), (scaled, scale**2)):
        for name in ("training_error", "cross_validation"):
            expected = getattr(fit, name)(penalties)
            np.testing.assert_allclose(getattr(other, name)(unit * penalties), expected, rtol=1e-8)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), items=st.integers(2, 20), inputs=st.integers(1, 10))
def test_errors_grow_with_the_penalty_to_those_of_no_answer(seed, items, inputs):
    fit = fitted(*sample(seed, items=items, inputs=inputs))
    penalties = np.concatenate([np.zeros(1), np.geomspace(1e-6, 1e9, 40)])
    errors = fit.training_error(penalties)
    assert (np.diff(errors) >= 0).all()
    assert errors[0] >= 0
    np.testing.assert_allclose(errors[-1], 1, rtol=1e-6)
