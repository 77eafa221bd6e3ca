"""Objects in contexts that are more or less similar to each other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from neuralrace.datasets.base import Data
from neuralrace.datasets.contextual import Contextual
from neuralrace.errors import UserError


class GradedContextual(Contextual):
    """The contextual task, with the differences between contexts multiplied by `scale`.

    The targets of an object in a context are their mean over contexts plus `scale` times the
    deviation from it: at scale 0 all contexts have one task, which is linear in the objects, and at
    scale 1 they have the task of Jarvis et al. ("Make Haste Slowly", secs. 4 and 5), see
    `neuralrace.datasets.contextual.Contextual`. The block of a context has the weight
    (1 + (C - 1) scale)/C in it and (1 - scale)/C in the others. The distance between the targets of
    an object in two contexts is proportional to `scale`.

    If all blocks are hierarchies, the modes for n objects and C contexts are as follows, with s and
    d in units of 1/(nC):

    - the mode of all inputs and the n - 1 modes of objects: as at scale 1;
    - C - 1 modes of contexts: s^2 = scale^2 (2n - 1) n and d = n;
    - the residual drives a pathway from objects that is open in q contexts:
      s = scale h sqrt(q (C - q)/C) and d = q, with h as in `Contextual`.

    Computed modes of equal s and other d are mixed, and sigma_xx is not diagonal in them. At scale
    0 these are the modes of contexts and the direction that is zero on all samples.

    Source: derived here.
    """

    example: ClassVar[Mapping[str, Any]] = {"contexts": 2, "objects": 4, "scale": 0.5}
    name: Literal["graded_contextual"]
    scale: Annotated[float, Field(ge=0)]
    """Factor on what differs between contexts: 0 is one task in all contexts, 1 the contextual
    task; above 1 it is exaggerated."""

    @model_validator(mode="after")
    def _has_targets(self) -> "GradedContextual":
        if self.part == "residual" and not self.scale:
            raise UserError(
                "contexts that do not differ have no residual",
                key="scale",
                value=self.scale,
                remedy="use a positive scale, or part: common",
            )
        return self

    def load(self) -> Data:
        """See `Contextual.load`."""
        data = super().load()
        by_context = data.y.reshape(self.contexts, self.objects, -1)
        # the best linear prediction of graded targets is the graded prediction, so any part may be
        graded = self.scale * by_context + (1 - self.scale) * by_context.mean(axis=0)
        return replace(data, y=graded.reshape(data.y.shape))
