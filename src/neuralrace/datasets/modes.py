"""A task with prescribed singular modes and whitened inputs."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator


class PrescribedModes(Dataset):
    """sigma_yx with chosen effective singular values, sigma_xx = I (Saxe et al. 2013, sec. 1)."""

    example: ClassVar[Mapping[str, Any]] = {
        "singular_values": [2.0, -1.0],
        "inputs": 4,
        "outputs": 3,
    }
    name: Literal["modes"]
    singular_values: Annotated[tuple[float, ...], Field(min_length=1)]
    """Strength of each mode; a negative value is a diagonal entry below zero."""
    inputs: Annotated[int, Field(gt=0)]
    """Input units."""
    outputs: Annotated[int, Field(gt=0)]
    """Output units."""
    basis: Literal["coordinates", "random"] = "coordinates"
    """Singular vectors: coordinate axes (sigma_yx diagonal) or a seeded random rotation."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random rotation."""

    @model_validator(mode="after")
    def _modes_fit(self) -> "PrescribedModes":
        if len(self.singular_values) > min(self.inputs, self.outputs):
            raise ValueError(
                f"{len(self.singular_values)} singular_values do not fit into "
                f"{self.inputs} inputs x {self.outputs} outputs; at most the smaller of the two"
            )
        return self

    @property
    def sizes(self) -> Sizes:
        """A sample for each input."""
        return Sizes(self.inputs, self.inputs, self.outputs)

    def load(self) -> Data:
        """One sample per input axis, scaled so that sigma_xx = I exactly."""
        u, v = np.eye(self.outputs), np.eye(self.inputs)
        if self.basis == "random":
            u, _ = np.linalg.qr(generator(self.seed, "output basis").normal(size=u.shape))
            v, _ = np.linalg.qr(generator(self.seed, "input basis").normal(size=v.shape))
        s = np.zeros(min(self.inputs, self.outputs))
        s[: len(self.singular_values)] = self.singular_values
        sigma = (u[:, : len(s)] * s) @ v[:, : len(s)].T
        x = np.sqrt(self.inputs) * np.eye(self.inputs)
        return Data(x=x, y=x @ sigma.T, signed_basis=(u, s, v))
