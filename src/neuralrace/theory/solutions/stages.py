"""Theory of the contextual task in closed form, from width and variance of the weights."""

from typing import cast

import numpy as np

from neuralrace.datasets.contextual import Contextual
from neuralrace.extensions.registry import Solution
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.theory import contextual
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LOSS, PATHWAY_VALUES


@Solution(
    requires="contextual_hierarchies context_family one_hidden trained_readout common_first "
    "squared_error normal_start gradient_flow",
    variables={"loss": LOSS, "pathway_values": PATHWAY_VALUES},
    derived_for="small weights",
)
def staged_modes(problem: Problem) -> Arrays:
    """Stages of the contextual task: first the common pathway, then the context pathways.

    On the residual, context pathways start from their initial weights.

    Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 5 and appendices F and G.
    """
    return _closed_form(problem, with_head_start=False)


@Solution(
    requires="contextual_hierarchies whole_targets context_family common_pathway one_hidden "
    "trained_readout common_first squared_error normal_start gradient_flow",
    variables={"loss": LOSS, "pathway_values": PATHWAY_VALUES},
    derived_for="small weights",
)
def head_start(problem: Problem) -> Arrays:
    """Stages of the contextual task with the head start of context pathways.

    Context pathways start on the residual from the strength that they gain while the common
    pathway learns.

    Source: derived here, see `theory.contextual`.
    """
    return _closed_form(problem, with_head_start=True)


def _closed_form(problem: Problem, with_head_start: bool) -> Arrays:
    ensemble, data, time = problem.ensemble, problem.data, problem.time
    dataset = cast(Contextual, ensemble.dataset)
    scheme = cast(Contexts, cast(Gated, ensemble.network).gates)
    task = dataset.contexts, dataset.objects
    # every mode of a pathway starts from half its width times the variance
    variance = np.array(ensemble.init_scales) ** 2
    starts = [width * variance / 2 for width in problem.pathway_widths]
    common = np.repeat(starts[0][:, None], sum(task) - 1, axis=1)
    family = np.repeat(starts[-1][:, None], dataset.objects - 1, axis=1)
    loss = np.full((len(variance), len(time)), data.y_power / 2)
    modes = min(data.x.shape[1], data.y.shape[1])
    values = np.zeros((*loss.shape, len(starts), modes))
    if scheme.common:
        loss -= contextual.common_gain(time, *task, common)
        strength = contextual.common_strengths(time, *task, common)
        values[..., 0, : strength.shape[-1]] = strength
    for open_in in scheme.open_in:
        if with_head_start:
            family = contextual.head_start(*task, open_in, common, family)
        loss -= contextual.family_gain(time, *task, open_in, family)
        strength = contextual.family_strengths(time, *task, open_in, family)
        values[..., int(scheme.common) :, : strength.shape[-1]] = strength[..., None, :]
    values = -np.sort(-values, axis=-1)
    runs = len(loss), ensemble.seeds
    loss = problem.as_trained(loss)
    return {
        "loss": np.broadcast_to(loss[:, None], (*runs, *loss.shape[1:])),
        "pathway_values": np.broadcast_to(values[:, None], (*runs, *values.shape[1:])),
    }
