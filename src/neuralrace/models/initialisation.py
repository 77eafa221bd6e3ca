"""Initialisation laws: how the weights of a layered network are drawn.

Every law draws at unit scale; the network starts at `init_scale` times that, in every layer. Draws
depend on the seed and the layer's name alone, so runs at different scales, with different gates,
activations or learning rates start from the same directions and are compared in pairs.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.base import Strict, generator
from neuralrace.datasets import Modes
from neuralrace.errors import UserError
from neuralrace.gates.architecture import Architecture
from neuralrace.gates.effective import EVERYTHING, EffectiveData

Weights = list[Float[np.ndarray, "*runs _out _in"]]
Effective = Callable[[int], EffectiveData]


def _orthonormal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Haar-distributed matrix with orthonormal columns (or rows, where it is wide)."""
    if rows < columns:
        return _orthonormal(rng, columns, rows).T
    q, r = np.linalg.qr(rng.normal(size=(rows, columns)))
    return q * np.sign(np.diag(r))


def _layer(seed: int, number: int) -> np.random.Generator:
    return generator(seed, f"weights of layer {number}")


class Law(Strict, ABC):
    """An initialisation law as a person writes it in `config/`."""

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
        raise ValueError(
            "this law is for layered networks; use normal, glorot, orthogonal or aligned"
        )


class EdgeLaw(Law):
    """A law that draws every matrix of weights by its shape alone."""

    @abstractmethod
    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """One matrix of weights at unit scale."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        return [
            self.edge(_layer(seed, number), n_out, n_in)
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


class Normal(EdgeLaw):
    """Independent normal entries with standard deviation `init_scale`."""

    name: Literal["normal"]
    basis: Literal["coordinates", "modes"] = "coordinates"
    """`modes` draws in the singular basis of the task: equal draws for rotated tasks."""

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        return rng.normal(size=(n_out, n_in))

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        weights = super().draw(seed, widths, modes)
        if self.basis == "modes":
            weights[0] = weights[0] @ modes.input_basis.T
            weights[-1] = modes.output_basis @ weights[-1]
        return weights

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Law.draw_edges`."""
        if self.basis == "modes":
            raise ValueError("basis: 'modes': is for layered networks; use coordinates")
        return super().draw_edges(seed, architecture, effective)


class Uniform(EdgeLaw):
    """Independent entries, uniform around zero with standard deviation `init_scale`."""

    name: Literal["uniform"]

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        return rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n_out, n_in))


class Glorot(EdgeLaw):
    """Glorot normal initialisation; `init_scale` is its gain.

    `standard` has entry variance 2/(n_in + n_out); `product` the beta/(n_in n_out) with beta = 1
    that Basu et al. write in corollary 2.3.
    """

    name: Literal["glorot"]
    variance: Literal["standard", "product"] = "standard"
    """Entry variance: 2/(n_in + n_out), or 1/(n_in n_out)."""

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        variance = 2 / (n_in + n_out) if self.variance == "standard" else 1 / (n_in * n_out)
        return rng.normal(size=(n_out, n_in)) * np.sqrt(variance)


class Orthogonal(EdgeLaw):
    """Semi-orthogonal layers: every singular value equals `init_scale`."""

    name: Literal["orthogonal"]

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        return _orthonormal(rng, n_out, n_in)


class ZeroBalanced(Law):
    """W_l W_l^T = W_{l+1}^T W_{l+1} with random bases and random common singular values.

    The singular values are uniform on [0.5, 1.5] times `init_scale`. `imbalance` multiplies W_1 by
    exp(-imbalance/2) and W_L by exp(imbalance/2): the map stays, the balance goes.
    """

    name: Literal["zero_balanced"]
    imbalance: Annotated[float, Field(ge=0)] = 0.0
    """Logarithm of the ratio by which the last layer outgrows the first."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        rank = min(widths)
        strengths = generator(seed, "strengths").uniform(0.5, 1.5, size=rank)
        bases = [
            _orthonormal(generator(seed, f"basis of layer {number}"), width, rank)
            for number, width in enumerate(widths)
        ]
        weights = [(above * strengths) @ below.T for below, above in itertools.pairwise(bases)]
        weights[0] = weights[0] * np.exp(-self.imbalance / 2)
        weights[-1] = weights[-1] * np.exp(self.imbalance / 2)
        return weights


class Aligned(Law):
    """Decoupled start: every layer diagonal between the singular vectors of the task.

    Layer l carries `layer_strengths[l]` times `init_scale` in every mode, through random
    orthonormal hidden bases (Saxe et al. 2013; Basu et al., corollary 2.4). In a graph, the layer
    of an edge is its distance from the inputs (Saxe, Sodhani, Lewallen 2022, reduction).
    """

    name: Literal["aligned"]
    layer_strengths: tuple[Annotated[float, Field(gt=0)], ...] | None = None
    """Strength of each layer, first layer first; 1 in every layer when absent."""

    def _strengths(self, depth: int) -> tuple[float, ...]:
        strengths = self.layer_strengths or (1.0,) * depth
        if len(strengths) != depth:
            raise ValueError(
                f"layer_strengths has {len(strengths)} entries for {depth} layers of weights"
            )
        return strengths

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        strengths = self._strengths(len(widths) - 1)
        rank = min(min(widths), len(modes.s))
        hidden = [
            _orthonormal(generator(seed, f"basis of layer {number}"), width, rank)
            for number, width in enumerate(widths[1:-1], start=1)
        ]
        # a mode of negative strength is learned by layers of opposite sign
        signs = np.where(modes.s[:rank] < 0, -1.0, 1.0)
        bases = [modes.v[:, :rank], *hidden, modes.u[:, :rank] * signs]
        return [
            strength * above @ below.T
            for strength, below, above in zip(strengths, bases, bases[1:], strict=False)
        ]

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Law.draw_edges`."""
        data = effective(seed)
        bases, rank = dict(data.modes.bases), data.modes.s.shape[1]
        if narrow := [n for n in architecture.hidden if architecture.nodes[n] < rank]:
            raise ValueError(f"node {narrow[0]!r} has fewer units than there are modes, {rank}")
        for name in architecture.hidden:
            rng = generator(seed, f"basis of {name}")
            bases[name] = _orthonormal(rng, architecture.nodes[name], rank)
        strengths = self._strengths(1 + max(architecture.levels))
        return [
            strengths[level] * bases[target] @ bases[source].T
            for level, (source, target) in zip(
                architecture.levels, data.architecture.edges, strict=True
            )
        ]


