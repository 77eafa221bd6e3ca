"""Items whose similarities follow a graph: tree, chain, ring, clusters, two structures at once."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes

Edge = tuple[int, int, float]
"""Two nodes and the weight of their bond. Items come first among the nodes, then latent ones."""
Edges = tuple[Edge, ...]

OWN_PRECISION = 1 / 5
"""Precision of each node by itself, which keeps the covariance finite."""
STRONG = 4.0
"""Weight of an item's bond to its group, and of a tree's bonds over those one level higher."""
GROUPS = 4


def _power_of_two(number: int) -> bool:
    return number.bit_count() == 1


REQUIREMENTS: dict[str, tuple[Callable[[int], bool], str]] = {
    "tree": (_power_of_two, "a power of two"),
    "chain": (lambda items: True, "any number"),
    "ring": (lambda items: items >= 3, "at least 3"),
    "cluster": (
        lambda items: items % GROUPS == 0 and items >= 2 * GROUPS,
        f"a multiple of {GROUPS} from {2 * GROUPS} on",
    ),
    "cross_cutting": (
        lambda items: _power_of_two(items) and items >= 4,
        "a power of two from 4 on",
    ),
}
"""What numbers of items a form can have."""


class StructuralForm(Dataset):
    """One-hot items with features whose covariance over items comes from a graph.

    Nodes of the graph are Gaussian variables with precision Laplacian + I/5. Latent nodes are
    marginalised: the item block C of the inverse is the covariance of the items. Targets are the
    rows of the symmetric root of C, so y y^T = C exactly; with one-hot inputs the modes are the
    eigenvectors of C with s = sqrt(eigenvalue)/items and d = 1/items (after Kemp and Tenenbaum
    2008, and Saxe, McClelland, Ganguli 2019).

    A tree is binary, with bonds four times as strong at each lower level, so that coarse
    distinctions are learned first: all items together, then the split at the root. Clusters are
    four groups around a latent node each. Cross-cutting structure is the sum of two independent
    sets of features: those of the tree, and those of two groups that hold every other item and so
    one of each pair of the tree.
    """

    example: ClassVar[Mapping[str, Any]] = {"form": "tree"}
    name: Literal["structural_form"]
    form: Literal["tree", "chain", "ring", "cluster", "cross_cutting"]
    """Structure of the generating graph."""
    items: Annotated[int, Field(ge=2)] = 8
    """Items; a power of two for tree and cross_cutting, a multiple of four for cluster."""

    @model_validator(mode="after")
    def _items_fit_the_form(self) -> "StructuralForm":
        fits, wanted = REQUIREMENTS[self.form]
        if not fits(self.items):
            raise ValueError(f"items: form {self.form} needs {wanted}, not {self.items}")
        return self

    def _structures(self) -> tuple[Edges, ...]:
        """Edges of each structure whose covariance the items sum; latent nodes are not shared."""
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
        """Where to draw the nodes of the graph: items first, then latent nodes."""
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
        """As many samples, inputs and outputs as items."""
        return Sizes(self.items, self.items, self.items)

    def load(self) -> Data:
        """Inputs I, targets C^(1/2)."""
        values, vectors = np.linalg.eigh(self.covariance())
        return Data(x=np.eye(self.items), y=(vectors * np.sqrt(values)) @ vectors.T)


def _ring(items: int) -> Edges:
    """Every item bound to the next, the last to the first."""
    return tuple((item, (item + 1) % items, 1.0) for item in range(items))


def _tree(items: int) -> Edges:
    """Leaves, then their parents from left to right, level by level up to the root."""
    root = 2 * items - 2
    edges = []
    for node in range(root):
        parent = items + node // 2
        depth = (root - parent + 1).bit_length() - 1
        edges.append((node, parent, STRONG**depth))
    return tuple(edges)


def _groups(group: np.ndarray, first: int) -> Edges:
    """Every item bound to the latent node of its group; these are numbered from `first`."""
    return tuple((item, first + int(number), STRONG) for item, number in enumerate(group))


def _row(x: np.ndarray) -> Float[np.ndarray, "node 2"]:
    return np.column_stack([x, np.zeros(len(x))])


def _circle(nodes: int) -> Float[np.ndarray, "node 2"]:
    angle = 2 * np.pi * np.arange(nodes) / nodes
    return np.column_stack([np.cos(angle), np.sin(angle)])
