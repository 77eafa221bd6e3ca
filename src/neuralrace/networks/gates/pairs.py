"""Pairs of input and output domain that are trained."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Bool
from pydantic import Field, model_validator

from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import Pairs

SWAPS = 20
"""Attempted swaps for each trained pair; a few are enough to remove all traces of the band."""


class AllPairs(Pairs):
    """Every pair of domains is trained."""

    name: Literal["all"]

    def count(self, domains: int) -> int:
        """See `Pairs.count`."""
        return domains

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`."""
        return np.ones((domains, domains), dtype=bool)


class SomePairs(Pairs):
    """The same number of trained partners for every domain, as a number or a share."""

    partners: Positive | None = None
    """Output domains K that each input domain is trained with; either this or `share`."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The same as a share K/M of all output domains, rounded to the nearest number of domains."""

    @model_validator(mode="after")
    def _either_partners_or_share(self) -> "SomePairs":
        if (self.partners is None) == (self.share is None):
            raise UserError(
                "the number of partners is missing or given twice",
                remedy="give either partners or share",
            )
        return self

    def count(self, domains: int) -> int:
        """See `Pairs.count`."""
        partners = self.partners or round(cast(float, self.share) * domains)
        if partners > domains:
            raise UserError(
                f"there are {domains} domains",
                key="network.pairs.partners",
                value=partners,
                remedy="use at most that",
            )
        if partners == 0:
            raise UserError(
                f"is less than one of {domains} domains",
                key="network.pairs.share",
                value=self.share,
                remedy="use more",
            )
        return partners


class Band(SomePairs):
    """Input domain i is trained with the outputs i - floor((K-1)/2) ... i + floor(K/2), cyclic."""

    example: ClassVar[Mapping[str, Any]] = {"partners": 2}
    name: Literal["band"]

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`."""
        partners = self.count(domains)
        mask = np.zeros((domains, domains), dtype=bool)
        rows = np.arange(domains)[:, None]
        mask[rows, (rows + np.arange(partners) - (partners - 1) // 2) % domains] = True
        return mask


class RandomRegular(SomePairs):
    """A random mask with K partners for every input and output domain, another for each seed."""

    varies: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"partners": 3}
    name: Literal["random_regular"]

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`."""
        mask = Band(name="band", partners=self.count(domains)).mask(domains, seed)
        pairs = np.argwhere(mask)
        rng = generator(seed, "trained pairs")
        # swapping the partners of two pairs keeps the number of partners of every domain
        for one, other in rng.integers(len(pairs), size=(SWAPS * len(pairs), 2)):
            (i, j), (other_i, other_j) = pairs[one], pairs[other]
            if not mask[i, other_j] and not mask[other_i, j]:
                mask[i, j] = mask[other_i, other_j] = False
                mask[i, other_j] = mask[other_i, j] = True
                pairs[one, 1], pairs[other, 1] = other_j, j
        return mask
