"""The processors that this process may use, and the kind that they are of."""

import os

import pytest

from neuralrace.cli import main as cli
from neuralrace.training import environment
from neuralrace.training.processors import processor_kind, usable_cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 8 processors, and a function that puts this process in control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path

    return write


V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/cpu"
QUOTAS = {
    "none": ({}, 8),
    "unlimited": ({f"{V2}/job/cpu.max": "max 100000\n"}, 8),
    "two": ({f"{V2}/job/cpu.max": "200000 100000\n"}, 2),
    "a part": ({f"{V2}/job/cpu.max": "150000 100000\n"}, 2),
    "less than one": ({f"{V2}/job/cpu.max": "20000 100000\n"}, 1),
    "outer": ({f"{V2}/cpu.max": "300000 100000\n", f"{V2}/job/cpu.max": "max 100000\n"}, 3),
    "more than there are": ({f"{V2}/job/cpu.max": "6400000 100000\n"}, 8),
    "version 1": (
        {f"{V1}/old/cpu.cfs_quota_us": "400000\n", f"{V1}/old/cpu.cfs_period_us": "100000\n"}, 4,
    ),
    "version 1, unlimited": (
        {f"{V1}/old/cpu.cfs_quota_us": "-1\n", f"{V1}/old/cpu.cfs_period_us": "100000\n"}, 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", QUOTAS)
def test_quotas_of_control_groups_limit_cores(machine, case):
    files, cores = QUOTAS[case]
    groups = {"proc/self/cgroup": "9:cpu,cpuacct:/old\n0::/job\n"}
    assert usable_cores(machine(groups | files)) == cores


def test_cores_are_those_of_the_affinity(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 6}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores(tmp_path) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(tmp_path) == 64


def test_commands_use_the_cores_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr("neuralrace.training.processors.usable_cores", lambda: 3)
    assert [cli.core_count(None, None, value) for value in ("all", "8", None)] == ["3", "8", None]  # pyright: ignore[reportArgumentType]


CPUINFO = """processor\t: {number}
model name\t: {model}
cpu MHz\t\t: {number}234.5
flags\t\t: fpu {flags}

processor\t: 1
"""


def test_kinds_of_processors_differ_by_model_and_features_only(machine, tmp_path):
    def kind(**parts):
        processor_kind.cache_clear()
        described = {"number": 0, "model": "A", "flags": "avx2"} | parts
        return processor_kind(machine({"proc/cpuinfo": CPUINFO.format(**described)}))

    assert kind() == kind(number=2)
    assert len({kind(), kind(model="B"), kind(flags="avx2 avx512f")}) == 3
    processor_kind.cache_clear()
    assert processor_kind(tmp_path / "no Linux")


def test_compiled_programs_are_kept_by_kind_of_processor(monkeypatch):
    names = [*environment.THREADS, *environment.DEFAULTS, "XLA_FLAGS", "MPLBACKEND"]
    for name in (*names, "JAX_PLATFORMS", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.setenv(name, "own")
    environment.set_up_environment(1)
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "own"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    environment.set_up_environment(1)
    folder = os.environ["JAX_COMPILATION_CACHE_DIR"]
    assert folder == os.path.join(environment.CACHE, processor_kind())
