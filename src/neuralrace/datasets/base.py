"""What a dataset is: a configuration that loads arrays."""

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

MOST_NUMBERS = 2 * 10**8
"""Most numbers that inputs and targets are written out in, 1.6 GB."""


@dataclass(frozen=True)
class Modes:
    """The singular modes of a task, sigma_yx = sum_k s_k u_k v_k^T and sigma_xx v_k = d_k v_k.

    `output_basis` and `input_basis` are complete orthogonal bases whose first `len(s)` columns are
    u_k and v_k. `joint` tells whether sigma_xx is diagonal in the input basis, which the closed
    forms of single modes assume; `violation` is the relative size of what is left off the diagonal.
    """

    output_basis: Float[np.ndarray, "output output"]
    input_basis: Float[np.ndarray, "input input"]
    s: Float[np.ndarray, " mode"]
    d: Float[np.ndarray, " mode"]
    violation: float

    @property
    def joint(self) -> bool:
        """Whether input and input-output correlations share their singular vectors."""
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
    """A finite sample: inputs `x`, targets `y`, and optionally held-out samples.

    Classification targets are one-hot rows.
    """

    x: Float[np.ndarray, "sample input"]
    y: Float[np.ndarray, "sample output"]
    item_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    signed_basis: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """Bases and signed strengths (U, s, V) by construction, where the SVD would lose signs."""
    contexts: Int[np.ndarray, " sample"] | None = None
    """Context that each sample is shown in, from 0; gates may depend on it."""
    input_groups: tuple[int, ...] = ()
    """Sizes of the groups of inputs, in order; pathways may see some groups only."""

    @cached_property
    def sigma_yx(self) -> Float[np.ndarray, "output input"]:
        """Input-output correlation <y x^T>."""
        return self.y.T @ self.x / len(self.x)

    @cached_property
    def sigma_xx(self) -> Float[np.ndarray, "input input"]:
        """Input correlation <x x^T>."""
        return self.x.T @ self.x / len(self.x)

    @cached_property
    def y_power(self) -> float:
        """<|y|^2>, twice the half-mean squared error of a network that answers zero."""
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
            # of a direction in which inputs do not vary, rounding may leave less than nothing
            d=np.maximum(np.diag(rotated)[:rank], 0),
            violation=float(np.linalg.norm(off_diagonal) / np.linalg.norm(self.sigma_xx)),
        )


@dataclass(frozen=True)
class Domains:
    """Inputs and targets by domain, for networks that route input domains to output domains.

    Datum (i, j, n) shows input domain i the vector `inputs[i, n]` and asks output domain j for
    `targets[j, n]`. Averages are over the items n of one pair (i, j).
    """

    inputs: Float[np.ndarray, "domain item input"]
    targets: Float[np.ndarray, "domain item output"]

    @property
    def count(self) -> int:
        """Input domains, and as many output domains."""
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
    def modes(
        self,
    ) -> (
        tuple[
            Float[np.ndarray, "domain output mode"],
            Float[np.ndarray, " mode"],
            Float[np.ndarray, "domain input mode"],
        ]
        | None
    ):
        """Singular vectors u and v of each domain, and the strengths s that all pairs share.

        None where pairs of domains differ in their modes, or have fewer than there may be.
        """
        sigma = self.sigma_yx
        first, s, second = np.linalg.svd(sigma[0, 0], full_matrices=False)
        if s[-1] <= 1e-9 * s[0]:
            return None
        v = np.einsum("iyx,yk->ixk", sigma[:, 0], first) / s
        u = np.einsum("jyx,kx->jyk", sigma[0], second) / s
        alike = np.allclose(np.einsum("jyk,k,ixk->ijyx", u, s, v), sigma, atol=1e-9 * s[0])
        return (u, s, v) if alike else None

    @cached_property
    def joint(self) -> bool:
        """Whether input correlations of all domains are diagonal in modes that all pairs share."""
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
        """One sample for each pair and item, pairs outermost; its context is the pair's number.

        Args:
            pairs: input and output domain of each pair.

        Returns:
            Inputs (sample, domain * input) and targets (sample, domain * output), zero outside the
            domains of the pair.

        Raises:
            IndexError: a pair names a domain that does not exist.
        """
        items = self.inputs.shape[1]
        shown, asked = pairs.T
        return Data(
            x=_in_place(self.inputs, shown),
            y=_in_place(self.targets, asked),
            contexts=np.repeat(np.arange(len(pairs)), items),
        )


