"""Gates with one pathway for each sample."""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data, Dataset
from neuralrace.networks.gates.base import SampleScheme


class PerExample(SampleScheme):
    """One pathway per sample, open on that sample alone (Saxe et al. 2022, fig. 3)."""

    of_single_samples: ClassVar[bool] = True
    name: Literal["per_example"]

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`."""
        return np.eye(len(data.x))

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`."""
        return dataset.sizes.samples
