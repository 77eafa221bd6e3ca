"""Small runs for the tests of training."""

from functools import partial

import pytest

from builders import build_ensemble

SMALL = {
    "dataset": {
        "name": "gaussian_mixture",
        "components": 2,
        "samples_per_component": 10,
        "inputs": 3,
        "outputs": 2,
    },
    "network": {"name": "layered", "hidden": [4]},
    "init": {"name": "normal"},
    "init_scales": [0.3, 0.6],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 12},
    "record": {"every": 1, "snapshots": 12, "observables": ["weights"]},
}


@pytest.fixture(scope="session")
def make_run():
    """A function that builds a small run; its arguments replace top-level keys."""
    return partial(build_ensemble, SMALL)
