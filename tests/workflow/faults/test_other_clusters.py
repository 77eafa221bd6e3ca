"""The workflow on a scheduler other than SLURM, by the profile `generic`.

Three programs take the place of PBS: jobs are processes of this machine, and only those that are
running are known, as on clusters that do not keep finished jobs.
"""

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from importlib.util import find_spec

import psutil
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

METRICS = "results/layer_dynamics/glorot_moments/main/metrics.nc"
QSUB = """#!/bin/sh
echo "$@" >> "$PBS/submitted"
for script in "$@"; do :; done
script=$(realpath "$script")
id=$$.here
cd / && PBS_JOBID=$$.elsewhere setsid sh "$script" > "$PBS/$id.log" 2>&1 &
echo $! > "$PBS/$id"
echo $id
"""
QSTAT = """#!/bin/sh
cd "$PBS" && for id in *.here; do kill -0 "$(cat "$id")" 2> /dev/null && echo "$id me R"; done
true
"""
QDEL = """#!/bin/sh
for id in "$@"; do kill -- "-$(cat "$PBS/$id")"; done
"""


@pytest.fixture
def pbs(workspace, tmp_path_factory, monkeypatch):
    """A folder with the commands of PBS, and a file for each of its jobs."""
    if find_spec("snakemake_executor_plugin_cluster_generic") is None:
        why = "snakemake-executor-plugin-cluster-generic is not installed"
        (pytest.fail if os.environ.get("NEURALRACE_SLURM") else pytest.skip)(why)
    folder = tmp_path_factory.mktemp("pbs")
    for name, text in {"qsub": QSUB, "qstat": QSTAT, "qdel": QDEL}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    status = workspace.path / "profiles/generic/status"
    status.write_text(status.read_text().replace("sleep 30", "sleep 1"))
    monkeypatch.setenv("PBS", str(folder))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@contextmanager
def run(pbs, workspace):
    """Starts the run of a cell; gives its process and a function that waits for its n-th job."""
    command = workspace.command(METRICS, "--workflow-profile", "profiles/generic")
    printed = pbs / "printed"

    def job(number):
        deadline = time.monotonic() + 600
        while len(jobs := sorted(pbs.glob("*.here"), key=os.path.getmtime)) < number:
            assert process.poll() is None, printed.read_text()
            assert time.monotonic() < deadline, printed.read_text()
            time.sleep(0.1)
        return int(jobs[number - 1].read_text())

    with printed.open("w") as file:
        process = subprocess.Popen(
            command, cwd=workspace.path, env=workspace.environment(), stdout=file, stderr=file
        )
    try:
        yield process, job
    finally:
        process.kill()
        process.wait()


def test_a_killed_job_is_submitted_again(pbs, workspace):
    with run(pbs, workspace) as (process, job):
        os.killpg(job(1), signal.SIGKILL)  # seconds before it could have ended
        assert process.wait(600) == 0, (pbs / "printed").read_text()
    assert (workspace.path / METRICS).exists()
    asked = (pbs / "submitted").read_text()
    first, second = re.findall(
        r"-l select=1:ncpus=1:mem=(\d+)mb -l walltime=0:(\d+):0 .*\.sh\n", asked
    )
    assert [2 * int(amount) for amount in first] == [int(amount) for amount in second]


def test_an_interrupted_run_cancels_its_jobs(pbs, workspace):
    with run(pbs, workspace) as (process, job):
        running = psutil.Process(job(1))
        process.terminate()
        assert process.wait(120) != 0
        running.wait(60)
    assert not (workspace.path / METRICS).exists()
