"""Gates that open where a weighted mean of neighbouring inputs on a ring is positive."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.half_space import HalfSpaces


def bumps(pathways: int, width: float, inputs: int) -> Float[np.ndarray, "pathway input"]:
    """Gaussian bumps of height 1 on a ring of inputs, evenly spaced up to rounding.

    Args:
        pathways: number of bumps K; bump k is centred on the input nearest to k inputs / K, on the
            second of two equally near ones.
        width: standard deviation, in inputs along the shorter way round; 0 for a single input.
        inputs: number of input units.

    Raises:
        UserError: more bumps than inputs.
    """
    if pathways > inputs:
        raise UserError(
            f"the dataset has {inputs} inputs, and bumps are centred on different ones",
            key="network.gates.pathways",
            value=pathways,
            remedy="use at most that",
        )
    # not `round`, which rounds halves to even numbers and so makes gaps uneven
    centres = np.floor(np.arange(pathways) * inputs / pathways + 0.5)
    apart = np.abs(np.arange(inputs) - centres[:, None])
    distance = np.minimum(apart, inputs - apart)
    if width == 0:
        return (distance == 0).astype(float)
    with np.errstate(over="ignore"):  # a very narrow bump is zero elsewhere
        return np.exp(-((distance / width) ** 2) / 2)


class Bumps(HalfSpaces):
    """Pathways that open where the sum of inputs, weighted by a bump on their ring, is positive.

    Inputs form a ring in their order: the last is next to the first. A gate of width 0 depends on
    one input and is open where it is positive.
    """

    example: ClassVar[Mapping[str, Any]] = {"pathways": 6, "width": 0.0}
    name: Literal["bumps"]
    pathways: Positive
    """Number of bumps, evenly spaced; at most as many as inputs."""
    width: Annotated[float, Field(ge=0)]
    """Standard deviation of the Gaussian bump, in inputs; 0 for a single input."""

    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """See `SampleScheme.normals`."""
        return bumps(self.pathways, self.width, inputs)
