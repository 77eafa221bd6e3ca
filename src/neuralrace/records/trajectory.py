"""Trajectories as datasets."""

import os
from collections.abc import Sequence

import jax
import xarray as xr

from neuralrace.records.axes import axes, provenance
from neuralrace.records.schema import build
from neuralrace.spec import Ensemble
from neuralrace.training.trainer import Trajectory


def trajectory_dataset(
    cell_id: str,
    ensemble: Ensemble,
    trajectory: Trajectory,
    scales: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
) -> xr.Dataset:
    """What training recorded, as it is written to `trajectory.nc`.

    Args:
        cell_id: `paper/experiment/label`.
        ensemble: what was trained.
        trajectory: what was recorded.
        scales: indices into `ensemble.init_scales` that were trained; all when absent.
        seeds: seeds that were trained; all when absent.
    """
    device = jax.devices()[0]
    attrs = provenance(
        cell_id, ensemble, "train", ("jax", "jaxlib", "flax", "optax", "xarray", "netcdf4")
    )
    attrs |= {
        "title": f"Training trajectories of {cell_id}",
        "device": f"{device.platform}: {device.device_kind}",
        "precision": (
            f"{ensemble.precision}, matrix products at {ensemble.matmul_precision} precision"
        ),
        "xla_flags": os.environ.get("XLA_FLAGS") or "none",
    }
    coords = axes(ensemble, trajectory.samples, scales, seeds)
    arrays = trajectory.variables | {"diverged_at": trajectory.diverged_at}
    return build("trajectory", arrays, coords, attrs)


def gather(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """One trajectory from parts that were trained in jobs of their own."""
    by_scale: dict[float, list[xr.Dataset]] = {}
    for part in parts:
        by_scale.setdefault(float(part["init_scale"][0]), []).append(part)
    rows = [
        xr.concat(sorted(row, key=lambda p: int(p["seed"][0])), "seed", data_vars="minimal")
        for row in by_scale.values()
    ]
    return xr.concat(rows, "init_scale", data_vars="minimal", combine_attrs="identical")
