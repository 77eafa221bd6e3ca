"""Searches for the gates of least loss, with least-squares weights behind each choice of gates.

The loss 1/2 <(y - yhat)^2> at convergence depends on the gates alone. A finite set of inputs has
finitely many tables of gates, and all of them are tried. Half-spaces and tilings are found by
descent on relaxed gates: logistic and softmax functions in place of steps, which become sharper.

Source: notes on localisation, eqs. 12 to 17; the searches are ours.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import expit, softmax

from neuralrace.theory.frozen_gates import gated_moments, moment_modes

SHARPNESS = (2.0, 4.0, 8.0, 16.0)
"""Slopes of the relaxed gates along unit directions, in the order of the descent."""
ITERATIONS = 15
"""Most iterations of the descent at each slope."""


def all_tables(
    points: Float[np.ndarray, "point input"],
    probability: Float[np.ndarray, " point"],
    target: Float[np.ndarray, " point"],
    units: int,
) -> tuple[
    Float[np.ndarray, "table unit point"],
    Float[np.ndarray, " table"],
    Float[np.ndarray, " table"],
    Int[np.ndarray, " table"],
]:
    """All tables of gates on a finite set of inputs, up to the order of the units.

    Args:
        points: the possible inputs.
        probability: of each input.
        target: mean of y at each input.
        units: number of units.

    Returns:
        For each table: the gates; the least loss above that of any function of the inputs; the
        share of the squared entries of the (pseudo-)inverse second moment that couple units; and
        the number of directions of the gated inputs.

    Source: notes on localisation, eqs. 14 and 16.
    """
    # A number for each unit, whose binary digits are its gates; they ascend.
    numbers = np.indices(units * (2 ** len(points),)).reshape(units, -1).T
    numbers = numbers[(np.diff(numbers, axis=1) >= 0).all(axis=1)]
    gates = (numbers[..., None] >> np.arange(len(points)) & 1).astype(float)
    root = np.sqrt(probability)
    gated = np.einsum("tup,pi,p->tpui", gates, points, root)
    features = gated.reshape(len(gates), len(points), -1)
    values, vectors = np.linalg.eigh(features.mT @ features)
    null = values <= values.shape[1] * np.finfo(float).eps * values[:, -1:]
    inverse = np.where(null, 0, 1 / np.where(null, 1, values))
    cross = vectors.mT @ (features.mT @ (root * target))[..., None]
    power = ((vectors * inverse[:, None]) @ vectors.mT) ** 2
    power = power.reshape(-1, *2 * gated.shape[2:]).sum(axis=(2, 4))
    coupled = power.sum(axis=(1, 2)) - np.trace(power, axis1=1, axis2=2)
    share = coupled / np.maximum(power.sum(axis=(1, 2)), np.finfo(float).tiny)
    excess = (probability @ target**2 - (cross[..., 0] ** 2 * inverse).sum(axis=1)) / 2
    return gates, excess, share, np.sum(~null, axis=1)


def descended_directions(
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
    directions: Float[np.ndarray, "unit input"],
    exclusive: bool,
) -> Float[np.ndarray, "unit input"]:
    """Directions whose gates are near a local minimum of the loss, by descent on relaxed gates.

    Args:
        x: inputs, a sample per row.
        y: targets.
        directions: at the start.
        exclusive: whether a sample opens the gate with the largest overlap of direction and sample;
            otherwise it opens all gates with a positive overlap.

    Source: ours, for eq. 12 of the notes on localisation.
    """
    for sharpness in SHARPNESS:
        unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        arguments, options = (x, y, sharpness, exclusive), {"maxiter": ITERATIONS}
        found = minimize(_relaxed, unit.ravel(), arguments, "L-BFGS-B", jac=True, options=options)
        directions = found.x.reshape(directions.shape)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _relaxed(
    flat: Float[np.ndarray, " feature"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
    sharpness: float,
    exclusive: bool,
) -> tuple[float, Float[np.ndarray, " feature"]]:
    """Least loss of relaxed gates, and its gradient by directions of any length."""
    directions = flat.reshape(-1, x.shape[1])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    unit = directions / lengths
    gates = softmax(sharpness * unit @ x.T, axis=0) if exclusive else expit(sharpness * unit @ x.T)
    b, second, y_power = gated_moments(x, y, gates)
    modes = moment_modes(second.reshape(b.size, b.size), b.ravel(), y_power)
    # The weights are optimal, so the gradient is that at constant weights.
    outputs = gates * ((modes.vectors @ modes.solution).reshape(b.shape) @ x.T)
    pull = outputs * (outputs.sum(axis=0) - y) / len(x)
    pull = pull - gates * pull.sum(axis=0) if exclusive else pull * (1 - gates)
    slope = sharpness * pull @ x / lengths
    slope -= (slope * unit).sum(axis=1, keepdims=True) * unit
    return (y_power - modes.explained) / 2, slope.ravel()
