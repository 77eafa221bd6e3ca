"""Trainings on a machine of several GPUs, which are pretended."""

from itertools import pairwise

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

NOTED = """
    import os, time

    with open("devices.txt", "a") as file:
        begun = time.time()
        time.sleep(2)
        print(os.environ["CUDA_VISIBLE_DEVICES"], os.getpid(), begun, time.time(), file=file)
    (path,) = map(Path, outputs)
"""
"""What a training is made to do first: to say where and when it is at work."""


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("there_are", ["3,5", "3"])
def test_a_gpu_has_one_worker_and_one_training_at_a_time(workspace, monkeypatch, there_are):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", there_are)
    library = workspace.path / "src/neuralrace"  # small cells, too, are worth a GPU
    edit(library / "cost.py", "GPU_COMPILE = 2e12, 5e-6, 40.0", "GPU_COMPILE = 2e12, 0, 0")
    edit(library / "workflow/train.py", "    (path,) = map(Path, outputs)\n", NOTED)
    devices = there_are.split(",")
    workspace.snakemake("cells", "--resources", f"gpu={len(devices)}")
    told = [line.split() for line in (workspace.path / "devices.txt").read_text().splitlines()]
    assert len(told) == 4
    assert {device for device, *_ in told} == set(devices)
    for device in devices:
        here = sorted(
            (float(begun), float(done)) for name, _, begun, done in told if name == device
        )
        assert all(done <= begun for (_, done), (begun, _) in pairwise(here))
        assert len({worker for name, worker, *_ in told if name == device}) == 1
