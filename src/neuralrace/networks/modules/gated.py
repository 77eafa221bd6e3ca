"""Parallel gated pathways: a linear network of gated inputs.

It computes the same as `GatedNetwork` on the graph of `gates.wiring.parallel`, with neighbouring
pathways of equal width in one array.
"""

import itertools
from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.modules.layered import Frozen


class Stack(nnx.Module):
    """Neighbouring pathways of one width.

    The first layer is kept as (pathway, in, out), so that units are last in it and in the next. Few
    inputs as the last axis would use processors badly.
    """

    def __init__(self, layers: Sequence[Array], trained_readout: bool):
        first, *between, last = layers
        readout = nnx.Param(last) if trained_readout else Frozen(last)
        self.first = nnx.Param(first.mT)
        """(pathway, in, out)."""
        self.above = nnx.List([*map(nnx.Param, between), readout])
        """By layer, (pathway, out, in)."""

    @property
    def weights(self) -> list[Float[Array, "pathway _out _in"]]:
        """Weights of all pathways, by layer."""
        return [self.first[...].mT, *(layer[...] for layer in self.above)]

    def maps(self) -> Float[Array, "pathway output input"]:
        """The product of weights along each pathway."""
        return reduce(lambda below, above: above @ below, self.weights)

    def chains(self) -> list[tuple[Array, ...]]:
        """Weights of each pathway, first layer first."""
        return list(zip(*self.weights, strict=True))


class ParallelNetwork(nnx.Module):
    """yhat = sum_p W_p^L ... W_p^1 (g_p x), a linear network of the gated inputs g_p x.

    Pathways may have different numbers of inputs, except for `maps`.

    Source: Saxe, Sodhani, Lewallen 2022; Jarvis et al., sec. 3, for rectified linear networks.
    """

    def __init__(self, stacks: Sequence[Sequence[Array]], trained_readout: bool = True):
        self.stacks = nnx.List([Stack(layers, trained_readout) for layers in stacks])

    def __call__(self, x: Float[Array, "sample pathway_input"]) -> Float[Array, "sample output"]:
        """Network outputs.

        Args:
            x: gated inputs of all pathways, concatenated; zero where a pathway is closed.
        """
        maps = [jnp.concatenate(stack.maps().mT) for stack in self.stacks]
        return x @ jnp.concatenate(maps)

    def pathway_outputs(
        self, x: Float[Array, "sample pathway_input"]
    ) -> Float[Array, "pathway sample output"]:
        """Output of each pathway; see `__call__`."""
        pathways = zip(self._inputs(x), self._maps(), strict=True)
        return jnp.stack([inputs @ map.T for inputs, map in pathways])

    def maps(self) -> Float[Array, "pathway output input"]:
        """The product of weights along each pathway."""
        return jnp.concatenate([stack.maps() for stack in self.stacks])

    def _maps(self) -> list[Float[Array, "output _input"]]:
        """The map of each pathway."""
        return list(itertools.chain.from_iterable(stack.maps() for stack in self.stacks))

    def _inputs(
        self, x: Float[Array, "sample pathway_input"]
    ) -> list[Float[Array, "sample _input"]]:
        """The gated inputs of each pathway."""
        sizes = [first.shape[-1] for first, *_ in self.chains()]
        return jnp.split(x, np.cumsum(sizes)[:-1], axis=1)

    def first_hidden(
        self, x: Float[Array, "sample pathway_input"]
    ) -> Float[Array, "sample pathway_unit"]:
        """First hidden layers of all pathways, concatenated."""
        pathways = zip(self._inputs(x), self.chains(), strict=True)
        return jnp.concatenate([inputs @ first.T for inputs, (first, *_) in pathways], axis=1)

    def chains(self) -> list[tuple[Array, ...]]:
        """Weights of each pathway, first layer first."""
        return list(itertools.chain.from_iterable(stack.chains() for stack in self.stacks))

    @property
    def weights(self) -> list[Array]:
        """W_e of every edge of the graph, pathway by pathway."""
        return list(itertools.chain.from_iterable(self.chains()))

    @property
    def junctions(self) -> list[tuple[list[Array], list[Array]]]:
        """Weights into and out of each hidden node, pathway by pathway."""
        return [
            ([below], [above])
            for chain in self.chains()
            for below, above in itertools.pairwise(chain)
        ]


def side_by_side(
    edges: Sequence[Float[np.ndarray, "*runs _out _in"]], architecture: Architecture
) -> list[list[Float[np.ndarray, "*runs pathway _out _in"]]]:
    """Stacks of neighbouring pathways of equal shapes, from the weights of a graph's edges.

    Args:
        edges: weights by edge.
        architecture: a graph made by `gates.wiring.parallel`.

    Returns:
        For each group of neighbours, one stack for each layer.
    """
    chains = [[edges[edge] for edge in pathway.edges] for pathway in architecture.pathways]
    groups = itertools.groupby(chains, lambda chain: [weights.shape for weights in chain])
    return [[np.stack(layer, axis=-3) for layer in zip(*group, strict=True)] for _, group in groups]
