"""Singular modes of linear networks: closed forms and reduced flows, one mode at a time.

A mode is a pair of singular vectors of sigma_yx with singular value s that also diagonalise
sigma_xx, with eigenvalue d. The effective singular value of the network in the mode is a for two
layers and b for one; both converge to s/d. Loss is 1/2 <|y - yhat|^2>, time is gradient-flow time.
"""

import numpy as np
import scipy
from jaxtyping import Float

from neuralrace.theory.gradient_flow import linear_flow


def deep_mode(
    time: Float[np.ndarray, " time"],
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    a0: Float[np.ndarray, "*#runs modes"],
) -> Float[np.ndarray, "*runs time modes"]:
    """Effective singular value of a balanced two-layer mode, da/dt = 2 |a| (s - d a).

    For s, a0 > 0 this is the sigmoid (s/d) / (1 - (1 - s/(d a0)) exp(-2 s t)). The sign of a is
    conserved. A mode with the wrong sign (s a0 < 0) decays to the saddle 0, and a mode without
    target (s = 0) decays as 1/t.

    Args:
        time: gradient-flow time, from 0.
        s: singular value of sigma_yx, of any sign.
        d: eigenvalue of sigma_xx, not negative.
        a0: initial effective singular value, of any sign, down to the smallest normal number.

    Raises:
        ValueError: if a time or d is negative.

    Source: Saxe, McClelland, Ganguli 2013; for general d, Jarvis, Klein, Rosman, Saxe, appendix A.
    """
    _refuse_negative(time=time, d=d)
    t = time[:, None]
    s, d, a0 = (x[..., None, :] for x in (s, d, a0))
    # Numerator and denominator are divided by the larger of 1 and exp(2 s t), so that no exponent
    # is positive and nothing overflows.
    exponent = 2 * np.sign(a0) * s * t
    numerator = a0 * np.exp(np.minimum(exponent, 0))
    spread = 2 * t * scipy.special.exprel(-np.abs(exponent))
    denominator = np.exp(np.minimum(-exponent, 0)) + d * np.abs(a0) * spread
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    return np.divide(numerator, denominator, where=numerator != 0, out=np.zeros(shape))


def deep_half_time(
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    a0: Float[np.ndarray, "*#runs modes"],
) -> Float[np.ndarray, "*runs modes"]:
    """Half time of `deep_mode`, at which it reaches half of s/d: log(s/(d a0) - 1)/(2 s).

    It is 0 for a mode that starts at half or above, and infinite for a mode that never reaches it.

    Raises:
        ValueError: if d is negative.

    Source: Saxe, McClelland, Ganguli 2013; corrects its summary, "Speed of learning".
    """
    _refuse_negative(d=d)
    drive, start = np.broadcast_arrays(np.sign(a0) * s, d * np.abs(a0))
    time = np.full(drive.shape, np.inf)
    rises = (drive > 0) & (start > 0)
    early = rises & (2 * start < drive)
    time[rises] = 0.0
    # A difference of logarithms, because the ratio overflows for a start near the smallest number.
    time[early] = (np.log(drive[early] - start[early]) - np.log(start[early])) / (2 * drive[early])
    return time


def shallow_mode(
    time: Float[np.ndarray, " time"],
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    b0: Float[np.ndarray, "*#runs modes"],
) -> Float[np.ndarray, "*runs time modes"]:
    """Effective singular value of a one-layer mode: b = (s/d)(1 - e^(-d t)) + b0 e^(-d t).

    It solves db/dt = s - d b.

    Args:
        time: gradient-flow time, from 0.
        s: singular value of sigma_yx.
        d: eigenvalue of sigma_xx, not negative.
        b0: initial value.

    Raises:
        ValueError: if a time or d is negative.

    Source: Jarvis, Klein, Rosman, Saxe, appendix A.
    """
    _refuse_negative(time=time, d=d)
    t = time[:, None]
    s, d, b0 = (x[..., None, :] for x in (s, d, b0))
    return s * t * scipy.special.exprel(-d * t) + b0 * np.exp(-d * t)


def shallow_half_time(
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    b0: Float[np.ndarray, "*#runs modes"],
) -> Float[np.ndarray, "*runs modes"]:
    """Half time of `shallow_mode`, at which it reaches half of s/d: log(2 (1 - d b0/s))/d.

    It is 0 for a mode that starts at half or above, and infinite without a finite non-zero target.

    Raises:
        ValueError: if d is negative.
    """
    _refuse_negative(d=d)
    s, d, start = np.broadcast_arrays(s, d, d * b0)
    time = np.full(s.shape, np.inf)
    has_target = (s != 0) & (d > 0)
    ratio = start[has_target] / s[has_target]
    time[has_target] = (np.log(2) + np.log1p(-np.minimum(ratio, 0.5))) / d[has_target]
    return time


