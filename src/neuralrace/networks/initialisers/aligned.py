"""Aligned initialisation: layers are diagonal in the modes of the task (Saxe et al. 2013)."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Modes
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.initialisers.base import (
    Effective,
    Initialiser,
    Weights,
    by_layer,
    orthonormal,
)


class Aligned(Initialiser):
    """Aligned initialisation: every layer is diagonal in the singular vectors of the task.

    Layer l has strength `layer_strengths[l]` times `init_scale` in every mode. Hidden layers have
    random orthonormal bases (Saxe et al. 2013; Basu et al., corollary 2.4). In a graph, the layer
    of an edge is its distance from the inputs (Saxe, Sodhani, Lewallen 2022, reduction).
    """

    aligned: ClassVar[bool] = True
    for_graphs: ClassVar[bool] = True
    in_modes: ClassVar[bool] = True
    name: Literal["aligned"]
    layer_strengths: tuple[Annotated[float, Field(gt=0)], ...] | None = None
    """Strength of each layer, first layer first; 1 in every layer when absent."""

    def _strengths(self, depth: int) -> tuple[float, ...]:
        return by_layer(self.layer_strengths, depth, "init.layer_strengths")

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        strengths = self._strengths(len(widths) - 1)
        rank = min(min(widths), len(modes.s))
        hidden = [
            orthonormal(generator(seed, f"basis of layer {number}"), width, rank)
            for number, width in enumerate(widths[1:-1], start=1)
        ]
        # a mode of negative strength needs one layer of opposite sign
        signs = np.where(modes.s[:rank] < 0, -1.0, 1.0)
        bases = [modes.v[:, :rank], *hidden, modes.u[:, :rank] * signs]
        return [
            strength * above @ below.T
            for strength, below, above in zip(strengths, bases, bases[1:], strict=False)
        ]

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Initialiser.draw_edges`."""
        data = effective(seed)
        bases, rank = dict(data.modes.bases), data.modes.s.shape[1]
        if narrow := [n for n in architecture.hidden if architecture.nodes[n] < rank]:
            raise UserError(
                f"node {narrow[0]!r} has fewer units than there are modes, {rank}",
                key="init.name",
                value=self.name,
                remedy="give it more units, or use another initialiser",
            )
        for name in architecture.hidden:
            rng = generator(seed, f"basis of {name}")
            bases[name] = orthonormal(rng, architecture.nodes[name], rank)
        strengths = self._strengths(1 + max(architecture.levels))
        return [
            strengths[level] * bases[target] @ bases[source].T
            for level, (source, target) in zip(
                architecture.levels, data.architecture.edges, strict=True
            )
        ]
