"""Extensions in another package: one of each kind, its conformance tests, and the guide."""

import json
import os
import re
import sys
import tomllib

import pytest

from builders import REPOSITORY
from compiling import QUICK
from warm_python import PYTHON

GUIDE = (REPOSITORY / "docs/own_package.md").read_text(encoding="utf-8")
KINDS = ("datasets", "observables", "solutions", "metrics", "figures")
FILES = {
    "outside.dist-info/METADATA": "Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n",
    "outside.dist-info/entry_points.txt": "[neuralrace]\n"
    + "".join(f"{kind} = outside.{kind}\n" for kind in KINDS),
    "outside/__init__.py": "",
    **{f"outside/{kind}/__init__.py": "" for kind in KINDS},
    "outside/datasets/spiral.py": '''"""A dataset that the library does not know."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from neuralrace.datasets.base import Data, Dataset


class Spiral(Dataset):
    """Points on a spiral; the target is their position along it."""

    example: ClassVar[Mapping[str, Any]] = {"samples": 12}
    name: Literal["spiral"]
    samples: int
    """Points."""

    def load(self) -> Data:
        """The points in order."""
        along = np.linspace(0, 1, self.samples)[:, None]
        angle = 2 * np.pi * along
        return Data(x=along * np.hstack([np.cos(angle), np.sin(angle)]), y=along)
''',
    "outside/observables/reach.py": '''"""An observable that the library does not know."""

import jax.numpy as jnp

from neuralrace.extensions.registry import Observable


@Observable(requires="layered linear", variables={"reach": ("time", "largest weight")})
def reach(view):
    """The largest weight."""
    return {"reach": jnp.max(jnp.stack([jnp.max(jnp.abs(w)) for w in view.network.weights]))}
''',
    "outside/solutions/at_rest.py": '''"""A solution that the library does not know."""

import numpy as np

from neuralrace.extensions.registry import Solution


@Solution(
    requires="layered linear squared_error",
    variables={"start_reach": ("", "largest weight at the start")},
)
def at_rest(problem):
    """Weights that stay.

    Source: none.
    """
    largest = [np.abs(w).max(axis=(-2, -1)) for w in problem.weights]
    return {"start_reach": np.max(largest, axis=0)}
''',
    "outside/metrics/travelled.py": '''"""A metric that the library does not know."""

from neuralrace.extensions.registry import Metric


@Metric(
    requires="squared_error",
    observables="reach",
    solutions="at_rest",
    variables={"travelled": ("", "largest weight at the end over that at the start")},
)
def travelled(cell):
    """How far the largest weight has come."""
    end = cell.trajectory["reach"].isel(time=-1, drop=True)
    return {"travelled": end / cell.theory["start_reach"]}
''',
    "outside/figures/paper/journey.py": '''"""A figure that the library does not know.

How far the largest weight has come.
"""

from neuralrace.extensions.registry import Figure


@Figure(layout="a", height=2.0, reads={"experiment": {"metrics": "travelled"}})
def legend(results):
    """None."""
    return []


def panel_a(results, ax):
    """A bar for each seed."""
    travelled = results.cell("experiment").get("metrics", "travelled").isel(init_scale=0)
    ax.bar(travelled["seed"], travelled)
    ax.set_title("The largest weight")
''',
}
CELL = {
    "dataset": {"name": "spiral", "samples": 9},
    "network": {"name": "layered", "hidden": [3]},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.1, "steps": 20},
    "record": {"every": 10, "observables": ["outputs", "reach"]},
    "solutions": ["at_rest"],
    "metrics": ["travelled"],
}
MEASURE = """
import sys
from pathlib import Path

from neuralrace.figures.save import save
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.files import write_result
from neuralrace.results.cells import CellResults
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.training.trainer import train

cell = Cell.model_validate_json(sys.argv[1])
assert type(cell.dataset).__module__ == "outside.datasets.spiral"
ensemble, name = cell.only(Ensemble), "paper/experiment/main"
trajectory = trajectory_dataset(name, ensemble, train(ensemble))
print(trajectory["outputs"].shape, trajectory["reach"].attrs["long_name"])
theory = theory_dataset(name, cell.only(SolvedEnsemble))
results = CellResults(name, Path(name), cell, trajectory, theory)
metrics = metrics_dataset(results)
print(metrics["travelled"].shape)
write_result(metrics, results.path("metrics"))
files = [f"journey.{suffix}" for suffix in ("png", "pdf", "svg", "slim.png")]
save("paper/journey", "", {name: {}}, "", *files)
"""


