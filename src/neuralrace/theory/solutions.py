"""Theory beside a run: what each theory predicts from the run's own initial weights.

A solution takes the problem that a run poses, never its trajectory, and gives arrays by the names
of `records.schema.THEORY`. Nothing is fitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.initialisation.base import Weights
from neuralrace.models.initialisation import initial_weights
from neuralrace.spec import Activation, Run, Solution, SolvedRun
from neuralrace.theory import (
    gated_solutions,
    gradient_flow,
    margin,
    mean_readout,
    modes,
    tied,
    two_layer,
    xor,
)
from neuralrace.theory.gated_solutions import CANDIDATES, GATED, Arrays
from neuralrace.theory.mean_readout import MEAN_READOUT


@dataclass(frozen=True)
class Problem:
    """What theory starts from: correlations, initial weights, and the times to answer at."""

    data: Data
    weights: Weights
    time: Float[np.ndarray, " time"]

    @property
    def samples(self) -> int:
        """Samples that the loss is over."""
        return len(self.data.x)

    @cached_property
    def s(self) -> Float[np.ndarray, " mode"]:
        """Singular values of sigma_yx."""
        return self.data.modes.s

    @cached_property
    def d(self) -> Float[np.ndarray, " mode"]:
        """Eigenvalues of sigma_xx along the input singular vectors."""
        return self.data.modes.d

    def from_modes(self, strength: Float[np.ndarray, "*runs time mode"]) -> Arrays:
        """Mode strengths and the loss that follows."""
        loss = modes.mode_loss(strength, self.s, self.d, self.data.y_power)
        return {"mode_strength": strength, "loss": loss}

    def from_map(self, total: Float[np.ndarray, "*runs time output input"]) -> Arrays:
        """Mode strengths and loss of a linear map."""
        fit = np.einsum("...oi,oi->...", total, self.data.sigma_yx)
        size = np.einsum("...oi,ij,...oj->...", total, self.data.sigma_xx, total)
        u, v = self.data.modes.u, self.data.modes.v
        return {
            "mode_strength": np.einsum("ok,...oi,ik->...k", u, total, v),
            "loss": self.data.y_power / 2 - fit + size / 2,
        }

    def require_whitened(self) -> None:
        """Refuses a task whose inputs are not whitened.

        Raises:
            UserError: sigma_xx is not the identity.
        """
        if not np.allclose(self.data.sigma_xx, np.eye(len(self.data.sigma_xx))):
            raise UserError("solutions: this theory is for whitened inputs, sigma_xx = I")

    def two_layers(
        self,
    ) -> tuple[Float[np.ndarray, "*runs hidden input"], Float[np.ndarray, "*runs output hidden"]]:
        """The weights of a network with one hidden layer.

        Raises:
            UserError: the network has another depth.
        """
        if len(self.weights) != 2:
            raise UserError(
                f"solutions: this theory is for networks with one hidden layer; network.hidden has "
                f"{len(self.weights) - 1}"
            )
        first, second = self.weights
        return first, second


def _aligned_modes(problem: Problem) -> Arrays:
    u, v = problem.data.modes.u, problem.data.modes.v
    start = modes.aligned_initial_mode(*problem.two_layers(), u, v)
    strength = modes.deep_mode(problem.time, problem.s, problem.d, start)
    return problem.from_modes(strength) | {"initial_mode": start}


def _symmetric_start(problem: Problem) -> Arrays:
    """Only the mean of encoder and decoder vectors grows from a small start: a tied network."""
    encoder, decoder = problem.two_layers()
    d = problem.d
    if not np.allclose(d, d[0]) or not problem.data.modes.joint:
        raise UserError(
            "solutions: symmetric_start needs inputs of equal variance in all directions"
        )
    mean = (encoder @ problem.data.modes.v + decoder.mT @ problem.data.modes.u).mT / 2
    gram = tied.tied_gram(problem.time * d[0], mean, np.diag(problem.s / d[0]))
    return problem.from_map(problem.data.modes.u @ gram @ problem.data.modes.v.T)


def _untied_modes(problem: Problem) -> Arrays:
    problem.require_whitened()
    encoder, decoder = problem.two_layers()
    a0 = (encoder @ problem.data.modes.v).mT
    b0 = (decoder.mT @ problem.data.modes.u).mT
    a, b = modes.untied_mode(problem.time, problem.s, a0, b0)
    return problem.from_modes((a * b).sum(-1)) | {"initial_mode": (a0 * b0).sum(-1)}


def _shallow_modes(problem: Problem) -> Arrays:
    if len(problem.weights) != 1:
        raise UserError("solutions: shallow_modes is for networks without a hidden layer")
    u, v = problem.data.modes.u, problem.data.modes.v
    start = np.einsum("ok,...oi,ik->...k", u, problem.weights[0], v)
    strength = modes.shallow_mode(problem.time, problem.s, problem.d, start)
    return problem.from_modes(strength) | {"initial_mode": start}


def _layered_modes(problem: Problem) -> Arrays:
    problem.require_whitened()
    rank = len(problem.s)
    start = np.zeros((*problem.weights[0].shape[:-2], len(problem.weights), rank))
    for index, layer in enumerate(problem.weights):
        values = np.linalg.svd(layer, compute_uv=False)[..., :rank]
        start[..., index, : values.shape[-1]] = values  # a narrow layer has no room for the rest
    total = problem.weights[0]
    for layer in problem.weights[1:]:
        total = layer @ total
    u, v = problem.data.modes.u, problem.data.modes.v
    if not np.allclose(start.prod(-2), np.einsum("ok,...oi,ik->...k", u, total, v)):
        raise UserError(
            "solutions: layered_modes needs an aligned start, such as init aligned, and modes that "
            "are not negative"
        )
    strength = modes.layered_mode_flow(problem.time, problem.s, start)
    return problem.from_modes(strength.prod(-2)) | {"layer_strength": strength}


def _exact(problem: Problem) -> Arrays:
    problem.require_whitened()
    total = two_layer.exact_two_layer(problem.time, *problem.two_layers(), problem.data.sigma_yx)
    return problem.from_map(total)


def _tied(problem: Problem) -> Arrays:
    problem.require_whitened()
    encoder, _ = problem.two_layers()
    sigma = np.diag(problem.s)
    gram = tied.tied_gram(problem.time, (encoder @ problem.data.modes.v).mT, sigma)
    diagonal = np.diagonal(gram, axis1=-2, axis2=-1)
    loss = problem.data.y_power / 2 - diagonal @ problem.s + (gram**2).sum((-1, -2)) / 2
    return {"mode_strength": diagonal, "loss": loss, "gram": np.tile(gram, (2, 2))}


def _flow(problem: Problem) -> Arrays:
    smallest = min(np.sqrt(np.mean(w**2)) for layer in problem.weights for w in layer)
    path = gradient_flow.linear_flow(
        problem.time,
        problem.weights,
        problem.data.sigma_yx,
        problem.data.sigma_xx,
        atol=1e-13 * float(smallest),
    )
    total = path[0]
    for layer in path[1:]:
        total = layer @ total
    norms = np.stack([np.linalg.norm(w, axis=(-2, -1)) for w in path], axis=-1)
    return problem.from_map(total) | {"layer_norm": norms}


def _xor_race(problem: Problem) -> Arrays:
    """Four gated pathways in the place of a ReLU network."""
    encoder, decoder = problem.two_layers()
    x, y = problem.data.x, problem.data.y
    if x.shape != (4, 2) or y.shape != (4, 1):
        raise UserError("solutions: xor_race is for the four points of XoR; use dataset xor")
    try:
        start = xor.xor_start(encoder, decoder[..., 0, :], x, y[:, 0])
    except ValueError as error:
        raise UserError(f"solutions: xor_race: {error}; use dataset xor") from error
    return {"loss": xor.xor_loss(problem.time, start)}


def _margin(problem: Problem) -> tuple[float, margin.Start]:
    """The margin of XoR, and what the initial weights hold of each pathway.

    Raises:
        UserError: the data are not XoR with a margin.
    """
    encoder, decoder = problem.two_layers()
    x, y = problem.data.x, problem.data.y
    width = float(x[-1, -1] * y[-1, 0]) if x.shape == (4, 3) and y.shape == (4, 1) else 0.0
    if width <= 0 or not np.array_equal(margin.points(width)[0], x):
        raise UserError(
            "solutions: margin_* are for XoR with a margin; use dataset xor and give its margin"
        )
    return width, margin.neuron_start(encoder, decoder[..., 0, :], width)


def _margin_race(problem: Problem) -> Arrays:
    """Pathways of both types in the place of a ReLU network, from its own weights."""
    width, start = _margin(problem)
    return {"loss": margin.race_loss(problem.time, width, start.linear, start.xor)}


def _margin_linear(problem: Problem) -> Arrays:
    width, start = _margin(problem)
    return {"loss": margin.linear_loss(problem.time, width, start.linear)}


def _margin_xor(problem: Problem) -> Arrays:
    width, start = _margin(problem)
    return {"loss": margin.xor_loss(problem.time, width, start.xor)}


def _split_start(problem: Problem, type_: int, pathways: int) -> np.ndarray:
    """Start of one type of pathways if units were shared out equally, by width and variance."""
    encoder, _ = problem.two_layers()
    (*runs, units, _) = encoder.shape
    variance = np.array([np.sqrt(np.mean(scale**2)) for scale in encoder])
    start = np.array([margin.split_start(units, float(scale))[type_] for scale in variance])
    return np.broadcast_to(start[:, None, None], (*runs, pathways)).copy()


def _margin_linear_split(problem: Problem) -> Arrays:
    width, _ = _margin(problem)
    return {"loss": margin.linear_loss(problem.time, width, _split_start(problem, 0, 2))}


def _margin_xor_split(problem: Problem) -> Arrays:
    width, _ = _margin(problem)
    return {"loss": margin.xor_loss(problem.time, width, _split_start(problem, 1, 4))}


LINEAR: dict[Solution, Callable[[Problem], Arrays]] = {
    "aligned_modes": _aligned_modes,
    "exact": _exact,
    "flow": _flow,
    "layered_modes": _layered_modes,
    "shallow_modes": _shallow_modes,
    "symmetric_start": _symmetric_start,
    "tied": _tied,
    "untied_modes": _untied_modes,
}
RECTIFIED: dict[Solution, Callable[[Problem], Arrays]] = {
    "margin_linear": _margin_linear,
    "margin_linear_split": _margin_linear_split,
    "margin_race": _margin_race,
    "margin_xor": _margin_xor,
    "margin_xor_split": _margin_xor_split,
    "xor_race": _xor_race,
}
SOLUTIONS: dict[Solution, Callable[[Any], Arrays]] = {
    **LINEAR,
    **RECTIFIED,
    **GATED,
    **CANDIDATES,
    **MEAN_READOUT,
}
BY_SOLUTION = ("loss", "mode_strength", "pathway_values", "receptive_fields", "singular_values")
"""Variables that several solutions may give; they are stacked along `solution`."""


def pose(run: Run, step: np.ndarray, activation: Activation = "linear") -> Problem:
    """The problem that a layered run poses, at the given gradient steps.

    Raises:
        UserError: the initialisation law does not exist for this network, or training is not that
            of a whole linear network on squared error.
    """
    network = run.layered
    if network.activation != activation or network.bias or network.readout != "trained":
        raise UserError(
            f"solutions: this theory is for {activation} networks without biases, all trained"
        )
    if run.training.loss.name != "squared_error":
        raise UserError("solutions: theory is for training.loss squared_error")
    data = run.dataset.load()
    widths = (data.x.shape[1], *network.hidden, data.y.shape[1])
    weights = initial_weights(run.init, widths, data.modes, run.init_scales, run.seed_numbers)
    return Problem(data, weights, step * run.training.flow_step(len(data.x)))


def solve(run: SolvedRun, step: np.ndarray) -> tuple[int, Arrays]:
    """Every configured solution of a run.

    Returns:
        Number of samples, and arrays by schema name; those of `BY_SOLUTION` carry the solutions, in
        the order of `run.solutions`, on their third axis, with NaN for those that do not give them.

    Raises:
        UserError: as `pose`, or a theory that is not for this network.
    """
    pose_of = cache(lambda kind: _POSES[kind](run, step))
    answers = [SOLUTIONS[name](pose_of(_kind(name))) for name in run.solutions]
    arrays = {k: v for answer in answers for k, v in answer.items() if k not in BY_SOLUTION}
    for name in BY_SOLUTION:
        given = [answer[name] for answer in answers if name in answer]
        if given:
            absent = np.full_like(given[0], np.nan)
            arrays[name] = np.stack([answer.get(name, absent) for answer in answers], axis=2)
    samples = pose_of(_kind(run.solutions[0])).samples
    # as training normalises it, so that simulation and theory compare as they are
    for name in ("loss", "candidate_loss"):
        if name in arrays:
            arrays[name] = run.training.loss.factor(samples) * arrays[name]
    return samples, arrays


_POSES: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "linear": pose,
    "relu": partial(pose, activation="relu"),
    "gated": gated_solutions.pose,
    "candidates": gated_solutions.pose_candidates,
    "mean_readout": mean_readout.pose,
}


def _kind(name: Solution) -> str:
    """What kind of problem a solution is for."""
    tables = {
        "gated": GATED,
        "relu": RECTIFIED,
        "candidates": CANDIDATES,
        "mean_readout": MEAN_READOUT,
    }
    return next((kind for kind, table in tables.items() if name in table), "linear")
