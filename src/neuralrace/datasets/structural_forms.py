"""Structural forms: items whose covariance follows a tree, chain, ring, clusters or two of them."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError

Edge = tuple[int, int, float]
"""Two nodes and the weight of their edge. Items come first among the nodes, then latent nodes."""
Edges = tuple[Edge, ...]

OWN_PRECISION = 1 / 5
"""Precision of each node without edges, which keeps the covariance finite."""
STRONG = 4.0
"""Weight of edges from items to groups, and of a tree's edges relative to the level above."""
GROUPS = 4


REQUIREMENTS: dict[str, tuple[Callable[[int], bool], str]] = {
    "tree": (lambda items: items.bit_count() == 1, "a power of two"),
    "chain": (lambda items: True, "any number"),
    "ring": (lambda items: items >= 3, "at least 3"),
    "cluster": (
        lambda items: items % GROUPS == 0 and items >= 2 * GROUPS,
        f"a multiple of {GROUPS} from {2 * GROUPS} on",
    ),
    "cross_cutting": (
        lambda items: items.bit_count() == 1 and items >= 4,
        "a power of two from 4 on",
    ),
}
"""Which numbers of items a form can have: a test, and its description."""


class StructuralForm(Dataset):
    """One-hot items with features whose covariance over items comes from a graph.

    Nodes of the graph are Gaussian variables with precision Laplacian + I/5. Latent nodes are
    marginalised: the covariance C of the items is their block of the inverse precision. Targets are
    the rows of the symmetric root of C, so y y^T = C exactly. With one-hot inputs, the modes are
    the eigenvectors of C, with s = sqrt(eigenvalue)/items and d = 1/items (after Kemp and Tenenbaum
    2008, and Saxe, McClelland, Ganguli 2019).

    The tree is binary. Its edges are four times as strong at each lower level, so that coarse
    distinctions are learned first: all items together, then the split at the root. The cluster form
    has four groups, each around a latent node. The cross-cutting form sums two independent sets of
    features: those of the tree, and those of two groups that alternate along the items.
    """

    example: ClassVar[Mapping[str, Any]] = {"form": "tree"}
    name: Literal["structural_form"]
    form: Literal["tree", "chain", "ring", "cluster", "cross_cutting"]
    """Form of the generating graph."""
    items: Annotated[int, Field(ge=2)] = 8
    """Number of items: a power of two for tree and cross_cutting, a multiple of 4 for cluster."""

    @model_validator(mode="after")
    def _items_fit_the_form(self) -> "StructuralForm":
        possible, numbers = REQUIREMENTS[self.form]
        if not possible(self.items):
            problem = f"form {self.form} needs {numbers}"
            raise UserError(problem, key="items", value=self.items, remedy="change `items`")
        return self

    def _structures(self) -> tuple[Edges, ...]:
        """Edges of each structure; the covariance of the items is a sum over structures."""
        items = np.arange(self.items)
        match self.form:
            case "tree":
                return (_tree(self.items),)
            case "chain":
                return (_ring(self.items)[:-1],)
            case "ring":
                return (_ring(self.items),)
            case "cluster":
                return (_groups(items * GROUPS // self.items, first=self.items),)
            case "cross_cutting":
                return _tree(self.items), _groups(items % 2, first=2 * self.items - 1)

    def graph(self) -> tuple[Edges, int]:
        """Edges (node, node, weight) of the generating graph, and its number of latent nodes."""
        edges = sum(self._structures(), ())
        return edges, max(b for _, b, _ in edges) + 1 - self.items

    def covariance(self) -> Float[np.ndarray, "item item"]:
        """Covariance C of the items, latent nodes marginalised."""
        nodes = self.items + self.graph()[1]
        covariance = np.zeros((self.items, self.items))
        for edges in self._structures():
            precision = OWN_PRECISION * np.eye(nodes)
            for a, b, weight in edges:
                precision[[a, b], [a, b]] += weight
                precision[[a, b], [b, a]] -= weight
            covariance += np.linalg.inv(precision)[: self.items, : self.items]
        return covariance

    def positions(self) -> Float[np.ndarray, "node 2"]:
        """Positions for drawing the nodes of the graph: items first, then latent nodes."""
        match self.form:
            case "chain":
                return _row(np.arange(self.items))
            case "ring":
                return _circle(self.items)
            case "cluster":
                around = self.items // GROUPS
                centres = 3 * _circle(GROUPS)
                items = centres[:, None] + _circle(around)
                return np.concatenate([items.reshape(-1, 2), centres])
            case "tree" | "cross_cutting":
                tree = np.concatenate(
                    [_row(np.arange(self.items)), np.tile([0.0, 1.0], (self.items - 1, 1))]
                )
                for child, parent, _ in _tree(self.items):
                    tree[parent] += tree[child] / 2  # midway between its children, one level up
                if self.form == "tree":
                    return tree
                groups = _row(np.array([0.25, 0.75]) * (self.items - 1)) - [0, 2]
                return np.concatenate([tree, groups])

    @property
    def sizes(self) -> Sizes:
        """One sample, input and output for each item."""
        return Sizes(self.items, self.items, self.items)

    def load(self) -> Data:
        """Inputs I, targets C^(1/2)."""
        values, vectors = np.linalg.eigh(self.covariance())
        return Data(x=np.eye(self.items), y=(vectors * np.sqrt(values)) @ vectors.T)


def _ring(items: int) -> Edges:
    """Edges from every item to the next, and from the last to the first."""
    return tuple((item, (item + 1) % items, 1.0) for item in range(items))


def _tree(items: int) -> Edges:
    """Edges of a binary tree; nodes are numbered from the leaves up, level by level."""
    root = 2 * items - 2
    edges = []
    for node in range(root):
        parent = items + node // 2
        depth = (root - parent + 1).bit_length() - 1
        edges.append((node, parent, STRONG**depth))
    return tuple(edges)


def _groups(group: np.ndarray, first: int) -> Edges:
    """Edges from every item to the latent node of its group; latent nodes start at `first`."""
    return tuple((item, first + int(number), STRONG) for item, number in enumerate(group))


def _row(x: np.ndarray) -> Float[np.ndarray, "node 2"]:
    return np.column_stack([x, np.zeros(len(x))])


def _circle(nodes: int) -> Float[np.ndarray, "node 2"]:
    angle = 2 * np.pi * np.arange(nodes) / nodes
    return np.column_stack([np.cos(angle), np.sin(angle)])
