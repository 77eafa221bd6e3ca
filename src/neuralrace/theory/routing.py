"""Routing networks: the race of modes in a hidden layer that many domains share, in closed form.

A block of q input and q output domains has in-weights W_i per input domain, one hidden matrix W_h
and out-weights W_j per output domain. The pair (i, j) computes W_j W_h W_i x. Every input domain is
trained with K output domains and every output domain with K input domains. The items of a domain
are orthogonal, so a mode (u_j, s, v_i) is the same in all pairs and sigma_xx has eigenvalue d in
it. Aligned weights have strengths b_in, b_h and b_out along the mode, which obey

    db_in/dt = share b_out b_h (s - d b),   db_out/dt = share b_in b_h (s - d b),
    db_h/dt = q share b_in b_out (s - d b),   b = b_in b_h b_out,

where `share` is the part of the loss that belongs to one input domain: K over the number of trained
pairs, which is 1/q if the block is the whole network. K enters nowhere else. Gradient flow
conserves c = q b_in^2 - b_h^2 and b_in^2 - b_out^2.

Loss is the mean of 1/2 |y - yhat|^2 over all trained samples, time is gradient-flow time.

Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", figs. 4 to 6 and eq. 15.
"""

import numpy as np
from jaxtyping import Float
from scipy.optimize.elementwise import find_root
from scipy.special import expit

IN, HIDDEN, OUT = range(3)
"""Index of each layer in every start and path."""


def routing_mode(
    time: Float[np.ndarray, " time"],
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    start: Float[np.ndarray, "*runs 3 modes"],
    domains: int,
    share: float,
) -> Float[np.ndarray, "*runs time 3 modes"]:
    """Strengths b_in, b_h, b_out of every mode from a start with b_in = b_out.

    Because b_in^2 = (b_h^2 + c)/q at all times, time is a function of b_h in closed form. Let r be
    the fixed point, alpha = r/(3 r^2 + c), and I(x, k) the integral of dx/(x^2 + k). Then time is
    1/(share s) times the difference of

        I(b_h, c) - alpha [log|r - b_h| - log(b_h^2 + r b_h + r^2 + c)/2
                           + (3 r/2 + c/r) I(b_h + r/2, 3 r^2/4 + c)]

    between b_h(t) and b_h(0). This is solved for b_h(t) numerically. c may have any sign: I is an
    atan, an artanh or -1/x.

    Args:
        time: gradient-flow time, from 0, in any order.
        s: singular value of a pair's sigma_yx, averaged over items; positive.
        d: eigenvalue of a domain's sigma_xx, averaged over items; positive. 1/items for one-hot
            items.
        start: initial b_in, b_h, b_out with b_in = b_out.
        domains: number q of input domains, and of output domains, that share the hidden layer.
        share: part of the loss in one input domain, K/(number of trained pairs).

    Raises:
        ValueError: if a time is negative, a start is unbalanced or never learns, or s or d is not
            positive.

    Source: eq. 15 integrated; the paper's case is c > 0.
    """
    if np.any(time < 0):
        raise ValueError("time must not be negative")
    c = _conserved(s, d, start, domains)
    s, d, c, before = (x[..., None, :] for x in (s, d, c, start[..., HIDDEN, :]))
    r = routing_fixed_point(s, d, c, domains)
    span = r - before

    def excess(logit, time, s, before, c, r, span):
        # The root is searched in the logit of the learned share of the span, so that both ends
        # keep full precision: log(1 - share) = -log(1 + e^logit).
        log_gap = -np.logaddexp(0, logit)
        return _elapsed(span * expit(logit), log_gap, before, c, r) / (share * s) - time

    # e^-700 is near the smallest float: earlier times are the start, later ones the fixed point.
    first, last = (excess(np.float64(x), 0.0, s, before, c, r, span) for x in (-700, 700))
    within = np.clip(time[:, None], first, last)
    root = find_root(excess, (-700.0, 700.0), args=(within, s, before, c, r, span))
    hidden = before + span * expit(root.x)
    outer = np.sqrt((hidden**2 + c) / domains)
    return np.stack(
        [
            np.copysign(outer, start[..., None, IN, :]),
            hidden,
            np.copysign(outer, start[..., None, OUT, :]),
        ],
        axis=-2,
    )


