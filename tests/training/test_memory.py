"""Memory is known before a program runs, and what is too large is refused."""

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


def test_arguments_are_counted_to_the_byte():
    assert program_memory(compiled(grown, (30, 20), (20, 50))).arguments == 4 * (30 * 20 + 20 * 50)


def test_memory_grows_with_the_precision():
    with jax.enable_x64(True):
        double = program_memory(compiled(grown, (30, 20), (20, 50), dtype=jnp.float64))
    assert double.arguments == 2 * program_memory(compiled(grown, (30, 20), (20, 50))).arguments


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


def without_analysis(program):
    """A program of a backend that tells nothing about its memory."""
    told = {"args_info": program.args_info, "out_info": program.out_info}
    return Mock(spec=Compiled, memory_analysis=lambda: None, **told)


def test_shapes_stand_in_where_the_compiler_tells_nothing():
    for donate, outputs in (((), 4 * (300 * 20 + 1)), ((0,), 4)):
        silent = without_analysis(compiled(grown, (300, 20), (20, 50), donate=donate))
        told = program_memory(silent, 3)
        assert told == ProgramMemory(4 * (300 * 20 + 20 * 50), outputs, 3, exact=False)
        assert "at least" in describe(told, GB)


def test_shapes_of_random_keys_are_counted():
    key = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 7))
    program = jax.jit(lambda keys: jax.random.key_data(keys)).lower(key).compile()
    told = program_memory(without_analysis(program))
    assert (told.arguments, told.working) == (7 * 8, 7 * 8)


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
# of this program alone: getrusage also counts what its parent held when it started it
status = pathlib.Path("/proc/self/status").read_text()
peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
told = program_memory(program)
print(told.arguments, told.working, peak - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count the peak in other units")
def test_program_memory_is_what_a_process_takes_also_from_the_cache(tmp_path):
    """In a process of its own, compiled anew and from the cache of compiled programs."""
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


# What there is -------------------------------------------------------------------------------


def accelerator(stats):
    return SimpleNamespace(platform="gpu", memory_stats=lambda: stats)


def test_an_accelerator_tells_what_its_pool_has_left():
    stats = {"bytes_limit": 100 * GB, "bytes_in_use": 30 * GB, "peak_bytes_in_use": 99 * GB}
    assert available_on_device(accelerator(stats)) == 70 * GB


@pytest.mark.parametrize("stats", [None, {}, {"bytes_in_use": 3}])
def test_an_accelerator_that_tells_nothing_is_not_taken_for_the_host(stats):
    assert available_on_device(accelerator(stats)) is None


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GB left, and a function that puts this process in a control group."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * GB))

    def group(line, **folders):
        (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/self/cgroup").write_text(f"5:cpu,cpuacct:/x\n{line}\n")
        for folder, files in folders.items():
            here = tmp_path / "sys/fs/cgroup" / folder.replace("__", "/")
            here.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (here / name).write_text(f"{content}\n")
        return available_memory(tmp_path)

    return group


def v2(limit, used, cached=0):
    return {
        "memory.max": limit,
        "memory.current": used,
        "memory.stat": f"anon 5\ninactive_file {cached}\nactive_file 7",
    }


def v1(limit, used, cached=0):
    return {
        "memory.limit_in_bytes": limit,
        "memory.usage_in_bytes": used,
        "memory.stat": f"inactive_file 1\ntotal_inactive_file {cached}",
    }


def test_without_control_groups_the_machine_is_the_limit(tmp_path, machine):
    assert available_memory(tmp_path) == 8 * GB


def test_version_2(machine):
    assert machine("0::/job", job=v2(5 * GB, 3 * GB, cached=GB)) == 3 * GB


def test_version_2_without_a_limit(machine):
    assert machine("0::/job", job=v2("max", 3 * GB)) == 8 * GB


def test_version_2_where_an_outer_group_is_tighter(machine):
    outer = v2(4 * GB, 3 * GB)
    assert machine("0::/a/job", a=outer, a__job=v2(6 * GB, GB)) == GB


def test_version_2_whose_path_is_that_of_the_host(machine):
    assert machine("0::/docker/1f2e", **{".": v2(5 * GB, 3 * GB)}) == 2 * GB


def test_version_1(machine):
    assert machine("4:memory:/job", memory__job=v1(5 * GB, 3 * GB, cached=GB)) == 3 * GB


def test_version_1_without_a_limit(machine):
    assert machine("4:memory:/job", memory__job=v1(2**63 - 4096, 3 * GB)) == 8 * GB


def test_the_machine_may_be_tighter_than_the_group(machine):
    assert machine("0::/job", job=v2(500 * GB, 0)) == 8 * GB


def test_a_full_group_has_nothing_left(machine):
    assert machine("0::/job", job=v2(GB, 2 * GB)) == 0


def test_this_machine():
    assert 0 < available_on_device(jax.devices("cpu")[0]) <= psutil.virtual_memory().total


# Refusal -------------------------------------------------------------------------------------


sizes = st.integers(0, 10**12)


@given(arguments=sizes, working=sizes, left=sizes)
def test_refused_exactly_when_it_does_not_fit(arguments, working, left):
    wanted = ProgramMemory(arguments, working)
    if arguments + working > left:
        with pytest.raises(UserError, match="training needs"):
            refuse_program(wanted, left)
    else:
        refuse_program(wanted, left)


def test_the_message_names_the_sizes_and_the_keys():
    with pytest.raises(UserError) as caught:
        refuse_program(ProgramMemory(12 * GB, 18 * GB, runs=20), 25 * GB)
    message = str(caught.value)
    assert message.startswith("memory: training needs 30.000 GB, 1.500 GB for each of 20 runs,")
    assert "25.000 GB left" in message
    for key in (
        "seeds",
        "init_scales",
        "dataset.count",
        "network.hidden",
        "training.batch.size",
        "precision: float32",
        "dataset.images.samples",
    ):
        assert key in message


def test_nothing_is_refused_where_nothing_is_known():
    refuse_program(ProgramMemory(10**15, 0), None)
    assert describe(ProgramMemory(10**15, 0), None).endswith("an unknown amount left on the device")


def test_the_line_for_the_log():
    assert describe(ProgramMemory(GB, 2 * GB, runs=1), 4 * GB) == (
        "memory: 3.000 GB (1.000 GB arguments, 2.000 GB working), 4.000 GB left on the device"
    )
    assert "3.000 GB, 1.500 GB for each of 2 runs," in describe(
        ProgramMemory(GB, 2 * GB, runs=2), 4 * GB
    )


def test_records_that_cannot_be_held_are_refused_before_they_are_made(make_run, monkeypatch):
    """What the compiled program takes is less by far: a few records at once."""
    ensemble = make_run(
        training={"learning_rate": 0.02, "steps": 10**12},
        record={"every": 1, "snapshots": 10**6, "observables": ["weights"]},
    )
    monkeypatch.setattr(trainer.Trainer, "start", None)
    with pytest.raises(UserError, match=r"^record: what is recorded takes .* GB of memory, and .*"):
        trainer.train(ensemble)
