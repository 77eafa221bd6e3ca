"""Gates that depend on the context alone."""

from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float
from pydantic import Field

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.gates.base import SampleScheme


class Contexts(SampleScheme):
    """A common pathway, and for every choice of q contexts one that is open in those.

    With q = C - 1 of C contexts these are the pathways of the rectified linear network of the
    contextual task (Jarvis et al., secs. 4 and 5, fig. 3).
    """

    example: ClassVar[Mapping[str, Any]] = {"open_in": [1], "shown": "everything"}
    name: Literal["contexts"]
    open_in: tuple[Annotated[int, Field(gt=0)], ...]
    """Numbers of contexts q that context pathways are open in: every choice of q, for every q
    listed; empty for the common pathway alone."""
    common: bool = True
    """Whether the first pathway is one that is open on every sample and sees every input."""
    shown: Literal["first_group", "everything"] = "first_group"
    """Inputs that context pathways see: the first group (objects of the contextual task) or all."""

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`.

        Raises:
            UserError: the dataset has no contexts, or fewer than a pathway is to be open in.
        """
        if data.contexts is None:
            raise UserError(
                "network.gates.name: 'contexts': the dataset has no contexts; use one that has, "
                "such as contextual"
            )
        count = int(data.contexts.max()) + 1
        if beyond := [q for q in self.open_in if q > count]:
            raise UserError(
                f"network.gates.open_in: {beyond[0]}: the dataset has {count} contexts; use at "
                "most that"
            )
        open_ = [
            np.isin(data.contexts, chosen)
            for q in self.open_in
            for chosen in combinations(range(count), q)
        ]
        if self.common:
            open_.insert(0, np.ones(len(data.x), dtype=bool))
        return np.reshape(open_, (len(open_), len(data.x))).astype(float)

    @property
    def sees_all(self) -> bool:
        """See `SampleScheme.sees_all`."""
        return self.shown == "everything" or not self.open_in

    def sees(self, data: Data) -> Bool[np.ndarray, "pathway input"]:
        """See `SampleScheme.sees`.

        Raises:
            UserError: as `gates`, or the inputs come in no groups.
        """
        seen = super().sees(data)
        if self.shown == "first_group":
            if not data.input_groups:
                raise UserError(
                    "network.gates.shown: 'first_group': the inputs of the dataset come in no "
                    "groups; use everything"
                )
            seen[int(self.common) :, data.input_groups[0] :] = False
        return seen
