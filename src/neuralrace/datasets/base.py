"""The base class of datasets, and the arrays that a dataset loads."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from neuralrace.datasets.marginals import Marginal
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.representation import short_repr

MOST_NUMBERS = 2 * 10**8
"""Largest number of entries in all inputs and targets of a dataset: 1.6 GB in double precision."""


@dataclass(frozen=True)
class Modes:
    """The singular modes of a task: sigma_yx = sum_k s_k u_k v_k^T, and d_k = v_k^T sigma_xx v_k.

    Closed forms of single modes assume that sigma_xx is diagonal in the input basis; see `joint`.
    """

    output_basis: Float[np.ndarray, "output output"]
    """A complete orthogonal basis; its first columns are the u_k."""
    input_basis: Float[np.ndarray, "input input"]
    """A complete orthogonal basis; its first columns are the v_k."""
    s: Float[np.ndarray, " mode"]
    """Singular values of sigma_yx."""
    d: Float[np.ndarray, " mode"]
    """Variance of the inputs along each v_k."""
    violation: float
    """Norm of the off-diagonal part of sigma_xx in the input basis, relative to sigma_xx."""

    __repr__ = short_repr

    @property
    def joint(self) -> bool:
        """Whether sigma_xx and sigma_yx share their singular vectors, to rounding."""
        return self.violation < 1e-10

    @property
    def u(self) -> Float[np.ndarray, "output mode"]:
        """Output singular vectors."""
        return self.output_basis[:, : len(self.s)]

    @property
    def v(self) -> Float[np.ndarray, "input mode"]:
        """Input singular vectors."""
        return self.input_basis[:, : len(self.s)]


@dataclass(frozen=True)
class Data:
    """A finite sample: inputs `x` and targets `y`. Classification targets are one-hot rows."""

    x: Float[np.ndarray, "sample input"]
    y: Float[np.ndarray, "sample output"]
    item_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    signed_basis: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """(U, s, V) by construction, for strengths s with signs: an SVD would make them positive."""
    contexts: Int[np.ndarray, " sample"] | None = None
    """Context of each sample, numbered from 0; gates may depend on it."""
    input_groups: tuple[int, ...] = ()
    """Sizes of the groups of inputs, in order; a pathway may be limited to some groups."""
    test: "Data | None" = None
    """Samples that are not trained on, for the test loss."""

    __repr__ = short_repr

    @cached_property
    def sigma_yx(self) -> Float[np.ndarray, "output input"]:
        """Input-output correlation <y x^T>."""
        return self.y.T @ self.x / len(self.x)

    @cached_property
    def sigma_xx(self) -> Float[np.ndarray, "input input"]:
        """Input correlation <x x^T>."""
        return self.x.T @ self.x / len(self.x)

    @cached_property
    def variance(self) -> float:
        """Mean variance d of an input; white inputs have sigma_xx = d I.

        It is 1 up to rounding, which must not change the clock of whitened inputs.
        """
        d = float(np.trace(self.sigma_xx) / len(self.sigma_xx))
        return 1.0 if abs(d - 1) < 1e-9 else d

    def colour(self, d: float) -> float:
        """Norm of sigma_xx - d I relative to d I: 0 for white inputs of variance d."""
        identity = d * np.eye(len(self.sigma_xx))
        return float(np.linalg.norm(self.sigma_xx - identity) / np.linalg.norm(identity))

    @cached_property
    def y_power(self) -> float:
        """<|y|^2>: twice the loss <|y|^2>/2 of a network whose outputs are zero."""
        return float(np.sum(self.y**2) / len(self.y))

    @cached_property
    def modes(self) -> Modes:
        """Singular modes of the task; see `Modes`."""
        if self.signed_basis is not None:
            output_basis, s, input_basis = self.signed_basis
        else:
            output_basis, s, input_basis_t = np.linalg.svd(self.sigma_yx)
            input_basis = input_basis_t.T
        rotated = input_basis.T @ self.sigma_xx @ input_basis
        off_diagonal = rotated - np.diag(np.diag(rotated))
        rank = len(s)
        return Modes(
            output_basis=output_basis,
            input_basis=input_basis,
            s=np.asarray(s, dtype=float),
            # rounding can make the variance of a direction without input slightly negative
            d=np.maximum(np.diag(rotated)[:rank], 0),
            violation=float(np.linalg.norm(off_diagonal) / np.linalg.norm(self.sigma_xx)),
        )


DomainModes = tuple[
    Float[np.ndarray, "domain output mode"],
    Float[np.ndarray, " mode"],
    Float[np.ndarray, "domain input mode"],
]


@dataclass(frozen=True)
class Domains:
    """Inputs and targets by domain, for networks that route input domains to output domains.

    In sample (i, j, n), input domain i has the vector `inputs[i, n]`, and output domain j has the
    target `targets[j, n]`. Averages are over the items n of one pair (i, j).
    """

    inputs: Float[np.ndarray, "domain item input"]
    targets: Float[np.ndarray, "domain item output"]

    __repr__ = short_repr

    @property
    def count(self) -> int:
        """Number of input domains, which is also that of output domains."""
        return len(self.inputs)

    @cached_property
    def sigma_yx(self) -> Float[np.ndarray, "input_domain output_domain output input"]:
        """Input-output correlation <y_j x_i^T> of every pair."""
        return self.targets.transpose(0, 2, 1)[None] @ self.inputs[:, None] / self.inputs.shape[1]

    @cached_property
    def sigma_xx(self) -> Float[np.ndarray, "domain input input"]:
        """Input correlation <x_i x_i^T> of every input domain."""
        return self.inputs.transpose(0, 2, 1) @ self.inputs / self.inputs.shape[1]

    @cached_property
    def modes(self) -> DomainModes | None:
        """(u, s, v): singular vectors of each domain, and singular values that all pairs share.

        None where pairs of domains have different modes, or where sigma_yx is rank deficient.
        """
        sigma = self.sigma_yx
        first, s, second = np.linalg.svd(sigma[0, 0], full_matrices=False)
        if s[-1] <= 1e-9 * s[0]:
            return None
        v = np.einsum("iyx,yk->ixk", sigma[:, 0], first) / s
        u = np.einsum("jyx,kx->jyk", sigma[0], second) / s
        shared = np.allclose(np.einsum("jyk,k,ixk->ijyx", u, s, v), sigma, atol=1e-9 * s[0])
        return (u, s, v) if shared else None

    @cached_property
    def joint(self) -> bool:
        """Whether all pairs share their modes, and sigma_xx of every domain is diagonal in them."""
        if self.modes is None:
            return False
        rotated = np.einsum("dik,dij,djl->dkl", v := self.modes[2], self.sigma_xx, v)
        rest = self.sigma_xx @ v - v * np.einsum("dkk->dk", rotated)[:, None]
        return bool(np.linalg.norm(rest) < 1e-9 * np.linalg.norm(self.sigma_xx))

    @cached_property
    def y_power(self) -> Float[np.ndarray, " output_domain"]:
        """<|y_j|^2> of every output domain."""
        return np.einsum("jno,jno->j", self.targets, self.targets) / self.targets.shape[1]

    def flat(self, pairs: Int[np.ndarray, "pair 2"]) -> Data:
        """One sample for each item of each pair, pair after pair.

        Args:
            pairs: input and output domain of each pair.

        Returns:
            Inputs (sample, domain * input) and targets (sample, domain * output), zero outside the
            domains of the pair. The context of a sample is the number of its pair.

        Raises:
            IndexError: a pair names a domain that does not exist.
        """
        input_domains, output_domains = pairs.T
        return Data(
            x=_in_place(self.inputs, input_domains),
            y=_in_place(self.targets, output_domains),
            contexts=np.repeat(np.arange(len(pairs)), self.inputs.shape[1]),
        )


def _in_place(
    vectors: Float[np.ndarray, "domain item unit"], domains: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, "sample all_units"]:
    """The items of each pair's domain, in the units of that domain; all other units are zero."""
    count, items, units = vectors.shape
    placed = np.zeros((len(domains), items, count, units))
    placed[np.arange(len(domains)), :, domains] = vectors[domains]
    return placed.reshape(len(domains) * items, count * units)


