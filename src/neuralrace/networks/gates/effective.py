"""Effective data of gated linear networks: the correlations that each pathway learns from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Data
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.architecture import Architecture

NEGLIGIBLE = 1e-6
"""Share of the largest correlation below which directions of modes may be rounding errors."""
ALL_INPUTS: Mapping[str, np.ndarray] = MappingProxyType({})
"""Visible inputs by edge, where every edge receives all inputs."""


@dataclass(frozen=True)
class PathwayModes:
    """Bases of input and output nodes in which all effective correlations are nearly diagonal.

    The reduction to one number per edge and mode is exact where `violation` is zero.
    """

    bases: Mapping[str, Float[np.ndarray, "unit mode"]]
    """Orthonormal columns by node; a column is zero if the node has no part in the mode."""
    s: Float[np.ndarray, "pathway mode"]
    """Diagonal of U^T sigma_yx(p) V; entries may be negative."""
    d: Float[np.ndarray, "pathway pathway mode"]
    """Diagonal of V^T sigma_xx(j, p) V; 0 for pathways with different targets."""
    violation: float
    """Largest off-diagonal part of any effective correlation, divided by the largest correlation of
    its kind (Frobenius norms)."""

    __repr__ = short_repr

    @property
    def joint(self) -> bool:
        """Whether all effective correlations are diagonal in common bases."""
        return self.violation < 1e-8


@dataclass(frozen=True)
class EffectiveData:
    """Effective correlations of all pathways (Saxe, Sodhani, Lewallen 2022).

    Squared error depends on any number of samples through these alone.
    """

    architecture: Architecture
    """The graph, with copies of input and output nodes that need no common basis; see `_split`."""
    sigma_yx: tuple[Float[np.ndarray, "_target _source"], ...]
    """<g_p y x^T> by pathway."""
    sigma_xx: Mapping[tuple[int, int], Float[np.ndarray, "_source_j _source_p"]]
    """<g_j x x^T g_p> by pathways (j, p) with a common target; zero matrices are omitted."""
    y_power: float
    """<|y|^2>."""

    __repr__ = short_repr

    @cached_property
    def modes(self) -> PathwayModes:
        """The common singular modes of all pathways, strongest first; see `PathwayModes`."""
        bases, pathways = self._bases(), self.architecture.pathways
        rank = next(iter(bases.values())).shape[1]
        s = np.zeros((len(pathways), rank))
        d = np.zeros((len(pathways), len(pathways), rank))
        missed_yx, missed_xx = [], []
        for p, pathway in enumerate(pathways):
            left, right = bases[pathway.target], bases[pathway.source]
            s[p] = _diagonal(self.sigma_yx[p], left, right)
            missed_yx.append(self.sigma_yx[p] - (left * s[p]) @ right.T)
        for (j, p), sigma in self.sigma_xx.items():
            left, right = bases[pathways[j].source], bases[pathways[p].source]
            d[j, p] = _diagonal(sigma, left, right)
            # correlations outside of all modes are unrestricted, so that only `sigma @ right` and
            # `sigma.T @ left` are compared
            missed_xx += [sigma @ right - left * d[j, p], sigma.T @ left - right * d[j, p]]
        order = np.argsort(-np.sqrt((s**2).sum(axis=0)), kind="stable")
        return PathwayModes(
            bases={name: basis[:, order] for name, basis in bases.items()},
            s=s[:, order],
            d=d[..., order],
            violation=max(
                _share(missed_yx, self.sigma_yx),
                _share(missed_xx, self.sigma_xx.values()),
                *(_skewness(basis) for basis in bases.values()),
            ),
        )

    def _bases(self) -> dict[str, np.ndarray]:
        """Bases by node, computed in rounds; each round removes its modes from the correlations."""
        nodes = self.architecture.nodes
        ends = (*self.architecture.inputs, *self.architecture.outputs)
        stops = np.cumsum([nodes[name] for name in ends])
        at = {name: slice(stop - nodes[name], stop) for name, stop in zip(ends, stops, strict=True)}
        rest = self._coupling(at)
        bases = np.zeros((len(rest), 0))
        for _ in self.architecture.outputs:
            new = self._round(rest, at)
            if not new.shape[1]:  # nothing is left to remove
                break
            bases = np.hstack([bases, new])
            for rows in at.values():
                rest[rows] -= new[rows] @ (new[rows].T @ rest[rows])
                rest[:, rows] -= (rest[:, rows] @ new[rows]) @ new[rows].T
        return {name: bases[rows] for name, rows in at.items()}

    def _coupling(self, at: Mapping[str, slice]) -> np.ndarray:
        """All correlations as one symmetric matrix over the units of all input and output nodes.

        Correlations between the same two nodes are combined with fixed random weights: the common
        bases of jointly diagonal matrices are those of any generic combination of them.
        """
        pathways, rng = self.architecture.pathways, generator(0, "joint diagonalisation")
        kinds = (
            [(at[p.target], at[p.source], sigma)
             for p, sigma in zip(pathways, self.sigma_yx, strict=True)],
            [(at[pathways[j].source], at[pathways[p].source], sigma)
             for (j, p), sigma in self.sigma_xx.items()],
        )  # fmt: skip
        units = max(rows.stop for rows in at.values())
        total = np.zeros((units, units))
        for blocks in kinds:
            floor = NEGLIGIBLE * _largest(sigma for *_, sigma in blocks)
            for rows, columns, sigma in blocks:
                weight, size = rng.uniform(0.5, 1.5), np.linalg.norm(sigma)
                if size > floor:
                    total[rows, columns] += weight * sigma / size
        return total + total.T

    def _round(self, rest: np.ndarray, at: Mapping[str, slice]) -> np.ndarray:
        """Modes of one output node, extended along correlations to all other nodes.

        Parts of the graph without correlations between them are matched in order of strength.
        """
        values, vectors = np.linalg.eigh(rest)
        # The resolvent is a sum over all walks along correlations: on one node, its eigenvalues
        # distinguish all modes that differ anywhere in the connected part. It is positive on an
        # output node, as no correlation joins a target to itself.
        reach = 1.25 * np.abs(values).max() or 1.0
        walks = values / (reach - values)
        modes = np.zeros((len(rest), 0))
        for target in self.architecture.outputs:
            if np.linalg.norm(rest[at[target]]) <= NEGLIGIBLE:
                continue
            here = vectors[at[target]]
            sums, directions = np.linalg.eigh((here * walks) @ here.T)
            directions = directions[:, sums > NEGLIGIBLE**2 * sums[-1]]
            strength = sum(
                ((directions.T @ sigma) ** 2).sum(axis=1)
                for p, sigma in zip(self.architecture.pathways, self.sigma_yx, strict=True)
                if p.target == target
            )
            part = _carry(directions[:, np.argsort(-strength)], target, rest, at)
            if not any(modes[rows].any() and part[rows].any() for rows in at.values()):
                columns = max(modes.shape[1], part.shape[1])
                modes = _widen(modes, columns) + _widen(part, columns)
        return modes


def gated_inputs(
    architecture: Architecture,
    gates: Float[np.ndarray, "pathway sample"],
    data: Data,
    visible_inputs: Mapping[str, Bool[np.ndarray, " input"]],
) -> list[Float[np.ndarray, "sample _source"]]:
    """Gated inputs g_p x of each pathway, zero for inputs that it does not receive.

    Arguments are those of `effective_data`.
    """
    return [
        gate[:, None]
        * data.x[:, architecture.columns(pathway.source)]
        * visible_inputs.get(architecture.edge_name(pathway.edges[0]), True)
        for gate, pathway in zip(gates, architecture.pathways, strict=True)
    ]


def effective_data(
    architecture: Architecture,
    gates: Float[np.ndarray, "pathway sample"],
    data: Data,
    visible_inputs: Mapping[str, Bool[np.ndarray, " input"]] = ALL_INPUTS,
) -> EffectiveData:
    """Effective correlations of samples under pathway gates.

    Args:
        architecture: the graph.
        gates: product of all gates along each pathway.
        data: the samples.
        visible_inputs: inputs that an edge receives, by its name; all for edges without an entry.
    """
    pathways, samples = architecture.pathways, len(data.x)
    x = gated_inputs(architecture, gates, data, visible_inputs)
    sigma_yx = [data.y[:, architecture.columns(p.target)].T @ x[n] / samples
                for n, p in enumerate(pathways)]  # fmt: skip
    sigma_xx = {
        (j, p): x[j].T @ x[p] / samples
        for j in range(len(pathways))
        for p in range(len(pathways))
        if pathways[j].target == pathways[p].target and (x[j].any(1) & x[p].any(1)).any()
    }
    split = _split(architecture, sigma_xx.keys())
    return EffectiveData(split, tuple(sigma_yx), sigma_xx, data.y_power)


def _split(architecture: Architecture, open_together: Iterable[tuple[int, int]]) -> Architecture:
    """The same edges and pathways, with separate copies of nodes that need no common basis.

    An input node becomes one copy for each edge out of it. An output node becomes one copy for each
    edge into it, if no sample arrives by two of them. Four pathways that are open on one example
    each are diagonal in separate bases of the inputs, and not in a common one.
    """
    edges, pathways = architecture.edges, architecture.pathways
    meeting = {
        pathways[j].target
        for j, p in open_together
        if pathways[j].edges[-1] != pathways[p].edges[-1]
    }
    whole = {*architecture.hidden, *meeting}

    def copies(name: str) -> list[str]:
        numbers = architecture.incoming[name] or architecture.outgoing[name]
        return [name] if name in whole or len(numbers) == 1 else [f"{name} of {n}" for n in numbers]

    def end(name: str, edge: int) -> str:
        return name if len(copies(name)) == 1 else f"{name} of {edge}"

    return Architecture(
        nodes={copy: units for name, units in architecture.nodes.items() for copy in copies(name)},
        edges=tuple((end(s, n), end(t, n)) for n, (s, t) in enumerate(edges)),
    )


def _carry(
    directions: np.ndarray, name: str, coupling: np.ndarray, at: Mapping[str, slice]
) -> np.ndarray:
    """Orthonormal directions of one node, extended along the coupling to all connected nodes."""
    part = np.zeros((len(coupling), directions.shape[1]))
    part[at[name]] = directions
    spreading = True
    while spreading:  # to nodes one edge of the coupling farther each time
        image, spreading = coupling @ part, False
        for rows in at.values():
            length = np.linalg.norm(image[rows], axis=0)
            new = (length > NEGLIGIBLE) & ~part[rows].any(axis=0)
            part[rows, new] = image[rows, new] / length[new]
            spreading |= new.any()
    for rows in at.values():
        # the closest orthonormal directions; common modes of all pathways do not change
        on = part[rows].any(axis=0)
        left, _, right = np.linalg.svd(part[rows, on], full_matrices=False)
        part[rows, on] = left @ right
    return part


def _diagonal(sigma: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Diagonal of left^T sigma right."""
    return np.einsum("im,ij,jm->m", left, sigma, right)


def _skewness(basis: np.ndarray) -> float:
    """Largest deviation of the nonzero columns from orthonormality."""
    gram = basis.T @ basis
    return float(np.abs(gram - np.diag(basis.any(axis=0).astype(float))).max(initial=0))


def _largest(parts: Iterable[np.ndarray]) -> float:
    return max((float(np.linalg.norm(part)) for part in parts), default=0.0)


def _share(parts: Iterable[np.ndarray], wholes: Iterable[np.ndarray]) -> float:
    """The largest part divided by the largest whole."""
    whole = _largest(wholes)
    return _largest(parts) / whole if whole > 0 else 0.0


def _widen(basis: np.ndarray, columns: int) -> np.ndarray:
    return np.pad(basis, ((0, 0), (0, columns - basis.shape[1])))
