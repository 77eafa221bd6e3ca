"""The stack under the tests computes right, and one that does not is refused."""

import re
import subprocess
import sys

import jax
import numpy as np
import pytest

from builders import REPOSITORY
from neuralrace.errors import UserError
from neuralrace.testing import known_answers

COMPILED = ("products_then_sums", "writes_into_constants", "descent_in_a_scan", "gates_of_units",
            "singular_values")  # fmt: skip


@pytest.mark.parametrize("problem", known_answers.PROBLEMS, ids=lambda p: p.__name__)
def test_this_stack_knows_the_answer(problem):
    with jax.enable_x64(True):
        assert problem(), f"{problem.__doc__} This stack computes it wrong; see requirements.lock"


def test_this_stack_is_accepted():
    known_answers.require_right_answers()
    assert known_answers.main() == 0


@pytest.mark.parametrize("problem", COMPILED)
def test_a_compiler_that_is_off_in_the_ninth_digit_is_noticed(monkeypatch, problem):
    jit = jax.jit

    def wrong(function):
        return lambda *args: np.asarray(jit(function)(*args)) * (1 + 1e-9)

    monkeypatch.setattr(known_answers.jax, "jit", wrong)
    with jax.enable_x64(True):
        assert not getattr(known_answers, problem)()


def test_wrong_random_bits_are_noticed(monkeypatch):
    right = known_answers.threefry_2x32
    monkeypatch.setattr(known_answers, "threefry_2x32", lambda key, count: right(key, count) ^ 1)
    assert not known_answers.random_numbers()


@pytest.mark.parametrize(
    ("module", "name"),
    [("integrate", "quad"), ("linalg", "expm"), ("special", "erfinv"), ("linalg", "svd")],
)
def test_wrong_numbers_of_scipy_are_noticed(monkeypatch, module, name):
    module = getattr(known_answers, module)
    right = getattr(module, name)

    def wrong(*args):
        found = right(*args)
        if isinstance(found, tuple):
            return (found[0] * (1 + 1e-8), *found[1:])
        return found * (1 + 1e-8)

    monkeypatch.setattr(module, name, wrong)
    with jax.enable_x64(True):
        assert not (known_answers.functions_and_flows() and known_answers.singular_values())


def test_a_wrong_stack_is_refused_with_versions_and_remedy(monkeypatch, capsys):
    def sums() -> bool:
        """One and one."""
        return False

    monkeypatch.setattr(known_answers, "PROBLEMS", (*known_answers.PROBLEMS, sums))
    with pytest.raises(UserError) as caught:
        known_answers.require_right_answers()
    told = str(caught.value)
    for words in ("sums: One and one.", f"jax {jax.__version__}", "make install", "make lock"):
        assert words in told
    assert told.count("\n- ") == 1
    assert known_answers.main() == 1
    assert capsys.readouterr().err.strip() == told


def test_the_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "neuralrace.testing.known_answers"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "environment.yml"])
def test_releases_known_to_be_wrong_are_excluded(name):
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    asked = re.findall(r"\b(jax|jaxlib)(?:\[cuda12\])?>=([\d.]+,!=[\d.]+)?", text)
    assert asked
    assert {versions for _, versions in asked} == {"0.10,!=0.10.2"}


def test_the_lock_holds_none_of_them():
    locked = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    assert re.findall(r"^jax(?:lib)?==0\.10\.2\b", locked, re.MULTILINE) == []
    assert re.findall(r"^jax==", locked, re.MULTILINE)
