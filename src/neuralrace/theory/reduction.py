"""The neural race reduction: a gated linear network as one strength for each edge and mode.

Let the effective data of all pathways be diagonal in common bases of the boundary nodes,
sigma_yx(p) = U S(p) V^T and sigma_xx(j, p) = V D(j, p) V^T. Then weights of the form
W_e = R_target B_e R_source^T with diagonal B_e keep this form, and every mode follows

    dB_e/dt = sum_{p through e} B_{p without e} [S(p) - sum_j B_j D(j, p)],

where B_j is the product of the strengths along pathway j, and B_{p without e} along p except for e.
The bases R are those of the modes at input and output nodes and any orthonormal ones at hidden
nodes. Strengths B have shape (*runs, edge, mode), in the order of the edges of the architecture
and of `EffectiveData.modes`, and may be negative.

Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from neuralrace.errors import UserError
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.theory.integration import descend, solve_flow


def reduction_flow(
    time: Float[np.ndarray, " time"],
    effective: EffectiveData,
    start: Float[np.ndarray, "*runs edge mode"],
) -> Float[np.ndarray, "*runs time edge mode"]:
    """Reduced gradient flow of all modes and runs, solved as one system.

    Errors relative to the strengths stay below about 1e-9.

    Args:
        time: increasing, gradient-flow time, from 0.
        effective: effective data of the pathways.
        start: initial strengths; 0 where an edge does not carry a mode.

    Raises:
        UserError: if the effective data have no common modes.
        ValueError: if `start` does not fit, or `time` does not increase from 0 or later.
        RuntimeError: if the solver fails.
    """
    race = _race(effective, start)
    # Growth preserves relative errors, so the smallest start sets the scale.
    atol = 1e-13 * np.min(np.abs(start), where=start != 0, initial=1.0)
    (path,) = solve_flow(time, [start], lambda now: [race.velocity(*now)], 1e-13, atol)
    return np.moveaxis(path, 0, -3)


def reduction_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    effective: EffectiveData,
    start: Float[np.ndarray, "*runs edge mode"],
) -> Float[np.ndarray, "*runs time edge mode"]:
    """Reduced gradient descent, which equals gradient descent of aligned full weights.

    A step size that is too large returns infinite or NaN values and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        effective: as in `reduction_flow`.
        start: as in `reduction_flow`.

    Raises:
        UserError: if the effective data have no common modes.
        ValueError: if `start` does not fit, or `step` is negative or decreases.
    """
    race = _race(effective, start)
    (path,) = descend(step, learning_rate, [start], lambda now: [race.velocity(*now)])
    return np.moveaxis(path, 0, -3)


def reduction_loss(
    effective: EffectiveData, strengths: Float[np.ndarray, "*runs edge mode"]
) -> Float[np.ndarray, "*runs"]:
    """Loss 1/2 <|y - yhat|^2> of aligned weights; `runs` may end in an axis of time.

    Raises:
        UserError: if the effective data have no common modes.
        ValueError: if `strengths` do not fit.
    """
    race = _race(effective, strengths)
    a = race.maps(strengths)
    return (effective.y_power - (a * (race.s + race.error(a))).sum((-2, -1))) / 2


def aligned_strengths(
    effective: EffectiveData,
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    tolerance: float,
) -> Float[np.ndarray, "*runs edge mode"]:
    """Strengths B of aligned weights W_e = R_target B_e R_source^T.

    Hidden bases are computed from the weights of each run, starting at the boundary nodes. The
    first edge that carries a mode into a hidden node defines its direction there, so this edge has
    a positive strength. The strengths of later edges may be negative.

    Args:
        effective: effective data of the pathways.
        weights: weights by edge.
        tolerance: largest share of the Frobenius norm of an edge's weights that may lie off the
            modes, and largest cosine between hidden directions of two modes.

    Raises:
        UserError: if the weights are not aligned, or the effective data have no common modes.
    """
    modes, architecture = effective.modes, effective.architecture
    _refuse_without_modes(effective)
    runs, rank = weights[0].shape[:-2], modes.s.shape[1]
    bases = {name: np.zeros((*runs, units, rank)) for name, units in architecture.nodes.items()}
    for name, basis in modes.bases.items():
        bases[name][:] = basis
    sizes = [np.linalg.norm(w, axis=(-2, -1)) for w in weights]

    def extend(name: str, edge: int, image: np.ndarray) -> bool:
        """Adds the directions of `image` that a hidden node lacks; returns whether any was new."""
        length = np.linalg.norm(image, axis=-2)
        floor = tolerance * sizes[edge][..., None]
        new = (length > floor) & ~bases[name].any(axis=-2) & (name not in modes.bases)
        bases[name] += np.where(new, 1 / np.where(new, length, 1), 0)[..., None, :] * image
        return bool(new.any())

    # Forwards from the inputs, then backwards from the outputs for modes that no input reaches.
    # Modes whose path changes direction several times need more rounds.
    grown = True
    while grown:
        grown = False
        for name in architecture.order:
            for edge in architecture.incoming[name]:
                source = architecture.edges[edge][0]
                grown |= extend(name, edge, weights[edge] @ bases[source])
        for name in reversed(architecture.order):
            for edge in architecture.outgoing[name]:
                target = architecture.edges[edge][1]
                grown |= extend(name, edge, weights[edge].mT @ bases[target])

    strengths = np.zeros((*runs, len(weights), rank))
    for edge, (source, target) in enumerate(architecture.edges):
        left, right = bases[target], bases[source]
        strengths[..., edge, :] = np.einsum("...tm,...ts,...sm->...m", left, weights[edge], right)
        rest = weights[edge] - (left * strengths[..., edge, None, :]) @ right.mT
        share = np.linalg.norm(rest, axis=(-2, -1)) / np.where(sizes[edge] > 0, sizes[edge], 1)
        if np.any(share > tolerance):
            raise UserError(
                f"the weights of {architecture.edge_name(edge)} are not aligned with the modes of "
                f"the data: up to {share.max():.1e} of their norm lies off them, and "
                f"{tolerance:.1e} is allowed",
                key="solutions",
                remedy="use an aligned start",
            )
    for name in architecture.hidden:
        gram = bases[name].mT @ bases[name]
        cosine = np.abs(gram * (1 - np.eye(rank))).max(initial=0)
        if cosine > tolerance:
            raise UserError(
                "the weights are not aligned with the modes of the data: directions of two modes "
                f"in {name} have a cosine of {cosine:.1e}, and {tolerance:.1e} is allowed",
                key="solutions",
                remedy="use an aligned start",
            )
    return strengths


@dataclass(frozen=True)
class _Race:
    """Index arrays of the pathways of a graph, for arithmetic on all pathways at once."""

    edges: Int[np.ndarray, "pathway depth"]
    """Edges on each pathway, padded with the number of edges."""
    members: Float[np.ndarray, "edge pathway_depth"]
    """1 where an entry of `edges`, flattened, is the edge."""
    s: Float[np.ndarray, "pathway mode"]
    d: Float[np.ndarray, "pathway pathway mode"]

    def along(self, strengths: np.ndarray) -> np.ndarray:
        """Strengths of the edges on each pathway, (*runs, pathway, depth, mode)."""
        filled = np.concatenate([strengths, np.ones_like(strengths[..., :1, :])], axis=-2)
        return filled[..., self.edges, :]

    def maps(self, strengths: np.ndarray) -> np.ndarray:
        """Effective singular values, the products along pathways, (*runs, pathway, mode)."""
        return self.along(strengths).prod(axis=-2)

    def error(self, a: np.ndarray) -> np.ndarray:
        """S(p) - sum_j a_j D(j, p), (*runs, pathway, mode)."""
        return self.s - np.einsum("...jm,jpm->...pm", a, self.d)

    def velocity(self, strengths: np.ndarray) -> np.ndarray:
        """Rates of the strengths."""
        along = self.along(strengths)
        before, after = np.ones_like(along), np.ones_like(along)
        # Products over the other edges without division, which stay correct where a strength is 0.
        np.cumprod(along[..., :-1, :], axis=-2, out=before[..., 1:, :])
        np.cumprod(along[..., :0:-1, :], axis=-2, out=after[..., -2::-1, :])
        error = self.error(before[..., -1, :] * along[..., -1, :])
        push = before * after * error[..., None, :]
        return self.members @ push.reshape(*push.shape[:-3], -1, push.shape[-1])


def _race(effective: EffectiveData, strengths: np.ndarray) -> _Race:
    _refuse_without_modes(effective)
    pathways, count = effective.architecture.pathways, len(effective.architecture.edges)
    if strengths.shape[-2:] != (count, effective.modes.s.shape[1]):
        raise ValueError(
            f"strengths of {strengths.shape[-2]} edges and {strengths.shape[-1]} modes; there are "
            f"{count} edges and {effective.modes.s.shape[1]} modes"
        )
    edges = np.full((len(pathways), max(len(pathway.edges) for pathway in pathways)), count)
    for row, pathway in zip(edges, pathways, strict=True):
        row[: len(pathway.edges)] = pathway.edges
    members = (edges.ravel() == np.arange(count)[:, None]).astype(float)
    return _Race(edges, members, effective.modes.s, effective.modes.d)


def _refuse_without_modes(effective: EffectiveData) -> None:
    if not effective.modes.joint:
        raise UserError(
            "the reduction to modes does not hold for this dataset, architecture and gating, "
            "because the effective data of the pathways are not diagonal in common bases: "
            f"{effective.modes.violation:.1e} of a correlation lies off the diagonal",
            key="solutions",
            remedy="leave it out",
        )
