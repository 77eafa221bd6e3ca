"""The environment that workers compute in, and what is said of variables that change results."""

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
from neuralrace.training.environment import settle
left_out = settle(1)
from neuralrace.results.provenance import processor
print(json.dumps([left_out, processor()]))
"""


@pytest.fixture
def before(monkeypatch):
    """An environment that a test may settle in."""
    for name in (*THREADS, "JAX_PLATFORMS"):
        monkeypatch.setenv(name, "of before")
    monkeypatch.setattr(environment, "_warned", set())
    return monkeypatch


def test_processors_alone(before):
    before.setenv("XLA_FLAGS", FLAGS)
    assert set_up_environment(3) == ""
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert os.environ["XLA_FLAGS"] == FLAGS
    assert {os.environ[name] for name in THREADS} == {"3"}


def test_what_may_change_values_is_left_out_and_named(before):
    changing = {
        "JAX_ENABLE_X64": "1",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "AVX512F",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_L2_SIZE": "512",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    }
    for name, value in changing.items():
        before.setenv(name, value)
    before.setenv("OPENBLAS_VERBOSE", "2")
    names = ", ".join(changing)
    assert (
        set_up_environment(1) == f"{names}: left out of the environment, as they may change results"
    )
    assert os.environ["XLA_FLAGS"] == FLAGS
    assert not changing.keys() - {"XLA_FLAGS"} & os.environ.keys()
    assert os.environ["OPENBLAS_VERBOSE"] == "2"


def test_workers_use_the_kernels_of_the_processor():
    """Whatever a person chose; and files name them."""
    found = []
    for chosen in ({}, {"OPENBLAS_CORETYPE": "Nehalem"}):
        command = [sys.executable, "-c", KERNELS]
        done = subprocess.run(command, env=os.environ | chosen, capture_output=True, check=True)
        left_out, kernels = json.loads(done.stdout)
        assert left_out.startswith("OPENBLAS_CORETYPE: left out") == bool(chosen)
        found.append(kernels)
    assert found[0] == found[1]
    assert "openblas" in found[0]["blas"]
    assert found[0]["cpu_features"] != "unknown"


def test_python_warns_once_of_variables_that_change_results(before):
    before.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    before.setenv("JAX_LOG_COMPILES", "0")
    message = "^XLA_FLAGS changes the arithmetic of compiled programs: results may differ"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        nr.solve("hierarchy", theory=["aligned_modes"], **SMALL)
    assert len(caught) == 1
    nr.solve("hierarchy", theory=["aligned_modes"], **SMALL)  # a warning would be an error
    before.setenv("OPENBLAS_CORETYPE", "Haswell")
    with pytest.warns(RuntimeWarning, match="^OPENBLAS_CORETYPE changes the kernels of linear alg"):
        nr.reduce_race("xor", network=XOR, init_scales=[0.1])


XOR = {"name": "gated", "hidden": [1], "gates": {"name": "per_example"}}


def test_training_without_compilation_is_refused():
    with jax.disable_jit(), pytest.raises(UserError, match=r"^JAX_DISABLE_JIT: .* unset it"):
        nr.simulate("hierarchy", steps=200, learning_rate=0.1, theory=None, **SMALL)
