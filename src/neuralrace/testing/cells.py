"""Small runs for the conformance suite, and the extensions that can be tested on each."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from neuralrace.config.cell import DATASETS, INITIALISERS, Cell, Ensemble
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS, Entry, Registry
from neuralrace.testing.declarations import names, valid_entries

Spec = Mapping[str, Any]
SPEC: Spec = {
    "init": {"name": "normal"},
    "init_scales": [0.1, 0.2],
    "seeds": 2,
    "training": {"learning_rate": 0.01, "steps": 20},
    "record": {"every": 10, "snapshots": 2},
}
LAYERED = {"name": "layered", "hidden": [4]}
RELU = LAYERED | {"activation": "relu"}
CONTEXTUAL = {"name": "contextual", "contexts": 3, "objects": 4}
CONTEXTS = {"name": "gated", "hidden": [4], "gates": {"name": "contexts", "open_in": [1]}}
HALF_SPACES = {"name": "half_space", "pathways": 3}
MODES = {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 3, "outputs": 2}
GAUSSIAN = {"name": "nonlinear_gaussian", "inputs": 6, "xi": [1.0, 0.4], "samples": 60}
ROUTING = {
    "name": "routing",
    "hidden": [24, 24],
    "gates": {"name": "always_on"},
    "pairs": {"name": "band", "partners": 1},
}
SMALL: Mapping[str, Spec] = {
    "modes": {"dataset": MODES, "network": LAYERED, "init": {"name": "aligned"}},
    "shallow": {"dataset": MODES, "network": LAYERED | {"hidden": []}},
    "sequence": {
        "dataset": {
            "name": "sequence",
            "tasks": [MODES, MODES | {"singular_values": [1.0], "basis": "random"}],
            "switches": [10],
        },
        "network": LAYERED,
        "init": {"name": "zero_balanced"},
    },
    "test_samples": {
        "dataset": {
            "name": "table",
            "x": [[1, 0], [0, 1], [1, 1], [2, 1]],
            "y": [[1], [2], [3], [4]],
            "test": 0.25,
        },
        "network": RELU,
    },
    "xor": {"dataset": {"name": "xor"}, "network": RELU},
    "margin": {"dataset": {"name": "xor", "margin": 1.2}, "network": RELU},
    "examples": {
        "dataset": {"name": "xor"},
        "network": {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}},
        "init": {"name": "aligned"},
    },
    "routing": {
        "dataset": {"name": "routing", "count": 2},
        "network": ROUTING,
        "init": {"name": "aligned"},
    },
    "orthogonal": {
        "dataset": {"name": "routing", "count": 2},
        "network": ROUTING,
        "init": {"name": "orthogonal"},
    },
    "images": {
        "dataset": {
            "name": "transformed_images",
            "count": 2,
            "images": {"name": "digits", "samples": 20},
        },
        "network": ROUTING | {"hidden": [3, 4]},
    },
    "contexts": {"dataset": CONTEXTUAL, "network": CONTEXTS},
    "candidates": {"dataset": CONTEXTUAL, "network": RELU, "candidates": {"one": CONTEXTS}},
    "gaussian": {"dataset": GAUSSIAN, "network": RELU | {"readout": "mean"}},
    "half_spaces": {
        "dataset": GAUSSIAN,
        "network": {"name": "gated", "hidden": [1], "readout": "mean", "gates": HALF_SPACES},
    },
}
"""Small runs by name, as in `config/`; `SPEC` has the keys that they leave out."""


def name_of(cls: type[ConfigModel]) -> str:
    """The name of a class in `config/`."""
    (name,) = get_args(cls.model_fields["name"].annotation)
    return name


def example_of(cls: type[ConfigModel]) -> dict[str, Any]:
    """The name and example parameters of a class, as in `config/`."""
    return {"name": name_of(cls), **cls.example}


LOADABLE = {name_of(cls): cls for cls in DATASETS if not cls.reads_files}
"""Datasets that read no files, by name."""
DRAWN = {name_of(cls): cls for cls in INITIALISERS if not cls.reads_files}
"""Initialisers that read no files, by name."""


def cell_of(spec: Spec, **changes: Any) -> Cell:
    """A cell with 20 training steps; `changes` replace top-level keys."""
    return Cell.model_validate_json(json.dumps({**SPEC, **spec, **changes}))


def recording(spec: Spec, observables: Iterable[str]) -> dict[str, Any]:
    """The same run with other observables."""
    record = spec.get("record", SPEC["record"])
    return {**spec, "record": {**record, "observables": list(observables)}}


@cache
def recordable(run: str) -> tuple[str, ...]:
    """Observables that can be recorded in a small run."""
    accepted = _accepted(OBSERVABLES, cell_of(SMALL[run]))
    return tuple(name for name in accepted if _is_valid(recording(SMALL[run], [name])))


@cache
def solvable(run: str) -> tuple[str, ...]:
    """Solutions whose requirements a small run meets."""
    return tuple(_accepted(SOLUTIONS, cell_of(SMALL[run])))


@cache
def measurable(run: str) -> tuple[str, ...]:
    """Metrics whose requirements a small run meets, with all its observables and solutions.

    Metrics of the library that train networks are left to the tests of the library.
    """
    cell = cell_of(recording(SMALL[run], recordable(run)))
    return tuple(
        name
        for name, entry in _accepted(METRICS, cell).items()
        if not entry.declaration.absent(recordable(run), solvable(run))
        and not (entry.declaration.trains and in_library(entry.module))
    )


class Trial(NamedTuple):
    """The extensions that are tested on a small run."""

    observables: tuple[str, ...]
    solutions: tuple[str, ...]
    metrics: tuple[str, ...]


def trials() -> dict[str, Trial]:
    """Small runs that together test all observables and metrics, as few as possible.

    A metric of another distribution is tested on every run that it accepts, because the data of one
    run may reveal an error. A metric of the library, which has other tests, is tested once.
    """
    tested: set[str] = set()
    chosen = {}
    for run in SMALL:
        external = [name for name in measurable(run) if not in_library(METRICS[name].module)]
        metrics = (*external, *(n for n in measurable(run) if n not in {*tested, *external}))
        declarations = [METRICS[name].declaration for name in metrics]
        required = {name for metric in declarations for name in names(metric.observables)}
        recorded = tuple(n for n in recordable(run) if n not in tested or n in required)
        if not {*recorded, *external} <= tested:
            required = {name for metric in declarations for name in names(metric.solutions)}
            any_solution = any(name.startswith("*") for name in required)
            solutions = tuple(n for n in solvable(run) if any_solution or n in required)
            chosen[run] = Trial(recorded, solutions, metrics)
            tested.update(recorded, metrics)
    return chosen


def in_library(module: str) -> bool:
    """Whether a module belongs to this library, not to another distribution."""
    return module.startswith("neuralrace.")


def _accepted(registry: Registry, cell: Cell) -> dict[str, Entry]:
    """The valid entries whose requirements a cell meets."""
    entries = valid_entries(registry).items()
    return {n: e for n, e in entries if not unmet(cell, e.declaration.requires, data=True)}


def _is_valid(spec: Spec) -> bool:
    try:
        cell_of(spec).only(Ensemble).task()
    except UserError:
        return False
    return True
