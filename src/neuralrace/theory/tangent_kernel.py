"""Neural tangent kernel: networks that are linearised in their weights around the initial weights.

A row is one output of the network, an input together with a direction in the space of outputs. The
derivative of a row's value with respect to a weight matrix W is the outer product of `back`, the
derivative with respect to W h, and the signal h that W receives. So the kernel of two rows, the
inner product of their derivatives with respect to all trained weights, is

    K = sum_W (back . back') (h . h').

Outputs f of the linearised network follow df/dt = K (y - f)/N under gradient flow of the loss
1/2 <|y - f|^2> over N samples. The eigenmodes of K solve this in closed form. Time is gradient-flow
time, tau = 1.

Source: Jacot, Gabriel, Hongler 2018, "Neural Tangent Kernel"; Lee et al. 2019, "Wide Neural
Networks of Any Depth Evolve as Linear Models Under Gradient Descent".
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.theory.layered import forward_pass

Derivative = tuple[Float[np.ndarray, "row _target"], Float[np.ndarray, "row _source"]]
"""`back` and signal of a weight matrix, by row."""


@dataclass(frozen=True)
class Tangent:
    """Values of some rows at the initial weights, and their derivatives."""

    values: Float[np.ndarray, " row"]
    derivatives: tuple[Derivative, ...]
    """By trained weight matrix."""

    __repr__ = short_repr

    def kernel(self, other: "Tangent") -> Float[np.ndarray, "row other_row"]:
        """Tangent kernel between these rows and others of the same network."""
        total = np.zeros((len(self.values), len(other.values)))
        for (back, signal), (other_back, other_signal) in zip(
            self.derivatives, other.derivatives, strict=True
        ):
            # behind closed gates, most rows do not depend on a weight matrix
            rows = np.flatnonzero(back.any(axis=1) & signal.any(axis=1))
            columns = np.flatnonzero(other_back.any(axis=1) & other_signal.any(axis=1))
            backs = back[rows] @ other_back[columns].T
            total[np.ix_(rows, columns)] += backs * (signal[rows] @ other_signal[columns].T)
        return total

    def changes(
        self, pulls: Float[np.ndarray, " row"]
    ) -> list[Float[np.ndarray, "_target _source"]]:
        """Change of each trained weight matrix, the sum of all derivatives times the pulls.

        Args:
            pulls: how far training has pulled at each row; see `KernelFlow.pulls`.
        """
        return [(pulls[:, None] * back).T @ signal for back, signal in self.derivatives]


def layered_tangent(
    x: Float[np.ndarray, "row input"],
    directions: Float[np.ndarray, "row output"],
    weights: Sequence[Float[np.ndarray, "_target _source"]],
    activation: str,
    biases: bool = False,
    trained_readout: bool = True,
) -> Tangent:
    """Values and derivatives of a layered network.

    Args:
        x: input of each row.
        directions: direction of each row in the space of outputs.
        weights: W_1, ..., W_L of one run, first layer first.
        activation: activation of the hidden layers.
        biases: whether trained layers have biases, which start at zero.
        trained_readout: whether the last layer is trained.
    """
    there = forward_pass(x, weights, activation)
    back, backs = directions, [directions]
    for weight, slope in zip(weights[:0:-1], there.slopes[::-1], strict=True):
        back = back @ weight * slope
        backs.append(back)
    one = np.ones((len(x), int(biases)))  # a bias is the weight of a signal of one
    derivatives = [
        (back, np.hstack([signal, one]))
        for back, signal in zip(backs[::-1], there.signals, strict=True)
    ]
    trained = derivatives if trained_readout else derivatives[:-1]
    return Tangent((directions * there.outputs).sum(axis=1), tuple(trained))


def gated_tangent(
    wiring: Wiring,
    samples: Int[np.ndarray, " row"],
    directions: Float[np.ndarray, "row output"],
    weights: Sequence[Float[np.ndarray, "_target _source"]],
    frozen: Container[int] = (),
) -> Tangent:
    """Values and derivatives of a gated linear network.

    Args:
        wiring: graph and gates.
        samples: number of the sample of each row.
        directions: direction of each row in the space of outputs.
        weights: weights of one run, by edge.
        frozen: edges whose weights are not trained.
    """
    graph, x = wiring.architecture, wiring.data.x[samples]
    names = [graph.edge_name(edge) for edge in range(len(graph.edges))]

    def gate(name: str) -> Float[np.ndarray, "row 1"]:
        return wiring.gates[name][samples, None] if name in wiring.gates else np.ones((len(x), 1))

    signals: dict[str, np.ndarray] = {}
    received: dict[int, np.ndarray] = {}  # by edge
    for name in graph.order:
        total = np.zeros((len(x), graph.nodes[name]))
        if name in graph.inputs:
            total += x[:, graph.columns(name)]
        for edge in graph.incoming[name]:
            seen = wiring.visible_inputs.get(names[edge], True)
            received[edge] = gate(names[edge]) * seen * signals[graph.edges[edge][0]]
            total += received[edge] @ weights[edge].T
        signals[name] = gate(name) * total
    backs: dict[str, np.ndarray] = {}  # derivatives with respect to a signal before its gate
    for name in reversed(graph.order):
        total = np.zeros((len(x), graph.nodes[name]))
        if name in graph.outputs:
            total += directions[:, graph.columns(name)]
        for edge in graph.outgoing[name]:
            total += gate(names[edge]) * (backs[graph.edges[edge][1]] @ weights[edge])
        backs[name] = gate(name) * total
    outputs = [directions[:, graph.columns(name)] * signals[name] for name in graph.outputs]
    derivatives = tuple(
        (backs[target], received[edge])
        for edge, (_, target) in enumerate(graph.edges)
        if edge not in frozen
    )
    return Tangent(np.hstack(outputs).sum(axis=1), derivatives)


@dataclass(frozen=True)
class KernelFlow:
    """Gradient flow of a linearised network, exact in time.

    All results share one eigendecomposition, so the arrays must not be changed later.

    Attributes:
        kernel: tangent kernel of the trained rows.
        error: target minus initial value of each of these rows.
        samples: number N of samples that the loss averages over.
    """

    kernel: Float[np.ndarray, "row row"]
    error: Float[np.ndarray, " row"]
    samples: int

    __repr__ = short_repr

    @cached_property
    def modes(self) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, "row mode"]]:
        """Rate of each mode, the eigenvalues of the kernel over N, and eigenvectors in columns."""
        values, vectors = np.linalg.eigh(self.kernel)
        return np.maximum(values, 0) / self.samples, vectors  # rounding may make them negative

    def loss(self, time: Float[np.ndarray, " time"]) -> Float[np.ndarray, " time"]:
        """The loss 1/2 <|y - f|^2>.

        Args:
            time: gradient-flow time.
        """
        rates, vectors = self.modes
        return np.exp(-2 * time[:, None] * rates) @ (self.error @ vectors) ** 2 / (2 * self.samples)

    def pulls(self, time: Float[np.ndarray, " time"]) -> Float[np.ndarray, "time row"]:
        """The integral of the error over time, over N.

        The value of any row changes by its kernel with the trained rows times the pulls.

        Args:
            time: gradient-flow time.
        """
        rates, vectors = self.modes
        moves = rates > 0
        growth = -np.expm1(-time[:, None] * rates)
        integral = np.divide(growth, rates, where=moves, out=growth)
        integral[:, ~moves] = time[:, None]
        return integral * (self.error @ vectors / self.samples) @ vectors.T
