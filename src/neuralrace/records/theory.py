"""Theory as datasets."""

import numpy as np
import xarray as xr

from neuralrace.records.axes import axes, provenance, record_steps
from neuralrace.records.schema import build
from neuralrace.spec import SolvedRun
from neuralrace.theory.solutions import solve


def theory_dataset(cell_id: str, run: SolvedRun) -> xr.Dataset:
    """Every configured solution of a run, as it is written to `theory.nc`.

    It shares the axes of the trajectory and follows from the same specification, without training.

    Raises:
        UserError: a theory that is not for this network.
    """
    step, _ = record_steps(run)
    samples, arrays = solve(run, step)
    attrs = provenance(cell_id, run, "solve", ("scipy", "xarray", "netcdf4"))
    attrs |= {"title": f"Theory of {cell_id}", "precision": "float64"}
    coords = axes(run, samples)
    for name in ("snapshot", "snapshot_flow_time"):
        del coords[name]
    coords["solution"] = ("solution", np.array(run.solutions), "1")
    if "candidate_loss" in arrays:
        coords["candidate"] = ("candidate", np.array(list(run.candidates)), "1")
    return build("theory", arrays, coords, attrs)
