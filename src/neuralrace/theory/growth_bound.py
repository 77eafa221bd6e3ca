"""Growth bound on the layers of a deep linear net: theorem 3 and its constants.

For whitened inputs, squared error and tau = 1, the strength `U_l = (|W_l|_F + gap)^L` of every
layer obeys `dU/dt <= L U^(2-2/L) (M - kappa2 U)` with `M = (2 kappa1 + 1) |sigma_yx|_F`, provided
that over the run

    gap    >= every difference of two layer norms,
    kappa1 >= |W_L...W_1|_F / |sigma_yx|_F,
    kappa2 <= |W_L...W_1|_F / U_l for every layer.

Then the solution of the equality with start `U_l(0)` is an upper bound on `U_l(t)`. The solution
with the largest `U_l(0)` as its start bounds every layer, and so the product of the layer norms.

Source: Basu, Mukherjee & Vasudevan, "Layer Dynamics of Linearised Neural Nets", theorem 3. Where a
statement of the paper does not hold as printed, the corrected form has the plain name and the
printed one carries `_as_written`.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.special import boxcox, hyp2f1

from neuralrace.extensions.representation import short_repr

QUOTED_KAPPA1 = 0.98
"""kappa1 read off figure 1 (i) by the paper (section 4), for the two-layer net."""

QUOTED_KAPPA2 = 0.65
"""kappa2 read off figure 1 (i) by the paper (section 4), for the two-layer net."""


@dataclass(frozen=True)
class GrowthConstants:
    """The constants of theorem 3, each `(*runs)` and dimensionless but for `gap`.

    Attributes:
        gap: Largest difference of two layer norms, over time and pairs. This is the paper's Delta,
            which is not fixed at initialisation, although the paper says so.
        kappa1: Smallest constant for which the bound follows, `max_t |prod W| / |sigma_yx|`.
        kappa1_as_written: Largest constant the proof admits, `min_t |sigma_yx| / |prod W|`: the
            reciprocal of `kappa1`. The proof also admits any smaller one.
        kappa2: Largest constant for which the bound follows, `min |prod W| / U_l` over time and
            layers (the paper writes arg min for min).
    """

    gap: Float[np.ndarray, "*runs"]
    kappa1: Float[np.ndarray, "*runs"]
    kappa1_as_written: Float[np.ndarray, "*runs"]
    kappa2: Float[np.ndarray, "*runs"]

    __repr__ = short_repr


@dataclass(frozen=True)
class GrowthLaw:
    """Parameters of eq. 17 with equality, `dU/dt = L U^(2-2/L) (M - kappa2 U)`.

    Attributes:
        depth: Number of weight layers L.
        kappa1: As in `GrowthConstants`, `(*#runs)`.
        kappa2: As in `GrowthConstants`, `(*#runs)`.
        sigma_norm: `|sigma_yx|_F`, `(*#runs)`.
    """

    depth: int
    kappa1: Float[np.ndarray, "*_"] | float
    kappa2: Float[np.ndarray, "*_"] | float
    sigma_norm: Float[np.ndarray, "*_"] | float

    __repr__ = short_repr

    @property
    def limit(self) -> Float[np.ndarray, "*_"]:
        """`M = (2 kappa1 + 1) |sigma_yx|`."""
        return np.asarray((2 * self.kappa1 + 1) * self.sigma_norm)

    @property
    def plateau(self) -> Float[np.ndarray, "*_"]:
        """The strength `M / kappa2` at which growth stops."""
        return np.asarray(self.limit / self.kappa2)


def layer_strength(
    norms: Float[np.ndarray, "*runs time layer"], gap: Float[np.ndarray, "*runs"]
) -> Float[np.ndarray, "*runs time layer"]:
    """Return `U_l = (|W_l|_F + gap)^L`, at least the product of all layer norms (eq. 16)."""
    return (norms + gap[..., None, None]) ** norms.shape[-1]


def growth_constants(
    norms: Float[np.ndarray, "*runs time layer"],
    product_norm: Float[np.ndarray, "*runs time"],
    sigma_norm: Float[np.ndarray, "*#runs"] | float,
) -> GrowthConstants:
    """Compute the constants of theorem 3 from recorded trajectories.

    Args:
        norms: `|W_l(t)|_F`.
        product_norm: `|W_L(t)...W_1(t)|_F`, positive.
        sigma_norm: `|sigma_yx|_F`.
    """
    gap = np.asarray(np.ptp(norms, axis=-1).max(axis=-1))
    kappa1 = np.asarray(product_norm.max(axis=-1) / sigma_norm)
    strongest = layer_strength(norms, gap).max(axis=-1)
    kappa2 = np.asarray((product_norm / strongest).min(axis=-1))
    return GrowthConstants(gap, kappa1, np.asarray(1 / kappa1), kappa2)


def residual_slack(
    residual_norm: Float[np.ndarray, "*#runs"] | float,
    product_norm: Float[np.ndarray, "*#runs"] | float,
    sigma_norm: Float[np.ndarray, "*#runs"] | float,
    kappa1: Float[np.ndarray, "*#runs"] | float,
) -> Float[np.ndarray, "*runs"]:
    """Return `(2 kappa1 + 1)|sigma_yx| - |P| - |sigma_yx - P|` with `P = W_L...W_1`.

    The step before eq. 21 needs a non-negative value, which holds if `kappa1 |sigma_yx| >= |P|`.
    With the proof's definition, `kappa1 |P| <= |sigma_yx|`, it can be negative when
    `|P| > |sigma_yx|`.
    """
    return np.asarray((2 * kappa1 + 1) * sigma_norm - product_norm - residual_norm)


def growth_rate_bound(
    strength: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs"]:
    """Return `L U^(2-2/L) (M - kappa2 U)`, the largest dU/dt at strength U (eq. 17)."""
    power = 2 - 2 / law.depth
    return np.asarray(law.depth * strength**power * (law.limit - law.kappa2 * strength))


def growth_bound(
    time: Float[np.ndarray, " time"],
    u0: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs time"]:
    """Return the curve U(t) that solves eq. 17 with equality and `U(0) = u0`.

    A run whose constants are not finite, because it diverged, has NaN and does not affect others.

    Args:
        time: Increasing flow times (tau = 1), not negative.
        u0: Initial strength, positive.
        law: Parameters of eq. 17, with a positive kappa2.

    Raises:
        ValueError: If `u0` or `kappa2` is not positive, or `time` is negative or not increasing.
        RuntimeError: If the solver fails.
    """
    if np.any(time < 0) or np.any(np.diff(time) <= 0):
        raise ValueError("time must be non-negative and strictly increasing")
    scaled = _scaled(u0, law)
    curves = np.full((*scaled[0].shape, time.size), np.nan)
    solvable = np.logical_and.reduce(np.isfinite(scaled))
    if not solvable.any():
        return curves
    x0, plateau, rate = (values[solvable] for values in scaled)
    side = np.sign(1 - x0)

    # In y = log(x / |1 - x|) the equation x' = rate x^(2-2/L) (1 - x) becomes y' = rate x^(1-2/L):
    # no stiffness at the plateau, where y grows linearly, and one formula on either side of it.
    def fraction(y):
        return 1 / (1 + side * np.exp(-y))

    def velocity(_, y):
        return rate * fraction(y) ** (1 - 2 / law.depth)

    y0 = np.log(x0) - np.log(np.where(side == 0, 1.0, np.abs(1 - x0)))
    span = (0.0, max(float(time[-1]), np.finfo(float).tiny))
    solution = solve_ivp(velocity, span, y0, "DOP853", dense_output=True, rtol=1e-11, atol=1e-11)
    if not solution.success:
        raise RuntimeError(f"the growth bound could not be integrated: {solution.message}")
    curves[solvable] = (plateau * fraction(solution.sol(time).T)).T
    return curves


def fastest_time(
    u: Float[np.ndarray, "*#runs"] | float,
    u0: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs"]:
    """Return the least flow time in which a strength can grow from `u0` to `u` at finite depth.

    The integral of `dU / (L U^(2-2/L) (M - kappa2 U))`, in closed form. Zero where `u <= u0`,
    infinite where `u` lies at or beyond `M / kappa2`.

    Raises:
        ValueError: If `u0` or `kappa2` is not positive.

    Source: replaces eq. 18, whose limit of infinite depth is no bound at finite depth.
    """
    x0, plateau, rate = _scaled(u0, law)
    x = u / plateau
    q = 2 / law.depth

    def antiderivative(x):
        # of x^(q-2)/(1-x) = x^(q-2) + x^(q-1)/(1-x); boxcox is the power, or the logarithm at q = 1
        return boxcox(x, q - 1) + x**q / q * hyp2f1(1, q, 1 + q, x)

    with np.errstate(invalid="ignore"):
        elapsed = (antiderivative(x) - antiderivative(x0)) / rate
    return np.where(x <= x0, 0.0, np.where(x >= 1, np.inf, elapsed))


def rise_sharpness(
    u: Float[np.ndarray, "*#runs"] | float,
    u0: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs"]:
    """Return the largest rate of eq. 17 between `u0` and `u` over the mean rate between them.

    The value is 1 for steady growth, larger for growth that is slow first, and NaN where `u <= u0`.
    The rate peaks at the share `q / (q + 1)` of the plateau, with `q = 2 - 2/L`.

    Raises:
        ValueError: If `u0` or `kappa2` is not positive.
    """
    power = 2 - 2 / law.depth
    steepest = np.clip(power / (power + 1) * law.plateau, u0, np.maximum(u, u0))
    rise = np.where(u > u0, u - u0, np.nan)
    return np.asarray(growth_rate_bound(steepest, law) * fastest_time(u, u0, law) / rise)


def fastest_time_deep(
    u: Float[np.ndarray, "*#runs"] | float,
    u0: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs"]:
    """Return the time of eq. 18, integrated correctly from eq. 23, which has `U^2` for `U^(2-2/L)`.

    At finite depth this is a lower bound on the time only for `u0 >= 1`: below one, `U^2` is the
    smaller of the two and the formula overstates the time. NaN where `u` is at or beyond
    `M / kappa2`.
    """
    limit, kappa2 = law.limit, law.kappa2
    with np.errstate(invalid="ignore", divide="ignore"):
        odds = np.log(u * (limit - kappa2 * u0) / (u0 * (limit - kappa2 * u)))
    elapsed = (kappa2 / limit**2 * odds + (1 / u0 - 1 / u) / limit) / law.depth
    return np.where(kappa2 * u < limit, elapsed, np.nan)


def fastest_time_as_written(
    u: Float[np.ndarray, "*#runs"] | float,
    u0: Float[np.ndarray, "*#runs"] | float,
    law: GrowthLaw,
) -> Float[np.ndarray, "*runs"]:
    """Return the time of eq. 18 as printed: kappa2 multiplies all terms, and the log has none.

    It solves eq. 23 for `kappa2 = 1` only. The value is NaN where `u >= M`.
    """
    return np.asarray(law.kappa2 * fastest_time_deep(u, u0, replace(law, kappa2=1.0)))


def _scaled(u, law):
    """Return x = U / (M / kappa2), that plateau, and the rate of `x' = rate x^(2-2/L) (1 - x)`."""
    if np.any(np.asarray(u) <= 0) or np.any(np.asarray(law.kappa2) <= 0):
        raise ValueError("the initial strength and kappa2 must be positive")
    u, plateau, limit = np.broadcast_arrays(u, law.plateau, law.limit)
    return u / plateau, plateau, law.depth * limit * plateau ** (1 - 2 / law.depth)
