"""Baseline of networks that are linearised in their weights, by their neural tangent kernel."""

from typing import cast

import numpy as np
from jaxtyping import Float

from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import Solution
from neuralrace.networks.gates.wiring import Wiring, routing
from neuralrace.networks.routing import Routing
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import (
    LOSS,
    MODE_STRENGTH,
    RECEPTIVE_FIELDS,
    UNTRAINED_ERROR,
)
from neuralrace.theory.tangent_kernel import KernelFlow, Tangent, gated_tangent, layered_tangent

Run = list[Float[np.ndarray, "_target _source"]]
"""Initial weights of one run."""
Solved = dict[str, Float[np.ndarray, "..."]]
"""Variables of one run."""


@Solution(
    requires="squared_error full_batch gradient_flow joint_descent one_mask domains_in_memory "
    "gates_fit small_kernel usual_output",
    variables={
        "loss": LOSS,
        "mode_strength": MODE_STRENGTH,
        "receptive_fields": RECEPTIVE_FIELDS,
        "untrained_error": UNTRAINED_ERROR,
    },
    baseline=True,
)
def linearised(problem: Problem) -> Arrays:
    """Gradient flow of the network linearised around its initial weights, in closed form.

    The weights hardly move in the limit of wide layers or of large initial weights, and there this
    is the flow of the network itself. Features are never learned. It is also exact for weights that
    enter linearly: those of a single layer, and of pathways of one unit with mean readout.

    Mode strengths exist for layered linear networks, receptive fields for mean readout with one
    hidden layer, and errors of untrained pairs for routing networks.

    Source: Jacot, Gabriel, Hongler 2018, "Neural Tangent Kernel"; Lee et al. 2019, "Wide Neural
    Networks of Any Depth Evolve as Linear Models Under Gradient Descent".
    """
    solve = _layered if not unmet(problem.ensemble, "layered") else _gated
    shape = problem.weights[0].shape[:2]
    solved = [solve(problem, [w[run] for w in problem.weights]) for run in np.ndindex(shape)]
    return {
        name: np.reshape([run[name] for run in solved], (*shape, *values.shape))
        for name, values in solved[0].items()
    }


def _layered(problem: Problem, weights: Run) -> Solved:
    network, data = problem.ensemble.layered, problem.data

    def tangent(x: np.ndarray, directions: np.ndarray) -> Tangent:
        return layered_tangent(
            x, directions, weights, network.activation, network.bias, network.readout == "trained"
        )

    samples, directions = _rows(np.ones_like(data.y, dtype=bool))
    trained = tangent(data.x[samples], directions)
    flow = KernelFlow(trained.kernel(trained), data.y.ravel() - trained.values, len(data.x))
    arrays = {"loss": problem.as_trained(flow.loss(problem.time))}
    if network.linear:
        modes = tangent(data.modes.v.T, data.modes.u.T)
        change = flow.pulls(problem.time) @ trained.kernel(modes)
        arrays["mode_strength"] = modes.values + change
    if network.readout == "mean" and len(network.hidden) == 1:
        change = trained.changes(flow.pulls(problem.time[-1:])[0])[0]
        arrays["receptive_fields"] = weights[0] + change[:, : weights[0].shape[1]]
    return arrays


def _gated(problem: Problem, weights: Run) -> Solved:
    wiring, ensemble = problem.wiring, problem.ensemble
    averaged = not unmet(ensemble, "mean_readout")
    ends = wiring.architecture.outputs if averaged else ()
    frozen = [edge for edge, (_, end) in enumerate(wiring.architecture.edges) if end in ends]
    open_, y = _open_outputs(wiring), wiring.data.y
    samples, directions = _rows(open_)
    trained = gated_tangent(wiring, samples, directions, weights, frozen)
    flow = KernelFlow(trained.kernel(trained), y[open_] - trained.values, len(y))
    never = np.sum(y[~open_] ** 2) / (2 * len(y))  # targets of closed outputs are never learned
    arrays = {"loss": problem.as_trained(never + flow.loss(problem.time))}
    if averaged and not unmet(ensemble, "gated unit_pathways"):
        changes = trained.changes(flow.pulls(problem.time[-1:])[0])
        arrays["receptive_fields"] = np.concatenate(weights[::2]) + np.concatenate(changes)
    if ensemble.network.by_domain:
        pulls = flow.pulls(problem.time)
        arrays["untrained_error"] = _untrained_error(problem, weights, trained, pulls)
    return arrays


def _untrained_error(
    problem: Problem,
    weights: Run,
    trained: Tangent,
    pulls: Float[np.ndarray, "time row"],
) -> Float[np.ndarray, " time"]:
    """Mean relative error of untrained pairs of domains; NaN if all are trained."""
    network, domains = cast(Routing, problem.ensemble.network), problem.domains
    untrained = ~network.mask(domains.count, 0)
    if not untrained.any():
        return np.full(len(pulls), np.nan)
    wiring = routing(domains, network.families(domains.count), untrained)
    open_, y = _open_outputs(wiring), wiring.data.y
    samples, directions = _rows(open_)
    tangent = gated_tangent(wiring, samples, directions, weights)
    errors = y[open_] - tangent.values - pulls @ trained.kernel(tangent)
    pairs = np.argwhere(untrained)[wiring.data.contexts]
    return errors**2 @ (1 / domains.y_power[pairs[samples, 1]]) / len(y)


def _rows(open_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sample of each row of the kernel and its direction, from which outputs of samples count."""
    samples, outputs = np.nonzero(open_)
    return samples, np.eye(open_.shape[1])[outputs]


def _open_outputs(wiring: Wiring) -> np.ndarray:
    """Whether each output is open on each sample, (sample, output)."""
    graph, open_ = wiring.architecture, np.ones(wiring.data.y.shape, dtype=bool)
    for name in graph.outputs:
        if name in wiring.gates:
            open_[:, graph.columns(name)] = wiring.gates[name][:, None] > 0
    return open_