@dataclass(frozen=True)
class Mixture:
    """Targets and input moments of two classes of equal weight, with one output."""

    targets: Float[np.ndarray, " class"]
    """Target of each class."""
    covariances: Float[np.ndarray, "class input input"]
    """Second moments <x x^T> of each class; the class mean is not subtracted."""
    means: Float[np.ndarray, "class input"]
    """Mean input <x> of each class."""
    marginal: Marginal | None = None
    """Distribution of each input, if inputs are functions of a Gaussian process."""

    __repr__ = short_repr


class Sizes(NamedTuple):
    """Numbers of samples, inputs and outputs; for a dataset of domains, those of one pair."""

    samples: int
    inputs: int
    outputs: int


class Dataset(ConfigModel, ABC):
    """A dataset as it is configured in `config/`: a name and parameters."""

    reads_files: ClassVar[bool] = False
    """Whether it reads files from outside the library; `neuralrace.testing` skips such datasets."""
    has_input_distribution: ClassVar[bool] = False
    """Whether inputs are functions of a Gaussian process; `mixture` gives its moments."""
    may_be_white: ClassVar[bool] = True
    """Whether sigma_xx can be a multiple of the identity. Where it never is, a theory that requires
    white inputs is refused without loading the dataset."""

    @property
    def sizes(self) -> Sizes:
        """Its sizes. Planning needs them: override this where loading reads files or is slow."""
        data = self.load()
        samples, inputs = data.x.shape
        return Sizes(samples, inputs, data.y.shape[1])

    @property
    def has_test(self) -> bool:
        """Whether it has test samples, which are not trained on."""
        return False

    def describe(self) -> str:
        """What is read from which file; nothing for other datasets.

        Raises:
            UserError: the file cannot be read.
        """
        return ""

    @property
    def phases(self) -> tuple[tuple[int, "Dataset"], ...]:
        """First step and dataset of each task of a sequence; of other datasets, the only task."""
        return ((0, self),)

    @abstractmethod
    def load(self) -> Data:
        """The sample for training, whose correlations theory uses.

        Raises:
            UserError: files are missing or damaged.
        """

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]] | None:
        """A JAX-traceable function (key, count) -> (x, y) that draws new samples.

        None where the dataset is a fixed sample. The function is a `jax.tree_util.Partial` whose
        arguments hold the numbers, so that distributions that differ only in numbers share one
        compiled program.
        """
        return None

    def mixture(self) -> Mixture | None:
        """Moments of the two classes; None where they are not known in closed form."""
        return None


