"""Gaussian mixture with a random linear teacher."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator, standard_normal
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive


class GaussianMixture(Dataset):
    """Mixture of Gaussians with random covariances, and a linear teacher (Basu et al., sec. 4).

    Inputs are centred, and `whiten` makes sigma_xx = I, as eq. 14 assumes. Targets are the product
    of a matrix with standard normal entries and the centred or whitened inputs.
    """

    example: ClassVar[Mapping[str, Any]] = {"samples_per_component": 10, "inputs": 4}
    name: Literal["gaussian_mixture"]
    components: Positive = 3
    """Number of Gaussians in the mixture."""
    samples_per_component: Positive = 400
    """Number of samples from each Gaussian."""
    inputs: Positive = 10
    """Input units."""
    outputs: Positive = 3
    """Output units."""
    whiten: bool = True
    """Whether inputs are whitened; they are always centred."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the mixture, the samples and the teacher."""

    @model_validator(mode="after")
    def _enough_to_whiten(self) -> "GaussianMixture":
        samples = self.components * self.samples_per_component
        if self.whiten and samples <= self.inputs:
            raise UserError(
                f"{samples} samples (components x samples_per_component) cannot be whitened in "
                f"{self.inputs} inputs",
                key="whiten",
                value=True,
                remedy="use more samples than inputs, or whiten: false",
            )
        return self

    @property
    def sizes(self) -> Sizes:
        """As configured."""
        return Sizes(self.components * self.samples_per_component, self.inputs, self.outputs)

    def _parameters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Component means, square roots of component covariances, and the teacher."""
        rng = generator(self.seed, "mixture")
        means = rng.normal(size=(self.components, self.inputs))
        roots = []
        for _ in range(self.components):
            rotation, _ = np.linalg.qr(rng.normal(size=(self.inputs, self.inputs)))
            roots.append(rotation * rng.uniform(0.5, 2.0, size=self.inputs))
        teacher = generator(self.seed, "teacher").normal(size=(self.outputs, self.inputs))
        return means, np.stack(roots), teacher

    def _raw(self) -> np.ndarray:
        means, roots, _ = self._parameters()
        noise = generator(self.seed, "samples").normal(
            size=(self.components, self.samples_per_component, self.inputs)
        )
        return (means[:, None] + noise @ roots.transpose(0, 2, 1)).reshape(-1, self.inputs)

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and linear map that turn raw samples into inputs."""
        raw = self._raw()
        centre = raw.mean(axis=0)
        if not self.whiten:
            return centre, np.eye(self.inputs)
        covariance = (raw - centre).T @ (raw - centre) / len(raw)
        values, vectors = np.linalg.eigh(covariance)
        return centre, (vectors / np.sqrt(values)) @ vectors.T

    def load(self) -> Data:
        """The fixed sample, centred and optionally whitened."""
        centre, whitening = self._affine()
        x = (self._raw() - centre) @ whitening
        return Data(x=x, y=x @ self._parameters()[2].T)

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]]:
        """New samples of the same mixture, with the same affine map and teacher."""
        import jax  # imported here because configuration must load without JAX
        import jax.numpy as jnp

        def sample(parameters: Any, affine: Any, key: Any, count: int) -> tuple[Any, Any]:
            means, roots, teacher = map(jnp.asarray, parameters)
            centre, whitening = map(jnp.asarray, affine)
            which_key, noise_key = jax.random.split(key)
            which = jax.random.randint(which_key, (count,), 0, self.components)
            noise = standard_normal(noise_key, (count, self.inputs))
            raw = means[which] + jnp.einsum("nij,nj->ni", roots[which], noise)
            x = (raw - centre[None]) @ whitening
            return x, x @ teacher.T

        return jax.tree_util.Partial(sample, self._parameters(), self._affine())
