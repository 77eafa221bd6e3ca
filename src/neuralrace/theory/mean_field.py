"""Mean-field flow of ReLU units on a symmetric mixture: localisation of receptive fields.

The network is yhat(x) = (1/K) sum_k ReLU(w_k.x), without biases and with a fixed readout. The loss
is 1/2 <(y - yhat)^2> over equally likely classes c with targets y_c. Within a class, x and -x are
equally likely, and every input has the same marginal distribution X up to its standard deviation.
Gradient flow obeys

    K dw_k/dt = <y 1(w_k.x > 0) x> - (1/K) sum_j <1(w_k.x > 0) x ReLU(w_j.x)>.

Let S_c be the covariance of a class, sigma_i^2 = (S_c)_ii, |w|_c^2 = w^T S_c w, and theta_kj the
angle between w_k and w_j under S_c. The two averages are

    <1(w.x > 0) x_i>_c = sigma_i phi(a_i)/2,   a_i = (S_c w)_i/(sigma_i |w|_c),
    <1(w_k.x > 0) x ReLU(w_j.x)>_c
        = [sin(theta_kj) (|w_j|_c/|w_k|_c) S_c w_k + (pi - theta_kj) S_c w_j]/(2 pi).

The first is exact if w.x is Gaussian conditional on x_i, the second if x is Gaussian or j = k. Both
are exact for Gaussian classes, where phi(a) = sqrt(2/pi) a. The second is a gradient. The first is
a gradient for Gaussian marginals only: the Jacobian of phi(a) is diag(phi'(a)) times a symmetric
matrix. The flow therefore descends no loss exactly.

Source: notes on localisation, section 2.2 (one unit); derived here for any number of units.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.special import erf

from neuralrace.theory.integration import solve_flow

ANGLES = 2048
"""Intervals of the interpolated response; its error is then below 1e-11 at any gain."""


def response(
    a: Float[np.ndarray, "*shape"],
    quadrature: tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]],
) -> Float[np.ndarray, "*shape"]:
    """Mean phi(a) = E[X erf(X a/sqrt(2 - 2 a^2))] of an input times the sign of a preactivation.

    It is odd and increases from -E|X| to E|X|. For a Gaussian X it is sqrt(2/pi) a.

    Args:
        a: correlation of input and preactivation, from -1 to 1.
        quadrature: values of the symmetric marginal X of unit variance, and their weights. The
            result is exact at 0 and at +-1. Within h^2 of +-1 its error is up to h^2 p(0), where p
            is the density of X and h the distance between values near 0.

    Raises:
        ValueError: if a correlation is outside [-1, 1].

    Source: notes on localisation, section 2.2.
    """
    if np.any(np.abs(a) > 1):
        raise ValueError(f"correlations must lie between -1 and 1, not {np.abs(a).max():g}")
    values, weights = quadrature
    with np.errstate(divide="ignore"):
        slope = a / np.sqrt(2 * (1 - a) * (1 + a))
    # Values of 0 are left out: X erf(X slope) has the limit 0 there, but would be 0 times infinity.
    nonzero = values != 0
    return np.asarray(
        erf(slope[..., None] * values[nonzero]) @ (weights[nonzero] * values[nonzero])
    )


def mean_field_flow(
    time: Float[np.ndarray, " time"],
    start: Float[np.ndarray, "*runs unit input"],
    covariances: Float[np.ndarray, "class input input"],
    targets: Float[np.ndarray, " class"],
    quadrature: tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]],
    rtol: float = 1e-8,
    atol: float = 1e-11,
) -> Float[np.ndarray, "*runs time unit input"]:
    """Mean-field flow of the receptive fields, solved for all runs at once.

    A unit whose preactivation is 0 on every class is silent and keeps its weights.

    Args:
        time: increasing, gradient-flow time, from 0.
        start: initial weights.
        covariances: covariance <x x^T> of every class.
        targets: target y of every class.
        quadrature: values of the symmetric marginal of unit variance, and their weights.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver, in units of the weights, far below the start.

    Returns:
        The weights at the times.

    Raises:
        ValueError: if `time` does not increase from 0 or later.
        RuntimeError: if the solver fails.

    Source: notes on localisation, section 2.2; derived here for any number of units.
    """
    phi = _interpolated(quadrature)
    (path,) = solve_flow(
        time, [start], lambda now: [_velocity(now[0], covariances, targets, phi)], rtol, atol
    )
    return np.moveaxis(path, 0, -3)


def _interpolated(
    quadrature: tuple[np.ndarray, np.ndarray],
) -> Callable[[np.ndarray], np.ndarray]:
    """The response as a cubic spline of the angle arcsin(a), in which it is smooth at both ends."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, ANGLES + 1)
    # As a function of the angle, the response has slope 0 at both ends.
    spline = CubicSpline(angle, response(np.sin(angle), quadrature), bc_type="clamped")
    return lambda a: spline(np.arcsin(np.clip(a, -1, 1)))


def _velocity(
    weights: np.ndarray,
    covariances: np.ndarray,
    targets: np.ndarray,
    phi: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """dw/dt, the average of (y - yhat) 1(w_k.x > 0) x over K, (*runs, unit, input)."""
    w = weights[..., None, :, :]
    covaried = w @ covariances
    size = np.sqrt(np.maximum((covaried * w).sum(-1, keepdims=True), 0))
    unsized = np.divide(1, size, where=size > 0, out=np.zeros_like(size))
    theta = np.arccos(np.clip(covaried @ w.mT * unsized * unsized.mT, -1, 1))
    theta = np.where(size > 0, theta, np.pi)  # no drag on silent units
    drag = (np.sin(theta) @ size) * unsized * covaried + (np.pi - theta) @ covaried
    deviation = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))[:, None, :]
    driven = targets != 0  # classes with target 0 have no drive
    a = (covaried * unsized)[..., driven, :, :] / deviation[driven]
    drive = targets[driven, None, None] * deviation[driven] * phi(a) / 2
    classes, units = len(targets), weights.shape[-2]
    return (drive.sum(-3) / classes - drag.mean(-3) / (2 * np.pi * units)) / units
