"""Gates that open on one side of a hyperplane through the origin."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.datasets import Data, Dataset
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import SampleScheme


def half_spaces(
    x: Float[np.ndarray, "sample input"], normals: Float[np.ndarray, "pathway input"]
) -> Float[np.ndarray, "pathway sample"]:
    """1 where a sample lies on the positive side of a normal, 0 elsewhere."""
    return (normals @ x.T > 0).astype(float)


class HalfSpaces(SampleScheme):
    """Pathways that open on half-spaces through the origin; they are closed on the hyperplane."""

    @abstractmethod
    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """See `SampleScheme.normals`."""

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`.

        Raises:
            UserError: as `normals`.
        """
        return half_spaces(data.x, self.normals(data.x.shape[1]))

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`."""
        return len(self.normals(dataset.sizes.inputs))


class HalfSpace(HalfSpaces):
    """Pathways that open on random half-spaces through the origin, drawn once and frozen."""

    example: ClassVar[Mapping[str, Any]] = {"pathways": 4}
    name: Literal["half_space"]
    pathways: Positive
    """Number of half-spaces."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of their normals, which are isotropic."""
    antipodal: bool = False
    """Whether every half-space is followed by its opposite, as another pathway; a sample on the
    hyperplane between them is in neither."""
    copies: Positive = 1
    """Pathways with the same gate for each half-space; redundant gates if 2 or more."""

    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """See `SampleScheme.normals`."""
        normals = generator(self.seed, "half-spaces").normal(size=(self.pathways, inputs))
        if self.antipodal:
            normals = np.stack([normals, -normals], axis=1).reshape(-1, inputs)
        return np.repeat(normals, self.copies, axis=0)
