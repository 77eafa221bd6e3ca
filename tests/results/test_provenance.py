"""The code behind a stage: all that its job imports, and no other stage's work."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from neuralrace.config.cell import DATASETS, INITIALISERS, NETWORKS
from neuralrace.extensions import source
from neuralrace.extensions.registry import METRICS
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.results import provenance
from neuralrace.results.provenance import (
    ROOT,
    RUNNER,
    Stage,
    code_files,
    code_sha256,
    package_versions,
)
from neuralrace.training.settings import OPTIMISERS

FIGURES = ROOT / "figures"
PAPERS = sorted(path.parent for path in FIGURES.glob("*/__init__.py"))
MODULES = [path for paper in PAPERS for path in sorted(paper.glob("[!_]*.py"))]
"""Modules that draw a figure."""
STAGES = get_args(Stage)
CHOICES = [
    cls.__module__
    for cls in (
        *DATASETS,
        *NETWORKS,
        *SAMPLE_SCHEMES,
        *DOMAIN_SCHEMES,
        *PAIRS,
        *INITIALISERS,
        *OPTIMISERS,
    )
]
"""Modules that are found by listing, and that no import names."""


def entries(stage):
    """Modules that a job of a stage imports first."""
    return RUNNER, f"neuralrace.workflow.{stage}"


def files_of(stage, *more):
    return {path.relative_to(ROOT).as_posix() for path in code_files(stage, more)}


def forget():
    """Clears the caches, so that the library is read again, as by another process."""
    for module in (provenance, source):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def dotted(path: Path) -> str:
    return ".".join(["neuralrace", *path.relative_to(ROOT).with_suffix("").parts])


def loaded(*modules: str) -> set[str]:
    """Library files in memory once a fresh process has imported these modules."""
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*(n for n in sys.modules if n.startswith('neuralrace.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True
    )
    specs = [find_spec(name) for name in done.stdout.split()]
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    assert len(origins) == len(specs) > 0
    return {Path(origin).relative_to(ROOT).as_posix() for origin in origins}


# tests/workflow/test_digests.py looks at what the jobs of all stages load


def test_files_of_the_figures_cover_what_they_load():
    names = [dotted(path) for path in MODULES]
    assert loaded(*entries("draw"), *names) <= files_of("draw", *names, *CHOICES)


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_files_of_a_stage_include_its_module_and_not_the_top_of_the_package(stage):
    files = files_of(stage)
    assert {"workflow/worker.py", f"workflow/{stage}.py"} <= files
    assert "__init__.py" not in files
    assert list(code_files(stage)) == sorted(set(code_files(stage)))


PLANNING = ("config/load.py", "config/manual.py")
TRAINING = ("training/trainer.py", "training/observables/")
"""Not all of `training`: specifications import losses, batches and optimisers."""


@pytest.mark.parametrize(
    ("stage", "others"),
    [
        ("train", ("theory/", "metrics/", "claims/", "figures/", *PLANNING)),
        ("solve", (*TRAINING, "metrics/", "claims/", "figures/", *PLANNING)),
        ("measure", ("claims/", "figures/", *PLANNING)),
        ("judge", (*TRAINING, "theory/", "figures/")),
        ("draw", (*TRAINING, "claims/", *PLANNING)),
    ],
)
def test_stage_does_not_depend_on_the_work_of_others(stage, others):
    assert [file for file in files_of(stage) if file.startswith(others)] == []


def test_metrics_depend_on_the_theory_they_compute_with():
    modules = [metric.module for metric in METRICS.values()]
    files = files_of("measure", *modules, *CHOICES)
    assert loaded(*entries("measure"), *modules) <= files
    assert {f"theory/{name}.py" for name in ("balance", "growth_bound", "modes")} <= files
    assert [file for file in files if file.startswith("theory/solutions/linear")] == []
    assert "training/trainer.py" in files  # some metrics train networks for comparison


def test_metric_depends_on_its_own_module_and_on_no_training():
    files = files_of("measure", METRICS["stages"].module)
    inside = {file for file in files if file.startswith("metrics/") and file.count("/") > 1}
    assert inside == {"metrics/loss/__init__.py", "metrics/loss/stages.py"}
    assert not any(file.startswith(TRAINING) for file in files)


def test_a_figure_depends_on_its_own_module_and_on_no_other_figure():
    assert MODULES
    for path in MODULES:
        files = {FIGURES.parent / name for name in files_of("draw", dotted(path))}
        assert files & set(MODULES) == {path}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A function that writes a module of a small library."""
    package = tmp_path / "neuralrace"
    package.mkdir()

    def write(name, text=""):
        (package / f"{name}.py").write_text(text)
        forget()

    write("a", "from neuralrace.b import f\n")
    write("b", "def f():\n    import neuralrace.c\n")
    write("c")
    write("named")
    monkeypatch.setattr(provenance, "ROOT", package)
    monkeypatch.setattr(provenance, "RUNNER", "neuralrace.a")
    yield write
    forget()


def test_digest_changes_with_imported_code_but_not_with_comments(library):
    assert [path.name for path in code_files("train")] == ["a.py", "b.py", "c.py"]
    before = code_sha256("train")
    library("named", "x = 1\n")
    assert code_sha256("train") == before
    library("c", "x = 1\n")
    assert code_sha256("train") != before
    library("c", "\n# a comment\n\n")
    assert code_sha256("train") == before
    library("c")
    assert code_sha256("train") == before


def test_digest_changes_with_the_extensions_of_a_cell(library):
    before = code_sha256("train", ["neuralrace.named"])
    assert before != code_sha256("train")
    library("named", "x = 1\n")
    assert code_sha256("train", ["neuralrace.named"]) != before


def test_digest_changes_with_other_packages(library, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "__init__.py").write_text("")
    (other / "metrics.py").write_text("import other.formula\n")
    (other / "formula.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(provenance, "packages", lambda: {"other.metrics"})
    forget()
    before = code_sha256("train", ["other.metrics"])
    names = [path.name for path in code_files("train", ["other.metrics"])]
    assert sorted(names) == ["__init__.py", "a.py", "b.py", "c.py", "formula.py", "metrics.py"]
    (other / "formula.py").write_text("x = 1\n")
    forget()
    assert code_sha256("train", ["other.metrics"]) != before


def test_versions_list_python_the_library_and_packages():
    entries = [entry.split() for entry in package_versions("scipy").split(", ")]
    assert [name for name, _version in entries] == ["python", "neuralrace", "numpy", "scipy"]
