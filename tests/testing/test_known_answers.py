"""The installed numerical libraries compute correctly, and wrong ones are refused."""

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
def test_installed_libraries_give_the_answer(problem):
    with jax.enable_x64(True):
        assert problem(), f"{problem.__doc__} The result is wrong; see requirements.lock"


def test_installed_libraries_are_accepted():
    known_answers.require_right_answers()
    assert known_answers.main() == 0


@pytest.mark.parametrize("problem", COMPILED)
def test_compiler_with_errors_in_the_ninth_digit_is_detected(monkeypatch, problem):
    jit = jax.jit

    def wrong(function):
        return lambda *args: np.asarray(jit(function)(*args)) * (1 + 1e-9)

    monkeypatch.setattr(known_answers.jax, "jit", wrong)
    with jax.enable_x64(True):
        assert not getattr(known_answers, problem)()


def test_wrong_random_bits_are_detected(monkeypatch):
    right = known_answers.threefry_2x32
    monkeypatch.setattr(known_answers, "threefry_2x32", lambda key, count: right(key, count) ^ 1)
    assert not known_answers.random_numbers()


@pytest.mark.parametrize(
    ("module", "name"),
    [("integrate", "quad"), ("linalg", "expm"), ("special", "erfinv"), ("linalg", "svd")],
)
def test_wrong_results_of_scipy_are_detected(monkeypatch, module, name):
    module = getattr(known_answers, module)
    right = getattr(module, name)

    def wrong(*args):
        result = right(*args)
        if isinstance(result, tuple):
            return (result[0] * (1 + 1e-8), *result[1:])
        return result * (1 + 1e-8)

    monkeypatch.setattr(module, name, wrong)
    with jax.enable_x64(True):
        assert not (known_answers.functions_and_flows() and known_answers.singular_values())


def test_wrong_libraries_are_refused_with_versions_and_remedy(monkeypatch, capsys):
    def one_plus_one():
        return False

    monkeypatch.setattr(known_answers, "PROBLEMS", (*known_answers.PROBLEMS, one_plus_one))
    with pytest.raises(UserError, match=f"jax {jax.__version__}") as error:
        known_answers.require_right_answers()
    assert error.value.problem.endswith("wrong are: one plus one")
    assert "make install" in error.value.remedy
    assert "make lock" in error.value.remedy
    assert known_answers.main() == 1
    assert capsys.readouterr().err.strip() == str(error.value)


def test_command_prints_nothing_if_all_answers_are_right():
    done = subprocess.run(
        [sys.executable, "-m", "neuralrace.testing.known_answers"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_releases_known_to_be_wrong_are_excluded():
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    versions = re.findall(r"\bjax(?:lib)?(?:\[cuda12\])?>=([\d.]+,!=[\d.]+)?", text)
    assert set(versions) == {"0.10,!=0.10.2"}


def test_locked_releases_are_not_known_to_be_wrong():
    locked = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    assert re.findall(r"^jax(?:lib)?==0\.10\.2\b", locked, re.MULTILINE) == []
    assert re.findall(r"^jax==", locked, re.MULTILINE)
