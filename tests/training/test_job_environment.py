"""The environment of workers, and warnings of variables that change results."""

import json
import os
import subprocess
import sys

import jax
import pytest

import neuralrace as nr
from neuralrace.errors import UserError
from neuralrace.training import environment
from neuralrace.training.environment import FLAGS, THREADS, set_up_environment

SMALL = {"hidden": [3], "init_scales": [0.1], "seeds": 1, "progress": False}
KERNELS = """
import json
from neuralrace.training.environment import set_up_environment
left_out = set_up_environment(1)
from neuralrace.results.provenance import processor_attributes
print(json.dumps([left_out, processor_attributes()]))
"""


@pytest.fixture
def environ(monkeypatch):
    """An environment that a test may change."""
    for name in (*THREADS, "JAX_PLATFORMS"):
        monkeypatch.setenv(name, "previous")
    monkeypatch.setattr(environment, "_warned", set())
    return monkeypatch


def test_workers_compute_on_the_cpu_with_their_threads(environ):
    environ.setenv("XLA_FLAGS", FLAGS)
    assert set_up_environment(3) == ""
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert os.environ["XLA_FLAGS"] == FLAGS
    assert {os.environ[name] for name in THREADS} == {"3"}


def test_variables_that_may_change_results_are_removed_and_named(environ):
    changing = {
        "JAX_ENABLE_X64": "1",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "AVX512F",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_L2_SIZE": "512",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    }
    for name, value in changing.items():
        environ.setenv(name, value)
    environ.setenv("OPENBLAS_VERBOSE", "2")
    assert set_up_environment(1).startswith(f"{', '.join(changing)}: left out of the environment")
    assert os.environ["XLA_FLAGS"] == FLAGS
    assert not changing.keys() - {"XLA_FLAGS"} & os.environ.keys()
    assert os.environ["OPENBLAS_VERBOSE"] == "2"


def test_workers_use_the_kernels_of_the_processor():
    """A user's choice of kernels is removed, and provenance names the kernels in use."""
    processors = []
    for variables in ({}, {"OPENBLAS_CORETYPE": "Nehalem"}):
        command = [sys.executable, "-c", KERNELS]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, check=True)
        left_out, kernels = json.loads(done.stdout)
        assert left_out.startswith("OPENBLAS_CORETYPE: left out") == bool(variables)
        processors.append(kernels)
    assert processors[0] == processors[1]
    assert "openblas" in processors[0]["blas"]
    assert processors[0]["cpu_features"] != "unknown"


def test_python_warns_once_of_variables_that_change_results(environ):
    environ.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    environ.setenv("JAX_LOG_COMPILES", "0")
    message = "^XLA_FLAGS changes the arithmetic of compiled programs: results may differ"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        nr.solve("hierarchy", theory=["aligned_modes"], **SMALL)
    assert len(caught) == 1
    nr.solve("hierarchy", theory=["aligned_modes"], **SMALL)  # a warning would be an error
    environ.setenv("OPENBLAS_CORETYPE", "Haswell")
    with pytest.warns(RuntimeWarning, match="^OPENBLAS_CORETYPE changes the kernels of linear alg"):
        nr.reduce_race("xor", network=XOR, init_scales=[0.1])


XOR = {"name": "gated", "hidden": [1], "gates": {"name": "per_example"}}


def test_training_without_compilation_is_refused():
    with jax.disable_jit(), pytest.raises(UserError, match=r"^JAX_DISABLE_JIT: .*; unset it"):
        nr.simulate("hierarchy", steps=200, learning_rate=0.1, theory=None, **SMALL)


FORKING = """
import multiprocessing, sys, warnings
import numpy as np
import neuralrace as nr
from neuralrace.errors import UserError

def simulate(_=None):
    x, y = np.eye(3), np.diag([3.0, 2, 1])
    try:
        tree = nr.simulate(x, y, hidden=[3], init_scales=[0.1], seeds=1, learning_rate=0.1,
                           steps=20, theory=["flow"], progress=False)
    except UserError as error:
        return str(error)
    return tree.attrs["status"]

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # JAX warns of the fork
    nr.specify("hierarchy", hidden=[3])
    if sys.argv[1] == "used":
        simulate()
    for method in sys.argv[2:]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            outcome = pool.map_async(simulate, [None]).get(timeout=200)[0]
        print(outcome.replace("\\n", " "))
"""


REFUSED = "this process was forked from one that had used JAX"
COMPUTED = "0 of 1 runs diverged"


@pytest.mark.parametrize(
    ("before", "outcomes"),
    [("used", {"fork": REFUSED, "spawn": COMPUTED}), ("unused", {"fork": COMPUTED})],
    ids=["used", "unused"],
)
def test_forked_process_computes_unless_jax_had_started(tmp_path, before, outcomes):
    script = tmp_path / "forking.py"
    script.write_text(FORKING)
    done = subprocess.run(
        [sys.executable, str(script), before, *outcomes],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == len(outcomes), done.stderr
    for line, outcome in zip(lines, outcomes.values(), strict=True):
        assert outcome in line
        assert ("sweep=" in line) == (outcome == REFUSED)
