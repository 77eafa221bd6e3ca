"""A cell as metrics and figures see it: its files, and its task."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.spec import Cell


@dataclass(frozen=True)
class Evidence:
    """Trajectory and theory of one cell."""

    cell: Cell
    trajectory: xr.Dataset
    theory: xr.Dataset | None

    @cached_property
    def data(self) -> Data:
        """The dataset of the cell."""
        return self.cell.dataset.load()

    @property
    def time(self) -> xr.DataArray:
        """Gradient-flow time along the time axis."""
        return self.trajectory["flow_time"]

    @property
    def target(self) -> xr.DataArray:
        """Where each mode strength ends, s/d."""
        modes = self.data.modes
        return xr.DataArray(modes.s / modes.d, dims="mode", coords={"mode": self.modes})

    @property
    def modes(self) -> np.ndarray:
        """Mode numbers, from 1."""
        return np.arange(1, len(self.data.modes.s) + 1)

    def recorded(self, name: str, observable: str) -> xr.DataArray:
        """A variable of the trajectory.

        Raises:
            UserError: it was not recorded.
        """
        if name not in self.trajectory:
            raise UserError(f"metrics: needs {observable!r} among record.observables")
        return self.trajectory[name]

    def solved(self, name: str, solutions: str) -> xr.DataArray:
        """A variable of the theory.

        Raises:
            UserError: it was not solved for.
        """
        if self.theory is None or name not in self.theory:
            raise UserError(f"metrics: needs {solutions} among solutions")
        return self.theory[name]

    def weights(self) -> list[np.ndarray]:
        """Weights at the snapshots, (init_scale, seed, snapshot, out, in), first layer first."""
        self.recorded("weight_1", "weights")
        depth = len(self.cell.network.hidden) + 1
        return [self.trajectory[f"weight_{n}"].values for n in range(1, depth + 1)]
