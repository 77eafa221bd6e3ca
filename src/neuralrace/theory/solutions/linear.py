"""Theory of linear networks without biases.

Their data matter only through the correlations sigma_yx = <y x^T> and sigma_xx = <x x^T>.
"""

from functools import reduce

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Solution
from neuralrace.theory import modes
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import INITIAL_MODE, LAYER_NORM, LOSS, MODE_STRENGTH
from neuralrace.theory.tied import tied_gram
from neuralrace.theory.two_layer import exact_two_layer, lambda_balanced_weights


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH, "initial_mode": INITIAL_MODE},
    derived_for="balanced weights that are aligned with the modes, or small ones",
)
def aligned_modes(problem: Problem) -> Arrays:
    """Sigmoidal learning curve of each mode, for one hidden layer.

    Each mode starts from the part of its initial weights that grows. The result is exact for
    balanced weights that are aligned with the modes, and for others as the init scale goes to 0.

    Source: Saxe, McClelland, Ganguli 2013; for general d, Jarvis, Klein, Rosman, Saxe, appendix A.
    """
    task = problem.data.modes
    encoder, decoder = problem.weights
    start = modes.aligned_initial_mode(encoder, decoder, task.u, task.v)
    strength = modes.deep_mode(problem.time, task.s, task.d, start)
    return _of_modes(problem, strength) | {"initial_mode": start}


@Solution(
    requires="layered linear trained_readout no_hidden squared_error gradient_flow",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH, "initial_mode": INITIAL_MODE},
)
def shallow_modes(problem: Problem) -> Arrays:
    """Exponential learning curve of each mode, without a hidden layer.

    The loss leaves out the part of the weights that lies outside the modes.

    Source: Jarvis, Klein, Rosman, Saxe, appendix A.
    """
    task = problem.data.modes
    start = np.einsum("ok,...oi,ik->...k", task.u, problem.weights[0], task.v)
    strength = modes.shallow_mode(problem.time, task.s, task.d, start)
    return _of_modes(problem, strength) | {"initial_mode": start}


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow white_inputs",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH, "initial_mode": INITIAL_MODE},
    derived_for="modes in separate hidden directions",
)
def untied_modes(problem: Problem) -> Arrays:
    """Learning curve of each mode with unequal encoder and decoder, for one hidden layer.

    Inputs are white. Each mode k has the encoder vector a = W1 v_k and the decoder vector
    b = W2^T u_k. The result is exact where the modes use separate hidden directions.

    Source: derived here; Saxe, McClelland, Ganguli 2013 solve scalar layers in other variables.
    """
    task = problem.data.modes
    encoder, decoder = problem.weights
    a0, b0 = (encoder @ task.v).mT, (decoder.mT @ task.u).mT
    a, b = modes.untied_mode(problem.white_clock(problem.time), _target(problem), a0, b0)
    return _of_modes(problem, (a * b).sum(-1)) | {"initial_mode": (a0 * b0).sum(-1)}


@Solution(
    requires="layered linear trained_readout squared_error gradient_flow aligned_start "
    "white_inputs positive_modes",
    variables={
        "loss": LOSS,
        "mode_strength": MODE_STRENGTH,
        "layer_norm": LAYER_NORM,
        "layer_strength": (
            "time layer mode",
            "singular value of each layer in each mode (eq. 13)",
        ),
    },
)
def layered_modes(problem: Problem) -> Arrays:
    """Coupled singular values of all layers in each mode, at any depth.

    Inputs are white and the start is aligned with the modes; layers need not be balanced.

    Source: Basu, Mukherjee, Vasudevan, eq. 13.
    """
    rank = len(problem.data.modes.s)
    start = np.zeros((*problem.weights[0].shape[:-2], len(problem.weights), rank))
    for index, layer in enumerate(problem.weights):
        values = np.linalg.svd(layer, compute_uv=False)[..., :rank]
        start[..., index, : values.shape[-1]] = values  # a narrow layer has fewer values than modes
    time = problem.white_clock(problem.time)
    strength = modes.layered_mode_flow(time, _target(problem), start)
    return _of_modes(problem, strength.prod(-2)) | {
        "layer_norm": np.linalg.norm(strength, axis=-1),
        "layer_strength": strength,
    }


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow equal_variance",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH},
    derived_for="small weights",
)
def symmetric_start(problem: Problem) -> Arrays:
    """Tied network that starts from the mean of encoder and decoder, for one hidden layer.

    From a small start, only the mean of the encoder and decoder vectors of a mode grows.

    Source: derived here, from the matrix Riccati solution of Fukumizu 1998.
    """
    task = problem.data.modes
    encoder, decoder = problem.weights
    mean = (encoder @ task.v + decoder.mT @ task.u).mT / 2
    gram = tied_gram(problem.time * task.d[0], mean, np.diag(task.s / task.d[0]))
    return _of_map(problem, task.u @ gram @ task.v.T)


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow white_inputs",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH},
    derived_for="balanced weights",
)
def exact(problem: Problem) -> Arrays:
    """Exact matrix Riccati solution of a two-layer network from a balanced start.

    Inputs are white; the start may be aligned with the modes or not. An unbalanced start is
    accepted, but the result then departs from gradient flow.

    Source: Fukumizu 1998; Braun, Dominé, Fitzgerald, Saxe 2022.
    """
    encoder, decoder = problem.weights
    time, target = problem.white_clock(problem.time), problem.data.sigma_yx / problem.data.variance
    total = exact_two_layer(time, encoder, decoder, target)
    return _of_map(problem, total)


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow white_inputs "
    "lambda_balanced_start one_task|task_sequence",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH},
)
def lambda_balanced(problem: Problem) -> Arrays:
    """Exact matrix Riccati solution of a two-layer network from a lambda-balanced start.

    Initial weights have W_2^T W_2 - W_1 W_1^T = lambda I, and inputs are white. It also solves a
    sequence of tasks, each from the weights that the one before it ends with; mode strengths are
    those of the present task.

    Source: Dominé, Anguita, Proca, Braun, Kunin, Mediano, Saxe 2024, "From Lazy to Rich"; Braun,
    Dominé, Fitzgerald, Saxe 2022; Fukumizu 1998.
    """
    encoder, decoder = problem.weights
    starts, tasks = zip(*problem.phases, strict=True)
    first, second = lambda_balanced_weights(
        problem.white_clock(problem.time),
        encoder,
        decoder,
        [task.sigma_yx / task.variance for task in tasks],
        problem.white_clock(problem.flow_step * np.array(starts)).tolist(),
    )
    number = np.searchsorted(starts, problem.step, side="right") - 1
    parts = [
        _of_map(problem, (second @ first)[:, :, number == k], task) for k, task in enumerate(tasks)
    ]
    return {name: np.concatenate([part[name] for part in parts], axis=2) for name in parts[0]}


