"""The repository's furniture: versions, locks, what is released, and stray host names."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from builders import REPOSITORY
from mentions import lines
from neuralrace.config.bundled import FILES
from warm_python import PYTHON

PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
REQUIRED = [Requirement(line) for line in PROJECT["dependencies"]]
INSTALLING = [Requirement(line) for line in PYPROJECT["dependency-groups"]["install"]]
DEVELOPMENT = [
    Requirement(line) for name in ("dev", "docs") for line in PROJECT["optional-dependencies"][name]
]
SUBMITTING = [Requirement(line) for line in PROJECT["optional-dependencies"]["cluster"]]
ON_A_GPU = [Requirement(line) for line in PROJECT["optional-dependencies"]["cuda"]]
LOCKED = {
    "requirements.lock": [*REQUIRED, *INSTALLING],
    "requirements-dev.lock": [*REQUIRED, *DEVELOPMENT],
    "requirements-cluster.lock": [*REQUIRED, *SUBMITTING],
    "requirements-cuda.lock": [*REQUIRED, *ON_A_GPU],
}
"""What each lock is made from."""
REGISTRY = re.compile(
    rb"(?i)\b(pypi\.org|pythonhosted\.org|anaconda\.(org|com)|npmjs\.(org|com))\b"
    rb"|(index[-_]url|find[-_]links)[\s=:]+[\w\"']|://[^\s/]+/simple\b"
)
MACHINE_PATH = re.compile(rb"(?<![\w.~/:-])/(home|root|Users|mnt|work|workspace|opt|scratch)/\w")


def pins(lock: str) -> list[tuple[str, str, str]]:
    """Name, version and the rest of each entry of a lock."""
    entries = re.split(r"\n(?=\S)", (REPOSITORY / lock).read_text(encoding="utf-8"))
    found = [re.fullmatch(r"(?s)([\w.-]+)==([\w.+!-]+)(.*)", e) for e in entries if e[:1] != "#"]
    assert all(found), f"{lock} holds an entry that is no pin"
    return [(canonicalize_name(match[1]), match[2], match[3]) for match in found if match]


def tracked() -> list[Path]:
    """Files under version control, or about to be."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    paths = [REPOSITORY / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_versions_agree():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)
    assert newest is not None
    assert PROJECT["version"] == citation["version"] == newest[1] == version("neuralrace")
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f"\nVersion {PROJECT['version']} · Python {python} or newer · " in readme


def test_address_of_the_repository_is_that_of_the_project():
    """`Repository` in `[project.urls]`, which the first release adds."""
    address = PROJECT.get("urls", {}).get("Repository")
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation.get("repository-code") == address
    for page in ("README.md", "docs/start.md"):
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        assert f"git clone {address or '<this repository>'} && cd neuralrace\n" in text


