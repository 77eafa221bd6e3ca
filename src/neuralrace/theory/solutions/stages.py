"""The contextual task in closed form, from width and variance of the initial weights."""

from typing import cast

import numpy as np

from neuralrace.datasets.contextual import Contextual
from neuralrace.extensions.registry import Solution
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.theory import contextual
from neuralrace.theory.solutions.problem import Arrays, Problem


@Solution(
    requires="contextual_hierarchies context_family one_hidden trained_readout squared_error "
    "normal_start gradient_flow",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "pathway_values": (
            "solution time pathway pathway_mode",
            "singular values of the map of each pathway by theory",
        ),
    },
)
def staged_modes(problem: Problem) -> Arrays:
    """Context pathways start to learn the residual with the start of their weights.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 5 and appendices F and G.
    """
    return _closed_form(problem, ahead=False)


@Solution(
    requires="contextual_hierarchies whole_targets context_family common_pathway one_hidden "
    "trained_readout squared_error normal_start gradient_flow",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "pathway_values": (
            "solution time pathway pathway_mode",
            "singular values of the map of each pathway by theory",
        ),
    },
)
def head_start(problem: Problem) -> Arrays:
    """Context pathways start with what they gain while the common one learns.

    Source: derived here, see `theory.contextual`.
    """
    return _closed_form(problem, ahead=True)


def _closed_form(problem: Problem, ahead: bool) -> Arrays:
    ensemble, data, time = problem.ensemble, problem.data, problem.time
    dataset = cast(Contextual, ensemble.dataset)
    scheme = cast(Contexts, cast(Gated, ensemble.network).gates)
    task = dataset.contexts, dataset.objects
    # every mode of a pathway starts from half its width times the variance
    variance = np.array(ensemble.init_scales) ** 2
    strengths = [width * variance / 2 for width in problem.pathway_widths]
    common = np.repeat(strengths[0][:, None], sum(task) - 1, axis=1)
    family = np.repeat(strengths[-1][:, None], dataset.objects - 1, axis=1)
    loss = np.full((len(variance), len(time)), data.y_power / 2)
    modes = min(data.x.shape[1], data.y.shape[1])
    values = np.zeros((*loss.shape, len(strengths), modes))
    if scheme.common:
        loss -= contextual.common_gain(time, *task, common)
        found = contextual.common_strengths(time, *task, common)
        values[..., 0, : found.shape[-1]] = found
    for open_in in scheme.open_in:
        if ahead:
            family = contextual.head_start(*task, open_in, common, family)
        loss -= contextual.family_gain(time, *task, open_in, family)
        found = contextual.family_strengths(time, *task, open_in, family)
        values[..., int(scheme.common) :, : found.shape[-1]] = found[..., None, :]
    values = -np.sort(-values, axis=-1)
    runs = len(loss), ensemble.seeds
    loss = problem.as_trained(loss)
    return {
        "loss": np.broadcast_to(loss[:, None], (*runs, *loss.shape[1:])),
        "pathway_values": np.broadcast_to(values[:, None], (*runs, *values.shape[1:])),
    }
