"""Theory of XoR in ReLU networks with one hidden layer, which learn as gated pathways do."""

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.registry import Solution
from neuralrace.theory import xor, xor_margin
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LOSS

MARGIN = "layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow"
MARGIN_FROM_WEIGHTS = (
    "layered relu trained_readout one_hidden squared_error xor_with_margin gradient_flow "
    "general_start"
)


@Solution(
    requires="layered relu trained_readout one_hidden squared_error xor gradient_flow",
    variables={"loss": LOSS},
    derived_for="small weights",
)
def xor_race(problem: Problem) -> Arrays:
    """Race of four gated pathways, one for each corner, from the initial weights.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3; the start is derived here.
    """
    encoder, decoder = problem.weights
    start = xor.xor_start(encoder, decoder[..., 0, :], problem.data.x, problem.data.y[:, 0])
    return {"loss": problem.as_trained(xor.xor_loss(problem.time, start))}


@Solution(requires=MARGIN_FROM_WEIGHTS, variables={"loss": LOSS}, derived_for="small weights")
def margin_race(problem: Problem) -> Arrays:
    """Race of linear and XoR pathways that learn at once, from the initial weights.

    Source: derived here.
    """
    start = _start(problem)
    loss = xor_margin.race_loss(problem.time, _margin(problem), start.linear, start.xor)
    return {"loss": problem.as_trained(loss)}


@Solution(requires=MARGIN_FROM_WEIGHTS, variables={"loss": LOSS}, derived_for="small weights")
def margin_linear(problem: Problem) -> Arrays:
    """Linear pathways only, one for each class, from their part of the initial weights.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 22; the start is derived here.
    """
    loss = xor_margin.linear_loss(problem.time, _margin(problem), _start(problem).linear)
    return {"loss": problem.as_trained(loss)}


@Solution(requires=MARGIN_FROM_WEIGHTS, variables={"loss": LOSS}, derived_for="small weights")
def margin_xor(problem: Problem) -> Arrays:
    """XoR pathways only, one for each corner, from their part of the initial weights.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 23; the start is derived here.
    """
    loss = xor_margin.xor_loss(problem.time, _margin(problem), _start(problem).xor)
    return {"loss": problem.as_trained(loss)}


@Solution(requires=MARGIN, variables={"loss": LOSS}, derived_for="small weights")
def margin_linear_split(problem: Problem) -> Arrays:
    """Linear pathways only, one for each class, each with an equal share of all units.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 22.
    """
    start = _split_start(problem, 0, pathways=2)
    loss = xor_margin.linear_loss(problem.time, _margin(problem), start)
    return {"loss": problem.as_trained(loss)}


@Solution(requires=MARGIN, variables={"loss": LOSS}, derived_for="small weights")
def margin_xor_split(problem: Problem) -> Arrays:
    """XoR pathways only, one for each corner, each with an equal share of all units.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", eq. 23.
    """
    start = _split_start(problem, 1, pathways=4)
    loss = xor_margin.xor_loss(problem.time, _margin(problem), start)
    return {"loss": problem.as_trained(loss)}


def _margin(problem: Problem) -> float:
    return float(np.abs(problem.data.x[0, -1]))  # the third input is the margin times the label


def _start(problem: Problem) -> xor_margin.Start:
    """Initial strengths of the pathways, from the initial weights."""
    encoder, decoder = problem.weights
    return xor_margin.neuron_start(encoder, decoder[..., 0, :], _margin(problem))


def _split_start(
    problem: Problem, type_: int, pathways: int
) -> Float[np.ndarray, "init_scale seed pathway"]:
    """Initial strengths of one type of pathway, from width and variance of the weights."""
    encoder, _ = problem.weights
    (*runs, units, _) = encoder.shape
    deviation = np.array([np.sqrt(np.mean(scale**2)) for scale in encoder])
    start = np.array([xor_margin.split_start(units, float(scale))[type_] for scale in deviation])
    return np.broadcast_to(start[:, None, None], (*runs, pathways)).copy()
