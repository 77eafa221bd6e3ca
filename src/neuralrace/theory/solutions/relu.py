"""Baseline of ReLU networks: gradient flow of all weights."""

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.theory.layered import layered_flow, layered_loss
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LAYER_NORM, LOSS, RECEPTIVE_FIELDS


@Solution(
    requires="layered relu trained_readout|mean_readout squared_error full_batch gradient_flow",
    variables={"loss": LOSS, "layer_norm": LAYER_NORM, "receptive_fields": RECEPTIVE_FIELDS},
    baseline=True,
)
def relu_flow(problem: Problem) -> Arrays:
    """Gradient flow of all weights of a ReLU network, integrated numerically, for any depth.

    Its distance from training is what the size of the steps costs, down to about 1e-3 of the
    initial loss: the rates jump where a unit opens or closes on a sample, which limits the accuracy
    of the integration (see `theory.layered`). Receptive fields exist for mean readout with one
    hidden layer.

    Source: the definition of gradient flow, the limit of small steps of gradient descent.
    """
    data, mean = problem.data, problem.ensemble.layered.readout == "mean"
    smallest = min(np.sqrt(np.mean(w**2)) for layer in problem.weights for w in layer)
    path = layered_flow(
        problem.time,
        data.x,
        data.y,
        problem.weights,
        "relu",
        trained_readout=not mean,
        atol=1e-6 * float(smallest),
    )
    norms = np.stack([np.linalg.norm(w, axis=(-2, -1)) for w in path], axis=-1)
    loss = layered_loss(data.x, data.y, path, "relu")
    arrays = {"loss": problem.as_trained(loss), "layer_norm": norms}
    if mean and len(path) == 2:
        arrays["receptive_fields"] = path[0][..., -1, :, :]
    return arrays
