"""Datasets of trajectory files."""

import os

import jax
import xarray as xr

from neuralrace.config.cell import Ensemble
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import build
from neuralrace.training.trainer import Trajectory


def trajectory_dataset(
    cell_id: str, ensemble: Ensemble, trajectory: Trajectory, in_memory: bool = False
) -> xr.Dataset:
    """The dataset of `trajectory.nc`: all recorded variables of a training.

    Args:
        cell_id: `paper/experiment/label`.
        ensemble: specification of the runs.
        trajectory: the recorded arrays.
        in_memory: see `provenance_attributes`.
    """
    device = jax.devices()[0]
    packages = ("jax", "jaxlib", "flax", "optax", "xarray", "netcdf4")
    attrs = provenance_attributes(cell_id, ensemble, "train", packages, in_memory)
    attrs |= {
        "title": f"Training trajectories of {cell_id}",
        "device": f"{device.platform}: {device.device_kind}",
        "precision": (
            f"{ensemble.precision}, matrix products at {ensemble.matmul_precision} precision"
        ),
        "trained_width": trajectory.trained_width,
        "xla_flags": os.environ.get("XLA_FLAGS") or "none",
    }
    coords = axes(ensemble, trajectory.samples)
    arrays = trajectory.variables | {"diverged_at": trajectory.diverged_at}
    return build("trajectory", arrays, coords, attrs)
