"""XoR with a linear margin: the race of linear pathways (per class) and XoR ones (per example).

The points are (+-1, +-1, margin y) with label y = -x_1 x_2 = +-1. Two gated linear networks can
imitate the ReLU network yhat = sum_i v_i [w_i . x]_+ with a small start:

    linear: a pathway per class, along the third input; s = margin/2, d = margin^2/2,
    xor: a pathway per example, along that example; s = sqrt(2 + margin^2)/4, d = 4 s^2.

`neuron_start` computes the initial strength of every pathway from the initial weights, with nothing
fitted. `race_loss` lets both types learn at once. Examples are in the order of the dataset `xor`,
(-1, -1), (-1, +1), (+1, -1), (+1, +1); classes are in the order +1, -1. Loss is
1/2 <(y - yhat)^2>, time is gradient-flow time.

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 3 and appendix C; the starts and
the joint race are derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.theory.integration import solve_flow
from neuralrace.theory.modes import deep_mode, mode_loss

CLASSES = np.array([[1, 2], [0, 3]])
"""Examples of the classes +1 and -1."""


@dataclass(frozen=True)
class Start:
    """Initial strength of each pathway, and the pathway that each unit joins.

    Attributes:
        linear: initial strengths of the classes' pathways, +1 first.
        xor: initial strengths of the examples' pathways.
        active: examples on which a unit stays active while the residual is still y. They are both
            examples of a class (linear type), exactly one (xor type), or none (zero input weights).
    """

    linear: Float[np.ndarray, "*runs 2"]
    xor: Float[np.ndarray, "*runs 4"]
    active: Bool[np.ndarray, "*runs unit 4"]

    __repr__ = short_repr


def points(margin: float) -> tuple[Float[np.ndarray, "4 3"], Float[np.ndarray, " 4"]]:
    """Inputs and labels.

    Args:
        margin: half the distance of the classes along the third input.

    Raises:
        UserError: if the margin is not positive.

    Source: Jarvis et al., eqs. 11 and 12.
    """
    if margin <= 0:
        raise UserError("must be positive", key="margin", value=margin)
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    y = -corners.prod(1)
    return np.column_stack([corners, margin * y]), y


def speeds(margin: float) -> tuple[float, float]:
    """Singular values s of the pathways' sigma_yx, (linear, xor): early growth is exp(2 s t).

    The eigenvalue of sigma_xx is d = 2 s^2 for the two linear pathways, 4 s^2 for the four of xor.

    Raises:
        UserError: if the margin is not positive.

    Source: Jarvis et al., appendix C, before eqs. 18 and 23.
    """
    x, _ = points(margin)
    return margin / 2, float(np.linalg.norm(x[0])) / 4


def split_start(units: int, init_scale: float) -> tuple[float, float]:
    """Initial strength of a (linear, xor) pathway with an equal share of all units.

    A unit with input weights w and readout v adds (w . x_hat + y v)^2/4 to its mode, which is half
    the variance of the weights on average. A linear pathway has half of the units, an xor pathway a
    quarter. The margin does not enter: units that change their pathway are ignored here, but not in
    `neuron_start`.

    Args:
        units: width of the hidden layer.
        init_scale: standard deviation of the weights of both layers.
    """
    return units * init_scale**2 / 4, units * init_scale**2 / 8


def neuron_start(
    encoder: Float[np.ndarray, "*runs unit 3"],
    decoder: Float[np.ndarray, "*runs unit"],
    margin: float,
) -> Start:
    """Initial strength of every pathway from the initial weights, nothing fitted.

    While the residual is still y, units do not interact. With G = <y 1(w.x > 0) x> a unit obeys
    dw/dt = v G, dv/dt = G . w. This is a hyperbolic rotation in the plane of v and G until an
    example crosses its edge w.x = 0. The pieces between crossings are joined exactly. On the last
    piece the unit grows by exp(2 |G| t), where |G| is the s of its type. Its strength there,
    extrapolated back to time 0 at this rate, adds to a0 of its pathway. This is exact for an
    infinitely small start, and no time has to be chosen.

    A unit stays at an edge if both sides drive it back: the example is active for the fraction of
    the time that keeps w.x = 0. If v changes sign there, both sides repel and the flow has two
    continuations. The unit then leaves to the side on which it spent more time, as most units do
    under gradient descent. This concerns about 1% of units and 0.2% of the strength. Weights are
    assumed to be in general position, as random ones are, so that a unit meets one edge at a time.

    From margin sqrt(2) on, growth along one example activates the other one of its class, and all
    units become linear. Just above sqrt(2), this takes longer than learning.

    Args:
        encoder: initial weights from inputs to hidden units.
        decoder: initial weights from hidden units to the output.
        margin: half the distance of the classes along the third input.

    Raises:
        UserError: if the margin is not positive.
        ValueError: if a unit meets the edges of several examples at once.

    Source: derived here.
    """
    x, y = points(margin)
    preactivation = encoder @ x.T
    strength, active = _settle(preactivation.reshape(-1, 4), decoder.ravel(), x @ x.T / 4, y)
    if np.any(active[:, CLASSES[0]].any(-1) & active[:, CLASSES[1]].any(-1)):
        raise ValueError(
            "a unit meets the edges of several examples at once; change its weights slightly"
        )
    active = active.reshape(preactivation.shape)
    joined = np.where(active, strength.reshape(decoder.shape)[..., None], 0.0)
    alone = active.sum(-1, keepdims=True) == 1
    return Start(
        linear=np.where(alone, 0.0, joined).sum(-2)[..., CLASSES[:, 0]],
        xor=np.where(alone, joined, 0.0).sum(-2),
        active=active,
    )


def linear_loss(
    time: Float[np.ndarray, " time"], margin: float, start: Float[np.ndarray, "*runs 2"]
) -> Float[np.ndarray, "*runs time"]:
    """Loss of the linear pathways only, the mean over classes of (1 - margin a)^2/2.

    Args:
        time: gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        start: initial strengths of the classes' pathways.

    Raises:
        UserError: if the margin is not positive.
        ValueError: if a time is negative.

    Source: Jarvis et al., eq. 22.
    """
    return _loss_alone(time, speeds(margin)[0], start)


def xor_loss(
    time: Float[np.ndarray, " time"], margin: float, start: Float[np.ndarray, "*runs 4"]
) -> Float[np.ndarray, "*runs time"]:
    """Loss of the xor pathways only, the mean over examples of (1 - sqrt(2 + margin^2) a)^2/2.

    Args:
        time: gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        start: initial strengths of the examples' pathways.

    Raises:
        UserError: if the margin is not positive.
        ValueError: if a time is negative.

    Source: Jarvis et al., eq. 23.
    """
    return _loss_alone(time, speeds(margin)[1], start)


def race_outputs(
    time: Float[np.ndarray, " time"],
    margin: float,
    linear_start: Float[np.ndarray, "*runs 2"],
    xor_start: Float[np.ndarray, "*runs 4"],
) -> tuple[Float[np.ndarray, "*runs time 4"], Float[np.ndarray, "*runs time 4"]]:
    """Contributions of linear and xor pathways to the output y yhat on each example.

    All six pathways learn at once and share the residuals e_q = 1 - y yhat. An xor pathway keeps
    its direction, da_q/dt = 2 s a_q e_q. A linear pathway has the two examples
    x = (+-sqrt(2), margin), along their difference and along the third input. The sum g of e x/4
    over them drives it. Where their e differ, it turns from the third input by an angle phi. With
    n = (sin phi, cos phi),

        d log(a)/dt = 2 n . g,   dphi/dt = g_1 cos phi - g_2 sin phi,   y yhat = a n . x.

    This is exact for balanced aligned starts of the gated network with these six pathways. A ReLU
    network would close a linear pathway on an example once n . x < 0 there.

    Args:
        time: increasing gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        linear_start: initial strengths of the classes' pathways, as from `neuron_start`.
        xor_start: initial strengths of the examples' pathways.

    Raises:
        UserError: if the margin is not positive.
        ValueError: if `time` is not increasing from 0 or later.
        RuntimeError: if the solver fails.

    Source: derived here.
    """
    _, s = speeds(margin)
    x = np.array([[np.sqrt(2), margin], [-np.sqrt(2), margin]])
    by_class = xor_start[..., CLASSES]

    def outputs(log_linear: np.ndarray, angle: np.ndarray, log_xor: np.ndarray) -> list[np.ndarray]:
        direction = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        linear = (linear_start * np.exp(log_linear))[..., None] * (direction @ x.T)
        return [linear, 4 * s * by_class * np.exp(log_xor)]

    def velocity(state: list[np.ndarray]) -> list[np.ndarray]:
        residual = 1 - sum(outputs(*state))
        across, along = np.moveaxis(residual @ x / 4, -1, 0)
        sin, cos = np.sin(state[1]), np.cos(state[1])
        return [
            # A pathway of strength 0 must not overflow in the logarithm of its growth.
            2 * (across * sin + along * cos) * (linear_start > 0),
            across * cos - along * sin,
            2 * s * residual * (by_class > 0),
        ]

    still = [np.zeros_like(linear_start), np.zeros_like(linear_start), np.zeros_like(by_class)]
    # Logarithms of growth: tolerances are relative to strengths, however small they start.
    path = solve_flow(time, still, velocity, rtol=1e-9, atol=1e-9)
    order = np.argsort(CLASSES.ravel())
    linear, xor = (
        np.moveaxis(part.reshape(*part.shape[:-2], 4)[..., order], 0, -2) for part in outputs(*path)
    )
    return linear, xor


def race_loss(
    time: Float[np.ndarray, " time"],
    margin: float,
    linear_start: Float[np.ndarray, "*runs 2"],
    xor_start: Float[np.ndarray, "*runs 4"],
) -> Float[np.ndarray, "*runs time"]:
    """Loss while both types learn at once; arguments and errors are those of `race_outputs`."""
    linear, xor = race_outputs(time, margin, linear_start, xor_start)
    return ((1 - linear - xor) ** 2).mean(-1) / 2


def xor_share(
    time: Float[np.ndarray, " time"],
    margin: float,
    linear_start: Float[np.ndarray, "*runs 2"],
    xor_start: Float[np.ndarray, "*runs 4"],
) -> Float[np.ndarray, "*runs time"]:
    """Share of the xor pathways in the output y yhat, summed over examples.

    Equal residuals keep a_linear^(1/s_linear) proportional to a_xor^(1/s_xor). So the share
    converges to a value between 0 and 1 for every finite start, and to a step at margin sqrt(2/3)
    as starts go to 0. Arguments and errors are those of `race_outputs`.
    """
    linear, xor = race_outputs(time, margin, linear_start, xor_start)
    return xor.sum(-1) / (linear + xor).sum(-1)


def _loss_alone(
    time: Float[np.ndarray, " time"], s: float, start: Float[np.ndarray, "*runs pathway"]
) -> Float[np.ndarray, "*runs time"]:
    pathways = start.shape[-1]
    s_all, d = np.full(pathways, s), np.full(pathways, pathways * s**2)
    return mode_loss(deep_mode(time, s_all, d, start), s_all, d, y_power=1.0)


def _settle(
    z: Float[np.ndarray, "unit 4"],
    v: Float[np.ndarray, " unit"],
    gram: Float[np.ndarray, "4 4"],
    y: Float[np.ndarray, " 4"],
) -> tuple[Float[np.ndarray, " unit"], Bool[np.ndarray, "unit 4"]]:
    """Strength extrapolated to time 0 and final gates of units, from preactivations z, readouts v.

    With gates g, dz/dt = v gram (g y) and dv/dt = <g y z>: only inner products of inputs enter. On
    a piece, v and u = <g y z>/|G| rotate: u + v grows by a factor E while u - v shrinks by it.
    """
    gate = (z > 0).astype(np.float64)
    gate = np.where(z == 0, _edge_gates(z, v, gate, gram, y), gate)
    clock = np.zeros(len(v))
    while True:
        push = gate * y
        rate = push @ gram
        speed = np.sqrt((push * rate).sum(-1) / 4)
        drive = (push * z).sum(-1) / 4
        # Only a unit with zero input weights has speed 0.
        u = np.divide(drive, speed, where=speed > 0, out=np.zeros(len(v)))
        held = (gate > 0) & (gate < 1)
        growth = np.where(held, _turning(u, v)[:, None], _crossing(z, rate, speed, u, v))
        first = growth.min(-1)
        moves = np.isfinite(first)
        if not moves.any():
            return (u + v) ** 2 / 4 * np.exp(-2 * speed * clock), gate > 0
        # A unit that turns back returns at the same growth to all edges that it left together.
        hit = moves[:, None] & (growth == first[:, None])
        growth = np.where(moves, first, 1.0)
        per_time = np.where(speed > 0, speed, 1.0)
        path = ((u + v) * (growth - 1) + (u - v) * (1 / growth - 1)) / (2 * per_time)
        z = np.where(hit | held, 0.0, z + rate * path[:, None])
        v = np.where((hit & held).any(-1), 0.0, ((u + v) * growth - (u - v) / growth) / 2)
        clock += np.log(growth) / per_time
        # Gates on an edge depend on each other: gates that cross change before those held there.
        crosses = hit & ~held
        gate = np.where(crosses, 1 - gate, gate)
        gate = np.where(moves[:, None] & held, _edge_gates(z, v, gate, gram, y), gate)
        gate = np.where(crosses, _edge_gates(z, v, gate, gram, y), gate)


def _turning(
    u: Float[np.ndarray, " unit"], v: Float[np.ndarray, " unit"]
) -> Float[np.ndarray, " unit"]:
    """Growth of u + v at which v changes sign, infinite if it never does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.sqrt((u - v) / (u + v))
    return np.where(growth > 1, growth, np.inf)