def test_licences_agree():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    licence = (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
    code, images = PROJECT["license"].split(" AND ")
    assert licence.startswith(f"{code} License")
    assert citation["license"] == code
    attribution = (REPOSITORY / PROJECT["license-files"][1]).read_text(encoding="utf-8")
    assert images == "CC-BY-SA-3.0"
    assert "https://creativecommons.org/licenses/by-sa/3.0/" in attribution
    authors = PROJECT["authors"][0]["name"]
    assert authors in licence
    assert citation["authors"] == [{"name": authors}]


def test_extras_that_are_named_exist():
    named = {
        (path.name, extra)
        for path in tracked()
        if path.suffix in {".py", ".md", ".ipynb", ".yaml", ".yml"}
        for line in lines(path)
        for extra in re.findall(r"\bneuralrace\[(\w+)\]", line)
    }
    assert named, "at least the conformance suite names one"
    assert {extra for _, extra in named} <= {*PROJECT["optional-dependencies"]}, named


def test_conda_environment_is_that_of_the_locks():
    text = (REPOSITORY / "environment.yml").read_text(encoding="utf-8")
    python = f"python{PROJECT['requires-python']}"
    locked = {"pip": ["--require-hashes", "-r requirements.lock", "-r requirements-dev.lock"]}
    assert yaml.safe_load(text)["dependencies"] == [python, "pip", locked]
    commands = re.findall(r"^#     (.+)$", text, re.MULTILINE)
    assert set(commands) <= set(lines(REPOSITORY / "docs/workflow.md"))
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert f"$(INSTALL) {commands[-1].removeprefix('pip install ')}\n" in makefile


def test_build_requirement_is_locked():
    locked = {str(each) for each in (*INSTALLING, *REQUIRED)}
    assert set(PYPROJECT["build-system"]["requires"]) <= locked


@pytest.mark.parametrize("lock", LOCKED)
def test_lock_satisfies_project(lock: str):
    locked = pins(lock)
    for requirement in LOCKED[lock]:
        versions = [v for name, v, _ in locked if name == canonicalize_name(requirement.name)]
        assert versions, requirement
        assert all(requirement.specifier.contains(v) for v in versions), requirement


@pytest.mark.parametrize("lock", [name for name in LOCKED if name != "requirements.lock"])
def test_other_locks_change_nothing_that_a_run_uses(lock: str):
    run, more = ({(n, v) for n, v, _ in pins(name)} for name in ("requirements.lock", lock))
    names = {name for name, _ in more}
    assert {(name, v) for name, v in run if name in names} <= more
    assert not {name for name, _ in run} & {"pytest", "ruff", "pyright", "sphinx"}


@pytest.mark.parametrize("lock", LOCKED)
def test_lock_is_hashed(lock: str):
    assert len(pins(lock)) > len(LOCKED[lock])
    hashed = re.compile(r"--hash=sha256:[0-9a-f]{64}")
    assert [name for name, _, rest in pins(lock) if not hashed.search(rest)] == []


@pytest.mark.parametrize("lock", LOCKED)
def test_lock_names_no_place(lock: str):
    place = r"://|\bfile:|--(?:extra-)?index-url|--find-links|(?<!\S)/"
    assert re.findall(place, (REPOSITORY / lock).read_text(encoding="utf-8")) == []


PLANNED = re.compile(r"^(neuralrace_)?train +\d+$", re.MULTILINE)
"""Trainings of the experiment that `neuralrace new` writes, in Snakemake's table."""


def built(source: Path, target: str, into: Path) -> Path:
    """A distribution of what is in a folder, for which nothing is fetched."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    command += ["--directory", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = into.iterdir()
    return found


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """The wheel, built from the source distribution as a release is."""
    wheel, sdist, unpacked = map(tmp_path_factory.mktemp, ("wheel", "sdist", "unpacked"))
    with tarfile.open(built(REPOSITORY, "sdist", sdist)) as packed:
        packed.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return built(source, "wheel", wheel)


@pytest.fixture(scope="module")
def installed(released, tmp_path_factory):
    """Runs Python with the library from the wheel, in a folder with an experiment of its own.

    Beside that stands the Snakefile of the manual.
    """
    site, folder = (tmp_path_factory.mktemp(name) for name in ("site", "elsewhere"))
    with zipfile.ZipFile(released) as packed:
        packed.extractall(site)

    def run(*arguments: str) -> str:
        done = PYTHON.run(arguments, folder, os.environ | {"PYTHONPATH": str(site)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("-m", "neuralrace.cli.main", "new", "mine")
    manual = (REPOSITORY / "config" / "README.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"```snakemake\n(.*?)```", manual, re.DOTALL)
    (folder / "Snakefile").write_text(written)
    return run


def test_the_wheel_holds_the_library_and_the_workflow_alone(released):
    expected = {"neuralrace/config/bundled/config/schema.json"}
    for path in tracked():
        name = path.relative_to(REPOSITORY)
        if name.is_relative_to("src"):
            expected.add(name.relative_to("src").as_posix())
        elif name.parts[0] in FILES:
            expected.add(f"neuralrace/config/bundled/{name.as_posix()}")
    with zipfile.ZipFile(released) as packed:
        held = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert held == expected


@pytest.mark.workflow
def test_the_workflow_of_the_wheel_plans_an_experiment_elsewhere(installed):
    root = installed("-c", "from neuralrace.config.bundled import root; print(root())").strip()
    assert root.endswith("neuralrace/config/bundled")
    options = ("--dry-run", "--config", "settings=mine/experiments.yaml", "--", "cells")
    told = installed("-m", "snakemake", "--snakefile", f"{root}/Snakefile", *options)
    assert PLANNED.search(told)
    assert f"specific profile {root}/profiles/default" in told


@pytest.mark.workflow
def test_the_workflow_of_the_wheel_is_a_module_of_another(installed):
    told = installed("-m", "snakemake", "--dry-run", "--quiet", "rules", "--", "neuralrace_cells")
    assert PLANNED.search(told)


def test_the_catalogue_of_workflows_is_told_what_it_asks_for():
    """Its reader finds these by name, and takes what it does not know for absent."""
    told = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(told) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(told["mandatory-flags"]) == {"desc", "flags"}
    assert (REPOSITORY / "workflow" / "Snakefile").is_file()
    assert (REPOSITORY / "config" / "README.md").is_file()


@pytest.mark.parametrize(
    ("pattern", "samples"),
    [
        (
            REGISTRY,
            ["files." + "pythonhosted" + ".org", "index" + "-url = x", "http://h" + "/simple"],
        ),
        (MACHINE_PATH, ["cd " + "/home" + "/someone"]),
    ],
    ids=["registry", "machine"],
)
def test_no_file_names_a_registry_or_a_machine(pattern: re.Pattern[bytes], samples: list[str]):
    assert all(pattern.search(sample.encode()) for sample in samples)
    named = {
        str(path.relative_to(REPOSITORY)): found[0]
        for path in tracked()
        if (found := pattern.search(path.read_bytes()))
    }
    assert named == {}
