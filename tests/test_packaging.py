"""The repository's furniture: versions, the lock, the conda environment and stray host names."""

import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIRED = [Requirement(line) for line in PROJECT["dependencies"]]
DEVELOPMENT = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
LOCK = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
CONDA_NAMES = {"matplotlib": "matplotlib-base", "snakemake": "snakemake-minimal"}
"""Names on the conda channels where they differ from those of Python packages."""
REGISTRY = re.compile(
    rb"(?i)\b(pypi\.org|pythonhosted\.org|anaconda\.(org|com)|npmjs\.(org|com))\b"
    rb"|(index[-_]url|find[-_]links)[\s=:]+[\w\"']|://[^\s/]+/simple\b"
)
MACHINE_PATH = re.compile(rb"(?<![\w.~/:-])/(home|root|Users|mnt|work|workspace|opt|scratch)/\w")


def pins() -> list[tuple[str, str, str]]:
    """Name, version and the rest of each entry of the lock."""
    entries = re.split(r"\n(?=\S)", LOCK)
    found = [re.fullmatch(r"(?s)([\w.-]+)==([\w.+!-]+)(.*)", e) for e in entries if e[:1] != "#"]
    assert all(found), "the lock holds an entry that is no pin"
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


def test_licences_agree():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    licence = (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith(f"{PROJECT['license']} License")
    assert citation["license"] == PROJECT["license"]
    authors = PROJECT["authors"][0]["name"]
    assert authors in licence
    assert citation["authors"] == [{"name": authors}]


def test_conda_environment_is_that_of_the_project():
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text(encoding="utf-8"))
    *listed, last = environment["dependencies"]
    assert last == {"pip": ["--editable ."]}
    conda = {(r.name, r.specifier) for r in map(Requirement, listed)}
    build = next(r for r in DEVELOPMENT if r.name == "setuptools")
    tools = {
        ("python", SpecifierSet(PROJECT["requires-python"])),
        ("pip", SpecifierSet()),
        ("setuptools", build.specifier),
    }
    assert conda == tools | {(CONDA_NAMES.get(r.name, r.name), r.specifier) for r in REQUIRED}


def test_build_requirement_is_locked():
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= {str(requirement) for requirement in DEVELOPMENT}


@pytest.mark.parametrize("requirement", [*REQUIRED, *DEVELOPMENT], ids=lambda r: r.name)
def test_lock_satisfies_project(requirement: Requirement):
    locked = [v for name, v, _ in pins() if name == canonicalize_name(requirement.name)]
    assert locked
    assert all(requirement.specifier.contains(v) for v in locked)


def test_lock_is_hashed():
    assert len(pins()) > len(REQUIRED)
    bare = [name for name, _, rest in pins() if not re.search(r"--hash=sha256:[0-9a-f]{64}", rest)]
    assert bare == []


def test_lock_names_no_place():
    assert re.findall(r"://|\bfile:|--(?:extra-)?index-url|--find-links|(?<!\S)/", LOCK) == []


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
