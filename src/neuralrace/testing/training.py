"""A check of training: a small cell is trained, saved, verified, read back and plotted."""

import re
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.figures.plot import plot
from neuralrace.results.cells import CellResults
from neuralrace.results.files import read_result, write_result
from neuralrace.results.schema import variable
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.results.verify import verify
from neuralrace.training.trainer import train


def check_training(cell: Cell, folder: Path) -> xr.Dataset:
    """Trains a cell, checks what it records, and returns the trajectory.

    Args:
        cell: a cell with few training steps.
        folder: an empty folder for the trajectory file.
    """
    ensemble = cell.only(Ensemble)
    trajectory = train(ensemble)
    assert (trajectory.diverged_at == -1).all(), "training diverges"
    recorded = [OBSERVABLES[name] for name in ensemble.record.observables]
    declared = {"loss"}.union(*(entry.declaration.variables for entry in recorded))
    for name, values in trajectory.variables.items():
        modules = ", ".join(sorted({entry.module for entry in recorded}))
        assert {name, re.sub(r"\d+$", "{layer}", name)} & declared, (
            f"an observable records {name!r}, which no `variables` in {modules} declares"
        )
        declaration = variable("trajectory", name)
        assert declaration is not None
        run_axes = (len(ensemble.init_scales), ensemble.seeds)
        assert values.shape[:2] == run_axes, f"{name!r} does not begin with the axes of the runs"
        assert values.ndim == 2 + len(declaration.dims), (
            f"{name!r} has {values.ndim - 2} dimensions besides the axes of the runs; its "
            f"declaration has {declaration.dims}"
        )
        bad = ~np.isfinite(values)
        if name.endswith("singular_values"):  # smaller layers are padded with NaN
            bad &= ~np.isnan(values[:, :, :1])
        pairs = getattr(ensemble.network, "pairs", None)
        if name.startswith("untrained_") and pairs is not None and pairs.name == "all":
            assert np.isnan(values).all()  # all pairs are trained
            bad[:] = False
        assert not bad.any(), f"{name!r} has values that are not finite"
    loss = trajectory.variables["loss"]
    assert (loss[..., -1] < loss[..., 0]).all(), "training does not decrease the loss of every run"
    name = "paper/experiment/main"
    dataset = trajectory_dataset(name, ensemble, trajectory)
    path, lines = folder / "trajectory.nc", []
    write_result(dataset, path)
    verify(folder, folder / "figures", lines.append)
    assert len(lines) == 1  # the summary: no file is reported
    saved = read_result(path, "trajectory")
    xr.testing.assert_identical(saved.drop_attrs(), dataset.drop_attrs())
    assert plot(CellResults(name, folder, cell, dataset)).axes  # the plot of `neuralrace run`
    return dataset
