"""Sparse features, of which a network is to keep as many as it can."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.model import Positive


class SparseFeatures(Dataset):
    """Independent features that are mostly zero, with a target for each.

    A feature is active with probability `active`, and then uniform on an interval from 0; otherwise
    it is 0. Its variance is 1. Its target is `strengths` times its value, so that the covariance of
    targets and inputs is diagonal, with the strengths as singular values: the diagonal case of the
    deep linear theory, on the inputs of Elhage et al. 2022, "Toy Models of Superposition".
    """

    may_be_white: ClassVar[bool] = False  # features have a mean
    example: ClassVar[Mapping[str, Any]] = {"strengths": [1.0, 0.5], "active": 0.5, "samples": 20}
    name: Literal["sparse_features"]
    strengths: Annotated[tuple[float, ...], Field(min_length=1)]
    """Target of each feature over its value."""
    active: Annotated[float, Field(gt=0, le=1)]
    """Probability that a feature is active."""
    samples: Positive
    """Number of samples."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the samples."""

    @property
    def sizes(self) -> Sizes:
        """As many outputs as inputs."""
        return Sizes(self.samples, len(self.strengths), len(self.strengths))

    def load(self) -> Data:
        """Draws the samples."""
        draws = generator(self.seed, "sparse features")
        shape = self.samples, len(self.strengths)
        x = draws.uniform(size=shape) * (draws.uniform(size=shape) < self.active)
        x /= np.sqrt(self.active / 3 - self.active**2 / 4)
        return Data(x=x, y=x * self.strengths)
