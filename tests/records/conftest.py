"""One trained run with every observable, and the dataset that is written of it."""

import json

import pytest

from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import OBSERVED, Run
from neuralrace.training.ensemble import train

SPEC = {
    "dataset": {
        "name": "modes",
        "singular_values": [3.0, -2.0],
        "inputs": 4,
        "outputs": 3,
        "basis": "random",
    },
    "network": {"name": "layered", "hidden": [5], "bias": True},
    "init": {"name": "normal"},
    "init_scales": [0.6, 0.3],
    "seeds": 3,
    "training": {"learning_rate": 0.05, "steps": 20, "momentum": 0.5},
    "record": {
        "every": 2,
        "snapshots": 5,
        "observables": [name for name, kinds in OBSERVED.items() if "layered" in kinds],
    },
}


@pytest.fixture(scope="session")
def run():
    return Run.model_validate_json(json.dumps(SPEC))


@pytest.fixture(scope="session")
def trajectory(run):
    return train(run)


@pytest.fixture(scope="session")
def dataset(run, trajectory):
    return trajectory_dataset("paper/experiment/main", run, trajectory)
