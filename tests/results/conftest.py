"""One trained run with every observable, and the dataset that is written of it."""

import json

import pytest

from neuralrace.config.requirements import unmet
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.config.cell import Ensemble
from neuralrace.training.trainer import train

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
    "training": {
        "learning_rate": 0.05,
        "steps": 20,
        "optimiser": {"name": "momentum", "momentum": 0.5},
    },
    "record": {"every": 2, "snapshots": 5},
}


@pytest.fixture(scope="session")
def ensemble():
    bare = Ensemble.model_validate_json(json.dumps(SPEC))
    seen = [n for n, entry in OBSERVABLES.items() if not unmet(bare, entry.declaration.requires)]
    record = SPEC["record"] | {"observables": seen}
    return Ensemble.model_validate_json(json.dumps(SPEC | {"record": record}))


@pytest.fixture(scope="session")
def trajectory(ensemble):
    return train(ensemble)


@pytest.fixture(scope="session")
def dataset(ensemble, trajectory):
    return trajectory_dataset("paper/experiment/main", ensemble, trajectory)
