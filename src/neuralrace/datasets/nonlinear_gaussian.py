"""Nonlinear Gaussian processes on a ring, in two classes with different correlation lengths."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import ConfigDict, Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Mixture, Sizes
from neuralrace.datasets.marginals import Erf, Marginal
from neuralrace.datasets.random_streams import generator, standard_normal
from neuralrace.errors import UserError
from neuralrace.extensions.registry import ChoiceOf

ROUNDING = float(np.finfo(np.float32).eps)
"""Relative size of eigenvalues that single precision cannot distinguish from zero."""


class NonlinearGaussian(Dataset):
    """Nonlinear Gaussian process, two classes of equal weight (notes on localisation, sec. 1).

    Inputs are x_i = f(z_i), where `marginal` sets f and gives unit variance. Within a class, z is
    normal with covariance C_ij = exp(-d^2/xi^2). Here d is the distance of i and j around the ring,
    and xi is the correlation length of the class. <x_i x_j> is a function of C_ij alone.

    C is circulant. Its eigenvalues become negative when xi is comparable to the ring, so that C is
    no covariance. Negative eigenvalues up to 1.2e-7 of the largest are set to zero, and longer xi
    are refused. The limit for 40 inputs is 5.4.
    """

    model_config = ConfigDict(defer_build=True)
    has_input_distribution: ClassVar[bool] = True
    name: Literal["nonlinear_gaussian"]
    inputs: Annotated[int, Field(gt=0, le=10_000)] = 40
    """Number of input units around the ring."""
    xi: tuple[float, float] = (5.0, 1.0)
    """Correlation lengths of class one and class two, in inputs; up to an eighth of the ring is
    always possible."""
    marginal: Annotated[Marginal, ChoiceOf("datasets")] = Erf(name="erf")
    """Distribution of each single input."""
    targets: tuple[float, float] = (1.0, 0.0)
    """Targets of class one and class two."""
    samples: Annotated[int, Field(gt=0, multiple_of=2)] = 2000
    """Size of the fixed sample, an even number; the first half is class one."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the fixed sample."""

    @model_validator(mode="after")
    def _lengths_fit_the_ring(self) -> "NonlinearGaussian":
        for xi in self.xi:
            if not 0 < xi <= self.inputs:
                raise UserError(
                    f"is no correlation length on a ring of {self.inputs} inputs",
                    key="xi",
                    value=xi,
                    remedy=f"use a length above 0 and up to {self.inputs / 8:g}",
                )
        for xi, values in zip(self.xi, self._eigenvalues(), strict=True):
            if values.min() < -ROUNDING * values.max():
                raise UserError(
                    f"is too long for a ring of {self.inputs} inputs: exp(-d^2/xi^2) has the "
                    f"eigenvalue {values.min():.3g}",
                    key="xi",
                    value=xi,
                    remedy=f"use a length up to {self.inputs / 8:g}, or more inputs",
                )
        return self

    def _rows(self) -> Float[np.ndarray, "class input"]:
        """<z_0 z_i> of each class: the first row of C."""
        steps = np.arange(self.inputs)
        distance = np.minimum(steps, self.inputs - steps)
        with np.errstate(over="ignore"):  # the exponent overflows to -inf, and the result is zero
            return np.exp(-((distance / np.array(self.xi)[:, None]) ** 2))

    def _eigenvalues(self) -> Float[np.ndarray, "class frequency"]:
        """Eigenvalues of C for each class, in order of frequency."""
        return np.fft.rfft(self._rows()).real

    def _filters(self) -> Float[np.ndarray, "class frequency"]:
        """Filter that turns white noise into z, in order of frequency."""
        return np.sqrt(np.maximum(self._eigenvalues(), 0))

    @property
    def sizes(self) -> Sizes:
        """As configured."""
        return Sizes(self.samples, self.inputs, 1)

    def load(self) -> Data:
        """The fixed sample: class one, then class two."""
        half = self.samples // 2
        noise = generator(self.seed, "noise").normal(size=(2, half, self.inputs))
        z = np.fft.irfft(self._filters()[:, None] * np.fft.rfft(noise), self.inputs)
        return Data(
            x=self.marginal.transfer(z).reshape(self.samples, self.inputs),
            y=np.repeat(self.targets, half)[:, None],
        )

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]]:
        """New samples, of either class with probability 1/2."""
        import jax  # imported here because configuration must load without JAX
        import jax.numpy as jnp

        # White noise is white along the waves too. One product with them serves both classes; on
        # small rings it is faster than a Fourier transform.
        waves, frequencies = _waves(self.inputs)

        def sample(
            waves: Any, filters: Any, targets: Any, parameters: Any, key: Any, count: int
        ) -> tuple[Any, Any]:
            class_key, noise_key = jax.random.split(key)
            one = jax.random.bernoulli(class_key, shape=(count, 1))
            filters, targets = jnp.asarray(filters), jnp.asarray(targets)
            amplitudes = jnp.where(one, filters[:1], filters[1:])
            z = amplitudes * standard_normal(noise_key, (count, self.inputs)) @ jnp.asarray(waves)
            x = self.marginal.shape(z, *jnp.asarray(parameters))
            return x, jnp.where(one, targets[0], targets[1])

        numbers = self._filters()[:, frequencies], np.array(self.targets)
        parameters = np.array(self.marginal.parameters)
        return jax.tree_util.Partial(sample, waves, *numbers, parameters)

    def mixture(self) -> Mixture:
        """Means, which are zero, and covariances of f(z) in closed form.

        Negative eigenvalues are set to zero as in C, so that the matrices are covariances.
        """
        values = np.fft.rfft(self.marginal.correlation(self._rows())).real
        return Mixture(
            targets=np.array(self.targets),
            covariances=_circulants(np.fft.irfft(np.maximum(values, 0), self.inputs)),
            means=np.zeros((2, self.inputs)),
            marginal=self.marginal,
        )


def _circulants(rows: Float[np.ndarray, "class input"]) -> Float[np.ndarray, "class input input"]:
    """The symmetric circulant matrix with each first row."""
    apart = np.abs(np.subtract.outer(np.arange(rows.shape[1]), np.arange(rows.shape[1])))
    return rows[:, np.minimum(apart, rows.shape[1] - apart)]


def _waves(
    inputs: int,
) -> tuple[Float[np.ndarray, "wave input"], Int[np.ndarray, " wave"]]:
    """Orthonormal cosines and sines on the ring, and their frequencies."""
    cosines, sines = np.arange(inputs // 2 + 1), np.arange(1, (inputs + 1) // 2)
    frequencies = np.concatenate([cosines, sines])
    angles = 2 * np.pi / inputs * np.outer(frequencies, np.arange(inputs))
    waves = np.concatenate([np.cos(angles[: len(cosines)]), np.sin(angles[len(cosines) :])])
    return waves / np.linalg.norm(waves, axis=1, keepdims=True), frequencies
