"""Fully connected network, with one activation in all hidden layers."""

import itertools
from collections.abc import Sequence

import jax
from flax import nnx
from jax import Array
from jaxtyping import Float

from neuralrace.networks.modules.activations import ACTIVATIONS


class Frozen(nnx.Variable):
    """Weights that are not trained."""


@jax.custom_vjp
def few_samples(
    weight: Float[Array, "out in"], h: Float[Array, "sample in"]
) -> Float[Array, "sample out"]:
    """Product h W^T for few samples and large W, of which no transposed copy is made.

    For h W^T itself XLA transposes W on processors. Here h and the result are transposed, and the
    gradient of h is a product with W as it is.
    """
    return (weight @ h.T).T


few_samples.defvjp(
    lambda weight, h: (few_samples(weight, h), (weight, h)),
    lambda factors, slope: (slope.T @ factors[1], slope @ factors[0]),
)


class Layer(nnx.Module):
    """An affine map h -> W h + b, with W of shape (out, in) as the theory writes it."""

    def __init__(
        self,
        weight: nnx.Variable,
        bias: Array | None,
        bias_rate: float = 1.0,
        transposed: bool = False,
    ):
        self.stored, self.transposed = weight, transposed
        if bias is None:
            self.bias = None
        else:
            self.bias = nnx.Param(bias, rate=bias_rate) if bias_rate else Frozen(bias)

    @property
    def weight(self) -> Float[Array, "out in"]:
        """W; the transpose of what is stored where this layer is tied to another."""
        return self.stored[...].T if self.transposed else self.stored[...]

    def __call__(self, h: Float[Array, "sample in"]) -> Float[Array, "sample out"]:
        """Pre-activations of this layer."""
        weight = self.weight
        # measured: with less than this, and several runs in a group, it takes longer
        few = 8 * len(h) * sum(weight.shape) < weight.size
        out = few_samples(weight, h) if few else h @ weight.T
        return out if self.bias is None else out + self.bias[...][None]


class LayeredNetwork(nnx.Module):
    """yhat = f(W_L s(W_{L-1} ... s(W_1 x + b_1) ...) + b_L), with f = 1 unless `output` is given.

    With activation `linear` and no biases this is the deep linear network W_L ... W_1 x.

    Args:
        weights: W_1 ... W_L.
        biases: b_1 ... b_L; none if absent.
        activation: activation of the hidden layers.
        trained_readout: whether W_L is trained.
        bias_rates: learning rates of the biases over that of the weights, 0 for one that is not
            trained; those of trained layers are 1 when absent.
        output: activation f of the output.
        tied: whether W_L is the transpose of W_1, and trained as one with it.
    """

    def __init__(
        self,
        weights: Sequence[Array],
        biases: Sequence[Array] | None,
        activation: str,
        trained_readout: bool = True,
        bias_rates: Sequence[float] | None = None,
        output: str = "linear",
        tied: bool = False,
    ):
        last = len(weights) - 1
        trained = [trained_readout or index < last for index in range(len(weights))]
        rates = bias_rates or [float(each) for each in trained]
        kinds = [nnx.Param if each else Frozen for each in trained]
        stored = [kind(weight) for kind, weight in zip(kinds, weights, strict=True)]
        if tied:
            stored[-1] = stored[0]
        transposed = [tied and index == last for index in range(len(weights))]
        layers = zip(stored, biases or [None] * len(weights), rates, transposed, strict=True)
        self.layers = nnx.List([Layer(*layer) for layer in layers])
        self.activation, self.output = activation, output

    def __call__(self, x: Float[Array, "sample input"]) -> Float[Array, "sample output"]:
        """Network outputs."""
        *hidden, readout = self.layers
        for layer in hidden:
            x = ACTIVATIONS[self.activation](layer(x))
        return ACTIVATIONS[self.output](readout(x))

    def first_hidden(self, x: Float[Array, "sample input"]) -> Float[Array, "sample unit"]:
        """First hidden layer."""
        return ACTIVATIONS[self.activation](self.layers[0](x))

    @property
    def weights(self) -> list[Array]:
        """W_1 ... W_L."""
        return [layer.weight for layer in self.layers]

    @property
    def junctions(self) -> list[tuple[list[Array], list[Array]]]:
        """Weights into and out of each hidden layer."""
        return [([below], [above]) for below, above in itertools.pairwise(self.weights)]

    @property
    def biases(self) -> list[Array]:
        """b_1 ... b_L; empty for a network without biases."""
        return [layer.bias[...] for layer in self.layers if layer.bias is not None]
