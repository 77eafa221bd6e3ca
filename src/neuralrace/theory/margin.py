"""XoR with a linear margin: pathways of one class each race pathways of one example each.

The points are (+-1, +-1, margin y) with label y = -x_1 x_2 = +-1. Two gated linear networks may
stand for the small-start ReLU network yhat = sum_i v_i [w_i . x]_+:

    linear: a pathway per class, along the third input; s = margin/2, d = margin^2/2,
    xor: a pathway per example, along that example; s = sqrt(2 + margin^2)/4, d = 4 s^2.

With nothing fitted, `neuron_start` says how much of each the initial weights hold, and `race_loss`
lets both learn at once. Examples are in the order of the dataset `xor`, (-1, -1), (-1, +1),
(+1, -1), (+1, +1); classes in the order +1, -1. Loss is 1/2 <(y - yhat)^2>, time is gradient-flow
time.

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 3 and appendix C; the starts and
the joint race are derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.theory.flows import solve_flow
from neuralrace.theory.modes import deep_mode, mode_loss

CLASSES = np.array([[1, 2], [0, 3]])
"""Examples of the classes +1 and -1."""


@dataclass(frozen=True)
class Start:
    """What initial weights hold of each pathway, and which pathway each unit joins.

    Attributes:
        linear: initial strengths of the classes' pathways, +1 first.
        xor: initial strengths of the examples' pathways.
        active: examples that a unit ends up active on while the residual is still y: both of one
            class (linear type), exactly one (xor type), or none (input weights of 0).
    """

    linear: Float[np.ndarray, "*runs 2"]
    xor: Float[np.ndarray, "*runs 4"]
    active: Bool[np.ndarray, "*runs unit 4"]


def points(margin: float) -> tuple[Float[np.ndarray, "4 3"], Float[np.ndarray, " 4"]]:
    """Inputs and labels.

    Args:
        margin: half the distance of the classes along the third input.

    Raises:
        ValueError: if the margin is not positive.

    Source: Jarvis et al., eqs. 11 and 12.
    """
    if margin <= 0:
        raise ValueError(f"margin must be positive, not {margin:g}")
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    y = -corners.prod(1)
    return np.column_stack([corners, margin * y]), y


def speeds(margin: float) -> tuple[float, float]:
    """Singular values s of the pathways' sigma_yx, (linear, xor): early growth is exp(2 s t).

    The eigenvalue of sigma_xx is d = 2 s^2 for the two linear pathways, 4 s^2 for the four of xor.

    Raises:
        ValueError: if the margin is not positive.

    Source: Jarvis et al., appendix C, before eqs. 18 and 23.
    """
    x, _ = points(margin)
    return margin / 2, float(np.linalg.norm(x[0])) / 4


def split_start(units: int, init_scale: float) -> tuple[float, float]:
    """Strength that each (linear, xor) pathway starts from if units were shared out equally.

    A unit with input weights w and readout v adds (w . x_hat + y v)^2/4 to its mode, half the
    variance of the weights on average; a linear pathway has half of the units, one of xor a
    quarter. The margin does not enter, so units that change pathway are not accounted for:
    `neuron_start` does that.

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

    While the residual is still y, each unit moves on its own. With G = <y 1(w.x > 0) x> it obeys
    dw/dt = v G, dv/dt = G . w, a hyperbolic rotation in the plane of v and G until an example
    crosses its edge w.x = 0. These pieces are joined exactly. On the last one the unit grows by
    exp(2 |G| t), with |G| the s of its type; its strength there, taken back to time 0 at that rate,
    adds to a0 of its pathway. Exact for an infinitely small start; no time has to be chosen.

    At an edge whose two sides drive the unit back, it stays there: the example is active for a
    fraction of the time that keeps w.x = 0. If v changes sign meanwhile, both sides repel and the
    flow has two continuations; the unit leaves to the side that it spent more time on, as most
    units do under gradient descent (about 1% of units, 0.2% of the strength). Weights are taken to
    be in general position, as random ones are: a unit meets one edge at a time.

    From margin sqrt(2) on, growth along one example activates the other one of its class: all
    units end up linear. Just beyond, this takes them longer than learning does.

    Args:
        encoder: initial weights from inputs to hidden units.
        decoder: initial weights from hidden units to the output.
        margin: half the distance of the classes along the third input.

    Raises:
        ValueError: if the margin is not positive, or a unit is found between several edges.

    Source: derived here.
    """
    x, y = points(margin)
    preactivation = encoder @ x.T
    strength, active = _settle(preactivation.reshape(-1, 4), decoder.ravel(), x @ x.T / 4, y)
    if np.any(active[:, CLASSES[0]].any(-1) & active[:, CLASSES[1]].any(-1)):
        raise ValueError("a unit meets the edges of several examples at once; nudge its weights")
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
    """Loss of the linear type alone, the mean over classes of (1 - margin a)^2/2.

    Args:
        time: gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        start: initial strengths of the classes' pathways.

    Raises:
        ValueError: if a time is negative, or the margin is not positive.

    Source: Jarvis et al., eq. 22.
    """
    return _loss_alone(time, speeds(margin)[0], start)


def xor_loss(
    time: Float[np.ndarray, " time"], margin: float, start: Float[np.ndarray, "*runs 4"]
) -> Float[np.ndarray, "*runs time"]:
    """Loss of the xor type alone, the mean over examples of (1 - sqrt(2 + margin^2) a)^2/2.

    Args:
        time: gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        start: initial strengths of the examples' pathways.

    Raises:
        ValueError: if a time is negative, or the margin is not positive.

    Source: Jarvis et al., eq. 23.
    """
    return _loss_alone(time, speeds(margin)[1], start)


def race_outputs(
    time: Float[np.ndarray, " time"],
    margin: float,
    linear_start: Float[np.ndarray, "*runs 2"],
    xor_start: Float[np.ndarray, "*runs 4"],
) -> tuple[Float[np.ndarray, "*runs time 4"], Float[np.ndarray, "*runs time 4"]]:
    """Parts of the output y yhat on each example, of the linear and of the xor type, at once.

    All six pathways share the residuals e_q = 1 - y yhat. An xor pathway keeps its direction,
    da_q/dt = 2 s a_q e_q. A linear one sees its two examples as x = (+-sqrt(2), margin), along
    their difference and along the third input. It is driven by g, the sum of e x/4 over them, and
    where they differ in e it turns from the third input by an angle phi: with
    n = (sin phi, cos phi),

        d log(a)/dt = 2 n . g,   dphi/dt = g_1 cos phi - g_2 sin phi,   y yhat = a n . x.

    Exact for balanced aligned starts of the gated network with these six pathways. The ReLU
    network would close a linear pathway on an example once n . x < 0 there.

    Args:
        time: increasing gradient-flow time, from 0.
        margin: half the distance of the classes along the third input.
        linear_start: initial strengths of the classes' pathways, as from `neuron_start`.
        xor_start: initial strengths of the examples' pathways.

    Raises:
        ValueError: if the margin is not positive, or `time` is not increasing from 0 or later.
        RuntimeError: if the solver gives up.

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
            # an absent pathway must not grow beyond all numbers
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
    """Share of the output y yhat, summed over examples, that comes from the xor type.

    Equal residuals keep a_linear^(1/s_linear) in proportion to a_xor^(1/s_xor), so the share ends
    between 0 and 1 for every finite start and becomes a step at sqrt(2/3) as starts go to 0.
    Arguments and errors are those of `race_outputs`.
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
    """Strength taken back to time 0, and final gates, of units from preactivations z, readouts v.

    With gates g, dz/dt = v gram (g y) and dv/dt = <g y z>: only the inputs' products enter. On a
    piece, v and u = <g y z>/|G| rotate: u + v grows by a factor E while u - v shrinks by it.
    """
    gate = (z > 0).astype(np.float64)
    gate = np.where(z == 0, _edge_gates(z, v, gate, gram, y), gate)
    clock = np.zeros(len(v))
    while True:
        push = gate * y
        rate = push @ gram
        speed = np.sqrt((push * rate).sum(-1) / 4)
        drive = (push * z).sum(-1) / 4
        # only a unit without input weights has no speed
        u = np.divide(drive, speed, where=speed > 0, out=np.zeros(len(v)))
        held = (gate > 0) & (gate < 1)
        growth = np.where(held, _turning(u, v)[:, None], _crossing(z, rate, speed, u, v))
        first = growth.min(-1)
        moves = np.isfinite(first)
        if not moves.any():
            return (u + v) ** 2 / 4 * np.exp(-2 * speed * clock), gate > 0
        # A unit that turns back returns to all edges that it left together, at the same number.
        hit = moves[:, None] & (growth == first[:, None])
        growth = np.where(moves, first, 1.0)
        per_time = np.where(speed > 0, speed, 1.0)
        way = ((u + v) * (growth - 1) + (u - v) * (1 / growth - 1)) / (2 * per_time)
        z = np.where(hit | held, 0.0, z + rate * way[:, None])
        v = np.where((hit & held).any(-1), 0.0, ((u + v) * growth - (u - v) / growth) / 2)
        clock += np.log(growth) / per_time
        # Gates on an edge depend on each other: those held there give way to those that cross.
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
    comes out exactly and is not counted.
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
    """Gate of each example, were it on its edge with the other gates as given.

    `balance` is the gate that would stop the motion across the edge. Where the example drives the
    unit back, its gate is that, as far as gates go. Elsewhere the motion carries on to its side;
    between 0 and 1 it may go to both, and goes where a gate held at balance was for longer.
    """
    push, own = gate * y, np.diagonal(gram)
    balance = -y * (push @ gram - push * own) / own
    # a unit held until v = 0 goes on to the sign that v is driven to
    sign = np.where(v == 0, (push * z).sum(-1), v)[:, None]
    forward = (balance < 0) | (balance > 0.5) & (balance <= 1)
    return np.where(sign * y < 0, np.clip(balance, 0, 1), forward)