def _in_place(
    vectors: Float[np.ndarray, "domain item unit"], domains: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, "sample all_units"]:
    """The items of each pair's domain in the units of that domain, zero in all others."""
    count, items, units = vectors.shape
    placed = np.zeros((len(domains), items, count, units))
    placed[np.arange(len(domains)), :, domains] = vectors[domains]
    return placed.reshape(len(domains) * items, count * units)


@dataclass(frozen=True)
class Mixture:
    """The law of a balanced mixture of two classes with one output: targets and moments."""

    targets: Float[np.ndarray, " class"]
    """Target of each class."""
    covariances: Float[np.ndarray, "class input input"]
    """Second moments <x x^T> of each class, about zero and not about its mean."""
    means: Float[np.ndarray, "class input"]
    """Mean input <x> of each class."""
    marginal: Marginal | None = None
    """Law of each input, in either class; None where inputs are no functions of a Gaussian."""


class Sizes(NamedTuple):
    """How large a sample is; of a dataset of domains, what one pair of domains shows and asks."""

    samples: int
    inputs: int
    outputs: int


class Dataset(ConfigModel, ABC):
    """A dataset as a person writes it in `config/`: a name and its parameters."""

    reads_files: ClassVar[bool] = False
    """Whether it reads files that are no part of the library; `neuralrace.testing` does not
    load it then."""
    has_input_law: ClassVar[bool] = False
    """Whether inputs are functions of a Gaussian process, whose moments `mixture` tells."""
    may_be_white: ClassVar[bool] = True
    """Whether its inputs may vary alike in all directions; where they never do, a theory that
    requires it is refused without loading."""

    @property
    def sizes(self) -> Sizes:
        """How large it is. Planning asks: override it where loading reads files or takes long."""
        data = self.load()
        samples, inputs = data.x.shape
        return Sizes(samples, inputs, data.y.shape[1])

    @abstractmethod
    def load(self) -> Data:
        """The sample that training sees and that theory takes its correlations from.

        Raises:
            UserError: files are missing or damaged.
        """

    def sampler(self) -> Callable[[Any, int], tuple[Any, Any]] | None:
        """A JAX-traceable function (key, count) -> (x, y) of fresh samples; None without a law.

        Its numbers are arguments of a `jax.tree_util.Partial`: laws that differ in numbers alone
        share one compiled program.
        """
        return None

    def mixture(self) -> Mixture | None:
        """The law of the classes; None where it is not a mixture of two with known moments."""
        return None


class DomainDataset(Dataset, ABC):
    """A dataset of many input domains and as many output domains, for routing networks."""

    name: str  # stands before `count` in the canonical text, as in all datasets
    count: Annotated[int, Field(ge=1)]
    """Input domains, and as many output domains."""

    @property
    def sizes(self) -> Sizes:
        """Of one pair of domains."""
        domains = self.domains()
        _, items, inputs = domains.inputs.shape
        return Sizes(items, inputs, domains.targets.shape[2])

    @abstractmethod
    def domains(self) -> Domains:
        """Inputs and targets by domain, spelled out.

        Raises:
            UserError: files are missing or damaged, or there is too much to spell out.
        """

    def load(self) -> Data:
        """All pairs of domains side by side; see `Domains.flat`.

        Raises:
            UserError: files are missing or damaged, or there is too much to spell out.
        """
        domains = self.domains()
        numbers = self.count**2 * (domains.inputs.size + domains.targets.size)
        if numbers > MOST_NUMBERS:
            raise UserError(
                f"dataset.count: {self.count}: all pairs of domains side by side are {numbers:.1e} "
                f"numbers, and at most {MOST_NUMBERS:.0e} are written out; use a routing network, "
                "or fewer domains or items"
            )
        return domains.flat(np.indices((self.count, self.count)).reshape(2, -1).T)
