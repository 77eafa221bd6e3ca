"""A shared pathway block in parallel with dedicated pathways."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import DomainScheme, Family


class Parallel(DomainScheme):
    """A shared block in parallel with a small dedicated pathway for every pair of domains.

    The output is the sum of both. Which of them learns to carry it is decided by the neural race.
    """

    example: ClassVar[Mapping[str, Any]] = {"dedicated": 2}
    name: Literal["parallel"]
    dedicated: Positive
    """Units in each hidden layer of a dedicated pathway."""

    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """See `DomainScheme.families`."""
        return Family(domains, hidden), Family(1, (self.dedicated,) * len(hidden))
