"""What happens when something is wrong: a message, an exit status, and nothing lost."""

import os
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.workflow
CELL = "deep_linear/step_size/learning_rate-0.02"
TRAJECTORY = f"results/{CELL}/trajectory.nc"


def files(workspace) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in (workspace.path / "results").rglob("*.nc")}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("seeds", 0, "greater than 0"),
        ("seeds", "2", "integer"),
        ("colour", "red", "unknown key"),
        ("init_scales", ["1e-3"], "0.001"),
    ],
)
def test_a_mistake_in_the_configuration_is_named_and_nothing_is_touched(finished, key, value, says):
    before = files(finished)
    changed = finished.deep
    changed["time_to_learn"][key] = value
    finished.configure("deep_linear", changed)
    printed = finished.snakemake("metrics", fails=True)
    finished.configure("deep_linear", finished.deep)
    assert f"config/deep_linear.yaml: experiments.deep_linear.time_to_learn.{key}" in printed
    assert says in printed
    assert "Traceback" not in printed
    assert files(finished) == before


def test_verify_passes_and_tells_damage(finished):
    assert "11 files verified" in finished.snakemake("verify")
    path = finished.path / TRAJECTORY
    content, status = path.read_bytes(), path.stat()
    flipped = bytearray(content)
    flipped[len(flipped) // 2] ^= 1
    damages = {"does not have the checksum": bytes(flipped), "it is damaged": content[:1000]}
    for says, damaged in damages.items():
        path.write_bytes(damaged)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        printed = finished.snakemake("verify", fails=True)
        assert TRAJECTORY in printed
        assert says in printed
        assert "Traceback" not in printed
        assert path.read_bytes() == damaged
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_verify_tells_a_file_of_another_specification(finished):
    one = finished.path / TRAJECTORY
    other = finished.path / TRAJECTORY.replace("0.02", "0.01")
    kept = {path: (path.read_bytes(), path.stat()) for path in (one, other)}
    sums = {path: path.with_name("trajectory.nc.sha256") for path in (one, other)}
    saved = sums[one].read_bytes()
    one.write_bytes(kept[other][0])
    sums[one].write_bytes(sums[other].read_bytes())
    os.utime(one, ns=(kept[one][1].st_atime_ns, kept[one][1].st_mtime_ns))
    printed = finished.snakemake("verify", fails=True)
    one.write_bytes(kept[one][0])
    sums[one].write_bytes(saved)
    os.utime(one, ns=(kept[one][1].st_atime_ns, kept[one][1].st_mtime_ns))
    assert "another specification" in printed


def test_a_surprising_claim_fails_and_leaves_its_table(finished):
    finished.claim(expect="differs here", reason="a mistake of this test")
    printed = finished.snakemake("claims", fails=True)
    table = (finished.path / "results/claims.md").read_text()
    finished.claim()
    told = "known as differs here, came out reproduced"
    assert told in printed
    assert told in table
    assert "Traceback" not in printed
    finished.snakemake("claims")


def test_a_rate_that_diverges_everything_is_named(workspace):
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 50.0, "steps": 20}
    workspace.configure("layer_dynamics", changed)
    target = "results/layer_dynamics/glorot_moments/main/trajectory.nc"
    printed = workspace.snakemake(target, fails=True)
    assert "training.learning_rate: 50.0: every run diverged" in printed
    assert "Traceback" not in printed
    assert not (workspace.path / target).exists()


def test_damaged_images_are_named(workspace):
    changed = workspace.layers
    changed["glorot_moments"]["dataset"] = {"name": "mnist", "folder": "images"}
    workspace.configure("layer_dynamics", changed)
    damaged = workspace.path / "images/train-images-idx3-ubyte"  # nothing is fetched in its place
    damaged.parent.mkdir()
    damaged.write_bytes(b"no images")
    target = "results/layer_dynamics/glorot_moments/main/trajectory.nc"
    printed = workspace.snakemake(target, fails=True)
    assert "images/train-images-idx3-ubyte: magic number" in printed
    assert "Traceback" not in printed


def kill_once(path, workspace, *arguments):
    """Starts snakemake and kills it, with all of its jobs, once a file is there."""
    controller = subprocess.Popen(
        workspace.command(*arguments), cwd=workspace.path, env=workspace.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(controller.pid, signal.SIGKILL)
    controller.wait()


def test_a_killed_run_heals(workspace):
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-7, "steps": 20_000_000}
    changed["glorot_moments"]["record"]["every"] = 1_000_000
    workspace.configure("layer_dynamics", changed)
    target = "results/layer_dynamics/glorot_moments/main/trajectory.nc"
    log = workspace.path / "results/logs/layer_dynamics/glorot_moments/main/train.log"
    kill_once(log, workspace, target)
    assert not (workspace.path / target).exists()
    workspace.configure("layer_dynamics", workspace.layers)
    assert "unlock" in workspace.snakemake(target, fails=True)
    workspace.snakemake(target, "--unlock")
    workspace.snakemake(target)
    assert (workspace.path / target).is_file()


def test_a_killed_training_goes_on_from_its_checkpoint(workspace):
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-5, "steps": 400_000}
    changed["glorot_moments"]["record"]["every"] = 4000
    workspace.configure("layer_dynamics", changed)
    (workspace.path / "often.yaml").write_text("checkpoint_seconds: 0\n")
    cell = "layer_dynamics/glorot_moments/main"
    target, often = f"results/{cell}/trajectory.nc", ("--configfile", "often.yaml")
    latest = workspace.path / "results/checkpoints" / cell / "whole/latest"
    kill_once(latest, workspace, target, *often)
    assert not (workspace.path / target).exists()
    workspace.snakemake(target, *often, "--unlock")
    workspace.snakemake(target, *often)
    assert "continuing at step" in (workspace.path / f"results/logs/{cell}/train.log").read_text()
    assert not latest.parent.exists()
    resumed = (workspace.path / target).read_bytes()
    workspace.snakemake(target, "--force")
    assert (workspace.path / target).read_bytes() == resumed


def test_lint_is_clean(workspace):
    assert "Congratulations" in workspace.snakemake("--lint")
