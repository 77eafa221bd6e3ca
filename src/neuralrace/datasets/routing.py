"""Routing: M input domains and M output domains, with the same hierarchy for every pair."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import DomainDataset, Domains, Sizes
from neuralrace.datasets.random_streams import generator

LEVELS = ([[1, 1, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]], np.eye(4))
"""Which of the four items an output is for, (output, item): all, each half, one for each."""
STRENGTHS = (6.0, 4.0, 3.0)


class Routing(DomainDataset):
    """Routing from M input to M output domains (Saxe et al. 2022, fig. 4).

    Every pair of domains has the same 4 x 7 hierarchy of targets. With strengths a, b and c its
    squared singular values are 4 a^2 + 2 b^2 + c^2, 2 b^2 + c^2, and twice c^2: 185, 41, 9 and 9 by
    default. Inputs are orthonormal in every domain, so one pair alone has sigma_xx = I/4, and its
    singular values are those of the hierarchy divided by 4.
    """

    example: ClassVar[Mapping[str, Any]] = {"count": 4}
    name: Literal["routing"]
    inputs: Literal["random", "one_hot"] = "random"
    """Inputs of a domain: random orthonormal vectors, different in each domain, or one-hot."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of random inputs."""
    strengths: Annotated[
        tuple[float, float, float], Field(exclude_if=lambda strengths: strengths == STRENGTHS)
    ] = STRENGTHS
    """Targets of outputs that are for all items, for two, and for one; the paper prints none."""

    @property
    def targets(self) -> np.ndarray:
        """Targets of the items, (item, output)."""
        levels = zip(self.strengths, LEVELS, strict=True)
        return np.vstack([strength * np.array(level) for strength, level in levels]).T

    def _inputs(self, domain: int) -> np.ndarray:
        """Inputs of one domain, (item, input)."""
        items = len(self.targets)
        if self.inputs == "one_hot":
            return np.eye(items)
        draws = generator(self.seed, f"inputs of domain {domain}").normal(size=(items, items))
        q, r = np.linalg.qr(draws)
        return q * np.sign(np.diag(r))  # a positive diagonal of r makes q uniform

    @property
    def sizes(self) -> Sizes:
        """Sizes of one pair of domains: four items."""
        return Sizes(len(self.targets), *self.targets.shape)

    def domains(self) -> Domains:
        """Four items in each input domain; all output domains have the same targets."""
        return Domains(
            inputs=np.stack([self._inputs(domain) for domain in range(self.count)]),
            targets=np.tile(self.targets, (self.count, 1, 1)),
        )
