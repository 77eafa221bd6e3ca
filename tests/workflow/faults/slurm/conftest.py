"""A SLURM of one node for all tests of this folder, and workspaces whose jobs go to it."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import one_node
import pytest

PLUG_IN = "snakemake_executor_plugin_slurm"
WANTED = "NEURALRACE_SLURM"
"""Set where SLURM has to be: its absence is then a failure."""
LONG = 900.0
"""Seconds that a run may take, on a machine that does much else."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[one_node.Cluster]:
    why = one_node.missing()
    if not why and find_spec(PLUG_IN) is None:
        why = f"{PLUG_IN} is not installed: pip install 'neuralrace[cluster]'"
    if why:
        (pytest.fail if os.environ.get(WANTED) else pytest.skip)(why)
    with one_node.started() as running:
        yield running


@dataclass
class Run:
    """A Snakemake whose jobs go to SLURM."""

    process: subprocess.Popen
    printed: Path

    @property
    def text(self) -> str:
        return self.printed.read_text()

    @property
    def submitted(self) -> list[str]:
        """Numbers of the jobs that were handed to SLURM so far, in order."""
        return re.findall(r"has been submitted with SLURM jobid (\d+)", self.text)

    def wait_for(self, holds) -> None:
        """Waits until something holds, which it has to before the run is over."""
        deadline = time.monotonic() + LONG
        while not holds():
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.1)

    def job(self, number: int) -> str:
        """The number that SLURM gave the job that was handed over as the first, second, ..."""
        self.wait_for(lambda: len(self.submitted) >= number)
        return self.submitted[number - 1]

    def succeeds(self) -> str:
        """What was printed, once all is done."""
        assert self.process.wait(LONG) == 0, self.text
        return self.text


@dataclass
class Submitting:
    """A workspace, and SLURM."""

    workspace: object
    cluster: one_node.Cluster

    @property
    def path(self) -> Path:
        return self.workspace.path

    @contextmanager
    def run(self, *arguments: str) -> Iterator[Run]:
        """Starts the run of some targets under the profile."""
        # the node has two cores
        command = [*self.workspace.command(*arguments), "--workflow-profile", "profiles/slurm"]
        command += ["--slurm-init-seconds-before-status-checks", "2"]
        printed = self.path / "printed.txt"
        with printed.open("w") as file:
            process = subprocess.Popen(
                command, cwd=self.path, env=self.workspace.environment(), stdout=file, stderr=file
            )
            try:
                yield Run(process, printed)
            finally:
                process.kill()
                process.wait()

    def log(self) -> str:
        """What the one training of layer_dynamics told."""
        path = self.path / "results/logs/layer_dynamics/glorot_moments/main/train.log"
        return path.read_text() if path.exists() else ""

    def replace(self, name: str, old: str, new: str) -> None:
        """Puts one text in the place of another in a file of the workspace."""
        path = self.path / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def submitting(workspace, cluster) -> Submitting:
    """A workspace whose profile says partition and account, as a person would."""
    path = workspace.path / "profiles/slurm/config.yaml"
    said, edits = re.subn(r"# (slurm_(?:partition|account): \w+)", r"\1", path.read_text())
    assert edits == 2
    path.write_text(said)
    return Submitting(workspace, cluster)
