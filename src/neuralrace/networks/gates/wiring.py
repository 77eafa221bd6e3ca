"""Wirings: architecture graphs with the gates of every sample."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Data, Domains
from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.base import Family
from neuralrace.networks.gates.effective import (
    ALL_INPUTS,
    EffectiveData,
    effective_data,
    gated_inputs,
)

Gate = Float[np.ndarray, " sample"]


@dataclass(frozen=True)
class Wiring:
    """A gated network without its weights: h_v = g_v sum_e g_e W_e h_s(e) (Saxe et al. 2022).

    Nodes and edges without an entry in `gates` are always open.
    """

    architecture: Architecture
    gates: Mapping[str, Gate]
    """Gates in [0, 1] of each sample, by node `a` or edge `a->b`."""
    data: Data
    visible_inputs: Mapping[str, Bool[np.ndarray, " input"]] = field(
        default_factory=lambda: ALL_INPUTS
    )
    """Inputs that an edge out of an input node receives, by its name `a->b`; all if absent."""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        nodes = self.architecture.nodes
        for letter, side, have in (
            ("x", self.architecture.inputs, self.data.x.shape[1]),
            ("y", self.architecture.outputs, self.data.y.shape[1]),
        ):
            if (units := sum(nodes[name] for name in side)) != have:
                raise UserError(
                    f"{', '.join(side)} together have {units} units, but {letter} of the dataset "
                    f"has {have} columns",
                    key="network.nodes",
                    remedy="give as many units",
                )
        edges = map(self.architecture.edge_name, range(len(self.architecture.edges)))
        known = {*self.architecture.nodes, *edges}
        for name, gate in self.gates.items():
            key = f"network.gates.{name}"
            if name not in known:
                raise UserError("is no node and no edge", key=key, remedy="write an edge as a->b")
            if gate.shape != (len(self.data.x),):
                raise _wrong_number(key, gate.size, len(self.data.x), "samples")
            if not ((gate >= 0) & (gate <= 1)).all():
                raise UserError(
                    "has a gate below 0 or above 1",
                    key=key,
                    remedy="use values from 0 (closed) to 1 (open)",
                )

    @cached_property
    def pathway_gates(self) -> Float[np.ndarray, "pathway sample"]:
        """Product of all gates along each pathway."""
        open_, edge_name = np.ones(len(self.data.x)), self.architecture.edge_name
        return np.stack(
            [
                np.prod(
                    [
                        self.gates.get(name, open_)
                        for name in (*pathway.nodes, *map(edge_name, pathway.edges))
                    ],
                    axis=0,
                )
                for pathway in self.architecture.pathways
            ]
        )

    @cached_property
    def gated_inputs(self) -> Float[np.ndarray, "sample pathway_input"]:
        """Gated inputs of all pathways, concatenated."""
        return np.hstack(
            gated_inputs(self.architecture, self.pathway_gates, self.data, self.visible_inputs)
        )

    @cached_property
    def effective(self) -> EffectiveData:
        """Effective correlations of all pathways."""
        return effective_data(self.architecture, self.pathway_gates, self.data, self.visible_inputs)


def on_test_samples(wiring: Wiring, test: Data, rebuild: Callable[[Data], Wiring]) -> Wiring:
    """The same network with its gates on the test samples.

    Args:
        wiring: the network on the training samples.
        test: the test samples.
        rebuild: gives the network on any samples.

    Raises:
        UserError: its gates are those of single samples, or need contexts that are not given.
    """
    data = wiring.data
    if not wiring.gates:
        return replace(wiring, data=test)
    contexts = [each.contexts for each in (data, test) if each.contexts is not None]
    both = replace(
        data,
        x=np.vstack([data.x, test.x]),
        y=np.vstack([data.y, test.y]),
        contexts=np.concatenate(contexts) if len(contexts) == 2 else None,
        test=None,
    )
    reason, gates = "they are those of the training samples", dict[str, Gate]()
    try:  # of all samples at once: the number of contexts is then the same
        gates = dict(rebuild(both).gates)
    except UserError as error:
        reason = error.problem
    train = {name: gate[: len(data.x)] for name, gate in gates.items()}
    if train.keys() != wiring.gates.keys() or any(
        not np.array_equal(gate, wiring.gates[name]) for name, gate in train.items()
    ):
        raise UserError(
            f"has no gates on test samples: {reason}",
            key="network.gates",
            remedy="use gates that depend on inputs, or on contexts of all samples",
        )
    return replace(
        wiring, data=test, gates={name: gate[len(data.x) :] for name, gate in gates.items()}
    )


def explicit(
    architecture: Architecture, gates: Mapping[str, Sequence[float]], data: Data
) -> Wiring:
    """A wiring with gates that are written out, one value per context.

    For a dataset without contexts, one value per sample.

    Raises:
        UserError: an unknown node or edge, a wrong number of gates, or a gate outside [0, 1].
    """
    contexts = np.arange(len(data.x)) if data.contexts is None else data.contexts
    unit = "samples" if data.contexts is None else "contexts"
    count = int(contexts.max()) + 1
    for name, values in gates.items():
        if len(values) != count:
            raise _wrong_number(f"network.gates.{name}", len(values), count, unit)
    spread = {name: np.asarray(values, dtype=float)[contexts] for name, values in gates.items()}
    return Wiring(architecture, spread, data)


def parallel(
    hidden: Sequence[tuple[int, ...]],
    gates: Float[np.ndarray, "pathway sample"],
    visible_inputs: Bool[np.ndarray, "pathway input"],
    data: Data,
    covered: bool = True,
) -> Wiring:
    """Parallel pathways, each a chain of hidden layers between one input and one output node.

    Args:
        hidden: units in each hidden layer, by pathway.
        gates: gates of each pathway on each sample.
        visible_inputs: inputs that each pathway receives.
        data: the samples.
        covered: whether some pathway must be open on every sample.

    Raises:
        UserError: a pathway is open on no sample, or no pathway is open on a sample.
    """
    if (dead := np.flatnonzero(~gates.any(axis=1))).size:
        raise UserError(
            f"{dead.size} of {len(gates)} pathways open on no sample, the first of them pathway "
            f"{dead[0] + 1}, and could never learn",
            key="network.gates",
            remedy="use fewer pathways or more samples",
        )
    if covered and (closed := np.flatnonzero(~gates.any(axis=0))).size:
        raise UserError(
            f"no pathway is open on {closed.size} of {gates.shape[1]} samples, the first of them "
            f"sample {closed[0]}, where the output would be zero",
            key="network.gates",
            remedy="add pathways",
        )
    nodes: dict[str, int] = {"x": data.x.shape[1]}
    edges: list[tuple[str, str]] = []
    node_gates: dict[str, np.ndarray] = {}
    visible: dict[str, np.ndarray] = {}
    for number, (units, gate, inputs) in enumerate(
        zip(hidden, gates, visible_inputs, strict=True), start=1
    ):
        chain = [f"hidden {layer} of pathway {number}" for layer in range(1, len(units) + 1)]
        nodes |= dict(zip(chain, units, strict=True))
        edges += itertools.pairwise(["x", *chain, "y"])
        node_gates[chain[0]] = gate  # on the first layer alone: graded gates would multiply
        if not inputs.all():
            visible[f"x->{chain[0]}"] = inputs
    nodes["y"] = data.y.shape[1]
    return Wiring(Architecture(nodes=nodes, edges=tuple(edges)), node_gates, data, visible)


def routing_architecture(
    count: int, inputs: int, outputs: int, families: Sequence[Family]
) -> Architecture:
    """The graph of a routing network: input and output nodes are domains, with blocks between them.

    Edges are ordered by family: all encoders by block and input domain, then the weights between
    hidden layers by block, then all decoders by block and output domain.

    Args:
        count: number of input domains, and of output domains.
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
    input_domain, output_domain = pairs[data.contexts].T
    gates: dict[str, np.ndarray] = {}
    for domain in range(count):
        gates[f"input {domain + 1}"] = (input_domain == domain).astype(float)
        gates[f"output {domain + 1}"] = (output_domain == domain).astype(float)
    return Wiring(architecture, gates, data)


def _blocks(number: int, family: Family, count: int) -> dict[tuple[int, int], list[str]]:
    """Hidden nodes of every block of a family, by row and column of the block."""
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
    row, column = (range(index * size + 1, (index + 1) * size + 1) for index in block)
    return row, column


def _wrong_number(key: str, values: int, expected: int, unit: str) -> UserError:
    return UserError(
        f"has {values} values, and the dataset has {expected} {unit}",
        key=key,
        remedy="give one value for each",
    )
