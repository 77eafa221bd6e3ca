"""Single pulses on a ring, in two classes with different widths."""

from collections.abc import Callable
from math import lcm
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import model_validator

from neuralrace.datasets.base import Data, Dataset, Mixture, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive

MOST_SAMPLES = 100_000
"""Largest number of samples that hold every pulse equally often."""


class SinglePulse(Dataset):
    """Single pulses, two classes of equal weight (notes on localisation, sec. 1).

    Inputs are 1 on an arc of the ring and 0 elsewhere. The start of the arc is uniform around the
    ring, and its width is uniform over the range of the class. For a width w, an input is 1 with
    probability w/L. Two inputs at distance d are both 1 with probability
    (max(w - d, 0) + max(w - L + d, 0))/L.
    """

    name: Literal["single_pulse"]
    inputs: Positive = 40
    """Number L of input units around the ring."""
    widths: tuple[tuple[int, int], tuple[int, int]] = ((11, 11), (3, 3))
    """Smallest and largest width of class one, and of class two."""
    complement: bool = False
    """Whether x is replaced by 1 - x with probability 1/2."""
    support: Literal["zero_one", "plus_minus"] = "zero_one"
    """Values of inputs off and on the pulse: 0 and 1, or -1 and 1."""
    targets: tuple[float, float] = (1.0, 0.0)
    """Targets of class one and class two."""

    @model_validator(mode="after")
    def _widths_fit_the_ring(self) -> "SinglePulse":
        for low, high in self.widths:
            if not 1 <= low <= high <= self.inputs:
                raise UserError(
                    f"is no range of widths on a ring of {self.inputs} inputs",
                    key="widths",
                    value=(low, high),
                    remedy=f"use a smallest and a largest width from 1 to {self.inputs}",
                )
        samples = 2 * self._class_samples()
        if samples > MOST_SAMPLES:
            raise UserError(
                f"{samples} samples hold every pulse equally often, and at most {MOST_SAMPLES} are "
                "allowed",
                key="widths",
                value=self.widths,
                remedy="use two ranges of the same size, smaller ranges, or fewer inputs",
            )
        return self

    @property
    def sizes(self) -> Sizes:
        """As many samples as hold every pulse equally often."""
        return Sizes(2 * self._class_samples(), self.inputs, 1)

    def _class_samples(self) -> int:
        """Number of samples of a class that hold each of its pulses equally often."""
        numbers = (high - low + 1 for low, high in self.widths)
        return self.inputs * (1 + self.complement) * lcm(*numbers)

    def _supported(self, x: Any) -> Any:
        """Maps inputs in {0, 1} to the support."""
        return x if self.support == "zero_one" else 2 * x - 1

    def load(self) -> Data:
        """Class one, then class two; each holds all of its pulses equally often."""
        steps = np.arange(self.inputs)
        place = (steps - steps[:, None]) % self.inputs  # (start, input)
        classes = []
        for low, high in self.widths:
            widths = np.arange(low, high + 1)
            pulses = (place < widths[:, None, None]).reshape(-1, self.inputs).astype(float)
            if self.complement:
                pulses = np.vstack([pulses, 1 - pulses])
            classes.append(np.tile(pulses, (self._class_samples() // len(pulses), 1)))
        return Data(
            x=self._supported(np.vstack(classes)),
            y=np.repeat(self.targets, self._class_samples())[:, None],
        )

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]]:
        """New samples, of either class with probability 1/2."""
        import jax  # imported here because configuration must load without JAX
        import jax.numpy as jnp

        def sample(widths: Any, targets: Any, levels: Any, key: Any, count: int) -> tuple[Any, Any]:
            class_key, width_key, start_key, complement_key = jax.random.split(key, 4)
            which = jax.random.bernoulli(class_key, shape=(count, 1)).astype(int)
            low, high = jnp.asarray(widths)[which].transpose(2, 0, 1)
            width = jax.random.randint(width_key, (count, 1), low, high + 1)
            start = jax.random.randint(start_key, (count, 1), 0, self.inputs)
            pulse = (jnp.arange(self.inputs)[None] - start) % self.inputs < width
            if self.complement:
                pulse ^= jax.random.bernoulli(complement_key, shape=(count, 1))
            return jnp.asarray(levels)[pulse.astype(int)], jnp.asarray(targets)[which]

        levels = self._supported(np.arange(2.0))
        return jax.tree_util.Partial(sample, np.array(self.widths), np.array(self.targets), levels)

    def mixture(self) -> Mixture:
        """Means and second moments in closed form."""
        moments = [self._moments(low, high) for low, high in self.widths]
        means, covariances = zip(*moments, strict=True)
        return Mixture(
            targets=np.array(self.targets),
            covariances=np.stack(covariances),
            means=np.stack(means),
        )

    def _moments(
        self, low: int, high: int
    ) -> tuple[Float[np.ndarray, " input"], Float[np.ndarray, "input input"]]:
        """<x> and <x x^T> of a class with widths from `low` to `high`."""
        steps = np.arange(self.inputs)
        distance = np.abs(steps - steps[:, None])
        width = np.arange(low, high + 1)[:, None, None]
        both = np.maximum(width - distance, 0) + np.maximum(width - self.inputs + distance, 0)
        mean, second = width.mean() / self.inputs, both.mean(axis=0) / self.inputs
        if self.complement:
            mean, second = 1 / 2, second + 1 / 2 - mean
        if self.support == "plus_minus":
            mean, second = 2 * mean - 1, 4 * second - 4 * mean + 1
        return np.full(self.inputs, mean), second
