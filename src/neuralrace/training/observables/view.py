"""What an observable may look at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jax import Array

from neuralrace.training.settings import Training


@dataclass(frozen=True)
class View:
    """One run at one moment of its training."""

    training: Training
    """Loss, batches and optimiser."""
    task: Any
    """How it is trained. Between domains it offers `pair_errors(network, data)`, and with images
    `held_out(network, data)`: scores of every pair (input_domain, output_domain)."""
    network: Any
    """The network as it stands: of `neuralrace.networks`."""
    initial: Any
    """The same run before training."""
    data: Mapping[str, Any]
    """What all runs see, on the device: samples `x` and `y` of a layered, gated or graph network;
    `inputs` and `targets` by domain of a routing network; singular vectors `u` and `v`."""
    own: Mapping[str, Array]
    """What this run alone sees: of a routing network its trained pairs, `mask`."""
    gradient: Callable[[], Any]
    """Gradient of the loss over all samples, as a network of the same shape."""
