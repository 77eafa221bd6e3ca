"""Normal entries."""

from typing import Literal

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.initialisers.base import EdgeInitialiser, Effective, Weights


class Normal(EdgeInitialiser):
    """Independent normal entries with standard deviation `init_scale`."""

    name: Literal["normal"]
    basis: Literal["coordinates", "modes"] = "coordinates"
    """`modes` draws in the singular basis of the task: equal draws for rotated tasks."""

    @property
    def exists_anywhere(self) -> bool:
        """See `Law.exists_anywhere`."""
        return self.basis == "coordinates"

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        return rng.normal(size=(n_out, n_in))

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        weights = super().draw(seed, widths, modes)
        if self.basis == "modes":
            weights[0] = weights[0] @ modes.input_basis.T
            weights[-1] = modes.output_basis @ weights[-1]
        return weights

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Law.draw_edges`."""
        if self.basis == "modes":
            raise ValueError("basis: 'modes': is for layered networks; use coordinates")
        return super().draw_edges(seed, architecture, effective)