def routing_fixed_point(
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    c: Float[np.ndarray, "*runs modes"],
    domains: int,
) -> Float[np.ndarray, "*runs modes"]:
    """Learned hidden strength: the root of b_h^3 + c b_h = q s/d with b_in^2 >= 0.

    The strengths of the outer layers are sqrt((b_h^2 + c)/q). For c = 0 the hidden strength is
    (q s/d)^(1/3), which is sqrt(q) times the outer ones.

    Args:
        s: singular value of sigma_yx, positive.
        d: eigenvalue of sigma_xx, positive.
        c: conserved q b_in^2 - b_h^2, of any sign.
        domains: number q of domains that share the hidden layer.

    Source: Cardano's formula for the fixed point of eq. 15.
    """
    target = domains * s / d
    h = (target / 2 + np.sqrt(target**2 / 4 + c**3 / 27 + 0j)) ** (1 / 3)
    v = c / (3 * h)
    # The root is h - v, which cancels for c > 0; there it is (h^3 - v^3)/(h^2 + h v + v^2), with
    # h^3 - v^3 = target and h v = c/3.
    return np.real(np.where(c > 0, target / (h**2 + c / 3 + v**2), h - v))


def routing_start(
    encoders: Float[np.ndarray, "*runs domain hidden input"],
    hidden: Float[np.ndarray, "*runs hidden hidden"],
    decoders: Float[np.ndarray, "*runs domain output hidden"],
    u: Float[np.ndarray, "*#runs domain output modes"],
    v: Float[np.ndarray, "*#runs domain input modes"],
) -> Float[np.ndarray, "*runs 3 modes"]:
    """Start of the reduction for a small random network with W_h = sigma0 Q, nothing fitted.

    Let p and q be the means over domains of Q W_i v_i and W_j^T u_j. While the error is still s,
    they and the hidden weights form a closed system. It is a matrix Riccati equation if p and q
    have the same length. It escapes at tau/(share s) in an aligned state. With
    P = (|p|^2 + |q|^2)/2, g = domains P - sigma0^2 and psi = sigma0 tau + artanh(p.q/P),

        sqrt(g) cot(sqrt(g) tau) = sigma0 tanh(psi),   c = g - sigma0^2/cosh(psi)^2.

    The function returns the aligned start with the same c and escape time,
    b_h = sqrt(c) cot(sqrt(c) tau) and b_in = b_out = sqrt((b_h^2 + c)/domains). For p = q it is
    (|p|, sigma0, |p|).

    A mode that is learned earlier expels later ones from its hidden direction. So only the parts of
    p and q perpendicular to p + q of all stronger modes count. Only the mean over pairs matters,
    which needs a mask of pairs whose second singular value is well below its first, K.

    Args:
        encoders: initial W_i.
        hidden: initial W_h, a multiple of an orthogonal matrix.
        decoders: initial W_j.
        u: output singular vectors of sigma_yx by output domain, in columns, in the order of
            decreasing s.
        v: input singular vectors by input domain, in the same order.

    Raises:
        ValueError: if `hidden` is not a multiple of an orthogonal matrix, or a mode starts at 0,
            as modes beyond the width of the hidden layer do.

    Source: derived here. The documentation states its error in measured half times.
    """
    gram = hidden.mT @ hidden
    scale = np.sqrt(np.trace(gram, axis1=-2, axis2=-1) / gram.shape[-1])[..., None]
    if np.any(np.abs(gram / scale[..., None] ** 2 - np.eye(gram.shape[-1])) > 1e-5):
        raise ValueError("hidden must be a multiple of an orthogonal matrix")
    domains = u.shape[-3]
    p = (hidden @ (encoders @ v).mean(-3)) / scale[..., None]
    q = (decoders.mT @ u).mean(-3)
    directions = np.linalg.qr(p + q)[0]
    p, q = (x - directions @ np.triu(directions.mT @ x, 1) for x in (p, q))
    length2 = ((p**2).sum(-2) + (q**2).sum(-2)) / 2
    g = domains * length2 / scale**2 - 1
    if np.any(g < -1 + 1e-12):
        raise ValueError("a mode that starts at 0 is never learned")
    # Rounding may give equal vectors a cosine above 1.
    cosine = np.clip((p * q).sum(-2) / length2, -1 + 1e-15, 1 - 1e-15)
    turn = np.arctanh(cosine)

    def excess(tau, g, turn):
        return _cot(tau, g) - np.tanh(tau + turn)

    # tau is in units of 1/sigma0. The excess falls from infinity; for g > 0 it has a pole at
    # pi/sqrt(g).
    pole = np.pi / np.sqrt(np.maximum(g, 1e-6))
    tau = find_root(excess, (1e-9, pole * (1 - 1e-12)), args=(g, turn)).x
    c = g - np.cosh(tau + turn) ** -2.0
    b_hidden = _cot(tau, c)
    b_outer = np.sqrt((b_hidden**2 + c) / domains)
    return np.stack([b_outer, b_hidden, b_outer], axis=-2) * scale[..., None]


