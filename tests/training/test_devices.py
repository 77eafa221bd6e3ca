"""Which GPU a job computes on; there are none here, so they are pretended."""

import os
import subprocess
import sys

import pytest

from neuralrace.training import devices

CLAIM = """
import os, sys
from neuralrace.training.environment import settle
settle(1, gpu=True)
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where locks are kept."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def claiming(visible):
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM], env=os.environ | {"CUDA_VISIBLE_DEVICES": visible},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_jobs_that_run_side_by_side_have_a_gpu_each(folder):
    first, second = claiming("2,GPU-5e/1"), claiming("2,GPU-5e/1")
    with first, second:
        told = [each.stdout.readline().strip() for each in (first, second)]
        assert sorted(told) == ["2", "GPU-5e/1"]
        third = claiming("2,GPU-5e/1")
        with third:
            first.kill()  # the kernel gives back what it had
            assert third.stdout.readline().strip() == told[0]
            third.stdin.close()
        second.stdin.close()


def test_a_gpu_that_a_scheduler_chose_is_shared_with_nobody_asked(folder):
    with claiming("0") as one, claiming("0") as other:
        assert [each.stdout.readline() for each in (one, other)] == ["0\n", "0\n"]
        one.stdin.close()
        other.stdin.close()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("0,1", ("0", "1")),
        (" 3 , GPU-8d", ("3", "GPU-8d")),
        ("1,-1,2", ("1",)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
    ],
)
def test_a_scheduler_says_which_gpus_there_are(monkeypatch, told, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    assert devices.visible_gpus() == expected


def test_otherwise_all_of_the_machine_are(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert devices.visible_gpus() == ()
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: one'; echo '  MIG 1g: part'; echo 'GPU 1: other'\n")
    tool.chmod(0o755)
    assert devices.visible_gpus() == ("0", "1")
    tool.write_text("#!/bin/sh\necho 'no driver'\nexit 9\n")
    assert devices.visible_gpus() == ()
