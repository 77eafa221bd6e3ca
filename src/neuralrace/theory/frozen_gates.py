"""Gated linear networks of one layer with frozen gates: exact learning dynamics.

The network of K units is yhat = (1/K) sum_k g_k(x) w_k.x with a scalar target y. The loss is
1/2 <(y - yhat)^2>. With b_k = <g_k y x> and a_kl = <g_k g_l x x^T>, the vector w of the weights of
all units obeys

    dw/dt = (b - a w/K)/K,    w(t) = K a^+ b + exp(-a t/K^2)(w(0) - K a^+ b)

up to components of w(0) that a maps to 0, which never move. Time is gradient-flow time, tau = 1.
An eigenvalue of a counts as 0 if it is at most (unknowns) x (machine precision) x (largest one).

Source: notes on localisation, sections 3.1 to 3.5. The readout's 1/K is restored in the second
moments and initial conditions are kept; the equations as printed are in `printed_equations`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.second_moments import eigenmodes
from neuralrace.extensions.representation import short_repr
from neuralrace.theory.half_spaces import half_space_correlations, half_space_means

CHUNK = 2**12
"""Most samples whose gated inputs are in memory at a time: those of two gates then stay in the
cache of a processor."""


@dataclass(frozen=True)
class MomentModes:
    """Eigenmodes of the second moment of gated inputs, and the least-squares weights in them.

    Attributes:
        values: eigenvalues, ascending; 0 for null modes.
        vectors: eigenvectors in columns.
        solution: least-squares weights in the modes, (<x y> in the mode)/value; 0 for null modes.
    """

    values: Float[np.ndarray, " mode"]
    vectors: Float[np.ndarray, "feature mode"]
    solution: Float[np.ndarray, " mode"]

    __repr__ = short_repr

    @property
    def rank(self) -> int:
        """Number of modes that are not null."""
        return int(np.count_nonzero(self.values))

    @property
    def explained(self) -> float:
        """The part of <y^2> that least squares explains, b^T a^+ b."""
        return float(self.values @ self.solution**2)


def moment_modes(
    second: Float[np.ndarray, "feature feature"],
    cross: Float[np.ndarray, " feature"],
    y_power: float | None = None,
) -> MomentModes:
    """Eigenmodes of a second moment <x x^T> with the correlations <x y>.

    Args:
        second: <x x^T>.
        cross: <x y>.
        y_power: <y^2>; with it, correlations in null modes are checked to be within rounding.

    Raises:
        ValueError: if the second moment is not symmetric or positive semidefinite, or no targets
            of this power have these correlations.
    """
    values, vectors, rounding = eigenmodes(second, "second moment")
    coefficients = cross @ vectors
    null = values == 0
    # By Cauchy and Schwarz, |<v.x y>|^2 <= <(v.x)^2> <y^2>.
    if y_power is not None and np.any(coefficients[null] ** 2 > rounding * y_power):
        raise ValueError("inputs correlate with y in a direction in which they do not vary")
    solution = np.divide(coefficients, values, where=~null, out=np.zeros_like(values))
    return MomentModes(values, vectors, solution)


def gated_moments(
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
    gates: Float[np.ndarray, "unit sample"],
) -> tuple[Float[np.ndarray, "unit input"], Float[np.ndarray, "unit input unit input"], float]:
    """Moments b = <g_k y x>, a = <g_k g_l x x^T> and <y^2> of samples.

    Args:
        x: inputs, a sample per row.
        y: targets.
        gates: value of every gate on every sample.

    Source: notes on localisation, eqs. 5 and 6.
    """
    (units, samples), inputs = gates.shape, x.shape[1]
    a = np.zeros((units, inputs, units, inputs))
    binary = np.isin(gates, (0, 1)).all()
    for first in range(0, samples, CHUNK):
        part = slice(first, first + CHUNK)
        for unit, gate in enumerate(gates[:, part]):
            # two gates are open together on few samples, and their block is symmetric
            on = np.flatnonzero(gate)
            behind, products = x[part][on], gates[: unit + 1, part][:, on] * gate[on]
            for other, product in enumerate(products):
                both = np.flatnonzero(product)
                gated = behind[both]
                weighted = gated if binary else gated * product[both, None]
                a[unit, :, other] += gated.T @ weighted
    for unit in range(units):
        a[:unit, :, unit] = a[unit, :, :unit].swapaxes(0, 1)
    return (gates * y) @ x / samples, a / samples, float(np.mean(y**2))


@dataclass(frozen=True)
class FrozenGates:
    """A gated linear network with frozen gates, solved from its moments.

    All results share one eigendecomposition, so the arrays of moments must not be changed later.
    The weights of a unit whose gate never fires stay at their initial values.

    Attributes:
        b: <g_k y x>.
        a: <g_k g_l x x^T>.
        y_power: <y^2>.

    Raises:
        ValueError: when modes are first computed, if no inputs and targets have these moments.

    Source: notes on localisation, section 3.3.
    """

    b: Float[np.ndarray, "unit input"]
    a: Float[np.ndarray, "unit input unit input"]
    y_power: float

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.a.shape != 2 * self.b.shape:
            raise ValueError(f"a of shape {self.a.shape} does not fit b of shape {self.b.shape}")

    @classmethod
    def from_samples(
        cls,
        x: Float[np.ndarray, "sample input"],
        y: Float[np.ndarray, " sample"],
        gates: Float[np.ndarray, "unit sample"],
    ) -> "FrozenGates":
        """The network on samples, each with the same weight.

        Args:
            x: inputs, a sample per row.
            y: targets.
            gates: value of every gate on every sample.
        """
        return cls(*gated_moments(x, y, gates))

    @classmethod
    def from_gaussian(
        cls,
        covariances: Float[np.ndarray, "class input input"],
        targets: Float[np.ndarray, " class"],
        normals: Float[np.ndarray, "unit input"],
    ) -> "FrozenGates":
        """The network with gates 1(u_k.x >= 0) on a balanced mixture of centred Gaussian classes.

        Args:
            covariances: covariance of each class.
            targets: target y of each class.
            normals: normal u_k of each unit.

        Raises:
            ValueError: if a covariance is not symmetric or positive semidefinite.

        Source: derived here; see `half_spaces`.
        """
        means = [half_space_means(covariance, normals) for covariance in covariances]
        b = np.tensordot(targets, means, axes=1) / len(targets)
        seconds = [half_space_correlations(covariance, normals) for covariance in covariances]
        return cls(b, np.mean(seconds, axis=0), float(np.mean(targets**2)))

    @cached_property
    def modes(self) -> MomentModes:
        """Eigenmodes of a, over the weights of all units."""
        return moment_modes(self.a.reshape(2 * (self.b.size,)), self.b.ravel(), self.y_power)

    @property
    def rank(self) -> int:
        """Number of directions in which weights move."""
        return self.modes.rank

    @property
    def optimal_loss(self) -> float:
        """Minimum of the loss for these gates, (<y^2> - b^T a^+ b)/2.

        Source: notes on localisation, eq. 14, for half of the squared error.
        """
        return (self.y_power - self.modes.explained) / 2

    def weights(
        self, time: Float[np.ndarray, " time"], start: Float[np.ndarray, "*runs unit input"]
    ) -> Float[np.ndarray, "*runs time unit input"]:
        """Weights under gradient flow.

        Args:
            time: gradient-flow time, in any order.
            start: initial weights.

        Source: corrects the notes on localisation, eqs. 7 to 10.
        """
        return _reshaped(_flow(time, self.modes, len(self.b), _flat(start)), self.b)

    def descent(
        self,
        step: Int[np.ndarray, " time"],
        learning_rate: float,
        start: Float[np.ndarray, "*runs unit input"],
    ) -> Float[np.ndarray, "*runs time unit input"]:
        """Exact weights under full-batch gradient descent: powers of 1 - learning_rate a/K^2.

        A learning rate that is too large returns infinite or NaN weights and raises no error.

        Args:
            step: numbers of steps at which to record, in any order, from 0.
            learning_rate: gradient-flow time per step.
            start: initial weights.

        Raises:
            ValueError: if a number of steps is negative.
        """
        if np.any(step < 0):
            raise ValueError("step must not be negative")
        shrinkage = learning_rate * self.modes.values / len(self.b) ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            kept = (1 - shrinkage) ** step[:, None]
            smooth = np.expm1(step[:, None] * np.log1p(-np.minimum(shrinkage, 0.5)))
            learned = np.where(shrinkage < 0.5, -smooth, 1 - kept)
            path = _path(kept, learned, self.modes, len(self.b), _flat(start))
        return _reshaped(path, self.b)

    def limit(
        self, start: Float[np.ndarray, "*runs unit input"]
    ) -> Float[np.ndarray, "*runs unit input"]:
        """Weights at convergence: K a^+ b plus the components of the start that a maps to 0.

        Args:
            start: initial weights.

        Source: corrects the notes on localisation, after eq. 10.
        """
        moves = (self.modes.values > 0).astype(float)
        path = _path(1 - moves[None], moves[None], self.modes, len(self.b), _flat(start))
        return _reshaped(path, self.b)[..., 0, :, :]

    def loss(self, weights: Float[np.ndarray, "*runs unit input"]) -> Float[np.ndarray, "*runs"]:
        """Loss <y^2>/2 - b.w/K + w^T a w/(2 K^2) of any weights.

        Args:
            weights: weights of all units.
        """
        scaled = _flat(weights) / len(self.b)
        b = self.b.ravel()
        return np.asarray(
            self.y_power / 2
            + (scaled * (scaled @ self.a.reshape(b.size, b.size) / 2 - b)).sum(axis=-1)
        )


def exclusive_weights(
    time: Float[np.ndarray, " time"],
    b1: Float[np.ndarray, " input"],
    a11: Float[np.ndarray, "input input"],
    units: int,
    start: Float[np.ndarray, "*runs input"],
) -> Float[np.ndarray, "*runs time input"]:
    """Weights under gradient flow of an exclusive unit, which is never on together with another.

    They converge to K times least squares on the samples of the unit's gate.

    Args:
        time: gradient-flow time.
        b1: <g_1 y x>.
        a11: <g_1 x x^T>.
        units: number of units K of the whole network.
        start: initial weights of the unit.

    Raises:
        ValueError: if `a11` is not symmetric or positive semidefinite.

    Source: corrects the notes on localisation, section 3.4.
    """
    return _flow(time, moment_modes(a11, b1), units, start)


def redundant_weights(
    time: Float[np.ndarray, " time"],
    b1: Float[np.ndarray, " input"],
    a11: Float[np.ndarray, "input input"],
    units: int,
    first: Float[np.ndarray, "*runs input"],
    second: Float[np.ndarray, "*runs input"],
) -> tuple[Float[np.ndarray, "*runs time input"], Float[np.ndarray, "*runs time input"]]:
    """Weights under gradient flow of two redundant units, which have the same gate.

    No other unit is on together with them. Their difference is conserved; their mean converges to
    K/2 times least squares on the samples of the gate.

    Args:
        time: gradient-flow time.
        b1: <g_1 y x>.
        a11: <g_1 x x^T>.
        units: number of units K of the whole network.
        first: initial weights of one unit.
        second: initial weights of the other.

    Raises:
        ValueError: if `a11` is not symmetric or positive semidefinite.

    Source: corrects the notes on localisation, section 3.5.
    """
    mean = _flow(time, moment_modes(2 * a11, b1), units, (first + second) / 2)
    half_difference = ((first - second) / 2)[..., None, :]
    return mean + half_difference, mean - half_difference


def _flow(
    time: Float[np.ndarray, " time"],
    modes: MomentModes,
    units: int,
    start: Float[np.ndarray, "*runs feature"],
) -> Float[np.ndarray, "*runs time feature"]:
    exponent = -time[:, None] * modes.values / units**2
    return _path(np.exp(exponent), -np.expm1(exponent), modes, units, start)


def _path(
    kept: Float[np.ndarray, "time mode"],
    learned: Float[np.ndarray, "time mode"],
    modes: MomentModes,
    units: int,
    start: Float[np.ndarray, "*runs feature"],
) -> Float[np.ndarray, "*runs time feature"]:
    """Weights from the shares of the start that is kept and of K a^+ b that is learned by mode."""
    initial = (start @ modes.vectors)[..., None, :]
    return (kept * initial + learned * (units * modes.solution)) @ modes.vectors.T


def _flat(weights: Float[np.ndarray, "*runs unit input"]) -> Float[np.ndarray, "*runs feature"]:
    return weights.reshape(*weights.shape[:-2], -1)


def _reshaped(
    path: Float[np.ndarray, "*runs time feature"], like: Float[np.ndarray, "unit input"]
) -> Float[np.ndarray, "*runs time unit input"]:
    return path.reshape(*path.shape[:-1], *like.shape)
