"""The library's layers, read from its source: what may import what, and what nothing may use."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from builders import REPOSITORY
from neuralrace.config.cell import DATASETS, INITIALISERS, NETWORKS
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.layered import Layered
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.results.provenance import code_files
from neuralrace.training.batches import Batch
from neuralrace.training.optimisers.sgd import Sgd
from neuralrace.training.settings import OPTIMISERS

LIBRARY = REPOSITORY / "src" / "neuralrace"
LAYERS = (
    {"errors"},
    {"extensions"},
    {"datasets"},
    {"training"},
    {"networks"},
    {"config"},
    {"theory"},
    {"results"},
    {"claims", "metrics"},
    {"board"},
    {"api", "figures"},
    {"testing", "workflow"},
    {"__init__", "cli"},
)
"""Lowest first. A module imports from its own part of the library and from lower layers."""
LEVELS = {part: level for level, layer in enumerate(LAYERS) for part in layer}
MODULES = sorted(LIBRARY.rglob("*.py"))
FORBIDDEN = (
    r"\b(pickle|cPickle|dill|joblib|marshal|shelve)\b",
    r"\byaml\.(load|load_all|full_load|unsafe_load)\b",
    r"\bos\.(system|popen)\b",
    r"\bshell\s*=\s*True\b",
    r"\b(eval|exec)\(",
)
"""Ways to run what a file says."""


def part(path: Path) -> str:
    """The top-level module or package of the library that a file belongs to."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> frozenset[str]:
    """Dotted names of all modules that a file imports, at its top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide what is imported"
            assert node.module is not None
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


def test_every_part_of_the_library_has_a_layer():
    assert {part(path) for path in MODULES} <= set(LEVELS)


def test_modules_import_lower_layers_only():
    too_high = {}
    for path in MODULES:
        own, names = part(path), imported(path)
        parts = {name.split(".")[1] for name in names if name.startswith("neuralrace.")}
        found = {other for other in parts - {own} if LEVELS.get(other, 99) >= LEVELS[own]}
        if "neuralrace" in names:  # import from the module that defines a name instead
            found.add("neuralrace")
        if found:
            too_high[path.relative_to(LIBRARY).as_posix()] = found
    assert too_high == {}


def test_training_knows_no_choice_by_name():
    # a gated network with learned gates is a layered one
    networks = set(NETWORKS) - {Layered}
    choices = (
        *DATASETS,
        *networks,
        *SAMPLE_SCHEMES,
        *DOMAIN_SCHEMES,
        *PAIRS,
        *INITIALISERS,
        *OPTIMISERS,
    )
    concrete = {Path(inspect.getfile(cls)) for cls in choices}
    tasks = {LIBRARY / f"networks/tasks/{name}.py" for name in ("graph", "domains")}
    # plain gradient steps are the default
    assert (concrete | tasks) & set(code_files("train")) <= {Path(inspect.getfile(Sgd))}


def test_kinds_of_networks_and_batches_are_asked_and_not_told_apart():
    kinds = "|".join(cls.__name__ for cls in (*NETWORKS, *Batch.__subclasses__()))
    switch = re.compile(rf"isinstance\([^)]*\b({kinds})\b|case ({kinds})\(")
    found = {part(path) for path in MODULES if switch.search(path.read_text(encoding="utf-8"))}
    assert found <= {"figures", "results"}  # they are for one kind, and refuse all others


def test_library_does_not_know_snakemake():
    assert [path for path in MODULES if any("snakemake" in name for name in imported(path))] == []


def test_planning_loads_no_heavy_package():
    """All that the rules import, and every declaration."""
    rules = (REPOSITORY / "workflow" / "rules" / "common.smk").read_text(encoding="utf-8")
    imports = re.findall(r"^from neuralrace\..*$", rules, re.MULTILINE)
    assert len(imports) > 5
    heavy = ("jax", "flax", "optax", "xarray", "pandas", "netCDF4", "matplotlib", "scipy")
    code = [
        "import sys, neuralrace.extensions.registry as r",
        *imports,
        "assert all(map(len, (r.METRICS, r.SOLUTIONS, r.OBSERVABLES, r.FIGURES)))",
        f"print([n for n in {heavy} if n in sys.modules])",
    ]
    run = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_sets_up_its_environment_before_numpy_is_loaded():
    """NumPy reads when it is loaded which kernels of linear algebra it is to use."""
    code = (
        "import sys, neuralrace.workflow.worker\n"
        "from neuralrace.results.provenance import note_source_files; note_source_files()\n"
        "from neuralrace.training.environment import set_up_environment; set_up_environment(1)\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("package", ["metrics", "claims", "figures"])
def test_results_have_one_reader(package):
    modules = [path for path in MODULES if part(path) == package]
    assert [path for path in modules if "neuralrace.results.files.read" in imported(path)] == []


def sources() -> list[Path]:
    """Everything that runs: the library, and all rules of the workflow."""
    workflow = REPOSITORY / "workflow"
    rules = [path for kind in ("*.py", "*.smk", "Snakefile") for path in workflow.rglob(kind)]
    return [*MODULES, *sorted(rules), REPOSITORY / "Snakefile"]


def test_nothing_runs_what_a_file_says():
    found = [
        (path.relative_to(REPOSITORY).as_posix(), match[0])
        for path in sources()
        for match in re.finditer("|".join(FORBIDDEN), path.read_text(encoding="utf-8"))
    ]
    assert found == []
