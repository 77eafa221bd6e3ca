"""Gates of ReLU networks without biases: on which samples each hidden unit is active."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.config.cell import Ensemble
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.networks.layered import Layered


def relu_network(ensemble: Ensemble, user: str, hidden: int | None = None) -> Layered:
    """The network of an ensemble, checked to be a ReLU network without biases.

    Args:
        ensemble: the ensemble that is trained.
        user: name of the function or metric that needs such a network, for the message.
        hidden: required number of hidden layers, 1; any number when absent.

    Raises:
        UserError: the network is another one.
    """
    if unmet(ensemble, "layered relu") or (hidden and len(ensemble.layered.hidden) != hidden):
        layers = {None: "no biases", 1: "one hidden layer and no biases"}[hidden]
        raise UserError(f"{user} is for ReLU networks with {layers}", key="network")
    return ensemble.layered


def relu_activity(
    weights: Sequence[Float[np.ndarray, "*runs _out _in"]], x: Float[np.ndarray, "sample input"]
) -> list[Float[np.ndarray, "*runs _unit sample"]]:
    """Activity h of each hidden unit on each sample.

    Args:
        weights: W_1 ... W_L of networks without biases.
        x: inputs.

    Returns:
        One array for each hidden layer, first layer first.
    """
    activity, h = [], x.T
    for weight in weights[:-1]:
        h = np.maximum(weight @ h, 0)
        activity.append(h)
    return activity


def relu_gates(
    weights: Sequence[Float[np.ndarray, "*runs _out _in"]], x: Float[np.ndarray, "sample input"]
) -> list[Bool[np.ndarray, "*runs _unit sample"]]:
    """Whether each hidden unit is active (h > 0) on each sample.

    Args:
        weights: W_1 ... W_L of networks without biases.
        x: inputs.

    Returns:
        One array for each hidden layer, first layer first. Units with NaN weights are inactive.
    """
    return [h > 0 for h in relu_activity(weights, x)]
