"""An architecture graph with the gates of every sample."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Data, Domains
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.base import Family
from neuralrace.networks.gates.effective import (
    EVERYTHING,
    EffectiveData,
    effective_data,
    gated_inputs,
)

Gate = Float[np.ndarray, " sample"]


@dataclass(frozen=True)
class Wiring:
    """A gated network without its weights: h_v = g_v sum_e g_e W_e h_s (Saxe et al. 2022).

    Nodes and edges without an entry in `gates` are always open.
    """

    architecture: Architecture
    gates: Mapping[str, Gate]
    """Gates in [0, 1] of each sample, by node `a` or edge `a->b`."""
    data: Data
    sees: Mapping[str, Bool[np.ndarray, " input"]] = field(default_factory=lambda: EVERYTHING)
    """Inputs that an edge out of an input node sees, by its name `a->b`; all of them otherwise."""

    def __post_init__(self) -> None:
        nodes = self.architecture.nodes
        for letter, side, have in (
            ("x", self.architecture.inputs, self.data.x.shape[1]),
            ("y", self.architecture.outputs, self.data.y.shape[1]),
        ):
            if (units := sum(nodes[name] for name in side)) != have:
                raise UserError(
                    f"network.nodes: {', '.join(side)} together have {units} units, but {letter} "
                    f"of the dataset has {have} columns"
                )
        edges = map(self.architecture.edge_name, range(len(self.architecture.edges)))
        known = {*self.architecture.nodes, *edges}
        for name, gate in self.gates.items():
            where = f"network.gates: {name}"
            if name not in known:
                raise UserError(f"{where}: is no node and no edge; edges are written as a->b")
            if gate.shape != (len(self.data.x),):
                raise UserError(
                    f"{where}: has {gate.size} values; the dataset has {len(self.data.x)} samples"
                )
            if not ((gate >= 0) & (gate <= 1)).all():
                raise UserError(f"{where}: gates lie between 0 (closed) and 1 (open)")

    @cached_property
    def pathway_gates(self) -> Float[np.ndarray, "pathway sample"]:
        """Product of all gates along each pathway."""
        open_ = np.ones(len(self.data.x))
        return np.stack(
            [
                np.prod(
                    [self.gates.get(name, open_) for name in pathway.nodes]
                    + [
                        self.gates.get(self.architecture.edge_name(e), open_) for e in pathway.edges
                    ],
                    axis=0,
                )
                for pathway in self.architecture.pathways
            ]
        )

    @cached_property
    def gated_inputs(self) -> Float[np.ndarray, "sample pathway_input"]:
        """What all pathways are shown, side by side."""
        inputs = gated_inputs(self.architecture, self.pathway_gates, self.data, self.sees)
        return np.hstack(inputs)

    @cached_property
    def effective(self) -> EffectiveData:
        """What each pathway learns from."""
        return effective_data(self.architecture, self.pathway_gates, self.data, self.sees)


def explicit(
    architecture: Architecture, gates: Mapping[str, Sequence[float]], data: Data
) -> Wiring:
    """A wiring whose gates are written out, one value per context.

    Without contexts in the dataset, one value per sample.

    Raises:
        UserError: an unknown node or edge, a wrong number of gates, or a gate outside [0, 1].
    """
    contexts = np.arange(len(data.x)) if data.contexts is None else data.contexts
    kind = "samples" if data.contexts is None else "contexts"
    count = int(contexts.max()) + 1
    for name, values in gates.items():
        if len(values) != count:
            raise UserError(
                f"network.gates: {name}: has {len(values)} values; the dataset has {count} {kind}"
            )
    spread = {name: np.asarray(values, dtype=float)[contexts] for name, values in gates.items()}
    return Wiring(architecture, spread, data)


def parallel(
    hidden: Sequence[tuple[int, ...]],
    gates: Float[np.ndarray, "pathway sample"],
    sees: Bool[np.ndarray, "pathway input"],
    data: Data,
    covered: bool = True,
) -> Wiring:
    """Pathways side by side, each a chain of hidden layers between the one input and output.

    Args:
        hidden: units in each hidden layer, by pathway.
        gates: on which samples each pathway is open.
        sees: which inputs each pathway sees.
        data: the samples.
        covered: whether a pathway must be open on every sample.

    Raises:
        UserError: a pathway that is open on no sample, or a sample on which no pathway is open.
    """
    if (dead := np.flatnonzero(~gates.any(axis=1))).size:
        raise UserError(
            f"network.gates: {dead.size} of {len(gates)} pathways open on no sample, the first of "
            f"them pathway {dead[0] + 1}, and could never learn; use fewer pathways or more samples"
        )
    if covered and (closed := np.flatnonzero(~gates.any(axis=0))).size:
        raise UserError(
            f"network.gates: no pathway is open on {closed.size} of {gates.shape[1]} samples, the "
            f"first of them sample {closed[0]}, where the network would answer zero; add pathways"
        )
    nodes: dict[str, int] = {"x": data.x.shape[1]}
    edges: list[tuple[str, str]] = []
    opened: dict[str, np.ndarray] = {}
    seen: dict[str, np.ndarray] = {}
    for number, (units, gate, inputs) in enumerate(zip(hidden, gates, sees, strict=True), start=1):
        chain = [f"hidden {layer} of pathway {number}" for layer in range(1, len(units) + 1)]
        nodes |= dict(zip(chain, units, strict=True))
        edges += itertools.pairwise(["x", *chain, "y"])
        opened[chain[0]] = gate  # once: graded gates on every layer would multiply
        if not inputs.all():
            seen[f"x->{chain[0]}"] = inputs
    nodes["y"] = data.y.shape[1]
    return Wiring(Architecture(nodes=nodes, edges=tuple(edges)), opened, data, seen)


def routing_architecture(
    count: int, inputs: int, outputs: int, families: Sequence[Family]
) -> Architecture:
    """The graph of a routing network: domains as input and output nodes, blocks between them.

    Edges come by family: all encoders by block and input domain, then the layers between hidden
    layers by block, then all decoders by block and output domain.

    Args:
        count: input domains, and output domains.
        inputs: width of an input domain.
        outputs: width of an output domain.
        families: the pathway blocks.
    """
    nodes = {f"input {i}": inputs for i in range(1, count + 1)}
    edges: list[tuple[str, str]] = []
    for number, family in enumerate(families, start=1):
        names = _blocks(number, family, count)
        for chain in names.values():
            nodes |= dict(zip(chain, family.hidden, strict=True))
        groups = {block: _members(block, family.size) for block in names}
        edges += [(f"input {i}", names[b][0]) for b, (ins, _) in groups.items() for i in ins]
        for layer in range(len(family.hidden) - 1):
            edges += [(chain[layer], chain[layer + 1]) for chain in names.values()]
        edges += [(names[b][-1], f"output {j}") for b, (_, outs) in groups.items() for j in outs]
    nodes |= {f"output {j}": outputs for j in range(1, count + 1)}
    return Architecture(nodes=nodes, edges=tuple(edges))


def routing(
    domains: Domains,
    families: Sequence[Family],
    mask: Bool[np.ndarray, "input_domain output_domain"],
) -> Wiring:
    """The wiring of a routing network on its trained pairs, one context per pair."""
    count, inputs, outputs = domains.count, domains.inputs.shape[2], domains.targets.shape[2]
    architecture = routing_architecture(count, inputs, outputs, families)
    pairs = np.argwhere(mask)
    data = domains.flat(pairs)
    shown, asked = pairs[data.contexts].T
    gates: dict[str, np.ndarray] = {}
    for domain in range(count):
        gates[f"input {domain + 1}"] = (shown == domain).astype(float)
        gates[f"output {domain + 1}"] = (asked == domain).astype(float)
    return Wiring(architecture, gates, data)


def _blocks(number: int, family: Family, count: int) -> dict[tuple[int, int], list[str]]:
    """Hidden nodes of every block of a family, by its row and column."""
    side = count // family.size
    return {
        (row, column): [
            f"hidden {layer} of family {number}, block {row + 1}, {column + 1}"
            for layer in range(1, len(family.hidden) + 1)
        ]
        for row in range(side)
        for column in range(side)
    }


def _members(block: tuple[int, int], size: int) -> tuple[range, range]:
    """Numbers of the input and output domains of a block."""
    row, column = block
    return range(row * size + 1, (row + 1) * size + 1), range(
        column * size + 1, (column + 1) * size + 1
    )