class DomainDataset(Dataset, ABC):
    """A dataset with M input domains and M output domains, for routing networks."""

    name: str  # stands before `count` in the canonical text, as in all datasets
    count: Annotated[int, Field(ge=1)]
    """Number M of input domains, which is also that of output domains."""

    @property
    def sizes(self) -> Sizes:
        """Sizes of one pair of domains."""
        domains = self.domains()
        _, items, inputs = domains.inputs.shape
        return Sizes(items, inputs, domains.targets.shape[2])

    @abstractmethod
    def domains(self) -> Domains:
        """Inputs and targets of every domain, as arrays.

        Raises:
            UserError: files are missing or damaged, or the arrays would be too large.
        """

    def load(self) -> Data:
        """All pairs of domains as one sample; see `Domains.flat`.

        Raises:
            UserError: files are missing or damaged, or the arrays would be too large.
        """
        domains = self.domains()
        numbers = self.count**2 * (domains.inputs.size + domains.targets.size)
        refuse_large_domains(self.count, numbers, "all pairs of domains")
        return domains.flat(np.indices((self.count, self.count)).reshape(2, -1).T)


def refuse_large_domains(count: int, numbers: int, contents: str) -> None:
    """Refuses arrays of domains that would have more than `MOST_NUMBERS` entries.

    Args:
        count: number of domains.
        numbers: entries of the arrays.
        contents: what the arrays hold, for the message.

    Raises:
        UserError: the arrays would be too large.
    """
    if numbers > MOST_NUMBERS:
        raise UserError(
            f"the arrays of {contents} would have {numbers:.1e} numbers, and at most "
            f"{MOST_NUMBERS:.0e} are allowed",
            key="dataset.count",
            value=count,
            remedy="use a routing network, which needs their moments only, or use fewer domains or "
            "samples",
        )
