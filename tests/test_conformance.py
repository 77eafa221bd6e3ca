"""What every registered dataset, law, activation, observable and loss must do.

A new entry of a registry is covered without a line here, unless it has parameters without defaults:
those go into `PARAMETERS`.
"""

import itertools
import json
from typing import get_args

import numpy as np
import pytest
import xarray as xr

from neuralrace.datasets import DATASETS
from neuralrace.models.activations import ACTIVATIONS
from neuralrace.models.initialisation import LAWS
from neuralrace.records.files import read, write
from neuralrace.records.schema import variable
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import Activation, Loss, Observable, Run
from neuralrace.training.ensemble import train
from neuralrace.training.losses import LOSSES
from neuralrace.training.observables import OBSERVABLES, SNAPSHOTS

PARAMETERS = {
    "digits": {"samples": 20},
    "gaussian_mixture": {"samples_per_component": 10, "inputs": 4},
    "modes": {"singular_values": [2.0, -1.0], "inputs": 4, "outputs": 3},
}
NEEDS_FILES = {"mnist"}  # covered in tests/datasets by small files of its format


def name_of(cls):
    (name,) = get_args(cls.model_fields["name"].annotation)
    return name


DATASET_BY_NAME = {name_of(cls): cls for cls in DATASETS}
LAW_BY_NAME = {name_of(cls): cls for cls in LAWS}
SHIPPED = sorted(set(DATASET_BY_NAME) - NEEDS_FILES)


def dataset_of(name):
    cls = DATASET_BY_NAME[name]
    return cls.model_validate_json(json.dumps({"name": name} | PARAMETERS.get(name, {})))


# Registries ------------------------------------------------------------------------------------


def test_registries_agree_with_what_can_be_configured():
    assert set(ACTIVATIONS) == set(get_args(Activation))
    assert set(OBSERVABLES) == set(get_args(Observable))
    assert set(LOSSES) == set(get_args(Loss.model_fields["name"].annotation))
    assert set(OBSERVABLES) >= SNAPSHOTS
    assert len(DATASET_BY_NAME) == len(DATASETS)
    assert len(LAW_BY_NAME) == len(LAWS)


@pytest.mark.parametrize("cls", [*DATASETS, *LAWS], ids=name_of)
def test_entries_and_their_parameters_are_documented(cls):
    assert cls.__doc__
    assert cls.__doc__ != cls.__mro__[1].__doc__  # its own, not one that it inherits
    for name, field in cls.model_fields.items():
        assert field.description or name == "name", f"{cls.__name__}.{name}"


@pytest.mark.parametrize("name", SHIPPED)
def test_dataset(name):
    dataset = dataset_of(name)
    data, again = dataset.load(), dataset.load()
    samples, inputs = data.x.shape
    outputs = data.y.shape[1]
    assert data.y.shape == (samples, outputs)
    assert data.x.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.x).all()
    assert np.isfinite(data.y).all()
    np.testing.assert_array_equal(data.x, again.x)
    np.testing.assert_array_equal(data.y, again.y)
    assert len(data.item_names) in (0, samples)
    assert len(data.output_names) in (0, outputs)
    assert data.sigma_yx.shape == (outputs, inputs)
    modes = data.modes
    assert modes.s.shape == modes.d.shape == (min(inputs, outputs),)
    np.testing.assert_allclose((modes.u * modes.s) @ modes.v.T, data.sigma_yx, atol=1e-10)
    assert (np.diff(np.abs(modes.s)) <= 1e-12).all()
    np.testing.assert_allclose(
        modes.d, np.einsum("ik,ij,jk->k", modes.v, data.sigma_xx, modes.v), atol=1e-10
    )


# Training --------------------------------------------------------------------------------------


def run_of(dataset, law, activation, loss, observables):
    """A small cell of 20 steps."""
    data = dataset_of(dataset).load()
    narrow = min(data.x.shape[1], data.y.shape[1])
    spec = {
        "dataset": {"name": dataset} | PARAMETERS.get(dataset, {}),
        "network": {"hidden": [narrow + 1], "activation": activation},
        "init": {"name": law},
        "init_scales": [0.1],
        "seeds": 2,
        "training": {
            "learning_rate": 1e-3,
            "steps": 20,
            "loss": {"name": loss, "normalisation": "mean"},
        },
        "record": {"every": 10, "snapshots": 2, "observables": observables},
    }
    return Run.model_validate_json(json.dumps(spec))


def cells():
    """As few cells as cover all entries: one for each row of the longest registry."""
    registries = (SHIPPED, sorted(LAW_BY_NAME), sorted(ACTIVATIONS), sorted(OBSERVABLES))
    rows = max(len(SHIPPED), len(LAW_BY_NAME), len(ACTIVATIONS))
    for row in range(rows):
        dataset, law, activation = (names[row % len(names)] for names in registries[:3])
        yield dataset, law, activation, "squared_error", tuple(registries[3][row::rows])
    for loss in sorted(set(LOSSES) - {"squared_error"}):
        yield "digits", "normal", "relu", loss, ()


CELLS = list(cells())


def test_cells_cover_every_entry():
    datasets, laws, activations, losses, observables = map(set, zip(*CELLS, strict=True))
    assert datasets == set(SHIPPED)
    assert laws == set(LAW_BY_NAME)
    assert activations == set(ACTIVATIONS)
    assert losses == set(LOSSES)
    assert set(itertools.chain(*observables)) == set(OBSERVABLES)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join([*cell[:4], *cell[4]]))
def test_entries_train_write_and_read_back(cell, tmp_path):
    run = run_of(*cell)
    trajectory = train(run)
    assert (trajectory.diverged_at == -1).all()
    for name, values in trajectory.variables.items():
        assert variable("trajectory", name) is not None
        assert values.shape[:2] == (1, 2)
        bad = ~np.isfinite(values)
        if name == "singular_values":  # layers of smaller rank are padded
            bad &= ~np.isnan(values[:, :, :1])
        assert not bad.any(), name
    loss = trajectory.variables["loss"]
    assert (loss[..., -1] < loss[..., 0]).all()
    dataset = trajectory_dataset("paper/experiment/main", run, trajectory)
    write(dataset, tmp_path / "trajectory.nc")
    back = read(tmp_path / "trajectory.nc", "trajectory")
    xr.testing.assert_identical(back.drop_attrs(), dataset.drop_attrs())