def python(folder, *arguments):
    """A Python process in which the distribution in a folder is installed."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return PYTHON.run(arguments, folder, os.environ | QUICK | {"PYTHONPATH": path})


def suite(folder, module, *arguments):
    """The conformance suite, or a module of it."""
    name = f"neuralrace.testing{module}"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    return python(folder, "-m", "pytest", *options, "--pyargs", name, *arguments)


def install(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def outside(tmp_path):
    """A folder with a distribution that has one extension of each kind."""
    install(tmp_path, FILES)
    return tmp_path


def change(folder, name, old, new):
    path = folder / "outside" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_extensions_of_each_kind_are_configured_trained_solved_measured_and_drawn(outside):
    done = python(outside, "-c", MEASURE, json.dumps(CELL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["(1, 2, 2, 9, 1) largest weight", "(1, 2)", ""]
    assert (outside / "journey.png").stat().st_size > 1000


def test_extensions_of_each_kind_pass_the_conformance_suite(outside):
    names = "test_declarations or spiral or reach or at_rest or travelled or journey"
    done = suite(outside, "", "-k", names, "-rp")
    assert done.returncode == 0, done.stdout
    passed = "\n".join(line for line in done.stdout.splitlines() if "PASSED" in line)
    for test in (
        "test_choices_are_documented_and_have_an_example[spiral]",
        "test_dataset_loads_consistent_and_reproducible_arrays[spiral]",
        "test_network_trains_and_its_results_are_read_back[spiral-",
        "test_declaration_is_valid[observables-reach]",
        "test_declaration_is_valid[figures-paper/journey]",
        "test_declaration_is_valid[figures-deep_linear/staircase]",
        "test_solution_returns_its_declared_variables[at_rest]",
    ):
        assert test in passed
    assert re.search(r"measured_variables_are_declared\[modes-.*reach.*travelled", passed)


COPIED = {"metrics": "travelled", "figures/paper": "journey"}
"""The module of each folder that is copied under other names."""
FAULTY = {
    "metrics/rounded": (
        'requires="squared_error"',
        'requires="round_square"',
        "metric 'rounded': `requires` names 'round_square', which "
        "is no function of neuralrace.config.requirements",
    ),
    "metrics/furlongs": (
        'variables={"furlongs": ("",',
        'variables={"furlongs": ("furlong",',
        "metric 'furlongs': `variables` declares 'furlongs' with "
        "the dimension 'furlong'; use a dimension of",
    ),
    "metrics/turned": (
        'variables={"turned"',
        'variables={"final_cosine"',
        "metric 'turned': `variables` declares 'final_cosine', "
        "which 'alignment' in neuralrace.metrics.linear.alignment declares differently",
    ),
    "metrics/strides": (
        'variables={"strides"',
        'variables={"lengths"',
        "metric 'strides' in outside.metrics.strides: 'strides' is not declared",
    ),
    "figures/paper/miles": (
        '"metrics": "travelled"',
        '"metrics": "miles"',
        "figure 'paper/miles': `reads` names the variable "
        "'miles' of metrics, which nothing declares",
    ),
}
"""Faulty copies: a text of each, what stands in its place, and the message."""


def test_faulty_extensions_fail_the_suite_with_their_modules(outside):
    for copy, (old, new, _) in FAULTY.items():
        folder, _, own = copy.rpartition("/")
        text = FILES[f"outside/{folder}/{COPIED[folder]}.py"]
        if folder == "metrics":
            text = text.replace("travelled", own)
        assert old in text
        install(outside, {f"outside/{copy}.py": text.replace(old, new)})
    done = suite(outside, "", "-k", " or ".join(copy.rpartition("/")[2] for copy in FAULTY))
    assert done.returncode == 1, done.stdout
    for copy, (*_, message) in FAULTY.items():
        assert message in done.stdout
        assert f"outside.{copy.replace('/', '.')}" in done.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "tests", "message"),
    [
        (
            "observables/reach",
            'return {"reach"',
            'return {"grasp"',
            ".test_computed",
            "an observable records 'grasp', which no `variables` in ",
        ),
        (
            "solutions/at_rest",
            'return {"start_reach"',
            'return {"begin"',
            ".test_computed",
            "outside.solutions.at_rest: solution 'at_rest' returns 'begin', which its `variables` "
            "does not declare",
        ),
        (
            "datasets/spiral",
            '{"samples": 12}',
            "{}",
            ".test_choices",
            "outside.datasets.spiral: Spiral.example has no value for the required keys "
            "['samples']",
        ),
    ],
)
def test_a_faulty_extension_that_others_need_fails_the_suite_with_its_module(
    outside, name, old, new, tests, message
):
    """Each on its own, as metrics are tested with all observables and solutions."""
    change(outside, f"{name}.py", old, new)
    done = suite(outside, tests, "-k", name.rpartition("/")[2])
    assert done.returncode == 1, done.stdout
    assert message in done.stdout
    assert f"outside.{name.replace('/', '.')}" in done.stdout


def test_a_name_of_two_extensions_is_refused_with_both_modules(outside):
    change(outside, "datasets/spiral.py", '"spiral"', '"xor"')
    done = python(outside, "-c", "import neuralrace.config.cell")
    assert done.returncode == 1
    message = "datasets: 'xor': is in neuralrace.datasets.xor and outside.datasets.spiral"
    assert f"UserError: {message}; rename one" in done.stderr


@pytest.mark.parametrize("first", ["outside.datasets.steps", "neuralrace.config.cell"])
def test_extensions_can_import_any_dataset(outside, first):
    """A choice inside a dataset may be in a module that imports that dataset."""
    install(
        outside,
        {
            "outside/datasets/steps.py": '''"""A marginal, and a dataset upon others."""

from typing import Literal

from neuralrace.datasets.marginals import Erf
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian
from neuralrace.datasets.transformed_images import TransformedImages


class Steps(Erf):
    """Nearly steps."""

    name: Literal["steps"]
    gain: float = 100.0
    """Slope."""


class Turned(TransformedImages):
    """Images through rotations."""

    name: Literal["turned"]


PLAIN = NonlinearGaussian
'''
        },
    )
    dataset = {"name": "nonlinear_gaussian", "marginal": {"name": "steps"}}
    cell = CELL | {"dataset": dataset}
    code = f"import sys, {first}; from neuralrace.config.cell import Cell; "
    code += "print(Cell.model_validate_json(sys.argv[1]).dataset.marginal.gain)"
    done = python(outside, "-c", code, json.dumps(cell))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "100.0\n"


def test_the_package_of_the_guide_passes_the_conformance_suite(tmp_path):
    shown = re.findall(r"`([^`\n]+)`:\n\n```\w+\n(.*?)```", GUIDE, re.DOTALL)
    files = {name.removeprefix("../neuralrace/"): text for name, text in shown}
    named = tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]["neuralrace"]
    points = "".join(f"{kind} = {package}\n" for kind, package in named.items())
    packages = ("mypackage", *(package.replace(".", "/") for package in named.values()))
    for package in packages:
        assert re.search(rf"touch .*{package.partition('/')[2]}", GUIDE)
    install(
        tmp_path,
        {
            "mypackage.dist-info/METADATA": FILES["outside.dist-info/METADATA"],
            "mypackage.dist-info/entry_points.txt": f"[neuralrace]\n{points}",
            **{f"{package}/__init__.py": "" for package in packages},
            **files,
        },
    )
    code = "import yaml; from neuralrace.config.load import read_plan; "
    code += "config = yaml.safe_load(open('mine.yaml')); print(*read_plan(config, {}).cells)"
    done = python(tmp_path, "-c", code)
    assert done.stdout == "spirals/first/main\n", done.stderr
    done = suite(tmp_path, "", "-k", "final_share or remaining or spiral")
    assert done.returncode == 0, done.stdout
    assert not re.search("skipped", done.stdout)
