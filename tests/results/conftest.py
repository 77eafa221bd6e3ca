"""One trained run with every observable, and its dataset."""

import pytest

from builders import CELL_NAME, build_ensemble
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.results.trajectory import trajectory_dataset
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
    plain = build_ensemble(SPEC)
    observables = [
        name for name, entry in OBSERVABLES.items() if not unmet(plain, entry.declaration.requires)
    ]
    return build_ensemble(SPEC, record=SPEC["record"] | {"observables": observables})


@pytest.fixture(scope="session")
def trajectory(ensemble):
    return train(ensemble)


@pytest.fixture(scope="session")
def dataset(ensemble, trajectory):
    return trajectory_dataset(CELL_NAME, ensemble, trajectory)