def _conserved(s: np.ndarray, d: np.ndarray, start: np.ndarray, domains: int) -> np.ndarray:
    """The conserved c, after checks that the closed form holds for the starts."""
    outer, hidden = start[..., IN, :], start[..., HIDDEN, :]
    if not np.allclose(outer, start[..., OUT, :], rtol=1e-9, atol=0):
        raise ValueError("the closed form needs b_in = b_out")
    c = domains * outer**2 - hidden**2
    if np.any(outer == 0) or np.any((hidden <= 0) & (c <= 0)):
        raise ValueError("a start with b_in = 0, or with b_h <= 0 and c <= 0, is never learned")
    if np.any(s <= 0) or np.any(d <= 0):
        raise ValueError("s and d must be positive")
    return c


def _elapsed(rise, log_gap, before, c, r):
    """Time in units of 1/(share s), without cancellation.

    It is computed from b_h - b_h(0) and the log of (r - b_h)/(r - b_h(0)).
    """
    after = before + rise
    rest, x = 3 * r**2 / 4 + c, before + r / 2
    growth = np.log1p(rise * (rise + 2 * x) / (x**2 + rest))
    arc = _arc(rise, rest + x * (x + rise), rest)
    learned = log_gap - growth / 2 + (1.5 * r + c / r) * arc
    escape = _arc(rise, c + before * after, c)
    return escape - r / (3 * r**2 + c) * learned


def _arc(rise, level, c):
    """Integral of dx/(x^2 + c) from x0 to x, from rise = x - x0 and level = x x0 + c."""
    rise, level, c = np.broadcast_arrays(rise, level, c)
    root = np.sqrt(np.abs(c))
    positive, negative = c > 0, c < 0
    angle = np.arctan2(root * rise, level)
    ratio = np.divide(rise, level, where=level != 0, out=np.zeros(rise.shape))
    area = np.arctanh(root * ratio, where=negative, out=np.zeros(rise.shape))
    arc = np.where(negative, area, angle)
    return np.divide(arc, root, where=positive | negative, out=ratio)


def _cot(x, c):
    """Lower limit of `_arc` whose integral to infinity is x: sqrt(c) cot(sqrt(c) x), c any sign."""
    root = np.sqrt(np.abs(c))
    tangent = np.where(c > 0, np.tan(root * x), np.tanh(root * x))
    return np.divide(root, tangent, where=c != 0, out=1 / np.broadcast_to(x, root.shape))
