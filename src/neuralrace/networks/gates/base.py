"""What a gating scheme is: a configuration that says which pathways are open on what."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Data, Dataset
from neuralrace.extensions.model import ConfigModel


@dataclass(frozen=True)
class Picture:
    """Gates as an image: pathways (or input domains) by what they are open on."""

    values: Float[np.ndarray, "row column"]
    rows: str
    """What a row is."""
    columns: str
    """What a column is."""


class SampleScheme(ConfigModel, ABC):
    """Gates that depend on the sample: parallel pathways between one input and one output."""

    learned: ClassVar[bool] = False
    """Whether they follow the weights as ReLU units do, so that there is nothing given."""
    of_single_samples: ClassVar[bool] = False
    """Whether they are those of these very samples, and say nothing of others."""

    @abstractmethod
    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """Which pathways are open on which samples: 1 where open, 0 where closed.

        Args:
            data: the samples.
            encoder: first-layer weights, for gates that depend on them.
        """

    def count(self, dataset: Dataset) -> int:
        """Number of pathways. Planning asks: override it where it is known without samples."""
        return len(self.gates(dataset.load()))

    @property
    def sees_all(self) -> bool:
        """Whether every pathway sees all inputs; see `sees`."""
        return True

    def sees(self, data: Data) -> Bool[np.ndarray, "pathway input"]:
        """Which inputs each pathway sees; all of them unless a scheme says otherwise."""
        return np.ones((len(self.gates(data)), data.x.shape[1]), dtype=bool)

    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"] | None:
        """Normals of the half-spaces that pathways are open on; None where these are others.

        Args:
            inputs: number of input units.

        Raises:
            UserError: the scheme does not fit that many inputs.
        """
        return None

    def picture(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Picture:
        """The gates as an image."""
        return Picture(self.gates(data, encoder), "pathway", "sample")


@dataclass(frozen=True)
class Family:
    """Pathway blocks of one size: each joins `size` input domains with `size` output domains.

    Together the blocks of a family cover every pair of domains once.
    """

    size: int
    hidden: tuple[int, ...]
    """Units in each hidden layer of a block."""


class DomainScheme(ConfigModel, ABC):
    """Gates that depend on input and output domain: which pairs share a pathway block."""

    @abstractmethod
    def families(self, domains: int, hidden: tuple[int, ...]) -> tuple[Family, ...]:
        """The pathway blocks, by families of one size.

        Args:
            domains: number of input domains, and of output domains.
            hidden: units in each hidden layer of a block, as configured.

        Raises:
            ValueError: the domains cannot be divided so.
        """

    def gates(self, domains: int) -> Float[np.ndarray, "block input_domain output_domain"]:
        """Which blocks are open on which pairs of domains: 1 where open, 0 where closed.

        Raises:
            ValueError: the domains cannot be divided so.
        """
        blocks = []
        for family in self.families(domains, ()):
            number = np.arange(domains) // family.size
            side = domains // family.size
            block = number[:, None] * side + number
            blocks.append(np.arange(side**2)[:, None, None] == block)
        return np.concatenate(blocks).astype(float)

    def picture(self, domains: int) -> Picture:
        """The gates as an image: a row for each block, a column for each pair, by input domain."""
        gates = self.gates(domains)
        return Picture(gates.reshape(len(gates), -1), "pathway block", "pair of domains")


class Pairs(ConfigModel, ABC):
    """Which pairs of input and output domain are trained."""

    varies: ClassVar[bool] = False
    """Whether every run seed has a mask of its own."""

    @abstractmethod
    def count(self, domains: int) -> int:
        """Trained output domains K of each input domain.

        Args:
            domains: number of input domains, and of output domains.

        Raises:
            ValueError: more partners than domains, or none.
        """

    @abstractmethod
    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """True for trained pairs; as many in every row as in every column.

        Args:
            domains: number of input domains, and of output domains.
            seed: run seed, for random masks.

        Raises:
            ValueError: more partners than domains.
        """

    def picture(self, domains: int, seed: int = 0) -> Picture:
        """The mask as an image."""
        return Picture(self.mask(domains, seed).astype(float), "input domain", "output domain")
