"""Gates that open where a neighbourhood of the input ring is positive on average."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.errors import UserError
from neuralrace.networks.gates.half_space import HalfSpaces


def bumps(pathways: int, width: float, inputs: int) -> Float[np.ndarray, "pathway input"]:
    """Gaussian bumps of height 1 on a ring of inputs, evenly spaced as far as inputs allow.

    Args:
        pathways: number of bumps K; bump k is centred on the input nearest to k inputs / K, and
            half way between two on the second.
        width: standard deviation, in inputs along the shorter way round; 0 for a single input.
        inputs: number of input units.

    Raises:
        UserError: more bumps than inputs.
    """
    if pathways > inputs:
        raise UserError(
            f"network.gates.pathways: {pathways}: the dataset has {inputs} inputs, and bumps are "
            "centred on different ones; use at most that"
        )
    centres = np.floor(np.arange(pathways) * inputs / pathways + 0.5)
    apart = np.abs(np.arange(inputs) - centres[:, None])
    distance = np.minimum(apart, inputs - apart)
    if width == 0:
        return (distance == 0).astype(float)
    with np.errstate(over="ignore"):  # a bump far narrower than an input is zero beside it
        return np.exp(-((distance / width) ** 2) / 2)


class Bumps(HalfSpaces):
    """Pathways that open where the inputs, weighted by a bump on their ring, have a positive sum.

    Inputs are neighbours in their order, the last of the first. Gates of width 0 look at one input
    each: they are open where it is positive.
    """

    example: ClassVar[Mapping[str, Any]] = {"pathways": 6, "width": 0.0}
    name: Literal["bumps"]
    pathways: Annotated[int, Field(gt=0)]
    """Number of bumps, evenly spaced; at most as many as inputs."""
    width: Annotated[float, Field(ge=0)]
    """Standard deviation of the Gaussian bump, in inputs; 0 for a single input."""

    def normals(self, inputs: int) -> Float[np.ndarray, "pathway input"]:
        """See `SampleScheme.normals`."""
        return bumps(self.pathways, self.width, inputs)
