"""Memory of compiled programs, limits of machine and device, and refusal of what cannot fit."""

import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.stages import Compiled

from neuralrace.errors import UserError
from neuralrace.training import trainer
from neuralrace.training.memory import (
    ProgramMemory,
    available_memory,
    available_on_device,
    describe,
    program_memory,
    refuse_program,
)

GB = 10**9


def compiled(f, *shapes, donate=(), dtype=jnp.float32):
    outlines = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.jit(f, donate_argnums=donate).lower(*outlines).compile()


def grown(a, b):
    """One output as large as `a`, and one product that is neither argument nor output.

    What is sorted cannot be summed up on the way, so no compiler does without the product.
    """
    return a + 1, jnp.sort(a @ b, axis=0)[0].sum()


# Programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "size"), [(jnp.float32, 4), (jnp.float64, 8)])
def test_arguments_are_counted_to_the_byte(dtype, size):
    with jax.enable_x64(True):
        program = compiled(grown, (30, 20), (20, 50), dtype=dtype)
    assert program_memory(program).arguments == size * (30 * 20 + 20 * 50)


def test_working_memory_holds_outputs_and_intermediate_values():
    outputs = 4 * (300 * 20 + 1)
    working = program_memory(compiled(grown, (300, 20), (20, 50))).working
    assert outputs + 4 * 300 * 50 <= working <= outputs + 2 * 4 * 300 * 50


def test_a_donated_argument_is_not_counted_again_as_output():
    kept, donated = (
        program_memory(compiled(lambda a: a + 1, (300, 20), donate=d)) for d in ((), (0,))
    )
    assert kept.arguments == donated.arguments == 4 * 300 * 20
    assert kept.working - donated.working == 4 * 300 * 20


def test_a_scan_over_runs_grows_with_their_number():
    def train(weights):
        return jax.lax.fori_loop(0, 5, lambda _, w: jax.vmap(lambda m: m - m @ m.T @ m)(w), weights)

    one, ten = (program_memory(compiled(train, (n, 40, 40), donate=0), runs=n) for n in (1, 10))
    assert ten.arguments == 10 * one.arguments
    assert 5 * one.working <= ten.working <= 10 * one.working + 4096


def test_arguments_are_a_lower_bound_where_the_compiler_reports_nothing():
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 7))
    program = jax.jit(lambda keys, a: (keys, a)).lower(keys, jnp.ones(5)).compile()
    silent = Mock(spec=Compiled, memory_analysis=lambda: None, args_info=program.args_info)
    assert program_memory(silent, 3) == ProgramMemory(7 * 8 + 5 * 4, 0, 3)


MEASURED = """
import pathlib
import jax, jax.numpy as jnp, psutil
from neuralrace.training.memory import program_memory

def train(weights, inputs):
    def step(_, w):
        error = jnp.tanh(inputs @ w) - inputs
        return w - 1e-3 * inputs.T @ error
    return jax.lax.fori_loop(0, 2, step, weights)

shapes = [jax.ShapeDtypeStruct((rows, 1000), jnp.float32) for rows in (1000, 20000)]
program = jax.jit(train, donate_argnums=0).lower(*shapes).compile()
before = psutil.Process().memory_info().rss
arrays = [jnp.ones(shape.shape, shape.dtype) for shape in shapes]
jax.block_until_ready(program(*arrays))
# the peak of this program alone: getrusage includes memory that its parent held at the fork
status = pathlib.Path("/proc/self/status").read_text()
peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
memory = program_memory(program)
print(memory.arguments, memory.working, peak - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count the peak in other units")
def test_program_memory_is_the_growth_of_a_process_that_runs_it(tmp_path):
    """Compiled anew, and loaded from the cache of compiled programs."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    plans = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED],
            env=os.environ | cache,
            capture_output=True,
            text=True,
            check=True,
        )
        arguments, working, peak = map(int, done.stdout.split())
        plans.append((arguments, working))
        assert arguments == 4 * 21 * 10**6
        assert 0.9 < peak / (arguments + working) < 1.3
    assert plans[0] == plans[1]
    assert [path for path in tmp_path.iterdir() if "train" in path.name]  # the cache was used


# Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stats", "available"),
    [
        ({"bytes_limit": 100 * GB, "bytes_in_use": 30 * GB, "peak_bytes_in_use": 99 * GB}, 70 * GB),
        (None, None),
        ({}, None),
        ({"bytes_in_use": 3}, None),
    ],
)
def test_memory_of_an_accelerator_is_the_free_part_of_its_pool(stats, available):
    accelerator = SimpleNamespace(platform="gpu", memory_stats=lambda: stats)
    assert available_on_device(accelerator) == available


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GB left, and a function that puts this process in control groups."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * GB))
    for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)

    def available_in(path="/", **groups):
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(f"5:cpu,cpuacct:/x\n0::{path}\n")
        for folder, (limit, used, cached) in groups.items():
            group = tmp_path / "sys/fs/cgroup" / folder.replace("__", "/")
            group.mkdir(parents=True, exist_ok=True)
            (group / "memory.max").write_text(f"{limit}\n")
            (group / "memory.current").write_text(f"{used}\n")
            statistics = f"anon 5\ninactive_file {cached}\nactive_file 7\n"
            (group / "memory.stat").write_text(statistics)
        return available_memory(tmp_path)

    return available_in


@pytest.mark.parametrize(
    ("path", "groups", "available"),
    [
        ("/", {}, 8),
        ("/job", {"job": (5 * GB, 3 * GB, GB)}, 3),
        ("/job", {"job": ("max", 3 * GB, 0)}, 8),
        ("/a/job", {"a": (4 * GB, 3 * GB, 0), "a__job": (6 * GB, GB, 0)}, 1),
        ("/docker/1f2e", {".": (5 * GB, 3 * GB, 0)}, 2),
        ("/job", {"job": (500 * GB, 0, 0)}, 8),
        ("/job", {"job": (GB, 2 * GB, 0)}, 0),
    ],
    ids=["none", "limited", "unlimited", "outer tighter", "path of the host", "machine", "full"],
)
def test_control_groups_limit_memory(machine, path, groups, available):
    assert machine(path, **groups) == available * GB


def test_without_control_groups_the_machine_is_the_limit(tmp_path, machine):
    assert available_memory(tmp_path) == 8 * GB


@pytest.mark.parametrize(
    ("variables", "megabytes"),
    [
        ({"MEM_PER_NODE": "4000"}, 4000),
        ({"MEM_PER_CPU": "500", "CPUS_ON_NODE": "4"}, 2000),
        ({"MEM_PER_NODE": "0"}, None),
        ({"CPUS_ON_NODE": "4"}, None),
    ],
    ids=["per node", "per CPU", "whole node", "no memory requested"],
)
def test_slurm_limits_memory(machine, monkeypatch, variables, megabytes):
    for name, value in variables.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    used = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=GB))
    monkeypatch.setattr(psutil, "Process", lambda: used)
    assert machine() == (8 * GB if megabytes is None else megabytes * 2**20 - GB)


def test_memory_of_this_machine():
    assert 0 < available_on_device(jax.devices("cpu")[0]) <= psutil.virtual_memory().total


# Refusal -------------------------------------------------------------------------------------


sizes = st.integers(0, 10**12)


@given(arguments=sizes, working=sizes, available=sizes)
def test_refused_exactly_when_it_does_not_fit(arguments, working, available):
    needed = ProgramMemory(arguments, working)
    if arguments + working > available:
        with pytest.raises(UserError, match="training needs"):
            refuse_program(needed, available)
    else:
        refuse_program(needed, available)


def test_refusal_names_sizes_and_keys():
    with pytest.raises(UserError) as error:
        refuse_program(ProgramMemory(12 * GB, 18 * GB, runs=20), 25 * GB)
    assert "needs 30.000 GB, 1.500 GB for each of 20 runs," in error.value.problem
    assert "25.000 GB left" in error.value.problem
    keys = (
        "seeds init_scales dataset.count network.hidden training.batch.size dataset.images.samples"
    )
    for key in (*keys.split(), "precision: float32"):
        assert key in error.value.remedy


def test_nothing_is_refused_where_the_limit_is_unknown():
    refuse_program(ProgramMemory(10**15, 0), None)
    assert describe(ProgramMemory(10**15, 0), None).endswith("an unknown amount left on the device")


def test_line_for_the_log():
    assert describe(ProgramMemory(GB, 2 * GB, runs=1), 4 * GB) == (
        "memory: 3.000 GB (1.000 GB arguments, 2.000 GB working), 4.000 GB left on the device"
    )


def test_records_that_cannot_be_held_are_refused_before_they_are_made(make_run, monkeypatch):
    """The compiled program itself takes far less: it holds a few records at once."""
    ensemble = make_run(
        training={"learning_rate": 0.02, "steps": 10**12},
        record={"every": 1, "snapshots": 10**6, "observables": ["weights"]},
    )
    monkeypatch.setattr(trainer.Trainer, "start", None)
    with pytest.raises(UserError, match="records take") as error:
        trainer.train(ensemble)
    assert error.value.key == "record"