def _crossing(
    z: Float[np.ndarray, "unit 4"],
    rate: Float[np.ndarray, "unit 4"],
    speed: Float[np.ndarray, " unit"],
    u: Float[np.ndarray, " unit"],
    v: Float[np.ndarray, " unit"],
) -> Float[np.ndarray, "unit 4"]:
    """Growth E of u + v at which each preactivation next is 0, infinite if it never is.

    z changes by rate times the integral of v, (u(E) - u)/speed, so that with b the value of u at
    the crossing, (u + v) E^2 - 2 b E + (u - v) = 0. A preactivation of 0 has the root E = 1, which
    is computed exactly and excluded.
    """
    speed, u, v = (part[:, None] for part in (speed, u, v))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = -speed * z / rate
        # b^2 - (u^2 - v^2), without cancellation
        root = np.sqrt(v**2 + shift * (2 * u + shift))
        larger = u + shift + np.copysign(root, u + shift)
        growths = np.stack([larger / (u + v), (u - v) / larger])
    return np.where(growths > 1, growths, np.inf).min(0)


def _edge_gates(
    z: Float[np.ndarray, "unit 4"],
    v: Float[np.ndarray, " unit"],
    gate: Float[np.ndarray, "unit 4"],
    gram: Float[np.ndarray, "4 4"],
    y: Float[np.ndarray, " 4"],
) -> Float[np.ndarray, "unit 4"]:
    """Gate of each example if it were on its edge, with the other gates `gate`.

    `balance` is the gate that would stop the motion across the edge. Where the example drives the
    unit back to the edge, its gate is `balance`, clipped to [0, 1]. Elsewhere the motion continues
    to its side. For a balance between 0 and 1 both sides are possible; the unit takes the side on
    which a gate held at balance spent more time.
    """
    push, own = gate * y, np.diagonal(gram)
    balance = -y * (push @ gram - push * own) / own
    # A unit held until v = 0 continues with the sign towards which v is driven.
    sign = np.where(v == 0, (push * z).sum(-1), v)[:, None]
    forward = (balance < 0) | (balance > 0.5) & (balance <= 1)
    return np.where(sign * y < 0, np.clip(balance, 0, 1), forward)
