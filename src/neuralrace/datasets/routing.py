"""Routing: M input domains and M output domains, with the same hierarchy for every pair."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import DomainDataset, Domains, Sizes
from neuralrace.datasets.random_streams import generator

TARGETS = np.vstack(
    [
        6 * np.array([[1, 1, 1, 1]]),
        4 * np.array([[1, 1, 0, 0], [0, 0, 1, 1]]),
        3 * np.eye(4),
    ]
).T
"""Targets of the four items (item, output): shared by all, shared by each half, one for each."""


class Routing(DomainDataset):
    """Routing from M input to M output domains (Saxe et al. 2022, fig. 4).

    Every pair of domains has the same 4 x 7 hierarchy of targets, whose squared singular values are
    185, 41, 9 and 9. Inputs are orthonormal in every domain, so one pair alone has sigma_xx = I/4,
    and its singular values are those of the hierarchy divided by 4.
    """

    example: ClassVar[Mapping[str, Any]] = {"count": 4}
    name: Literal["routing"]
    inputs: Literal["random", "one_hot"] = "random"
    """Inputs of a domain: random orthonormal vectors, different in each domain, or one-hot."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of random inputs."""

    def _inputs(self, domain: int) -> np.ndarray:
        """Inputs of one domain, (item, input)."""
        items = len(TARGETS)
        if self.inputs == "one_hot":
            return np.eye(items)
        draws = generator(self.seed, f"inputs of domain {domain}").normal(size=(items, items))
        q, r = np.linalg.qr(draws)
        return q * np.sign(np.diag(r))  # a positive diagonal of r makes q uniform

    @property
    def sizes(self) -> Sizes:
        """Sizes of one pair of domains: four items."""
        return Sizes(len(TARGETS), *TARGETS.shape)

    def domains(self) -> Domains:
        """Four items in each input domain; all output domains have the same targets."""
        return Domains(
            inputs=np.stack([self._inputs(domain) for domain in range(self.count)]),
            targets=np.tile(TARGETS, (self.count, 1, 1)),
        )
