"""Workspaces: copies of the project with small experiments, in which Snakemake runs."""

import copy
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from builders import LINEAR, REPOSITORY
from neuralrace.workflow.study import PLANNED
from warm_python import PYTHON

CELL = LINEAR | {
    "init": {"name": "aligned"},
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit", "learning_times"],
}
DEEP = {
    "time_to_learn": CELL,
    "step_size": CELL | {"sweep": {"training.learning_rate": [0.02, 0.01]}},
}
LAYERS = {
    "glorot_moments": {
        "dataset": {"name": "gaussian_mixture", "samples_per_component": 20},
        "network": {"name": "layered", "hidden": [4]},
        "init": {"name": "glorot"},
        "init_scales": [1.0],
        "seeds": 3,
        "training": {"learning_rate": 0.01, "steps": 20},
        "record": {"every": 10, "observables": ["layer_norm", "imbalance"]},
        "metrics": ["layer_norm_gaps"],
    }
}
SOURCE = {"title": "On learning", "authors": "A. Author", "text_sha256": "0" * 64}
SETUPS = {"main": {"locator": "sec. 2", "printed": {"network": "linear"}}}
CLAIM = {
    "id": "half-time",
    "locator": "derived",
    "quote": "It takes that long.",
    "setup": "main",
    "statement": "The half time is that of the closed form.",
    "kind": "equality",
    "measure": {
        "cells": "deep_linear/time_to_learn/*",
        "metric": "half_time_over_predicted",
        "select": {"mode": [1, 2]},
        "reduce": "mean",
    },
    "expected": {"value": 1.0, "source": "closed form"},
    "tolerance": {"value": 0.05, "why": "step size"},
    "alternatives": [{"name": "half of it", "value": 0.5, "source": "a rival"}],
    "expect": "reproduced",
}
# test_digests shares the extension and the choices of these rooms
sys.path += [str(REPOSITORY / "tests" / room) for room in ("extensions", "results")]
PREAMBLE = (
    "Using workflow specific profile",
    "Config file config/",
    "Assuming unrestricted shared",
    "Building DAG",
)
"""Beginnings of the lines that Snakemake prints before it plans."""
TARGETS = ("total", "figures", "gallery", "cells", "plots", "metrics", "claims", "blind", "ranges")
"""Rows of its table of jobs that are targets or the total."""


@dataclass
class Workspace:
    """A copy of the project, with functions that change it and run Snakemake.

    Each job that runs beside another needs a process of its own, which takes three core-seconds to
    start. Where nothing depends on jobs at the same time, they run one after the other.
    """

    path: Path
    cores: int = 2

    @property
    def deep(self) -> dict:
        """A copy of the experiments of deep_linear."""
        return copy.deepcopy(DEEP)

    @property
    def layers(self) -> dict:
        """A copy of the experiments of layer_dynamics."""
        return copy.deepcopy(LAYERS)

    def configure(self, paper: str, experiments: dict) -> None:
        text = yaml.safe_dump({"experiments": {paper: experiments}})
        self._write(paper, "experiments", text)

    def claim(self, **changes) -> None:
        self.claims("deep_linear", CLAIM | changes)

    def claims(self, paper: str, *claims: dict) -> None:
        text = yaml.safe_dump({"source": SOURCE, "setups": SETUPS, "claims": list(claims)})
        self._write(paper, "claims", text)

    def _write(self, paper: str, name: str, text: str) -> None:
        path = self.path / f"config/{paper}/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def snakemake(self, *arguments: str, fails: bool = False) -> str:
        """Runs Snakemake, which must succeed or fail as given; returns what it prints."""
        return self.run("snakemake", *arguments, "--cores", str(self.cores), fails=fails)

    def neuralrace(self, *arguments: str, fails: bool = False, outside: Path | None = None) -> str:
        """The same for a command of `neuralrace`, with the package in a folder if one is given."""
        return self.run("neuralrace.cli.main", *arguments, fails=fails, outside=outside)

    def run(self, *command: str, fails: bool, outside: Path | None = None) -> str:
        environment = self.environment()
        if outside is not None:
            environment["PYTHONPATH"] += f"{os.pathsep}{outside}"
        done = PYTHON.run(["-m", *command], self.path, environment)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def refusal(self, *arguments: str) -> str:
        """The error message of Snakemake, which must print its preamble and nothing else."""
        printed = self.snakemake(*arguments, fails=True)
        preamble, _, message = printed.partition("error: ")
        assert not [line for line in preamble.splitlines() if not line.startswith(PREAMBLE)], (
            printed
        )
        return message.removesuffix("\n")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments, "--cores", str(self.cores)]

    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name != PLANNED} | {
            "PYTHONPATH": str(self.path / "src"),
            "HTTPS_PROXY": "http://127.0.0.1:9",  # so that no test can download anything
        }

    def plan(self, *targets: str) -> tuple[dict[str, int], set[str]]:
        """What a dry run plans: the number of jobs of each rule, and the files that they write."""
        printed = self.snakemake("--dry-run", *targets)
        assert printed.count("reason: ") >= printed.count("jobid: ")
        counts = re.findall(r"^([a-z_][a-z_0-9]*) +(\d+)$", printed, re.MULTILINE)
        outputs = re.findall(r"^ +output: (.*)$", printed, re.MULTILINE)
        files = {name.removesuffix(" (update)") for names in outputs for name in names.split(", ")}
        return {rule: int(n) for rule, n in counts if rule not in TARGETS}, files

    def planned(self, *targets: str) -> dict[str, int]:
        """Number of jobs that a dry run plans, by rule."""
        return self.plan(*targets)[0]

    def planned_files(self, *targets: str) -> set[str]:
        """Files that a dry run plans to write."""
        return self.plan(*targets)[1]

    def edit(self, name: str) -> "Workspace":
        """Adds a line to a file of the library."""
        path = self.path / "src/neuralrace" / name
        path.write_text(path.read_text() + "\nEDITED = True\n")
        return self

    def restore(self, name: str) -> None:
        shutil.copy2(REPOSITORY / "src/neuralrace" / name, self.path / "src/neuralrace" / name)


def build(path: Path) -> Workspace:
    """Copies the files that the workflow needs."""
    for name in ("src", "workflow", "profiles"):
        # with compiled modules, but without temporary files of processes that are writing some
        ignore = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(REPOSITORY / name, path / name, ignore=ignore)
    shutil.copy2(REPOSITORY / "Snakefile", path / "Snakefile")
    workspace = Workspace(path)
    workspace.claims("layer_dynamics")
    workspace.configure("deep_linear", workspace.deep)
    workspace.configure("layer_dynamics", workspace.layers)
    workspace.claim()
    return workspace


@pytest.fixture(scope="session")
def building(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Workspace]:
    """Builds a workspace without results, in a folder of a given name."""
    return lambda name: build(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def finished(building: Callable[[str], Workspace]) -> Workspace:
    """A workspace with finished results; tests leave it as it was."""
    workspace = building("finished")
    workspace.snakemake("metrics", "claims", "figures/deep_linear/time_to_learn.png")
    workspace.cores = 1
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace without results, in which one job runs at a time."""
    workspace = build(tmp_path)
    workspace.cores = 1
    return workspace