class Decoupled(Law):
    """Two layers without interference: each mode owns a block of hidden units.

    Within its block, the encoder vector W_1 v_k and the decoder vector W_2^T u_k are independent
    standard normal vectors times `init_scale`: unaligned and unbalanced, yet never coupled.
    """

    name: Literal["decoupled"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        rank = len(modes.s)
        if len(widths) != 3 or widths[1] < rank:
            raise ValueError(
                f"law decoupled needs one hidden layer with at least {rank} units, one per mode; "
                f"got hidden layers {list(widths[1:-1])}"
            )
        owner = np.arange(widths[1]) % rank
        mask = owner[:, None] == np.arange(rank)
        encoder = _layer(seed, 1).normal(size=(widths[1], rank)) * mask
        decoder = _layer(seed, 2).normal(size=(widths[1], rank)) * mask
        return [encoder @ modes.v.T, modes.u @ decoder.T]


class Tied(Law):
    """Encoder and decoder equal in the basis of the task: W_2^T u_k = W_1 v_k, normal entries."""

    name: Literal["tied"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        if len(widths) != 3:
            raise ValueError(f"law tied needs one hidden layer; got {len(widths) - 2}")
        shared = _layer(seed, 1).normal(size=(widths[1], len(modes.s)))
        return [shared @ modes.v.T, modes.u @ shared.T]


LAWS: tuple[type[Law], ...] = (
    Aligned,
    Decoupled,
    Glorot,
    Normal,
    Orthogonal,
    Tied,
    Uniform,
    ZeroBalanced,
)


def initial_weights(
    law: Law,
    widths: tuple[int, ...],
    modes: Modes,
    scales: Sequence[float],
    seeds: Sequence[int],
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of every run of a cell.

    Args:
        law: how to draw.
        widths: units per layer, inputs first.
        modes: singular modes of the task.
        scales: init scales.
        seeds: run seeds.
        mean_readout: whether the last layer is the mean over its inputs, whatever the scale.

    Returns:
        W_1 ... W_L, each (init_scale, seed, out, in), float64.

    Raises:
        UserError: the law does not exist for these widths.
    """
    weights = _at_scales(lambda seed: law.draw(seed, widths, modes), scales, seeds)
    if mean_readout:
        weights[-1] = np.full_like(weights[-1], 1 / widths[-2])
    return weights


def initial_edges(
    law: Law,
    architecture: Architecture,
    effective: Effective,
    scales: Sequence[float],
    seeds: Sequence[int],
    sees: Mapping[str, np.ndarray] = EVERYTHING,
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of every run of a gated network.

    Args:
        law: how to draw.
        architecture: the graph.
        effective: see `Law.draw_edges`.
        scales: init scales.
        seeds: run seeds.
        sees: inputs that an edge sees, by its name; its weights from all others are zero.
        mean_readout: whether an output node takes the mean over all units that reach it, whatever
            the scale.

    Returns:
        One array per edge, (init_scale, seed, out, in), float64.

    Raises:
        UserError: the law does not exist for this graph.
    """
    weights = _at_scales(lambda seed: law.draw_edges(seed, architecture, effective), scales, seeds)
    if mean_readout:
        for name in architecture.outputs:
            into = architecture.incoming[name]
            units = sum(weights[edge].shape[-1] for edge in into)
            for edge in into:
                weights[edge] = np.full_like(weights[edge], 1 / units)
    return [
        weight * sees[name] if (name := architecture.edge_name(edge)) in sees else weight
        for edge, weight in enumerate(weights)
    ]


def _at_scales(
    draw: Callable[[int], Weights], scales: Sequence[float], seeds: Sequence[int]
) -> Weights:
    try:
        draws = [draw(seed) for seed in seeds]
    except ValueError as error:
        raise UserError(f"init: {error}") from error
    unit = [np.stack(layer) for layer in zip(*draws, strict=True)]
    return [np.multiply.outer(np.asarray(scales), layer) for layer in unit]
