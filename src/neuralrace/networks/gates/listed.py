"""Gates that are written out, one value per sample or context."""

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
    """Pathways with gates that are written out, such as gates of another network."""

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
            UserError: a row has neither one value per sample nor one per context.
        """
        samples = len(data.x)
        contexts = np.arange(samples) if data.contexts is None else data.contexts
        # index of the value for each sample, by length of the row
        indices = {samples: np.arange(samples), int(contexts.max()) + 1: contexts}
        for number, row in enumerate(self.rows):
            if len(row) not in indices:
                raise UserError(
                    f"row {number} has {len(row)} values",
                    key="network.gates.rows",
                    remedy=f"give {' or '.join(map(str, sorted(indices)))}, one for each "
                    + ("sample" if len(indices) == 1 else "context or sample"),
                )
        return np.array([np.asarray(row)[indices[len(row)]] for row in self.rows])
