"""Gating: architecture graphs, schemes by which pathways open, and what pathways learn from.

One file per scheme, one entry here each.
"""

from neuralrace.gates.always_on import AlwaysOnDomains, AlwaysOnSamples
from neuralrace.gates.base import DomainScheme, Pairs, SampleScheme
from neuralrace.gates.bumps import Bumps
from neuralrace.gates.contexts import Contexts
from neuralrace.gates.groups import Groups
from neuralrace.gates.half_space import HalfSpace
from neuralrace.gates.learned import Learned
from neuralrace.gates.listed import Listed
from neuralrace.gates.pairs import AllPairs, Band, RandomRegular
from neuralrace.gates.parallel import Parallel
from neuralrace.gates.per_example import PerExample
from neuralrace.gates.tiling import Tiling

SAMPLE_SCHEMES: tuple[type[SampleScheme], ...] = (
    AlwaysOnSamples,
    Bumps,
    Contexts,
    HalfSpace,
    Learned,
    Listed,
    PerExample,
    Tiling,
)
DOMAIN_SCHEMES: tuple[type[DomainScheme], ...] = (AlwaysOnDomains, Groups, Parallel)
PAIRS: tuple[type[Pairs], ...] = (AllPairs, Band, RandomRegular)

__all__ = ["DOMAIN_SCHEMES", "PAIRS", "SAMPLE_SCHEMES"]
