"""Trainings on a machine with several (simulated) GPUs."""

from itertools import pairwise

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

LINE = "    path, ensemble = job.output, Ensemble.model_validate_json(spec)\n"
LOGGING = """
    import os, time

    with open("devices.txt", "a") as file:
        begun = time.time()
        time.sleep(2)
        print(os.environ["CUDA_VISIBLE_DEVICES"], os.getpid(), begun, time.time(), file=file)
    path, ensemble = job.output, Ensemble.model_validate_json(spec)
"""
"""Code at the begin of a training that logs its device, process and times."""


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("visible", ["3,5", "3"])
def test_a_gpu_has_one_worker_and_one_training_at_a_time(workspace, monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    library = workspace.path / "src/neuralrace"  # so that small cells use a GPU too
    edit(library / "config/cost.py", "GPU_COMPILE = 2e12, 5e-6, 40.0", "GPU_COMPILE = 2e12, 0, 0")
    edit(library / "workflow/train.py", LINE, LOGGING)
    devices = visible.split(",")
    workspace.snakemake("cells", "--resources", f"gpu={len(devices)}")
    log = [line.split() for line in (workspace.path / "devices.txt").read_text().splitlines()]
    assert len(log) == 4
    assert {device for device, *_ in log} == set(devices)
    for device in devices:
        here = sorted((float(begun), float(done)) for name, _, begun, done in log if name == device)
        assert all(done <= begun for (_, done), (begun, _) in pairwise(here))
        assert len({worker for name, worker, *_ in log if name == device}) == 1