def untied_mode(
    time: Float[np.ndarray, " time"],
    s: Float[np.ndarray, "*#runs modes"],
    a0: Float[np.ndarray, "*runs modes hidden"],
    b0: Float[np.ndarray, "*runs modes hidden"],
) -> tuple[
    Float[np.ndarray, "*runs time modes hidden"], Float[np.ndarray, "*runs time modes hidden"]
]:
    """Encoder a and decoder b of a whitened mode from any start.

    They obey da/dt = (s - a.b) b and db/dt = (s - a.b) a.

    The sum p = a + b and the difference m = a - b keep their directions and |p||m|; with
    k^2 = s^2 + (|p0||m0|)^2/4 and z = (1 - e^(-2 k t))/(2 k),

        |p|^2/|p0|^2 = |m0|^2/|m|^2 = (e^(-2 k t) + (k + s + |m0|^2/2) z)
                                      / (e^(-2 k t) + (k - s + |p0|^2/2) z).

    Scalar layers have one hidden unit. Several modes are assumed to be independent: their hidden
    vectors do not interfere. For inputs of variance d, pass time * d and s/d.

    Args:
        time: gradient-flow time, from 0.
        s: singular value of sigma_yx, of any sign; s < 0 aligns to a = -b.
        a0: initial encoder, the hidden vector W1 v.
        b0: initial decoder, the hidden vector W2^T u.

    Raises:
        ValueError: if a time is negative.

    Source: derived here; Saxe, McClelland, Ganguli 2013 solve scalar layers in other variables.
    """
    _refuse_negative(time=time)
    t = time[:, None]
    p0, m0 = (a0 + b0)[..., None, :, :], (a0 - b0)[..., None, :, :]
    P0, M0 = (p0**2).sum(-1), (m0**2).sum(-1)
    s, product = s[..., None, :], P0 * M0 / 4
    k = np.sqrt(s**2 + product)
    # k + |s| has no cancellation. The product (k + s)(k - s) gives k - |s| without it as well.
    large = k + np.abs(s)
    small = np.divide(product, large, where=large > 0, out=np.zeros(k.shape))
    k_plus_s, k_minus_s = np.where(s >= 0, (large, small), (small, large))
    decay, z = np.exp(-2 * k * t), t * scipy.special.exprel(-2 * k * t)
    above = (decay + (k_plus_s + M0 / 2) * z)[..., None]
    below = (decay + (k_minus_s + P0 / 2) * z)[..., None]
    # The two vanish only under a vector that was 0 from the start and stays so.
    p = p0 * np.sqrt(np.divide(above, below, where=below > 0, out=np.zeros(below.shape)))
    m = m0 * np.sqrt(np.divide(below, above, where=above > 0, out=np.zeros(above.shape)))
    return (p + m) / 2, (p - m) / 2


def aligned_initial_mode(
    w1: Float[np.ndarray, "*runs hidden in"],
    w2: Float[np.ndarray, "*runs out hidden"],
    u: Float[np.ndarray, "out modes"],
    v: Float[np.ndarray, "in modes"],
) -> Float[np.ndarray, "*runs modes"]:
    """Start a0 of `deep_mode` for random small layers, nothing fitted.

    Only the sum p_k = W1 v_k + W2^T u_k of the two hidden vectors of a mode grows, and their
    difference decays (see `untied_mode`). This gives |p_k|^2/4. A mode that is learned earlier
    expels later ones from its hidden direction, so only the part of p_k perpendicular to
    p_1, ..., p_{k-1} counts. With distinct singular values, `deep_mode` becomes exact as the init
    scale goes to 0. Modes beyond the width of the hidden layer start and stay at 0. Modes of equal
    s keep interfering: for these, and for larger starts, `tied_gram` from weights p^T/2 follows all
    modes at once.

    Args:
        w1: initial first layer.
        w2: initial second layer.
        u: output singular vectors of sigma_yx, in columns, in the order of decreasing s > 0.
        v: input singular vectors of sigma_yx, likewise.
    """
    p = w1 @ v + w2.mT @ u
    # Orthogonalisation in order is a QR decomposition: the perpendicular lengths are diag R.
    lengths = np.diagonal(np.linalg.qr(p, mode="r"), axis1=-2, axis2=-1)
    a0 = np.zeros((*p.shape[:-2], p.shape[-1]))
    a0[..., : lengths.shape[-1]] = lengths**2 / 4
    return a0


