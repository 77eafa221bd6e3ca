"""The gates of a ReLU network, which its own weights open and close."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.config.cell import Ensemble
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.networks.layered import Layered


def relu_network(ensemble: Ensemble, user: str, hidden: int | None = None) -> Layered:
    """The network of a run, where it is a ReLU network without biases.

    Args:
        ensemble: what is trained.
        user: what needs such a network, for the message.
        hidden: hidden layers that it must have; any number when absent.

    Raises:
        UserError: it is another network.
    """
    if unmet(ensemble, "layered relu") or (hidden and len(ensemble.layered.hidden) != hidden):
        layers = {None: "no biases", 1: "one hidden layer and no biases"}[hidden]
        raise UserError(f"network: {user} is for ReLU networks with {layers}")
    return ensemble.layered


def relu_gates(
    weights: Sequence[Float[np.ndarray, "*runs _out _in"]], x: Float[np.ndarray, "sample input"]
) -> list[Bool[np.ndarray, "*runs _unit sample"]]:
    """On which samples each hidden unit is open, h > 0.

    Args:
        weights: W_1 ... W_L of networks without biases.
        x: inputs.

    Returns:
        One array for each hidden layer, first layer first. Units with undefined weights are closed.
    """
    gates, h = [], x.T
    for weight in weights[:-1]:
        h = np.maximum(weight @ h, 0)
        gates.append(h > 0)
    return gates
