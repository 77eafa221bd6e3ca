"""Optimal loss of a gated linear network with given gates, and gain of a gating scheme.

With all gated inputs g_k(x) x in one vector, the gated linear network is linear least squares of y
on this vector. Losses are 1/2 <(y - yhat)^2>, half of those of the notes. The gain G in [0, 1] is
the share of <y^2> that is explained. For classes y = 0 and y = 1 of the same size, <y^2> = 1/2, and
the loss is (1 - G)/4.

Source: notes on localisation, eqs. 12 to 17. Second moments replace the means in the matrix of
eq. 17, which `printed_equations.written_gain` has as printed.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.representation import short_repr
from neuralrace.theory.frozen_gates import MomentModes, gated_moments, moment_modes


@dataclass(frozen=True)
class GatingLosses:
    """Losses of least squares on gated inputs.

    Attributes:
        train: loss on the samples of the fit.
        fresh: loss of the same weights on other samples.
        residual: <(y - yhat)^2> on the samples of the fit, from its outputs; twice `train`.
        second: second moment of the gated inputs of the fit.
        modes: its eigenmodes.
    """

    train: float
    fresh: float
    residual: float
    second: Float[np.ndarray, "unit input unit input"]
    modes: MomentModes

    __repr__ = short_repr


def gating_losses(
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
    gates: Float[np.ndarray, "unit sample"],
    fresh_x: Float[np.ndarray, "fresh input"],
    fresh_y: Float[np.ndarray, " fresh"],
    fresh_gates: Float[np.ndarray, "unit fresh"],
) -> GatingLosses:
    """Losses of the least-squares weights on the samples of the fit and on fresh samples.

    Among weights that fit equally well, those with the smallest norm are used. The weights of a
    gate that never fires are 0.

    Args:
        x: inputs of the fit, a sample per row.
        y: targets of the fit.
        gates: value of every gate on every sample of the fit.
        fresh_x: inputs of the evaluation.
        fresh_y: targets of the evaluation.
        fresh_gates: value of every gate on every sample of the evaluation.

    Source: notes on localisation, eqs. 12 to 14.
    """
    b, a, y_power = gated_moments(x, y, gates)
    modes = moment_modes(a.reshape(b.size, b.size), b.ravel(), y_power)
    weights = modes.vectors @ modes.solution
    output, fresh_output = (
        np.einsum("ki,ks,si->s", weights.reshape(b.shape), gate, inputs, optimize=True)
        for gate, inputs in ((gates, x), (fresh_gates, fresh_x))
    )
    return GatingLosses(
        train=(y_power - modes.explained) / 2,
        fresh=float(np.mean((fresh_y - fresh_output) ** 2) / 2),
        residual=float(np.mean((y - output) ** 2)),
        second=a,
        modes=modes,
    )


def gating_gain(
    mean: Float[np.ndarray, " feature"],
    second_one: Float[np.ndarray, "feature feature"],
    second_zero: Float[np.ndarray, "feature feature"],
) -> float:
    """Gain of a gating scheme, G = mean^T (second_one + second_zero)^+ mean.

    G is the share of <y^2> that is explained for balanced classes y = 1 and y = 0. The loss is
    (1 - G)/4, so the best gates maximise G.

    Args:
        mean: gated inputs averaged over the class y = 1.
        second_one: second moment of gated inputs in the class y = 1.
        second_zero: second moment of gated inputs in the class y = 0.

    Raises:
        ValueError: if no inputs have these moments.

    Source: notes on localisation, eq. 15; corrects eq. 17.
    """
    # The moments are sums over the two classes, not averages, so that <y^2> is 1 here.
    return moment_modes(second_one + second_zero, mean, 1.0).explained


def off_block_shares(
    second: Float[np.ndarray, "unit input unit input"], modes: MomentModes
) -> tuple[float, float]:
    """Shares of the squared entries that couple different units.

    The first is for the second moment of gated inputs, the second for its pseudo-inverse. Both are
    0 for gates that are never on together, and for a single gate.

    Args:
        second: <g_k g_l x x^T>.
        modes: its eigenmodes.

    Raises:
        ValueError: if the moment is 0.

    Source: quantifies "maximally diagonal" in the notes on localisation, after eq. 15.
    """
    if not modes.rank:
        raise ValueError("second moment is 0")
    inverse = np.divide(1, modes.values, where=modes.values > 0, out=np.zeros_like(modes.values))
    precision = (modes.vectors * inverse) @ modes.vectors.T
    return _off_block_share(second), _off_block_share(precision.reshape(second.shape))


def _off_block_share(moments: Float[np.ndarray, "unit input unit input"]) -> float:
    power = (moments**2).sum((1, 3))
    return float(power[~np.eye(len(power), dtype=bool)].sum() / power.sum())
