"""Marginal distributions: a single input x = f(z), with z standard normal."""

from abc import ABC, abstractmethod
from functools import cache
from math import asin, pi, sqrt
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.extensions.model import ConfigModel

REACH = 10.0
"""Limit of quadrature in standard deviations; the probability beyond it is 2e-23."""
HALVINGS = 24
"""Quadrature panels on either side of zero; their edges halve in distance towards zero."""
ORDER = 24
"""Number of Gauss-Legendre nodes in a panel."""


class Marginal(ConfigModel, ABC):
    """Distribution of x = f(z), with zero mean and unit variance; f is odd and increasing."""

    name: str

    @abstractmethod
    def shape(self, z: Any, *parameters: Any) -> Any:
        """f(z) of every entry, for the values of `parameters`.

        Args:
            z: array of NumPy or JAX, of any shape.
            parameters: numbers or traced scalars.

        Returns:
            Array of the same library, shape and precision.
        """

    @property
    def parameters(self) -> tuple[float, ...]:
        """Numbers in f: marginals that differ only in these share one compiled program."""
        return ()

    def transfer(self, z: Any) -> Any:
        """f(z) of every entry of an array of NumPy or JAX."""
        return self.shape(z, *self.parameters)

    @abstractmethod
    def correlation(self, rho: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """<f(z_1) f(z_2)> of standard normal variables with correlations rho in [-1, 1]."""

    @property
    def quadrature(self) -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
        """Values of x and their weights: <h(x)> is the sum of weight times h(value).

        The rule has Gauss-Legendre panels in z. Their lengths halve towards zero, which resolves
        fast changes of f or h near zero.
        """
        z, weights = _normal_quadrature()
        return self.transfer(z), weights

    @property
    def kurtosis(self) -> float:
        """Excess kurtosis <x^4> - 3."""
        values, weights = self.quadrature
        return float(weights @ values**4) - 3


class Erf(Marginal):
    """x = erf(g z)/Z with Z^2 = (2/pi) asin(2 g^2/(1 + 2 g^2)).

    Correlations rho of z become asin(a rho)/asin(a), a = 2 g^2/(1 + 2 g^2). The excess kurtosis
    falls from 0 at low gain to -2 at high gain; at g = 1/sqrt(2), x is uniformly distributed.
    """

    name: Literal["erf"]
    gain: Annotated[float, Field(ge=1e-6, le=1e6)] = 3.0
    """Gain g; beyond the bounds, gaussian and ising are the same to 1e-5."""
    convention: Literal["erf", "erf_root_two"] = "erf"
    """Argument of erf: g z (erf) or g z/sqrt(2) (erf_root_two). For the same distribution, the gain
    under erf_root_two is sqrt(2) times the gain under erf."""

    @property
    def _slope(self) -> float:
        return self.gain if self.convention == "erf" else self.gain / sqrt(2)

    @property
    def _amplitude(self) -> float:
        """The number a of the class docstring."""
        return 2 * self._slope**2 / (1 + 2 * self._slope**2)

    @property
    def parameters(self) -> tuple[float, ...]:
        """Slope and normalisation Z."""
        return self._slope, sqrt(2 / pi * asin(self._amplitude))

    def shape(self, z: Any, *parameters: Any) -> Any:
        """See `Marginal.shape`."""
        slope, normalisation = parameters
        return _special(z).erf(slope * z) / normalisation

    def correlation(self, rho: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """See `Marginal.correlation`."""
        return np.arcsin(self._amplitude * rho) / asin(self._amplitude)


class Gaussian(Marginal):
    """x = z: the limit of `Erf` at low gain."""

    name: Literal["gaussian"]

    def shape(self, z: Any, *parameters: Any) -> Any:
        """See `Marginal.shape`."""
        return z

    def correlation(self, rho: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """See `Marginal.correlation`."""
        return rho


class Ising(Marginal):
    """x = sign(z): the limit of `Erf` at high gain, excess kurtosis -2."""

    name: Literal["ising"]

    def shape(self, z: Any, *parameters: Any) -> Any:
        """See `Marginal.shape`."""
        return z.__array_namespace__().sign(z)

    def correlation(self, rho: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """See `Marginal.correlation`."""
        return 2 / pi * np.arcsin(rho)

    @property
    def quadrature(self) -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
        """The two possible values."""
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])


class Laplace(Marginal):
    """x with density exp(-sqrt(2) |x|)/sqrt(2), from quantiles of z; excess kurtosis +3."""

    name: Literal["laplace"]

    def shape(self, z: Any, *parameters: Any) -> Any:
        """See `Marginal.shape`."""
        array = z.__array_namespace__()
        return -array.sign(z) * array.log(_special(z).erfc(array.abs(z) / sqrt(2))) / sqrt(2)

    def correlation(self, rho: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """See `Marginal.correlation`; one quadrature for each distinct value."""
        distinct, which = np.unique(rho, return_inverse=True)
        return np.array([self._covariance(value) for value in distinct])[which].reshape(rho.shape)

    def _covariance(self, rho: float) -> float:
        """<f(z_1) f(z_2)> in polar coordinates, z_1 = r cos(t) and z_2 = r cos(t - arccos rho).

        f has a kink at zero, so panels end at the angles where z_1 or z_2 is zero.
        """
        turn = np.arccos(rho)
        r, r_weights = _panels([0.0, REACH / 2, 3 * REACH / 2])
        t, t_weights = _panels([turn - pi / 2, pi / 2, turn + pi / 2])
        product = self.transfer(np.outer(r, np.cos(t))) * self.transfer(
            np.outer(r, np.cos(t - turn))
        )
        return float(r_weights * r * np.exp(-(r**2) / 2) @ product @ t_weights) / pi


def _special(z: Any) -> Any:
    """Module of special functions for an array of NumPy or of JAX."""
    if isinstance(z, np.ndarray):
        from scipy import special  # configuration must load without SciPy and JAX
    else:
        from jax.scipy import special
    return special


def _panels(edges: Any) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights of the intervals between successive edges."""
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    halves = np.diff(edges)[:, None] / 2
    return (np.array(edges)[:-1, None] + halves * (1 + nodes)).ravel(), (halves * weights).ravel()


@cache
def _normal_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the standard normal distribution."""
    z, weights = _panels([0.0, *REACH / 2.0 ** np.arange(HALVINGS)[::-1]])
    weights = weights * np.exp(-(z**2) / 2) / sqrt(2 * pi)
    return np.concatenate([-z[::-1], z]), np.concatenate([weights[::-1], weights])
