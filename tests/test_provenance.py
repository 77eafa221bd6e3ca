"""What a stage rests on: as much as its job imports, and no other stage's work."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from neuralrace.provenance import ENTRIES, ROOT, Stage, code_files, code_sha256, versions
from neuralrace.registry import METRICS
from neuralrace.spec import DATASETS, DOMAIN_SCHEMES, LAWS, OPTIMISERS, PAIRS, SAMPLE_SCHEMES

FIGURES = ROOT / "figures"
PAPERS = sorted(path.parent for path in FIGURES.glob("*/__init__.py"))
MODULES = [path for paper in PAPERS for path in sorted(paper.glob("[!_]*.py"))]
"""Modules that draw a figure."""
CHOICES = [
    cls.__module__
    for cls in (*DATASETS, *SAMPLE_SCHEMES, *DOMAIN_SCHEMES, *PAIRS, *LAWS, *OPTIMISERS)
]
"""Modules that are found by listing, and that no import names."""


def rests_on(*arguments):
    return {path.relative_to(ROOT).as_posix() for path in code_files(*arguments)}


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


def test_every_stage_has_entries():
    assert set(ENTRIES) == set(get_args(Stage))


@pytest.mark.parametrize("stage", sorted(set(ENTRIES) - {"draw"}))
def test_closure_covers_what_a_job_loads(stage):
    assert loaded(*ENTRIES[stage]) <= rests_on(stage, *CHOICES)


def test_closure_of_the_figures_covers_what_they_load():
    names = [dotted(path) for path in MODULES]
    assert loaded(*ENTRIES["draw"], *names) <= rests_on("draw", *names, *CHOICES)


@pytest.mark.parametrize("stage", sorted(ENTRIES))
def test_closure_holds_its_entries_and_not_the_front_door(stage):
    files = rests_on(stage)
    entries = {name.split(".", 1)[1].replace(".", "/") + ".py" for name in ENTRIES[stage]}
    assert entries <= files
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
    files = rests_on("measure", *modules)
    assert loaded(*ENTRIES["measure"], *modules) <= files
    assert {f"theory/{name}.py" for name in ("balance", "growth_bound", "modes")} <= files
    assert [file for file in files if file.startswith("solutions/")] == []
    assert "training/ensemble.py" in files  # some metrics train networks to compare with


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


def test_digest_follows_names_and_contents(tmp_path, monkeypatch):
    package = tmp_path / "neuralrace"
    package.mkdir()
    (package / "a.py").write_text("from neuralrace.b import f\n")
    (package / "b.py").write_text("def f():\n    import neuralrace.c\n")
    (package / "c.py").write_text("")
    (package / "unused.py").write_text("")
    monkeypatch.setattr("neuralrace.provenance.ROOT", package)
    monkeypatch.setitem(ENTRIES, "train", ("neuralrace.a",))
    assert [path.name for path in code_files("train")] == ["a.py", "b.py", "c.py"]
    before = code_sha256("train")
    (package / "unused.py").write_text("x = 1\n")
    assert code_sha256("train") == before
    (package / "c.py").write_text("x = 1\n")
    changed = code_sha256("train")
    assert changed != before
    (package / "c.py").write_text("")
    assert code_sha256("train") == before


def test_versions_name_python_the_library_and_the_packages():
    named = versions("scipy")
    names = [entry.split()[0] for entry in named.split(", ")]
    assert names == ["python", "neuralrace", "numpy", "scipy"]
    assert all(len(entry.split()) == 2 for entry in named.split(", "))
