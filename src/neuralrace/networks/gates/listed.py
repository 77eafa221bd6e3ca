"""Gates that are written out."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.gates.base import SampleScheme

Row = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)]


class Listed(SampleScheme):
    """Pathways whose gates are written out, or were found in another network."""

    of_single_samples: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"rows": [[1.0, 0.0], [0.0, 1.0]]}
    name: Literal["listed"]
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    """Gates in [0, 1] of each pathway: one value per sample, or one per context of the dataset."""

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`.

        Raises:
            UserError: a row that has neither as many values as samples nor as contexts.
        """
        samples = len(data.x)
        contexts = np.arange(samples) if data.contexts is None else data.contexts
        places = {samples: np.arange(samples), int(contexts.max()) + 1: contexts}
        for number, row in enumerate(self.rows):
            if len(row) not in places:
                allowed = " or ".join(map(str, sorted(places)))
                raise UserError(
                    f"network.gates.rows: row {number} has {len(row)} values; the dataset wants "
                    f"{allowed}"
                )
        return np.array([np.asarray(row)[places[len(row)]] for row in self.rows])
