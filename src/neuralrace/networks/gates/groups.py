"""Groups of domains, each with its own pathway block."""

from collections.abc import Mapping
from math import isqrt
from typing import Any, ClassVar, Literal

from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import DomainScheme, Family


class Groups(DomainScheme):
    """Blocks of `size` input and `size` output domains, P = size^2 pairs each (fig. 5a).

    Size 1 gives every pair a dedicated pathway.
    """

    example: ClassVar[Mapping[str, Any]] = {"size": 2}
    name: Literal["groups"]
    size: Positive
    """Input domains, and output domains, that share a block; divides the number of domains."""

    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """See `DomainScheme.families`."""
        if domains % self.size:
            # up to the root alone: a configuration may ask for a billion domains
            small = [n for n in range(1, isqrt(domains) + 1) if domains % n == 0]
            divisors = map(str, sorted({*small, *(domains // n for n in small)}))
            raise UserError(
                f"{domains} domains do not divide into groups of that size",
                key="network.gates.size",
                value=self.size,
                remedy=f"use {' or '.join(divisors)}",
            )
        return (Family(self.size, hidden),)
