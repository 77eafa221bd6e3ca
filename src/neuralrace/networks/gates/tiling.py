"""Exclusive gates: every sample has one pathway."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets import Data, Dataset
from neuralrace.datasets.random_streams import generator
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.bumps import bumps


class Tiling(SampleScheme):
    """Each sample opens the one pathway whose direction overlaps most with it.

    Of directions that overlap equally, up to rounding, the first counts. Directions have one
    length, so pathways divide the sphere into the cells of their nearest directions; this is how
    gates are exclusive (notes on localisation, sec. 3.4). A single pathway is open on every sample.
    """

    example: ClassVar[Mapping[str, Any]] = {"pathways": 2, "directions": "random"}
    name: Literal["tiling"]
    pathways: Annotated[int, Field(gt=0)]
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
            raise ValueError("width: directions bumps need one; use 0 for single inputs")
        if self.directions == "random" and self.width is not None:
            raise ValueError(f"width: {self.width:g}: directions random have none; leave it out")
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
        terms = np.abs(directions) @ np.abs(data.x.T)
        rounding = data.x.shape[1] * np.finfo(float).eps * terms.max(axis=0)
        first = (overlap >= overlap.max(axis=0) - rounding).argmax(axis=0)
        return (np.arange(self.pathways)[:, None] == first).astype(float)

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`: without its samples."""
        return self.pathways

    def _directions(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """Directions of equal length."""
        if self.width is not None:
            return bumps(self.pathways, self.width, inputs)
        normals = generator(self.seed, "tiling").normal(size=(self.pathways, inputs))
        return normals / np.linalg.norm(normals, axis=1, keepdims=True)
