"""What a figure is drawn from: result files, read when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import xarray as xr

from neuralrace.errors import UserError
from neuralrace.given import Kind
from neuralrace.records.evidence import Evidence
from neuralrace.records.files import read
from neuralrace.spec import Cell

REMEDIES: dict[Kind, str] = {
    "trajectory": "record.observables",
    "theory": "solutions",
    "metrics": "metrics",
}


@dataclass(frozen=True)
class CellResults:
    """The result files of one cell."""

    folder: Path
    name: str
    """Identifier `paper/experiment/label`."""

    @cached_property
    def trajectory(self) -> xr.Dataset:
        """What training recorded."""
        return read(self.folder / "trajectory.nc", "trajectory")

    @cached_property
    def theory(self) -> xr.Dataset:
        """What was solved for the same runs."""
        return read(self.folder / "theory.nc", "theory")

    @cached_property
    def metrics(self) -> xr.Dataset:
        """What was measured in both."""
        return read(self.folder / "metrics.nc", "metrics")

    def get(self, kind: Kind, variable: str, **labels: str) -> xr.DataArray:
        """A variable of one of the files, at the given labels.

        Raises:
            UserError: the file has no such variable or label.
        """
        dataset: xr.Dataset = getattr(self, kind)
        remedy = f"Complete {REMEDIES[kind]} of this experiment in config/ and run it again."
        if variable not in dataset:
            raise UserError(f"{self.name}: {kind} has no {variable!r} to draw. {remedy}")
        for dim, label in labels.items():
            if label not in dataset[dim]:
                raise UserError(f"{self.name}: {kind} has no {dim} {label!r} to draw. {remedy}")
        return dataset[variable].sel(labels)

    @property
    def flow_time(self) -> xr.DataArray:
        """Gradient-flow time along the time axis."""
        return self.trajectory["flow_time"]

    @cached_property
    def evidence(self) -> Evidence:
        """Trajectory and task in the form that metrics take."""
        return Evidence(self.spec, self.trajectory, None)

    @property
    def strength(self) -> xr.DataArray:
        """Singular value of each mode of the task."""
        modes = self.evidence.modes
        return xr.DataArray(self.evidence.data.modes.s, dims="mode", coords={"mode": modes})

    @cached_property
    def spec(self) -> Cell:
        """The specification that the files carry."""
        for kind in REMEDIES:
            if (self.folder / f"{kind}.nc").is_file():
                return Cell.model_validate_json(getattr(self, kind).attrs["spec"])
        raise UserError(f"{self.name}: no result files. Run the workflow to make them.")


class Results:
    """The cells that a figure shows.

    Args:
        root: folder that holds `<cell id>/{trajectory,theory,metrics}.nc`.
        cell_ids: cells `paper/experiment/label`, in the order in which they are drawn.
    """

    def __init__(self, root: Path, cell_ids: Sequence[str]):
        self.all = [CellResults(root / cell, cell) for cell in cell_ids]

    def cells(self, experiment: str) -> list[CellResults]:
        """All cells of an experiment, whatever is swept.

        Raises:
            UserError: there is none.
        """
        found = [cell for cell in self.all if cell.name.split("/")[1] == experiment]
        if not found:
            raise UserError(
                f"figures: no cell of experiment {experiment!r}. Add it to experiments in config/, "
                "or leave the figures out that show it."
            )
        return found

    def cell(self, experiment: str) -> CellResults:
        """The cell of an experiment that a figure shows without a sweep.

        Raises:
            UserError: there is none, or more than one.
        """
        found = self.cells(experiment)
        if len(found) > 1:
            raise UserError(
                f"figures: one cell of experiment {experiment!r} is drawn, but it has "
                f"{len(found)}. Move its sweep to an experiment of its own in config/."
            )
        return found[0]
