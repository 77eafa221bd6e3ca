"""Gates that are always open."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data, Dataset
from neuralrace.networks.gates.base import DomainScheme, Family, SampleScheme


class AlwaysOnSamples(SampleScheme):
    """One pathway, open on every sample: a deep linear network."""

    name: Literal["always_on"]

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`."""
        return np.ones((1, len(data.x)))

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`."""
        return 1


class AlwaysOnDomains(DomainScheme):
    """One pathway block that all pairs of domains share (Saxe et al. 2022, fig. 4)."""

    name: Literal["always_on"]

    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """See `DomainScheme.families`."""
        return (Family(domains, hidden),)
