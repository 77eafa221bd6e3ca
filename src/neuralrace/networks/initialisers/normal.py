"""Normal (Gaussian) initialisation."""

from typing import Literal

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.initialisers.base import EdgeInitialiser, Effective, Weights


class Normal(EdgeInitialiser):
    """Normal initialisation: independent entries with mean 0, standard deviation `init_scale`."""

    name: Literal["normal"]
    basis: Literal["coordinates", "modes"] = "coordinates"
    """`modes` draws in the singular basis of the task, so that draws rotate with the task."""

    @property
    def fits_any_network(self) -> bool:
        """See `Initialiser.fits_any_network`."""
        return self.basis == "coordinates"

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeInitialiser.edge`."""
        return rng.normal(size=(n_out, n_in))

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        weights = super().draw(seed, widths, modes)
        if self.basis == "modes":
            weights[0] = weights[0] @ modes.input_basis.T
            weights[-1] = modes.output_basis @ weights[-1]
        return weights

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Initialiser.draw_edges`."""
        if self.basis == "modes":
            raise UserError(
                "is for layered networks",
                key="init.basis",
                value=self.basis,
                remedy="use coordinates",
            )
        return super().draw_edges(seed, architecture, effective)
