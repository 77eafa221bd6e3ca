"""Moments of Gaussian inputs behind half-space gates, in closed form.

Inputs are centred, x ~ N(0, S). Unit i has the gate g_i(x) = 1(u_i.x >= 0), where only the
direction of its normal u_i matters. Let S = F F^T, and let theta be the angle between the
directions p_i = F^T u_i/|F^T u_i| of two gates. Both gates are on in a wedge of the plane of p_i
and p_j. The solution uses the bisectors of p_i with p_j and with -p_j. So it stays accurate for
normals that are close to parallel or antiparallel.

A normal along which the inputs do not vary, such as 0, has a gate that is always on.

Source: extends the notes on localisation, eqs. 5 and 6; derived here.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.datasets.second_moments import eigenmodes


def half_space_means(
    covariance: Float[np.ndarray, "input input"], normals: Float[np.ndarray, "unit input"]
) -> Float[np.ndarray, "unit input"]:
    """Mean gated inputs <g_i x> = S u_i/sqrt(2 pi u_i^T S u_i).

    Args:
        covariance: covariance S of the inputs.
        normals: normals u_i of the gates.

    Raises:
        ValueError: if the covariance is not symmetric or positive semidefinite.

    Source: derived here; times y it is eq. 5 of the notes on localisation.
    """
    root = _root(covariance)
    return _directions(root, normals) @ root.T / np.sqrt(2 * np.pi)


def half_space_correlations(
    covariance: Float[np.ndarray, "input input"], normals: Float[np.ndarray, "unit input"]
) -> Float[np.ndarray, "unit input unit input"]:
    """Second moments of gated inputs <g_i g_j x x^T>.

    They equal P(g_i = g_j = 1) S + (sin theta/2 pi)(m m^T - n n^T), where P = (pi - theta)/(2 pi).
    The vectors m and n are the images under F of the unit vectors along p_i + p_j and p_i - p_j.

    Args:
        covariance: covariance S of the inputs.
        normals: normals u_i of the gates.

    Raises:
        ValueError: if the covariance is not symmetric or positive semidefinite.

    Source: derived here; eq. 6 of the notes on localisation for Gaussian inputs.
    """
    root = _root(covariance)
    directions = _directions(root, normals)
    theta, total, difference = _angles(directions[:, None], directions)
    on = np.where(directions.any(-1), 0.5, 1.0)
    both_on = (on[:, None] + on - theta / np.pi) / 2
    # sin theta, which is exactly 0 for equal and for opposite directions
    sine = np.linalg.norm(total, axis=-1) * np.linalg.norm(difference, axis=-1) / 2
    wedge = sine[..., None] / (2 * np.pi)
    moments = np.einsum("ij,mn->imjn", both_on, covariance)
    for bisector, sign in ((_unit(total) @ root.T, 1), (_unit(difference) @ root.T, -1)):
        moments += sign * np.einsum("ijm,ijn->imjn", wedge * bisector, bisector)
    return moments


def flip_fraction(
    covariance: Float[np.ndarray, "input input"],
    before: Float[np.ndarray, "*runs unit input"],
    after: Float[np.ndarray, "*runs unit input"],
) -> Float[np.ndarray, "*runs unit"]:
    """Probability theta/pi that a unit's gate differs between two times, over inputs.

    For a mixture of classes, average the fractions of the classes.

    Args:
        covariance: covariance S of the inputs.
        before: normals at one time.
        after: normals of the same units at another.

    Raises:
        ValueError: if the covariance is not symmetric or positive semidefinite.

    Source: extends the notes on localisation, section 2.1; derived here.
    """
    root = _root(covariance)
    theta, _, _ = _angles(_directions(root, before), _directions(root, after))
    return theta / np.pi


def _root(covariance: Float[np.ndarray, "input input"]) -> Float[np.ndarray, "input mode"]:
    """A matrix F with F F^T = S, its columns along the eigenvectors of S."""
    values, vectors, _ = eigenmodes(covariance, "covariance")
    return vectors * np.sqrt(values)


def _directions(
    root: Float[np.ndarray, "input mode"], normals: Float[np.ndarray, "*runs unit input"]
) -> Float[np.ndarray, "*runs unit mode"]:
    """Unit vectors along F^T u, and 0 for normals along which inputs vary by rounding only."""
    images = normals @ root
    largest = np.linalg.norm(root, axis=0).max() * np.linalg.norm(normals, axis=-1)
    rounding = len(root) * np.finfo(float).eps * largest
    return np.where((np.linalg.norm(images, axis=-1) > rounding)[..., None], _unit(images), 0.0)


def _unit(vectors: Float[np.ndarray, "*runs mode"]) -> Float[np.ndarray, "*runs mode"]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, where=length > 0, out=np.zeros_like(vectors))


def _angles(
    one: Float[np.ndarray, "*#runs mode"], other: Float[np.ndarray, "*#runs mode"]
) -> tuple[
    Float[np.ndarray, "*runs"], Float[np.ndarray, "*runs mode"], Float[np.ndarray, "*runs mode"]
]:
    """Angles of unit vectors, their sums and their differences.

    The angle between a unit vector and 0 is pi/2, and between 0 and 0 it is 0.
    """
    total, difference = one + other, one - other
    opposite, adjacent = np.linalg.norm(difference, axis=-1), np.linalg.norm(total, axis=-1)
    return np.asarray(2 * np.arctan2(opposite, adjacent)), total, difference
