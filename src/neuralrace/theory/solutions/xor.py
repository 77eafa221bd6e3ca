"""XoR in ReLU networks of one hidden layer: gated pathways in the place of units."""

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.registry import Solution
from neuralrace.theory import margin, xor
from neuralrace.theory.solutions.problem import Arrays, Problem


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor gradient_flow",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def xor_race(problem: Problem) -> Arrays:
    """Four gated pathways, one for each corner, in the place of a ReLU network.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3; the start is derived here.
    """
    encoder, decoder = problem.weights
    start = xor.xor_start(encoder, decoder[..., 0, :], problem.data.x, problem.data.y[:, 0])
    return {"loss": problem.as_trained(xor.xor_loss(problem.time, start))}


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow "
    "general_start",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def margin_race(problem: Problem) -> Arrays:
    """Pathways of both types in the place of a ReLU network, from its own weights.

    Source: derived here.
    """
    start = _start(problem)
    loss = margin.race_loss(problem.time, _margin(problem), start.linear, start.xor)
    return {"loss": problem.as_trained(loss)}


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow "
    "general_start",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def margin_linear(problem: Problem) -> Arrays:
    """Pathways of one class each alone, from what the weights hold of them.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 22; the start is derived here.
    """
    loss = margin.linear_loss(problem.time, _margin(problem), _start(problem).linear)
    return {"loss": problem.as_trained(loss)}


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow "
    "general_start",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def margin_xor(problem: Problem) -> Arrays:
    """Pathways of one corner each alone, from what the weights hold of them.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 23; the start is derived here.
    """
    loss = margin.xor_loss(problem.time, _margin(problem), _start(problem).xor)
    return {"loss": problem.as_trained(loss)}


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def margin_linear_split(problem: Problem) -> Arrays:
    """Pathways of one class each alone, as if these shared out all units equally.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 22.
    """
    start = _split_start(problem, 0, pathways=2)
    return {
        "loss": problem.as_trained(margin.linear_loss(problem.time, _margin(problem), start)),
    }


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def margin_xor_split(problem: Problem) -> Arrays:
    """Pathways of one corner each alone, as if these shared out all units equally.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 23.
    """
    start = _split_start(problem, 1, pathways=4)
    return {"loss": problem.as_trained(margin.xor_loss(problem.time, _margin(problem), start))}


def _margin(problem: Problem) -> float:
    return float(np.abs(problem.data.x[0, -1]))  # the third input is the margin times the label


def _start(problem: Problem) -> margin.Start:
    """What the initial weights hold of each pathway."""
    encoder, decoder = problem.weights
    return margin.neuron_start(encoder, decoder[..., 0, :], _margin(problem))


def _split_start(
    problem: Problem, type_: int, pathways: int
) -> Float[np.ndarray, "init_scale seed pathway"]:
    """Start of one type of pathways if units were shared out equally, by width and variance."""
    encoder, _ = problem.weights
    (*runs, units, _) = encoder.shape
    deviation = np.array([np.sqrt(np.mean(scale**2)) for scale in encoder])
    start = np.array([margin.split_start(units, float(scale))[type_] for scale in deviation])
    return np.broadcast_to(start[:, None, None], (*runs, pathways)).copy()
