"""Prescribed singular modes with white inputs."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive


class PrescribedModes(Dataset):
    """sigma_yx with prescribed singular values, and sigma_xx = I (Saxe et al. 2013, sec. 1)."""

    example: ClassVar[Mapping[str, Any]] = {
        "singular_values": [2.0, -1.0],
        "inputs": 4,
        "outputs": 3,
    }
    name: Literal["modes"]
    singular_values: Annotated[tuple[float, ...], Field(min_length=1)]
    """Singular value of each mode; negative values are allowed, and keep their sign."""
    inputs: Positive
    """Input units."""
    outputs: Positive
    """Output units."""
    basis: Literal["coordinates", "random"] = "coordinates"
    """Singular vectors: coordinate axes (sigma_yx is diagonal) or random orthogonal bases."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random bases."""

    @model_validator(mode="after")
    def _modes_fit(self) -> "PrescribedModes":
        if len(self.singular_values) > min(self.inputs, self.outputs):
            raise UserError(
                f"{len(self.singular_values)} modes do not fit into {self.inputs} inputs and "
                f"{self.outputs} outputs",
                key="singular_values",
                value=self.singular_values,
                remedy=f"use at most {min(self.inputs, self.outputs)}",
            )
        return self

    @property
    def sizes(self) -> Sizes:
        """One sample for each input."""
        return Sizes(self.inputs, self.inputs, self.outputs)

    def load(self) -> Data:
        """One sample along each input axis, scaled so that sigma_xx = I exactly."""
        u, v = np.eye(self.outputs), np.eye(self.inputs)
        if self.basis == "random":
            u, _ = np.linalg.qr(generator(self.seed, "output basis").normal(size=u.shape))
            v, _ = np.linalg.qr(generator(self.seed, "input basis").normal(size=v.shape))
        s = np.zeros(min(self.inputs, self.outputs))
        s[: len(self.singular_values)] = self.singular_values
        sigma = (u[:, : len(s)] * s) @ v[:, : len(s)].T
        x = np.sqrt(self.inputs) * np.eye(self.inputs)
        return Data(x=x, y=x @ sigma.T, signed_basis=(u, s, v))
