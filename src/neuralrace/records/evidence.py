"""A cell as metrics and figures see it: its files, and its task."""

from dataclasses import dataclass
from functools import cached_property
from itertools import count, takewhile

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from neuralrace.datasets import Data, DomainDataset, Domains
from neuralrace.datasets.image_domains import ImageDomainDataset, ImageDomains
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.routing import Routing
from neuralrace.spec import Cell


@dataclass(frozen=True)
class Evidence:
    """Trajectory and theory of one cell."""

    cell: Cell
    trajectory: xr.Dataset
    theory: xr.Dataset | None

    @cached_property
    def data(self) -> Data:
        """The task: the dataset of the cell, or what one pair of domains asks of a routing network.

        The pair is the first; a theory of modes takes all pairs to ask for the same ones.
        """
        if isinstance(self.cell.network, Routing):
            return Data(x=self.domains.inputs[0], y=self.domains.targets[0])
        return self.cell.dataset.load()

    @property
    def contexts(self) -> Int[np.ndarray, " sample"]:
        """The context of each sample.

        Raises:
            UserError: the dataset gives none.
        """
        if self.data.contexts is None:
            raise UserError(f"dataset.name: {self.cell.dataset.name!r}: has no contexts")
        return self.data.contexts

    @property
    def gated(self) -> Gated:
        """The network, where it is of pathways side by side.

        Raises:
            UserError: it is not.
        """
        network = self.cell.network
        if not isinstance(network, Gated):
            raise UserError(f"network.name: {network.name!r}: this is for gated networks")
        return network

    @property
    def routing(self) -> Routing:
        """The network, where it routes between domains.

        Raises:
            UserError: it does not.
        """
        network = self.cell.network
        if not isinstance(network, Routing):
            raise UserError(f"network.name: {network.name!r}: this is for routing networks")
        return network

    @cached_property
    def domains(self) -> Domains:
        """The dataset of the cell by domain.

        Raises:
            UserError: it has no domains.
        """
        dataset = self.cell.dataset
        if not isinstance(dataset, DomainDataset):
            raise UserError(f"dataset.name: {dataset.name!r}: has no domains")
        return dataset.domains()

    @cached_property
    def image_domains(self) -> ImageDomains:
        """The dataset of the cell by domain, where it shows images: far fewer numbers.

        Raises:
            UserError: it shows none.
        """
        dataset = self.cell.dataset
        if not isinstance(dataset, ImageDomainDataset):
            raise UserError(
                f"dataset.name: {dataset.name!r}: this is for images by domain; use "
                "transformed_images"
            )
        return dataset.image_domains()

    @cached_property
    def trained_pairs(self) -> Bool[np.ndarray, "seed input_domain output_domain"]:
        """Which pairs of domains a routing network is trained on, by run seed.

        Raises:
            UserError: the network is another.
        """
        seeds = self.trajectory["seed"].values
        return np.stack([self.routing.mask(self.cell.dataset.count, int(seed)) for seed in seeds])

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
        names = takewhile(self.trajectory.__contains__, (f"weight_{n}" for n in count(1)))
        return [self.trajectory[name].values for name in names]

    @property
    def receptive_fields(self) -> xr.DataArray:
        """Incoming weights of the units of the first hidden layer at the snapshots.

        Axes (init_scale, seed, snapshot, unit, input); of pathways, their maps, and of
        averaged pathways of one unit w_k, K times their maps.
        """
        if "pathway_maps" in self.trajectory:
            maps = self.trajectory["pathway_maps"].isel(output=0, drop=True)
            averaged = isinstance(self.cell.network, Gated) and self.cell.network.readout == "mean"
            return maps.rename(pathway="unit") * (maps.sizes["pathway"] if averaged else 1)
        weights = self.trajectory["weight_1"]
        units = np.arange(1, weights.sizes["unit_1"] + 1)
        return weights.rename(unit_1="unit", unit_0="input").assign_coords(unit=units)
