"""Dedicated pathways beside a shared one."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuralrace.networks.gates.base import DomainScheme, Family


class Parallel(DomainScheme):
    """A shared block, and beside it a small dedicated pathway for every pair of domains.

    Both answer every pair and add up: which of them comes to carry the answer is the neural race.
    """

    example: ClassVar[Mapping[str, Any]] = {"dedicated": 2}
    name: Literal["parallel"]
    dedicated: Annotated[int, Field(gt=0)]
    """Units in each hidden layer of a dedicated pathway."""

    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """See `DomainScheme.families`."""
        return Family(domains, hidden), Family(1, (self.dedicated,) * len(hidden))
