"""Exclusive gates: exactly one pathway is open on each sample."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets import Data, Dataset
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.bumps import bumps


class Tiling(SampleScheme):
    """Each sample opens the one pathway whose direction has the largest overlap with it.

    Of directions with equal overlap, up to rounding, the first opens. All directions have the same
    length, so pathways tile the sphere into the cells of their nearest directions (notes on
    localisation, sec. 3.4). A single pathway is open on every sample.
    """

    example: ClassVar[Mapping[str, Any]] = {"pathways": 2, "directions": "random"}
    name: Literal["tiling"]
    pathways: Positive
    """Number of directions; at most as many as inputs if they are bumps."""
    directions: Literal["bumps", "random"]
    """Gaussian bumps, evenly spaced on the ring of inputs, or isotropic random directions."""
    width: Annotated[float, Field(ge=0)] | None = None
    """Standard deviation of bumps, in inputs, 0 for a single input; none for random directions."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of random directions."""

    @model_validator(mode="after")
    def _width_of_bumps_alone(self) -> "Tiling":
        if self.directions == "bumps" and self.width is None:
            raise UserError(
                "directions bumps need one", key="width", remedy="use 0 for single inputs"
            )
        if self.directions == "random" and self.width is not None:
            raise UserError(
                "directions random have none", key="width", value=self.width, remedy="leave it out"
            )
        return self

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`.

        Raises:
            UserError: more bumps than inputs.
        """
        directions = self._directions(data.x.shape[1])
        overlap = directions @ data.x.T
        # Overlaps that are equal in exact arithmetic differ by rounding, in another way on every
        # machine: compare them up to its bound, n eps sum |d_i x_i|.
        terms = np.abs(directions) @ np.abs(data.x.T)
        rounding = data.x.shape[1] * np.finfo(float).eps * terms.max(axis=0)
        first = (overlap >= overlap.max(axis=0) - rounding).argmax(axis=0)
        return (np.arange(self.pathways)[:, None] == first).astype(float)

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`."""
        return self.pathways

    def _directions(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """Directions of equal length."""
        if self.width is not None:
            return bumps(self.pathways, self.width, inputs)
        normals = generator(self.seed, "tiling").normal(size=(self.pathways, inputs))
        return normals / np.linalg.norm(normals, axis=1, keepdims=True)