def layered_mode_flow(
    time: Float[np.ndarray, " time"],
    s: Float[np.ndarray, "*#runs modes"],
    layers0: Float[np.ndarray, "*runs layers modes"],
) -> Float[np.ndarray, "*runs time layers modes"]:
    """Decoupled modes of any depth: dsigma_l/dt = prod_{i != l} sigma_i (s - prod_i sigma_i).

    Each mode is a linear network of width one. All runs and modes are solved as one system, with
    relative errors below about 1e-10.

    Args:
        time: increasing gradient-flow time, from 0.
        s: singular value of sigma_yx (whitened inputs).
        layers0: initial singular value of each layer in each mode.

    Raises:
        ValueError: if `time` is not increasing from 0 or later.
        RuntimeError: if the solver fails.

    Source: Basu, Mukherjee, Vasudevan, eq. 13.
    """
    layers = linear_flow(
        time,
        [layer[..., None, None] for layer in np.moveaxis(layers0, -2, 0)],
        s[..., None, None],
        np.ones((1, 1)),
        # Growth preserves relative errors, so the smallest start sets the scale.
        atol=1e-13 * np.min(np.abs(layers0), where=layers0 != 0, initial=1.0),
    )
    # each (*runs, modes, time, 1, 1)
    return np.moveaxis(np.stack([layer[..., 0, 0] for layer in layers]), (-1, 0), (-3, -2))


def two_layer_limit_ratio(
    s: Float[np.ndarray, "*#runs modes"], layers0: Float[np.ndarray, "*runs 2 modes"]
) -> Float[np.ndarray, "*runs modes"]:
    """Final ratio of the larger to the smaller layer of a learned two-layer mode.

    The difference of squares delta is conserved. So the ratio converges to
    (delta + sqrt(delta^2 + 4 s^2))/(2 s), which is 1 only for delta = 0.

    Args:
        s: singular value of sigma_yx, not 0; its absolute value is used.
        layers0: initial singular values of the two layers.

    Raises:
        ValueError: if there are not two layers, or an s is 0.

    Source: corrects Basu, Mukherjee, Vasudevan, corollary 2.4.
    """
    if layers0.shape[-2] != 2:
        raise ValueError(f"two layers are needed, not {layers0.shape[-2]}")
    if np.any(s == 0):
        raise ValueError("a mode with s = 0 is not learned")
    delta = np.abs(layers0[..., 0, :] ** 2 - layers0[..., 1, :] ** 2)
    half = delta / (2 * np.abs(s))
    return half + np.hypot(half, 1)


def final_strength(
    sigma_yx: Float[np.ndarray, "output input"],
    sigma_xx: Float[np.ndarray, "input input"],
    u: Float[np.ndarray, "output modes"],
    v: Float[np.ndarray, "input modes"],
    rank: int,
) -> Float[np.ndarray, " modes"]:
    """Mode strengths u_k^T W v_k at convergence, W = P sigma_yx sigma_xx^+, for any inputs.

    W is the least-squares map, projected by P on the `rank` output directions of largest explained
    power. The strength is s_k/d_k if v_k is an eigenvector of sigma_xx and its mode is among these.
    All strengths are NaN if the last kept and the first dropped direction explain the same power.

    Args:
        sigma_yx: input-output correlation.
        sigma_xx: input correlation.
        u: output singular vectors of sigma_yx, in columns.
        v: input singular vectors, likewise.
        rank: units of the narrowest layer.

    Source: Baldi and Hornik 1989, who show that a linear network has no other minimum.
    """
    best = sigma_yx @ np.linalg.pinv(sigma_xx, rcond=1e-10, hermitian=True)
    explained, directions = np.linalg.eigh(best @ sigma_yx.T)
    explained, directions = explained[::-1], directions[:, ::-1]
    if rank < len(explained):
        gap = explained[rank - 1] - explained[rank]
        if gap <= 1e-9 * explained[0] < explained[rank]:
            return np.full(u.shape[1], np.nan)
    kept = directions[:, :rank]
    return np.einsum("ok,op,qp,qi,ik->k", u, kept, kept, best, v, optimize=True)


def mode_loss(
    a: Float[np.ndarray, "*runs modes"],
    s: Float[np.ndarray, "*#runs modes"],
    d: Float[np.ndarray, "*#runs modes"],
    y_power: float,
) -> Float[np.ndarray, "*runs"]:
    """Loss 1/2 <|y - yhat|^2> from the modes: y_power/2 - sum(s a - d a^2/2).

    Args:
        a: effective singular values, deep or shallow.
        s: singular values of sigma_yx.
        d: eigenvalues of sigma_xx.
        y_power: mean square of the targets, <|y|^2>.
    """
    return y_power / 2 - (s * a - d * a**2 / 2).sum(-1)


def singular_values(
    maps: Float[np.ndarray, "*runs output input"],
) -> Float[np.ndarray, "*runs _mode"]:
    """Singular values of each map, descending; NaN where an entry is not finite."""
    finite = np.asarray(np.isfinite(maps).all(axis=(-2, -1)))
    # the decomposition raises an error if an entry is NaN, as after divergence
    values = np.linalg.svd(np.where(finite[..., None, None], maps, 0), compute_uv=False)
    return np.where(finite[..., None], values, np.nan)


def _refuse_negative(**values: np.ndarray) -> None:
    for name, value in values.items():
        if np.any(value < 0):
            raise ValueError(f"{name} must not be negative")
