"""Training a small cell, with all that must hold of what it records."""

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
    """Trains, writes, verifies, reads back and plots; gives what was recorded."""
    ensemble = cell.only(Ensemble)
    trajectory = train(ensemble)
    assert (trajectory.diverged_at == -1).all()
    recorded = [OBSERVABLES[name] for name in ensemble.record.observables]
    declared = {"loss"}.union(*(entry.declaration.variables for entry in recorded))
    for name, values in trajectory.variables.items():
        assert {name, re.sub(r"\d+$", "{layer}", name)} & declared, (
            f"{name!r} is declared by none of {sorted({entry.module for entry in recorded})}"
        )
        known = variable("trajectory", name)
        assert known is not None
        assert values.shape[:2] == (len(ensemble.init_scales), ensemble.seeds)
        assert values.ndim == 2 + len(known.dims), f"{name!r} has not the dimensions {known.dims}"
        bad = ~np.isfinite(values)
        if name == "singular_values":  # layers of smaller rank are padded
            bad &= ~np.isnan(values[:, :, :1])
        pairs = getattr(ensemble.network, "pairs", None)
        if name.startswith("untrained_") and pairs is not None and pairs.name == "all":
            assert np.isnan(values).all()  # there is no such pair
            bad[:] = False
        assert not bad.any(), f"{name!r} is not finite"
    loss = trajectory.variables["loss"]
    assert (loss[..., -1] < loss[..., 0]).all(), "the loss does not fall"
    name = "paper/experiment/main"
    dataset = trajectory_dataset(name, ensemble, trajectory)
    path, said = folder / "trajectory.nc", []
    write_result(dataset, path)
    verify(folder, folder / "figures", said.append)
    assert len(said) == 1
    back = read_result(path, "trajectory")
    xr.testing.assert_identical(back.drop_attrs(), dataset.drop_attrs())
    assert plot(CellResults(name, folder, cell, dataset)).axes  # as `neuralrace run` does
    return dataset
