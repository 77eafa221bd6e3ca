"""Gates that open on one side of a hyperplane."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.base import generator
from neuralrace.datasets import Data
from neuralrace.gates.base import SampleScheme


def half_spaces(
    x: Float[np.ndarray, "sample input"], normals: Float[np.ndarray, "pathway input"]
) -> Float[np.ndarray, "pathway sample"]:
    """1 where a sample lies on the positive side of a normal, 0 elsewhere."""
    return (normals @ x.T > 0).astype(float)


class HalfSpace(SampleScheme):
    """Pathways that open on random half-spaces through the origin, drawn once and frozen."""

    name: Literal["half_space"]
    pathways: Annotated[int, Field(gt=0)]
    """Number of half-spaces."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of their normals, which are isotropic."""

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`."""
        shape = (self.pathways, data.x.shape[1])
        return half_spaces(data.x, generator(self.seed, "half-spaces").normal(size=shape))
