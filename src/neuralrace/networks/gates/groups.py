"""Groups of domains with pathway blocks of their own."""

from collections.abc import Mapping
from math import isqrt
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuralrace.networks.gates.base import DomainScheme, Family


class Groups(DomainScheme):
    """Blocks of `size` input and `size` output domains, P = size^2 pairs each (fig. 5a).

    Size 1 gives every pair a dedicated pathway.
    """

    example: ClassVar[Mapping[str, Any]] = {"size": 2}
    name: Literal["groups"]
    size: Annotated[int, Field(gt=0)]
    """Input domains, and output domains, that share a block; divides the number of domains."""

    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """See `DomainScheme.families`."""
        if domains % self.size:
            small = [n for n in range(1, isqrt(domains) + 1) if domains % n == 0]
            divisors = map(str, sorted({*small, *(domains // n for n in small)}))
            raise ValueError(
                f"gates.size: {self.size}: {domains} domains do not divide into groups of that "
                f"size; use {' or '.join(divisors)}"
            )
        return (Family(self.size, hidden),)
