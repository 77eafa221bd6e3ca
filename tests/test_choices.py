"""A class in a package of one's own can be configured, and the library needs no word of it."""

import json
import os
import subprocess
import sys

import pytest

METADATA = "Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n"
ENTRY_POINTS = "[neuralrace]\ndatasets = outside.datasets\n"
SPIRAL = '''"""A dataset that the library does not know."""

from typing import Literal

import numpy as np

from neuralrace.datasets.base import Data, Dataset


class Spiral(Dataset):
    """Points on a spiral, told how far along it they lie."""

    name: Literal["spiral"]
    samples: int = 12
    """Points."""

    def load(self) -> Data:
        """The points in order."""
        along = np.linspace(0, 1, self.samples)[:, None]
        angle = 2 * np.pi * along
        return Data(x=along * np.hstack([np.cos(angle), np.sin(angle)]), y=along)
'''
CELL = {
    "dataset": {"name": "spiral", "samples": 9},
    "network": {"name": "layered", "hidden": [3]},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.1, "steps": 20},
    "record": {"every": 10, "observables": ["outputs"]},
}
TRAIN = """
import sys
from neuralrace.spec import Cell, Run
from neuralrace.training.ensemble import train

run = Cell.model_validate_json(sys.argv[1]).only(Run)
assert type(run.dataset).__module__ == "outside.datasets.spiral"
print(train(run).variables["outputs"].shape)
"""


@pytest.fixture
def outside(tmp_path):
    """Runs code where a distribution is installed that has a dataset; gives the process."""
    for name, text in {
        "outside.dist-info/METADATA": METADATA,
        "outside.dist-info/entry_points.txt": ENTRY_POINTS,
        "outside/__init__.py": "",
        "outside/datasets/__init__.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(dataset, code, *arguments):
        (tmp_path / "outside" / "datasets" / "spiral.py").write_text(dataset)
        path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    return run


def test_a_dataset_of_another_distribution_is_trained_on(outside):
    done = outside(SPIRAL, TRAIN, json.dumps(CELL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 2, 2, 9, 1)"


def test_a_name_that_is_taken_is_refused_with_both_places(outside):
    done = outside(SPIRAL.replace('"spiral"', '"xor"'), "import neuralrace.spec")
    assert done.returncode == 1
    said = "datasets: 'xor' is in neuralrace.datasets.xor and outside.datasets.spiral"
    assert done.stderr.strip().endswith(f"ValueError: {said}")
