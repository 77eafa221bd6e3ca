"""Baseline of ReLU networks: gradient flow of all weights."""

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.theory.layered import layered_loss
from neuralrace.theory.layered import relu_flow as integrated
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LAYER_NORM, LOSS, RECEPTIVE_FIELDS


@Solution(
    requires="layered relu trained_readout|mean_readout squared_error full_batch gradient_flow",
    variables={"loss": LOSS, "layer_norm": LAYER_NORM, "receptive_fields": RECEPTIVE_FIELDS},
    baseline=True,
)
def relu_flow(problem: Problem) -> Arrays:
    """Gradient flow of all weights of a ReLU network, integrated numerically, for any depth.

    It makes as many steps as training, of a method of order two: its distance from training is
    what the size of the steps costs. Receptive fields exist for mean readout with one hidden layer.

    Source: the definition of gradient flow, the limit of small steps of gradient descent.
    """
    data, mean = problem.data, problem.ensemble.layered.readout == "mean"
    path = integrated(
        problem.weights,
        data.x,
        data.y,
        len(problem.step) - 1,
        int(problem.step[1] - problem.step[0]),
        problem.flow_step,
        trained_readout=not mean,
    )
    norms = np.stack([np.linalg.norm(w, axis=(-2, -1)) for w in path], axis=-1)
    loss = layered_loss(data.x, data.y, path, "relu")
    arrays = {"loss": problem.as_trained(loss), "layer_norm": norms}
    if mean and len(path) == 2:
        arrays["receptive_fields"] = path[0][..., -1, :, :]
    return arrays
