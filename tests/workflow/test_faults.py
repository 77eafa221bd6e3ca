"""What happens when a run goes wrong or is killed: a message, an exit status, and nothing lost."""

import os
import re
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.workflow
LOG = "results/logs/layer_dynamics/glorot_moments/main/train.log"


def test_cells_that_fail_are_named_and_do_not_stop_others(workspace):
    """One whose runs all diverge, and one whose images are damaged."""
    changed = workspace.deep
    del changed["time_to_learn"]
    changed["step_size"]["sweep"]["training.learning_rate"] = [50.0, 0.02]
    workspace.configure("deep_linear", changed)
    changed = workspace.layers
    changed["glorot_moments"]["dataset"] = {"name": "mnist", "folder": "images"}
    workspace.configure("layer_dynamics", changed)
    damaged = workspace.path / "images/train-images-idx3-ubyte"
    damaged.parent.mkdir()
    damaged.write_bytes(b"no images")
    printed = workspace.snakemake("metrics", fails=True)
    cell = "deep_linear/step_size/learning_rate-50.0"
    assert f"{cell}: error: training.learning_rate: 50.0: every run diverged" in printed
    assert re.search(r"^.*glorot_moments/main: error: .*train-images-idx3-ubyte", printed, re.M)
    assert "Traceback" not in printed
    results = workspace.path / "results"
    failed = (cell, "layer_dynamics/glorot_moments/main")
    assert not [name for name in failed if (results / name / "trajectory.nc").exists()]
    assert (results / "deep_linear/step_size/learning_rate-0.02/metrics.nc").is_file()
    workspace.configure("deep_linear", workspace.deep)
    made = workspace.planned_files("metrics")
    assert "results/deep_linear/step_size/learning_rate-0.01/metrics.nc" in made
    assert "results/deep_linear/step_size/learning_rate-0.02/metrics.nc" not in made


def kill_once(path, workspace, *arguments):
    """Starts snakemake and kills it, with all of its jobs, once a file is there."""
    controller = subprocess.Popen(
        workspace.command(*arguments), cwd=workspace.path, env=workspace.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(controller.pid, signal.SIGKILL)
    controller.wait()


def test_a_killed_training_goes_on_from_its_checkpoint(workspace):
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-5, "steps": 200_000}
    changed["glorot_moments"]["record"]["every"] = 4000
    workspace.configure("layer_dynamics", changed)
    (workspace.path / "often.yaml").write_text("checkpoint_seconds: 0\n")
    cell = "layer_dynamics/glorot_moments/main"
    target, often = f"results/{cell}/trajectory.nc", ("--config", "settings=often.yaml")
    checkpoint = workspace.path / "results/checkpoints" / f"{cell}.npz"
    kill_once(checkpoint, workspace, target, *often)
    assert not (workspace.path / target).exists()
    workspace.snakemake(target, *often)  # the lock of a run that is no more is none
    assert "continuing at step" in (workspace.path / LOG).read_text()
    assert not checkpoint.exists()
    resumed = (workspace.path / target).read_bytes()
    (workspace.path / target).unlink()
    workspace.snakemake(target, *often)
    assert (workspace.path / target).read_bytes() == resumed
