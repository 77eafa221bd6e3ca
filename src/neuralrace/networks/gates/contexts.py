"""Gates that depend on the context of a sample alone."""

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.datasets import Data, Dataset
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.networks.gates.base import SampleScheme


class Contexts(SampleScheme):
    """A common pathway, and one pathway for every choice of q contexts, which is open in these.

    With q = C - 1 of C contexts these are the pathways of the rectified linear network of the
    contextual task (Jarvis et al., secs. 4 and 5, fig. 3).
    """

    example: ClassVar[Mapping[str, Any]] = {"open_in": [1], "shown": "everything"}
    name: Literal["contexts"]
    open_in: tuple[Positive, ...]
    """Numbers of contexts q that context pathways are open in: every choice of q, for every q
    listed; empty for the common pathway alone."""
    common: bool = True
    """Whether there is a first pathway that is open on every sample and sees every input."""
    shown: Literal["first_group", "everything"] = "first_group"
    """Inputs that context pathways see: the first group (objects of the contextual task) or all."""

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`.

        Raises:
            UserError: the dataset has no contexts, or fewer than `open_in` lists.
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
        """See `SampleScheme.count`; gates are only counted, as they may not fit into memory.

        Raises:
            UserError: as `gates`.
        """
        contexts = getattr(dataset, "contexts", None)
        if not isinstance(contexts, int):
            contexts = int(_contexts(dataset.load()).max()) + 1
        count = self._fitting(contexts)
        return int(self.common) + sum(comb(count, q) for q in self.open_in)

    def _fitting(self, count: int) -> int:
        if too_large := [q for q in self.open_in if q > count]:
            raise UserError(
                f"the dataset has {count} contexts",
                key="network.gates.open_in",
                value=too_large[0],
                remedy="use at most that",
            )
        return count

    @property
    def sees_all(self) -> bool:
        """See `SampleScheme.sees_all`."""
        return self.shown == "everything" or not self.open_in

    def visible_inputs(self, data: Data) -> Bool[np.ndarray, "pathway input"]:
        """See `SampleScheme.visible_inputs`.

        Raises:
            UserError: as `gates`, or the inputs have no groups.
        """
        visible = super().visible_inputs(data)
        if self.shown == "first_group":
            if not data.input_groups:
                raise UserError(
                    "the inputs of the dataset have no groups",
                    key="network.gates.shown",
                    value=self.shown,
                    remedy="use everything",
                )
            visible[int(self.common) :, data.input_groups[0] :] = False
        return visible


def _contexts(data: Data) -> Int[np.ndarray, " sample"]:
    """The context of each sample."""
    if data.contexts is None:
        raise UserError(
            "the dataset has no contexts",
            key="network.gates.name",
            value="contexts",
            remedy="use a dataset with contexts, such as contextual",
        )
    return data.contexts
