"""Which pairs of domains are trained."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Bool
from pydantic import Field, model_validator

from neuralrace.datasets.random_streams import generator
from neuralrace.networks.gates.base import Pairs

# Attempted swaps for each trained pair; a few already leave no trace of the band.
SWAPS = 20


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
    """As many trained partners for every domain, told by number or by share."""

    partners: Annotated[int, Field(gt=0)] | None = None
    """Output domains K that each input domain is trained with; either this or `share`."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The same as a share K/M of all output domains, rounded to the nearest number of domains."""

    @model_validator(mode="after")
    def _told_once(self) -> "SomePairs":
        if (self.partners is None) == (self.share is None):
            raise ValueError("pairs: give either partners or share")
        return self

    def count(self, domains: int) -> int:
        """See `Pairs.count`."""
        partners = self.partners or round(cast(float, self.share) * domains)
        if partners > domains:
            raise ValueError(
                f"pairs.partners: {partners}: there are {domains} domains to be trained with; use "
                "at most that"
            )
        if partners == 0:
            raise ValueError(f"pairs.share: {self.share}: is none of {domains} domains; use more")
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
    """A random mask with K partners for every input and every output domain, anew for each seed."""

    varies: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"partners": 3}
    name: Literal["random_regular"]

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`; swaps of two pairs keep rows and columns regular."""
        mask = Band(name="band", partners=self.count(domains)).mask(domains, seed)
        pairs = np.argwhere(mask)
        rng = generator(seed, "trained pairs")
        for one, other in rng.integers(len(pairs), size=(SWAPS * len(pairs), 2)):
            (i, j), (other_i, other_j) = pairs[one], pairs[other]
            if not mask[i, other_j] and not mask[other_i, j]:
                mask[i, j] = mask[other_i, other_j] = False
                mask[i, other_j] = mask[other_i, j] = True
                pairs[one, 1], pairs[other, 1] = other_j, j
        return mask
