"""Scales of single layers and edges, for any initialiser."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from neuralrace.datasets.base import Modes
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.registry import ChoiceOf
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.initialisers.base import Effective, Initialiser, Weights, by_layer

Factor = Annotated[float, Field(gt=0)]


class Scaled(Initialiser):
    """Another initialiser, with a factor on the weights of each layer, node or edge.

    Factors multiply each other, and the init scale. Draws are those of the other initialiser.
    Aligned weights stay aligned. No theory of orthogonal or balanced starts applies to the result.
    """

    model_config = ConfigDict(defer_build=True)
    example: ClassVar[Mapping[str, Any]] = {"of": {"name": "normal"}, "layers": [1.0, 0.5]}
    name: Literal["scaled"]
    of: Annotated[Initialiser, ChoiceOf("initialisers", without=("scaled",))]
    """The initialiser whose weights are multiplied."""
    layers: tuple[Factor, ...] | None = None
    """Factor on each layer, first layer first; 1 when absent. In a graph, edges that leave an
    input are layer 1, and others follow by the longest path to their source."""
    edges: dict[str, Factor] = Field(default={})
    """Factors in networks on a graph, by edge `a->b` or by node `a`, which stands for all edges
    into and out of it; `*` stands for any text. `*of pathway 2` is the second pathway of a gated
    network, `*of family 1,*` the first family of pathway blocks of a routing network."""

    @property
    def aligned(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Initialiser.aligned`."""
        return self.of.aligned

    @property
    def for_graphs(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Initialiser.for_graphs`."""
        return self.of.for_graphs or self.of.fits_any_network

    @property
    def in_modes(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Initialiser.in_modes`."""
        return self.of.in_modes

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        if self.edges:
            raise UserError(
                "a layered network has layers only", key="init.edges", remedy="use init.layers"
            )
        weights = self.of.draw(seed, widths, modes)
        factors = self._by_layer(len(weights))
        return [factor * weight for factor, weight in zip(factors, weights, strict=True)]

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Initialiser.draw_edges`."""
        weights = self.of.draw_edges(seed, architecture, effective)
        by_layer = self._by_layer(1 + max(architecture.levels))
        factors = np.array([by_layer[level] for level in architecture.levels])
        names = [
            (*edge, architecture.edge_name(number))
            for number, edge in enumerate(architecture.edges)
        ]
        for pattern, factor in self.edges.items():
            chosen = [any(fnmatchcase(name, pattern) for name in edge) for edge in names]
            if not any(chosen):
                known = [*architecture.nodes, *(edge for *_, edge in names)]
                raise UserError(
                    "is no node and no edge",
                    key=f"init.edges.{pattern}",
                    remedy=f"{did_you_mean(pattern, known)}write an edge as a->b",
                )
            factors[chosen] *= factor
        return [factor * weight for factor, weight in zip(factors, weights, strict=True)]

    def _by_layer(self, depth: int) -> tuple[float, ...]:
        return by_layer(self.layers, depth, "init.layers")
