"""What a stage rests on: as much as its job imports, and no other stage's work."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from neuralrace.extensions import source
from neuralrace.results import provenance
from neuralrace.training.settings import OPTIMISERS
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.results.provenance import ROOT, RUNNER, Stage, code_files, code_sha256, package_versions
from neuralrace.extensions.registry import METRICS
from neuralrace.config.cell import DATASETS, INITIALISERS, NETWORKS

FIGURES = ROOT / "figures"
PAPERS = sorted(path.parent for path in FIGURES.glob("*/__init__.py"))
MODULES = [path for paper in PAPERS for path in sorted(paper.glob("[!_]*.py"))]
"""Modules that draw a figure."""
STAGES = get_args(Stage)
CHOICES = [
    cls.__module__
    for cls in (*DATASETS, *NETWORKS, *SAMPLE_SCHEMES, *DOMAIN_SCHEMES, *PAIRS, *INITIALISERS, *OPTIMISERS)
]
"""Modules that are found by listing, and that no import names."""


def entries(stage):
    """What a job of a stage begins with."""
    return RUNNER, f"neuralrace.workflow.{stage}"


def rests_on(stage, *more):
    return {path.relative_to(ROOT).as_posix() for path in code_files(stage, more)}


def forget():
    """What has been read of the library is read again, as by another process."""
    for module in (provenance, source):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


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


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"draw"}))
def test_closure_covers_what_a_job_loads(stage):
    assert loaded(*entries(stage)) <= rests_on(stage, *CHOICES)


def test_closure_of_the_figures_covers_what_they_load():
    names = [dotted(path) for path in MODULES]
    assert loaded(*entries("draw"), *names) <= rests_on("draw", *names, *CHOICES)


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_closure_holds_its_entries_and_not_the_front_door(stage):
    files = rests_on(stage)
    assert {"workflow/worker.py", f"workflow/{stage}.py"} <= files
    assert "__init__.py" not in files
    assert list(code_files(stage)) == sorted(set(code_files(stage)))


@pytest.mark.parametrize(
    ("stage", "others"),
    [
        ("train", ("theory/", "metrics/", "claims/", "figures/", "plan.py", "manual.py")),
        ("solve", ("training/", "metrics/", "claims/", "figures/", "plan.py", "manual.py")),
        ("measure", ("claims/", "figures/", "plan.py", "manual.py")),
        ("judge", ("training/", "theory/", "figures/")),
        ("draw", ("training/", "claims/", "plan.py", "manual.py")),
    ],
)
def test_a_stage_does_not_rest_on_the_work_of_others(stage, others):
    assert [file for file in rests_on(stage) if file.startswith(others)] == []


def test_metrics_rest_on_the_theory_they_compute_with():
    modules = [metric.module for metric in METRICS.values()]
    files = rests_on("measure", *modules, *CHOICES)
    assert loaded(*entries("measure"), *modules) <= files
    assert {f"theory/{name}.py" for name in ("balance", "growth_bound", "modes")} <= files
    assert [file for file in files if file.startswith("solutions/")] == []
    assert "training/trainer.py" in files  # some metrics train networks to compare with


def test_a_metric_rests_on_its_own_module_and_on_no_training():
    files = rests_on("measure", METRICS["stages"].module)
    own = {file.removeprefix("metrics/") for file in files if file.startswith("metrics/")}
    assert own == {"__init__.py", "describe.py", "measure.py", "stages.py"}
    assert not any(file.startswith("training/") for file in files)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_figure_rests_on_its_own_module_and_on_no_other_figure(path):
    files = {FIGURES.parent / name for name in rests_on("draw", dotted(path))}
    assert path in files
    assert files & set(MODULES) == {path}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of a few modules, and a function that writes one of them."""
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


def test_digest_follows_names_and_contents(library):
    assert [path.name for path in code_files("train")] == ["a.py", "b.py", "c.py"]
    before = code_sha256("train")
    library("named", "x = 1\n")
    assert code_sha256("train") == before
    library("c", "x = 1\n")
    assert code_sha256("train") != before
    library("c", "\n# a comment, which computes nothing\n\n")
    assert code_sha256("train") == before
    library("c")
    assert code_sha256("train") == before


def test_digest_follows_what_a_cell_names(library):
    before = code_sha256("train", ["neuralrace.named"])
    assert before != code_sha256("train")
    library("named", "x = 1\n")
    assert code_sha256("train", ["neuralrace.named"]) != before


def test_digest_follows_packages_of_others(library, tmp_path, monkeypatch):
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


def test_versions_name_python_the_library_and_the_packages():
    named = package_versions("scipy")
    names = [entry.split()[0] for entry in named.split(", ")]
    assert names == ["python", "neuralrace", "numpy", "scipy"]
    assert all(len(entry.split()) == 2 for entry in named.split(", "))
