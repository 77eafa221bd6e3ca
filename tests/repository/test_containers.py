"""Recipes of containers, read as text; tests/workflow/faults builds them where the tools are."""

import re

import pytest
from packaging.specifiers import SpecifierSet

from builders import REPOSITORY
from neuralrace.config.bundled import FILES

DOCKER, APPTAINER = (REPOSITORY / "container" / name for name in ("Dockerfile", "neuralrace.def"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (DOCKER, APPTAINER)}


def copied(text: str) -> set[str]:
    """What a recipe copies from the repository."""
    by_docker = re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE)
    by_apptainer = re.findall(r"^ +(\S+) /neuralrace/$", text, re.MULTILINE)
    return {name for line in [*by_docker, *by_apptainer] for name in line.split()}


def commands(text: str) -> list[str]:
    """What a recipe runs to install and to check."""
    return re.findall(r"/venv/bin/(?:pip|python) .*?(?= \\|$)", text, re.MULTILINE)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_recipe_copies_what_is_there_and_all_that_is_needed(text):
    names = copied(text)
    assert all((REPOSITORY / name).exists() for name in names)
    assert {
        *FILES,
        "src",
        "requirements.lock",
        "requirements-cuda.lock",
        "pyproject.toml",
        "hatch_build.py",
    } <= names


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_recipe_installs_what_is_locked_on_a_python_that_is_supported(text):
    (locks,) = re.findall(r'--build-arg LOCKS="(.+)"', text)
    assert set(locks.split()) <= copied(text)
    assert re.search(rf"^(?:ARG|   ) LOCKS={locks.split()[0]}$", text, re.MULTILINE)
    assert "pip install --no-cache-dir --require-hashes -r $lock" in text
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (wanted,) = re.findall(r'requires-python = "(.*)"', project)
    (base,) = re.findall(r"(?i)^from:? (?:\S+/)?python:([0-9.]+)-slim$", text, re.MULTILINE)
    assert base in SpecifierSet(wanted)
    assert f"--python-version {base} " in (REPOSITORY / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_recipe_names_no_registry(text):
    assert not re.search(r"://|index-url|find-links|[a-z]\.(?:org|com|io)\b", text)


def test_both_recipes_install_the_same():
    docker, apptainer = TEXTS.values()
    assert commands(docker) == commands(apptainer)
    assert copied(docker) == copied(apptainer)


def test_it_runs_as_a_user():
    lines = TEXTS["Dockerfile"].splitlines()
    assert lines.index("USER neuralrace") < lines.index('ENTRYPOINT ["neuralrace"]')
