"""Gates that depend on the context alone."""

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import Field

from neuralrace.datasets import Data, Dataset
from neuralrace.errors import UserError
from neuralrace.networks.gates.base import SampleScheme


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
        contexts = _contexts(data)
        count = self._fitting(int(contexts.max()) + 1)
        open_ = [
            np.isin(contexts, chosen)
            for q in self.open_in
            for chosen in combinations(range(count), q)
        ]
        if self.common:
            open_.insert(0, np.ones(len(data.x), dtype=bool))
        return np.reshape(open_, (len(open_), len(data.x))).astype(float)

    def count(self, dataset: Dataset) -> int:
        """See `SampleScheme.count`. None is made: there may be more than any memory holds.

        Raises:
            UserError: as `gates`.
        """
        said = getattr(dataset, "contexts", None)
        known = isinstance(said, int)
        count = self._fitting(said if known else int(_contexts(dataset.load()).max()) + 1)
        return int(self.common) + sum(comb(count, q) for q in self.open_in)

    def _fitting(self, count: int) -> int:
        if beyond := [q for q in self.open_in if q > count]:
            raise UserError(
                f"network.gates.open_in: {beyond[0]}: the dataset has {count} contexts; use at "
                "most that"
            )
        return count

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


def _contexts(data: Data) -> Int[np.ndarray, " sample"]:
    """The context of each sample."""
    if data.contexts is None:
        raise UserError(
            "network.gates.name: 'contexts': the dataset has no contexts; use one that has, "
            "such as contextual"
        )
    return data.contexts
