"""Base classes of gating schemes and of choices of trained pairs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Data, Dataset
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.representation import short_repr


@dataclass(frozen=True)
class Picture:
    """Gates as an image: pathways (or input domains) against samples (or domains)."""

    values: Float[np.ndarray, "row column"]
    rows: str
    """Meaning of a row."""
    columns: str
    """Meaning of a column."""

    __repr__ = short_repr


class SampleScheme(ConfigModel, ABC):
    """Gates that depend on the sample: parallel pathways between one input and one output."""

    learned: ClassVar[bool] = False
    """Whether gates follow the weights, as ReLU units do, and are not fixed before training."""
    of_single_samples: ClassVar[bool] = False
    """Whether gates are defined for the samples of the dataset only, not for new samples."""

    @abstractmethod
    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """Gates of each pathway on each sample, in [0, 1]: 1 is open, 0 is closed.

        Args:
            data: the samples.
            encoder: first-layer weights, for gates that depend on them.
        """

    def count(self, dataset: Dataset) -> int:
        """Number of pathways; override it where it is known without loading the samples."""
        return len(self.gates(dataset.load()))

    @property
    def sees_all(self) -> bool:
        """Whether every pathway receives all inputs; see `visible_inputs`."""
        return True

    def visible_inputs(self, data: Data) -> Bool[np.ndarray, "pathway input"]:
        """Inputs that each pathway receives; all unless overridden."""
        return np.ones((len(self.gates(data)), data.x.shape[1]), dtype=bool)

    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"] | None:
        """Normals of the half-spaces on which pathways are open; None for other gates.

        Closed forms use them in place of samples.

        Args:
            inputs: number of input units.

        Raises:
            UserError: the scheme does not fit this number of inputs.
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
            UserError: the domains do not divide into blocks.
        """

    def gates(self, domains: int) -> Float[np.ndarray, "block input_domain output_domain"]:
        """Gates of each block on each pair of domains: 1 is open, 0 is closed.

        Raises:
            UserError: the domains do not divide into blocks.
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
    """Pairs of input and output domain that are trained."""

    varies: ClassVar[bool] = False
    """Whether the mask depends on the run seed."""

    @abstractmethod
    def count(self, domains: int) -> int:
        """Number K of output domains that each input domain is trained with.

        Args:
            domains: number of input domains, and of output domains.

        Raises:
            UserError: more partners than domains, or none.
        """

    @abstractmethod
    def mask(self, domains: int, seed: int) -> Bool[np.ndarray, "input_domain output_domain"]:
        """True for trained pairs; every row and column has the same number of them.

        Args:
            domains: number of input domains, and of output domains.
            seed: run seed, for random masks.

        Raises:
            UserError: more partners than domains, or none.
        """

    def picture(self, domains: int, seed: int = 0) -> Picture:
        """The mask as an image."""
        return Picture(self.mask(domains, seed).astype(float), "input domain", "output domain")
