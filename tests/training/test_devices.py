"""The choice of a GPU for each job, with pretended GPUs."""

import os
import subprocess
import sys

import pytest

from neuralrace.training import devices

CLAIM = """
import os, sys
from neuralrace.training.environment import set_up_environment
set_up_environment(1, gpu=True)
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the locks."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def claiming(visible):
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM], env=os.environ | {"CUDA_VISIBLE_DEVICES": visible},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_jobs_that_run_at_the_same_time_have_a_gpu_each(folder):
    first, second = claiming("2,GPU-5e/1"), claiming("2,GPU-5e/1")
    with first, second:
        names = [process.stdout.readline().strip() for process in (first, second)]
        assert sorted(names) == ["2", "GPU-5e/1"]
        third = claiming("2,GPU-5e/1")
        with third:
            first.kill()  # the kernel releases its lock
            assert third.stdout.readline().strip() == names[0]
            third.stdin.close()
        second.stdin.close()


def test_a_single_gpu_is_used_without_a_lock(folder):
    with claiming("0") as one, claiming("0") as other:
        assert [process.stdout.readline() for process in (one, other)] == ["0\n", "0\n"]
        one.stdin.close()
        other.stdin.close()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("value", "gpus"),
    [
        ("0,1", ("0", "1")),
        (" 3 , GPU-8d", ("3", "GPU-8d")),
        ("1,-1,2", ("1",)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
    ],
)
def test_a_scheduler_selects_the_visible_gpus(monkeypatch, value, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert devices.visible_gpus() == gpus


def test_without_a_scheduler_all_gpus_of_the_machine_are_visible(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert devices.visible_gpus() == ()
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: one'; echo '  MIG 1g: part'; echo 'GPU 1: other'\n")
    tool.chmod(0o755)
    assert devices.visible_gpus() == ("0", "1")
    tool.write_text("#!/bin/sh\necho 'no driver'\nexit 9\n")
    assert devices.visible_gpus() == ()