@Solution(
    requires="layered linear trained_readout one_hidden squared_error gradient_flow white_inputs",
    variables={
        "loss": LOSS,
        "mode_strength": MODE_STRENGTH,
        "gram": (
            "time vector other_vector",
            "inner products of encoder and decoder vectors by theory",
        ),
    },
    derived_for="equal encoder and decoder",
)
def tied(problem: Problem) -> Arrays:
    """Gram matrix of a tied network with one hidden layer and white inputs.

    It is exact where encoder and decoder start equal.

    Source: the matrix Riccati solution of Fukumizu 1998.
    """
    task = problem.data.modes
    time, start = problem.white_clock(problem.time), (problem.weights[0] @ task.v).mT
    gram = tied_gram(time, start, np.diag(_target(problem)))
    diagonal = np.diagonal(gram, axis1=-2, axis2=-1)
    size = problem.data.variance * (gram**2).sum((-1, -2))
    loss = problem.data.y_power / 2 - diagonal @ task.s + size / 2
    return {
        "loss": problem.as_trained(loss),
        "mode_strength": diagonal,
        "gram": np.tile(gram, (2, 2)),
    }


@Solution(
    requires="layered linear trained_readout squared_error gradient_flow",
    variables={"loss": LOSS, "mode_strength": MODE_STRENGTH, "layer_norm": LAYER_NORM},
)
def flow(problem: Problem) -> Arrays:
    """Gradient flow of all weights, integrated numerically, for any depth, task and start.

    Source: Saxe, McClelland, Ganguli 2013; Basu, Mukherjee, Vasudevan, eqs. 5 and 14.
    """
    smallest = min(np.sqrt(np.mean(w**2)) for layer in problem.weights for w in layer)
    path = linear_flow(
        problem.time,
        problem.weights,
        problem.data.sigma_yx,
        problem.data.sigma_xx,
        atol=1e-13 * float(smallest),
    )
    norms = np.stack([np.linalg.norm(w, axis=(-2, -1)) for w in path], axis=-1)
    return _of_map(problem, _product(path)) | {"layer_norm": norms}


def _target(problem: Problem) -> Float[np.ndarray, " mode"]:
    """Final strength of each mode, for white inputs."""
    return problem.data.modes.s / problem.data.variance


def _product(weights: list[Float[np.ndarray, "*runs _out _in"]]) -> np.ndarray:
    return reduce(lambda below, above: above @ below, weights)


def _of_modes(problem: Problem, strength: Float[np.ndarray, "*runs time mode"]) -> Arrays:
    """Mode strengths and their loss."""
    task = problem.data.modes
    loss = modes.mode_loss(strength, task.s, task.d, problem.data.y_power)
    return {"loss": problem.as_trained(loss), "mode_strength": strength}


def _of_map(
    problem: Problem,
    total: Float[np.ndarray, "*runs time output input"],
    task: Data | None = None,
) -> Arrays:
    """Mode strengths and loss of a linear map, on the data of a task of a sequence if given."""
    data = task or problem.data
    fit = np.einsum("...oi,oi->...", total, data.sigma_yx)
    size = np.einsum("...oi,ij,...oj->...", total, data.sigma_xx, total)
    return {
        "loss": problem.as_trained(data.y_power / 2 - fit + size / 2),
        "mode_strength": np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v),
    }
