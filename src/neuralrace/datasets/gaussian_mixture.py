"""Samples of a Gaussian mixture with a random linear teacher."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator


class GaussianMixture(Dataset):
    """Mixture of Gaussians with random scaled, rotated covariances (Basu et al., sec. 4).

    The teacher is a random matrix with standard normal entries applied to the inputs as the
    student sees them. Inputs are centred; `whiten` makes sigma_xx = I, as eq. 14 assumes.
    """

    example: ClassVar[Mapping[str, Any]] = {"samples_per_component": 10, "inputs": 4}
    name: Literal["gaussian_mixture"]
    components: Annotated[int, Field(gt=0)] = 3
    """Gaussians in the mixture."""
    samples_per_component: Annotated[int, Field(gt=0)] = 400
    """Samples drawn from each."""
    inputs: Annotated[int, Field(gt=0)] = 10
    """Input units."""
    outputs: Annotated[int, Field(gt=0)] = 3
    """Output units."""
    whiten: bool = True
    """Whether inputs are whitened as well as centred."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the mixture, the samples and the teacher."""

    @model_validator(mode="after")
    def _enough_to_whiten(self) -> "GaussianMixture":
        samples = self.components * self.samples_per_component
        if self.whiten and samples <= self.inputs:
            raise ValueError(
                f"{samples} samples (components x samples_per_component) cannot be whitened in "
                f"{self.inputs} inputs; use more samples than inputs, or whiten: false"
            )
        return self

    @property
    def sizes(self) -> Sizes:
        """As configured."""
        return Sizes(self.components * self.samples_per_component, self.inputs, self.outputs)

    def _law(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        means, roots, _ = self._law()
        noise = generator(self.seed, "samples").normal(
            size=(self.components, self.samples_per_component, self.inputs)
        )
        return (means[:, None] + noise @ roots.transpose(0, 2, 1)).reshape(-1, self.inputs)

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and linear map that turn raw samples into the student's inputs."""
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
        return Data(x=x, y=x @ self._law()[2].T)

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]]:
        """Fresh samples of the same mixture through the same affine map and teacher."""
        import jax  # only training draws fresh samples; configuration must load without JAX
        import jax.numpy as jnp

        def sample(law: Any, affine: Any, key: Any, count: int) -> tuple[Any, Any]:
            means, roots, teacher = map(jnp.asarray, law)
            centre, whitening = map(jnp.asarray, affine)
            which_key, noise_key = jax.random.split(key)
            which = jax.random.randint(which_key, (count,), 0, self.components)
            noise = jax.random.normal(noise_key, (count, self.inputs))
            raw = means[which] + jnp.einsum("nij,nj->ni", roots[which], noise)
            x = (raw - centre[None]) @ whitening
            return x, x @ teacher.T

        return jax.tree_util.Partial(sample, self._law(), self._affine())
