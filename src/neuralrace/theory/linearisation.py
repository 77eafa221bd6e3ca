"""ReLU nets linearised sample by sample: residuals of the printed balance equations 25 to 28.

For one sample i the net is linear: `yhat_i = D_L W_L ... D_1 W_1 x_i` with diagonal 0/1 gates
`D_l`. The paper also puts a ReLU on the output. Here the output is linear, `D_L = I`, and phi is
the identity or the softmax. A gate is open where the preactivation is positive. Time is gradient
flow time (tau = 1) of the mean over samples of `|y - yhat|^2 / 2` ("squared") or of the softmax
cross-entropy ("cross_entropy", with `y` one-hot or a distribution).

Arguments are weights `W_l` of shape `(*runs, n_{l+1}, n_l)` from the input upwards, and biases
`(*runs, n_{l+1})` of every layer or None. All runs share one data set `x`, `y` with a sample per
row. Per-sample quantities hold a matrix per sample, so pass large data sets in parts.

Source: Basu, Mukherjee & Vasudevan, "Layer Dynamics of Linearised Neural Nets", section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from neuralrace.extensions.representation import short_repr

Loss = Literal["squared", "cross_entropy"]
Weights = Sequence[Float[np.ndarray, "*runs _ _"]]
Biases = Sequence[Float[np.ndarray, "*runs _"]] | None


@dataclass(frozen=True)
class SampleResiduals:
    """Residuals of eq. 26 for each sample, in one hidden layer, `(*runs, sample)`.

    Attributes:
        as_written: Frobenius norm of the left side less the right side, as printed.
        sandwiched: The same with the gates of the hidden layer applied on both sides; this is zero.
        trace: Absolute trace of the difference; this is zero.
        scale: Sum of the Frobenius norms of both sides, for comparison.
    """

    as_written: Float[np.ndarray, "*runs sample"]
    sandwiched: Float[np.ndarray, "*runs sample"]
    trace: Float[np.ndarray, "*runs sample"]
    scale: Float[np.ndarray, "*runs sample"]

    __repr__ = short_repr


@dataclass(frozen=True)
class GradientResiduals:
    """Residuals of eq. 25 for each sample, in one hidden layer, `(*runs, sample)`.

    Attributes:
        as_written: Frobenius norm of the left side less the right side, as printed.
        sign_mended: The same with the opposite sign of the right side. The rest comes from units
            that the gates of the layer switch off.
        scale: Sum of the Frobenius norms of both sides, for comparison.
    """

    as_written: Float[np.ndarray, "*runs sample"]
    sign_mended: Float[np.ndarray, "*runs sample"]
    scale: Float[np.ndarray, "*runs sample"]

    __repr__ = short_repr


def gates(
    weights: Weights, biases: Biases, x: Float[np.ndarray, "sample in"]
) -> list[Float[np.ndarray, "*runs sample _"]]:
    """Return the diagonals of `D_{l,i}` for l = 1..L (eq. 24); the last, of the output, is ones."""
    return _forward(weights, biases, x)[1]


def sample_residuals(
    weights: Weights,
    x: Float[np.ndarray, "sample in"],
    y: Float[np.ndarray, "sample out"],
    loss: Loss,
) -> list[SampleResiduals]:
    """Return the residual of eq. 26 under each sample's own flow, for a net without biases.

    Let `h` be the hidden activity and `v = W_{l+1}^T D_{l+1} delta_{l+1}` the error sent back to
    it. The left side is `v h^T + h v^T`, and the right side is `(D v) h^T + h (D v)^T`. They
    differ by the error that reaches closed units. It drops out of the trace because `D h = h`.
    """
    layer_inputs, open_units, errors = _backpropagate(weights, x, y, loss)
    rates = [e[..., :, None] * h[..., None, :] for h, e in zip(layer_inputs, errors, strict=True)]
    residuals = []
    layers = zip([w[..., None, :, :] for w in weights], rates, open_units, strict=True)
    for (w_below, r_below, d_below), (w_above, r_above, d_above) in pairwise(layers):
        left = _symmetrised(w_above.mT @ (d_above[..., None] * r_above))
        sandwich = d_below[..., :, None] * d_below[..., None, :]
        right = sandwich * _symmetrised(r_below @ w_below.mT)
        difference = left - right
        residuals.append(
            SampleResiduals(
                as_written=_frobenius(difference),
                sandwiched=_frobenius(sandwich * difference),
                trace=np.abs(np.trace(difference, axis1=-2, axis2=-1)),
                scale=_frobenius(left) + _frobenius(right),
            )
        )
    return residuals


def gradient_residuals(
    weights: Weights,
    x: Float[np.ndarray, "sample in"],
    y: Float[np.ndarray, "sample out"],
    loss: Loss,
) -> list[GradientResiduals]:
    """Return the residual of eq. 25 under each sample's own flow, for a net without biases.

    The flow is `D_l dW_l/dt = D_l v h^T` with the layer's input `h` and the error
    `v = W_{l+1}^T D_{l+1} ... (y - o)` that is sent back to it. The printed right side is `-v h^T`:
    its sign is negated once too often, and the gates of the layer itself are missing.
    """
    layer_inputs, open_units, errors = _backpropagate(weights, x, y, loss)
    residuals = []
    for h, d, above, w in zip(layer_inputs, open_units, errors[1:], weights[1:], strict=False):
        back = above @ w
        size = np.linalg.norm(h, axis=-1)
        residuals.append(
            GradientResiduals(
                as_written=np.linalg.norm(d * back + back, axis=-1) * size,
                sign_mended=np.linalg.norm(d * back - back, axis=-1) * size,
                scale=(np.linalg.norm(d * back, axis=-1) + np.linalg.norm(back, axis=-1)) * size,
            )
        )
    return residuals


def averaged_rate_residual(
    weights: Weights,
    x: Float[np.ndarray, "sample in"],
    y: Float[np.ndarray, "sample out"],
    loss: Loss,
) -> Float[np.ndarray, "*runs hidden_layer"]:
    """Return the residual of eq. 28 in each hidden layer, relative to its left side.

    With constant gates the right side is `S R S`. Here `R = d/dt(W_l W_l^T)` under the flow of all
    samples, and `S` is the share of samples that open each unit. It equals `R` only where all units
    are open on all samples.
    """
    layer_inputs, open_units, errors = _backpropagate(weights, x, y, loss)
    residuals = []
    layers = zip(weights, layer_inputs, open_units, errors, strict=True)
    for w, h, d, e in list(layers)[:-1]:
        flow = e.mT @ h / len(x)
        rate, share = _symmetrised(flow @ w.mT), d.mean(axis=-2)
        averaged = share[..., :, None] * rate * share[..., None, :]
        residuals.append(_frobenius(averaged - rate) / _frobenius(rate))
    return np.stack(residuals, axis=-1)


def averaging_residual(
    weights: Weights, biases: Biases, x: Float[np.ndarray, "sample in"]
) -> Float[np.ndarray, "*runs layer"]:
    """Return `|mean_i D_{l,i} W_l - W_l|_F / |W_l|_F` for each layer.

    Eq. 27 claims zero. The mean scales each row of `W_l` by the share of samples that open its
    unit. So the residual is zero only for a layer whose gates are open on all samples, such as the
    linear output layer.
    """
    shares = [d.mean(axis=-2) for d in gates(weights, biases, x)]
    lost = [_frobenius((s[..., None] - 1) * w) for s, w in zip(shares, weights, strict=True)]
    return np.stack(lost, axis=-1) / np.stack([_frobenius(w) for w in weights], axis=-1)


def _forward(weights, biases, x):
    """Return the input of every layer, the gates of every layer and the output of the net."""
    layer_inputs, open_units = [], []
    h = np.broadcast_to(x, (*weights[0].shape[:-2], *x.shape))
    for layer, w in enumerate(weights):
        layer_inputs.append(h)
        h = h @ w.mT
        if biases is not None:
            h = h + biases[layer][..., None, :]
        hidden = layer < len(weights) - 1
        open_units.append((h > 0).astype(h.dtype) if hidden else np.ones_like(h))
        h = open_units[-1] * h
    return layer_inputs, open_units, h


def _backpropagate(weights, x, y, loss):
    """Return each layer's input, gates, and minus the loss's gradient at its preactivation."""
    layer_inputs, open_units, output = _forward(weights, None, x)
    error = y - (softmax(output, axis=-1) if loss == "cross_entropy" else output)
    errors = [error]
    for w, d in zip(weights[:0:-1], open_units[-2::-1], strict=True):
        errors.append(d * (errors[-1] @ w))
    return layer_inputs, open_units, errors[::-1]


def _symmetrised(m):
    return m + m.mT


def _frobenius(m):
    return np.linalg.norm(m, axis=(-2, -1))
