"""Architecture graphs: nodes are layers, edges are weight matrices."""

import itertools
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel, Positive

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Pathway:
    """A path along edges from an input node to an output node."""

    nodes: tuple[str, ...]
    """Names of its nodes, input first."""
    edges: tuple[int, ...]
    """Numbers of its edges, nearest the input first."""

    @property
    def source(self) -> str:
        """Input node."""
        return self.nodes[0]

    @property
    def target(self) -> str:
        """Output node."""
        return self.nodes[-1]


class Architecture(ConfigModel):
    """A directed acyclic graph of layers (Saxe, Sodhani, Lewallen 2022).

    Nodes without incoming edges are inputs, and nodes without outgoing edges are outputs. Input
    nodes take the columns of x in the order in which they are listed, output nodes those of y.
    """

    nodes: Annotated[dict[str, Positive], Field(min_length=2)]
    """Units of each layer by its name."""
    edges: Annotated[
        tuple[Annotated[tuple[str, str], Field(strict=False)], ...], Field(strict=False)
    ]
    """Weight matrices, each as [from, to]."""

    @model_validator(mode="after")
    def _well_formed(self) -> "Architecture":
        # a routing network of 20 domains has 1200 edges: each check passes over them once
        joined = set(itertools.chain(*self.edges))
        if unknown := joined - set(self.nodes):
            raise UserError(
                "unknown nodes",
                key="edges",
                value=sorted(unknown),
                remedy="list them in nodes, or correct their names",
            )
        if twice := {edge for edge, count in Counter(self.edges).items() if count > 1}:
            raise UserError(
                "listed twice",
                key="edges",
                value=[list(edge) for edge in sorted(twice)],
                remedy="list each edge once",
            )
        order = TopologicalSorter[str]()
        for source, target in self.edges:
            order.add(target, source)
        try:
            order.prepare()
        except CycleError:
            # imported here, as networkx is slow to import and few configurations need it
            from networkx import find_cycle

            cycle = " -> ".join(source for source, _ in find_cycle(self.graph))
            raise UserError(
                f"form the cycle {cycle}", key="edges", remedy="leave one of them out"
            ) from None
        if alone := [name for name in self.nodes if name not in joined]:
            raise UserError(
                "on no pathway", key="nodes", value=alone, remedy="connect or remove them"
            )
        return self

    def __hash__(self) -> int:
        return hash(self.canonical())

    @cached_property
    def graph(self) -> "nx.DiGraph":
        """The graph as a networkx graph; attribute `number` of an edge is its index."""
        from networkx import DiGraph

        graph = DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from((*edge, {"number": n}) for n, edge in enumerate(self.edges))
        return graph

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Nodes without incoming edges."""
        return tuple(name for name in self.nodes if not self.incoming[name])

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Nodes without outgoing edges."""
        return tuple(name for name in self.nodes if not self.outgoing[name])

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Nodes that are neither inputs nor outputs."""
        return tuple(n for n in self.nodes if self.incoming[n] and self.outgoing[n])

    @cached_property
    def incoming(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the edges into each node."""
        return self._edges_by_node(1)

    @cached_property
    def outgoing(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the edges out of each node."""
        return self._edges_by_node(0)

    def _edges_by_node(self, end: int) -> dict[str, tuple[int, ...]]:
        numbers: dict[str, list[int]] = {name: [] for name in self.nodes}
        for number, edge in enumerate(self.edges):
            numbers[edge[end]].append(number)
        return {name: tuple(edges) for name, edges in numbers.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Nodes in topological order."""
        from networkx import lexicographical_topological_sort

        return tuple(lexicographical_topological_sort(self.graph, list(self.nodes).index))

    @cached_property
    def pathways(self) -> tuple[Pathway, ...]:
        """All pathways, depth first from each input node in turn."""

        def walk(nodes: tuple[str, ...], edges: tuple[int, ...]) -> list[Pathway]:
            onwards = self.outgoing[nodes[-1]]
            if not onwards:
                return [Pathway(nodes, edges)]
            return [
                pathway
                for edge in onwards
                for pathway in walk((*nodes, self.edges[edge][1]), (*edges, edge))
            ]

        return tuple(pathway for name in self.inputs for pathway in walk((name,), ()))

    @cached_property
    def in_parallel(self) -> bool:
        """Whether pathways have one hidden layer each and share no edge."""
        short = all(len(pathway.edges) == 2 for pathway in self.pathways)
        return short and len(self.edges) == 2 * len(self.pathways)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Layer of each edge: the longest distance of its source from an input node."""
        distance: dict[str, int] = {}
        sources = {
            target: [self.edges[e][0] for e in into] for target, into in self.incoming.items()
        }
        for name in TopologicalSorter(sources).static_order():
            below = [distance[self.edges[edge][0]] + 1 for edge in self.incoming[name]]
            distance[name] = max(below, default=0)
        return tuple(distance[source] for source, _ in self.edges)

    def edge_name(self, edge: int) -> str:
        """Name of an edge, `from->to`."""
        return "->".join(self.edges[edge])

    def columns(self, name: str) -> slice:
        """Columns of x (or of y) that belong to an input (or output) node."""
        side = self.inputs if name in self.inputs else self.outputs
        start = sum(self.nodes[other] for other in side[: side.index(name)])
        return slice(start, start + self.nodes[name])


def chain(widths: tuple[int, ...]) -> Architecture:
    """The architecture of a layered network; nodes are `0`, `1`, ... from the input."""
    names = [str(number) for number in range(len(widths))]
    return Architecture(
        nodes=dict(zip(names, widths, strict=True)),
        edges=tuple(itertools.pairwise(names)),
    )
