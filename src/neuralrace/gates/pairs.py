"""Which pairs of domains are trained."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Bool
from pydantic import Field

from neuralrace.base import generator
from neuralrace.gates.base import Pairs

# Attempted swaps for each trained pair; a few already leave no trace of the band.
SWAPS = 20


class AllPairs(Pairs):
    """Every pair of domains is trained."""

    name: Literal["all"]

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`."""
        return np.ones((domains, domains), dtype=bool)


class Band(Pairs):
    """Input domain i is trained with the outputs i - floor((K-1)/2) ... i + floor(K/2), cyclic."""

    name: Literal["band"]
    partners: Annotated[int, Field(gt=0)]
    """Output domains K that each input domain is trained with."""

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`."""
        _require_partners(self.partners, domains)
        mask = np.zeros((domains, domains), dtype=bool)
        rows = np.arange(domains)[:, None]
        mask[rows, (rows + np.arange(self.partners) - (self.partners - 1) // 2) % domains] = True
        return mask


class RandomRegular(Pairs):
    """A random mask with K partners for every input and every output domain, anew for each seed."""

    varies: ClassVar[bool] = True
    name: Literal["random_regular"]
    partners: Annotated[int, Field(gt=0)]
    """Output domains K that each input domain is trained with."""

    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """See `Pairs.mask`; swaps of two pairs keep rows and columns regular."""
        mask = Band(name="band", partners=self.partners).mask(domains, seed)
        pairs = np.argwhere(mask)
        rng = generator(seed, "trained pairs")
        for one, other in rng.integers(len(pairs), size=(SWAPS * len(pairs), 2)):
            (i, j), (other_i, other_j) = pairs[one], pairs[other]
            if not mask[i, other_j] and not mask[other_i, j]:
                mask[i, j] = mask[other_i, other_j] = False
                mask[i, other_j] = mask[other_i, j] = True
                pairs[one, 1], pairs[other, 1] = other_j, j
        return mask


def _require_partners(partners: int, domains: int) -> None:
    if partners > domains:
        raise ValueError(
            f"pairs.partners: {partners}: there are {domains} domains to be trained with; use at "
            "most that"
        )
