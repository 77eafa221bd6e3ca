"""Base classes of initialisers.

Every initialiser draws at unit scale; the network starts at `init_scale` times that in every layer.
A draw depends on the seed and the name of the layer alone. Runs at different scales, or with other
gates, activations or learning rates, therefore start from the same directions and form pairs.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from neuralrace.datasets.base import Modes
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EffectiveData

Weights = list[Float[np.ndarray, "*runs _out _in"]]
Effective = Callable[[int], EffectiveData]


def orthonormal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Haar-distributed matrix with orthonormal columns (or rows, if it is wide)."""
    if rows < columns:
        return orthonormal(rng, columns, rows).T
    q, r = np.linalg.qr(rng.normal(size=(rows, columns)))
    # QR leaves the signs of columns to LAPACK: Haar measure needs a positive diagonal of R
    return q * np.sign(np.diag(r))


def layer(seed: int, number: int) -> np.random.Generator:
    """Random stream for the weights of a layer, numbered from 1."""
    return generator(seed, f"weights of layer {number}")


def by_layer(numbers: tuple[float, ...] | None, depth: int, key: str) -> tuple[float, ...]:
    """A number for each layer; 1 in every layer where none are configured.

    Raises:
        UserError: there are more numbers than layers, or fewer.
    """
    numbers = numbers or (1.0,) * depth
    if len(numbers) != depth:
        raise UserError(
            f"has {len(numbers)} entries for {depth} layers of weights",
            key=key,
            remedy="give one entry for each layer",
        )
    return numbers


class Initialiser(ConfigModel, ABC):
    """Configuration of an initialiser.

    Class attributes state the properties of initial weights that theories require.
    """

    reads_files: ClassVar[bool] = False
    """Whether it reads files from outside the library; `neuralrace.testing` skips it then."""
    aligned: ClassVar[bool] = False
    """Whether every layer is diagonal in the modes of the task."""
    orthogonal: ClassVar[bool] = False
    """Whether every layer is the same multiple of a semi-orthogonal matrix."""
    for_graphs: ClassVar[bool] = False
    """Whether it can draw the edges of a graph; see `draw_edges`."""
    in_modes: ClassVar[bool] = False
    """Whether weights are drawn in the modes of the task, and so not in general position."""

    @property
    def fits_any_network(self) -> bool:
        """Whether it exists for every network; otherwise planning tests it by a draw."""
        return False

    @abstractmethod
    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """Weights of a layered network at unit scale.

        Args:
            seed: run seed.
            widths: units per layer, inputs first.
            modes: singular modes of the task, for initialisers that use its basis.

        Returns:
            W_1 ... W_L, W_l of shape (widths[l], widths[l-1]).

        Raises:
            UserError: the initialiser does not exist for these widths.
        """

    def require_one_hidden(self, widths: tuple[int, ...]) -> None:
        """Raises UserError unless a network of these widths has exactly one hidden layer."""
        if len(widths) != 3:
            raise UserError(
                f"needs one hidden layer, and the network has {len(widths) - 2}",
                key="init.name",
                value=getattr(self, "name", type(self).__name__),
                remedy="give exactly one, or use another initialiser",
            )

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """Weights of every edge of a graph at unit scale.

        Args:
            seed: run seed.
            architecture: nodes with their widths, and edges.
            effective: returns the effective data of a run seed, for initialisers that use its
                modes; it may be slow.

        Returns:
            One matrix per edge, (units of its target, units of its source).

        Raises:
            UserError: the initialiser does not exist for this graph.
        """
        raise UserError(
            "is for layered networks",
            key="init.name",
            value=getattr(self, "name", type(self).__name__),
            remedy="use one for graphs, such as normal",
        )


class EdgeInitialiser(Initialiser):
    """An initialiser that needs the shape of each weight matrix only."""

    @property
    def fits_any_network(self) -> bool:
        """See `Initialiser.fits_any_network`."""
        return True

    @abstractmethod
    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """One weight matrix at unit scale."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        return [
            self.edge(layer(seed, number), n_out, n_in)
            for number, (n_in, n_out) in enumerate(itertools.pairwise(widths), start=1)
        ]

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Initialiser.draw_edges`."""
        nodes = architecture.nodes
        return [
            self.edge(
                generator(seed, f"weights of {architecture.edge_name(number)}"),
                nodes[target],
                nodes[source],
            )
            for number, (source, target) in enumerate(architecture.edges)
        ]
