"""Gated deep linear network on any architecture graph."""

from collections.abc import Mapping, Sequence
from functools import reduce

import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from neuralrace.networks.gates.architecture import Architecture


class GatedNetwork(nnx.Module):
    """h_v = g_v sum_e g_e W_e h_s(e), with W_e of shape (target, source).

    Source: Saxe, Sodhani, Lewallen 2022, gated deep linear networks.
    """

    def __init__(self, architecture: Architecture, weights: Sequence[Array]):
        self.edges = nnx.List([nnx.Param(weight) for weight in weights])
        self.architecture = architecture

    def __call__(
        self, x: Float[Array, "sample input"], gates: Mapping[str, Float[Array, " sample"]]
    ) -> Float[Array, "sample output"]:
        """Network outputs.

        Args:
            x: columns of all input nodes, concatenated.
            gates: gates of nodes `a` and edges `a->b`; nodes and edges without an entry are open.
        """
        graph, h = self.architecture, {}
        for name in graph.order:
            arriving = []
            for edge in graph.incoming[name]:
                signal = h[graph.edges[edge][0]] @ self.edges[edge][...].T
                gate = gates.get(graph.edge_name(edge))
                arriving.append(signal if gate is None else gate[:, None] * signal)
            total = sum(arriving) if arriving else x[:, graph.columns(name)]
            gate = gates.get(name)
            h[name] = total if gate is None else gate[:, None] * total
        return jnp.concatenate([h[name] for name in graph.outputs], axis=1)

    def maps(self) -> list[Array]:
        """The product of weights along each pathway, (target, source)."""
        return [
            reduce(lambda below, above: above @ below, (self.edges[e][...] for e in pathway.edges))
            for pathway in self.architecture.pathways
        ]

    @property
    def weights(self) -> list[Array]:
        """W_e of every edge."""
        return [edge[...] for edge in self.edges]

    @property
    def junctions(self) -> list[tuple[list[Array], list[Array]]]:
        """Weights into and out of each hidden node."""
        graph = self.architecture
        return [
            (
                [self.edges[edge][...] for edge in graph.incoming[name]],
                [self.edges[edge][...] for edge in graph.outgoing[name]],
            )
            for name in graph.hidden
        ]
