"""Routing network: pathway blocks between many input domains and many output domains.

It computes the same as `GatedNetwork` on the graph of `gates.wiring.routing_architecture`, with all
weights of one kind in one array.
"""

import itertools
import math
from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from neuralrace.networks.gates.base import Family
from neuralrace.networks.modules.activations import ACTIVATIONS
from neuralrace.networks.modules.layered import Frozen
from neuralrace.training.task import Axes


class Blocks(nnx.Module):
    """The blocks of one family: an encoder per input domain, a decoder per output domain."""

    def __init__(self, encoder: Array, hidden: Sequence[Array], decoder: Array):
        self.encoder = nnx.Param(encoder)
        """(row, column, domain, unit, input): of input domain `row * size + domain`."""
        self.hidden = nnx.List([nnx.Param(weight) for weight in hidden])
        """Each (row, column, unit, unit below)."""
        self.decoder = nnx.Param(decoder)
        """(row, column, domain, output, unit): of output domain `column * size + domain`."""

    def maps(self) -> Float[Array, "input_domain output_domain output input"]:
        """The map of every pair of domains."""
        return jnp.transpose(self._outputs(self.encoder[...]), (0, 2, 3, 1))

    def outputs(
        self, items: Float[Array, "domain item input"]
    ) -> Float[Array, "domain item output_domain output"]:
        """Outputs in all output domains for items of every input domain."""
        encoder = self.encoder[...]
        by_row = jnp.reshape(items, (len(encoder), -1, *items.shape[1:]))
        return self._outputs(jnp.einsum("rcihx,rinx->rcihn", encoder, by_row))

    def _outputs(
        self, signal: Float[Array, "row column domain unit item"]
    ) -> Float[Array, "input_domain item output_domain output"]:
        """Outputs for signals in the first hidden layer."""
        for weight in self.hidden:
            signal = jnp.einsum("rcgh,rcihn->rcign", weight[...], signal)
        # in this order of axes, which is that of the matrix product, nothing is transposed
        outputs = jnp.einsum("rcihn,rcjyh->rincjy", signal, self.decoder[...])
        row, domain, item, column, partner, output = outputs.shape
        return outputs.reshape(row * domain, item, column * partner, output)

    @property
    def weights(self) -> list[Array]:
        """Encoders, the weights between hidden layers from the input on, decoders."""
        return [self.encoder[...], *(weight[...] for weight in self.hidden), self.decoder[...]]


class Subspace(nnx.Module):
    """The subspace in which the first block is trained; see `neuralrace.networks.subspace`."""

    def __init__(self, bases: Sequence[Array], outside: Sequence[Array]):
        self.bases = nnx.List([Axes(basis) for basis in bases])
        """Of each hidden layer, (unit, direction)."""
        self.outside = nnx.List([Frozen(weight) for weight in outside])
        """The part of the weights between hidden layers that is not trained, (unit, unit below)."""

    def widened(self, weights: Sequence[Array]) -> list[Array]:
        """Weights of the block from those along the directions of the subspace."""
        encoder, *hidden, decoder = weights
        bases = [basis[...] for basis in self.bases]
        between = [
            outside[...] + above @ weight @ below.T
            for outside, weight, (below, above) in zip(
                self.outside, hidden, itertools.pairwise(bases), strict=True
            )
        ]
        return [bases[0] @ encoder, *between, decoder @ bases[-1].T]


class RoutingNetwork(nnx.Module):
    """The sum of families of pathway blocks (Saxe, Sodhani, Lewallen 2022, figs. 4 and 5)."""

    def __init__(
        self,
        families: Sequence[Sequence[Array]],
        activation: str = "linear",
        subspace: Subspace | None = None,
    ):
        self.activation = activation
        self.subspace = subspace
        self.families = nnx.List(
            [Blocks(encoder, hidden, decoder) for encoder, *hidden, decoder in families]
        )

    def maps(self) -> Float[Array, "input_domain output_domain output input"]:
        """The map from every input to every output domain, trained or not."""
        return reduce(jnp.add, (family.maps() for family in self.families))

    def outputs(
        self, items: Float[Array, "domain item input"]
    ) -> Float[Array, "domain item output_domain output"]:
        """Outputs of a linear network in all output domains, for items of every input domain."""
        return reduce(jnp.add, (family.outputs(items) for family in self.families))

    def hidden(self, inputs: Float[Array, "domain item input"]) -> Float[Array, "domain item unit"]:
        """The last hidden layer of the first block, for the inputs of all its input domains."""
        activate = ACTIVATIONS[self.activation]
        encoder, *between, _ = self.weights
        signal = activate(jnp.einsum("dhx,dnx->dnh", encoder, inputs))
        for weight in between:
            signal = activate(jnp.einsum("gh,dnh->dng", weight, signal))
        return signal

    @property
    def weights(self) -> list[Array]:
        """Weights of the first block of the first family, one matrix per domain at both ends."""
        first = [weight[0, 0] for weight in self.families[0].weights]
        return self.subspace.widened(first) if self.subspace else first

    @property
    def junctions(self) -> list[tuple[list[Array], list[Array]]]:
        """Weights into and out of each hidden layer of the first block."""
        encoder, *hidden, decoder = self.weights
        into = [list(encoder), *([weight] for weight in hidden)]
        out_of = [*([weight] for weight in hidden), list(decoder)]
        return list(zip(into, out_of, strict=True))


def stacked(
    edges: Sequence[np.ndarray], families: Sequence[Family], domains: int
) -> list[list[np.ndarray]]:
    """Weights of each family from those of the edges of `routing_architecture`.

    Args:
        edges: (*runs, out, in) by edge.
        families: the pathway blocks.
        domains: number of input domains, and of output domains.

    Returns:
        By family: encoder, hidden weights, decoder, each (*runs, row, column, ...).
    """
    remaining = iter(edges)

    def stack(*shape: int) -> np.ndarray:
        weights = np.stack(list(itertools.islice(remaining, math.prod(shape))), axis=-3)
        return weights.reshape(*weights.shape[:-3], *shape, *weights.shape[-2:])

    stacks = []
    for family in families:
        side = domains // family.size
        encoder = stack(side, side, family.size)
        hidden = [stack(side, side) for _ in family.hidden[1:]]
        stacks.append([encoder, *hidden, stack(side, side, family.size)])
    return stacks
