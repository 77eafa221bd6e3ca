"""What an initialisation law is: how the weights of a network are drawn.

Every law draws at unit scale; the network starts at `init_scale` times that, in every layer. Draws
depend on the seed and the layer's name alone, so runs at different scales, with different gates,
activations or learning rates start from the same directions and are compared in pairs.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from neuralrace.datasets.base import Modes
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EffectiveData

Weights = list[Float[np.ndarray, "*runs _out _in"]]
Effective = Callable[[int], EffectiveData]


def orthonormal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Haar-distributed matrix with orthonormal columns (or rows, where it is wide)."""
    if rows < columns:
        return orthonormal(rng, columns, rows).T
    q, r = np.linalg.qr(rng.normal(size=(rows, columns)))
    return q * np.sign(np.diag(r))


def layer(seed: int, number: int) -> np.random.Generator:
    """Random stream of a layer's weights, numbered from 1."""
    return generator(seed, f"weights of layer {number}")


class Initialiser(ConfigModel, ABC):
    """An initialisation law as a person writes it in `config/`.

    What theories require of initial weights is said by attributes of the class.
    """

    aligned: ClassVar[bool] = False
    """Whether every layer is diagonal in the modes of the task."""
    orthogonal: ClassVar[bool] = False
    """Whether every layer is a multiple of a semi-orthogonal matrix."""
    for_graphs: ClassVar[bool] = False
    """Whether it draws the edges of a graph; see `draw_edges`."""
    in_modes: ClassVar[bool] = False
    """Whether weights lie in the modes of the task, and so in no general position."""

    @property
    def exists_anywhere(self) -> bool:
        """Whether it exists for every network; planning makes a draw for a layered one if not."""
        return False

    @abstractmethod
    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """Weights at unit scale.

        Args:
            seed: run seed.
            widths: units per layer, inputs first.
            modes: singular modes of the task, for laws that are stated in its basis.

        Returns:
            W_1 ... W_L, W_l of shape (widths[l], widths[l-1]).

        Raises:
            ValueError: the law does not exist for these widths.
        """

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """Weights of every edge of a graph, at unit scale.

        Args:
            seed: run seed.
            architecture: nodes with their widths, and edges.
            effective: gives what the pathways of a run seed learn from; called by laws that are
                stated in its modes.

        Returns:
            One matrix per edge, (units of its target, units of its source).

        Raises:
            ValueError: the law does not exist for graphs.
        """
        raise ValueError("this law is for layered networks; use one for graphs, such as normal")


class EdgeInitialiser(Initialiser):
    """A law that draws every matrix of weights by its shape alone."""

    @property
    def exists_anywhere(self) -> bool:
        """See `Law.exists_anywhere`."""
        return True

    @abstractmethod
    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """One matrix of weights at unit scale."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        return [
            self.edge(layer(seed, number), n_out, n_in)
            for number, (n_in, n_out) in enumerate(itertools.pairwise(widths), start=1)
        ]

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Law.draw_edges`."""
        nodes = architecture.nodes
        return [
            self.edge(
                generator(seed, f"weights of {architecture.edge_name(number)}"),
                nodes[target],
                nodes[source],
            )
            for number, (source, target) in enumerate(architecture.edges)
        ]
