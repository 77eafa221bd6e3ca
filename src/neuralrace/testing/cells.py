"""Small runs to try things on, and what of all that is registered can be tried on each."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from neuralrace.config.cell import DATASETS, Cell, Ensemble
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.testing.declarations import names, sound

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
    "pairs": {"name": "all"},
}
SMALL: Mapping[str, Spec] = {
    "modes": {"dataset": MODES, "network": LAYERED, "init": {"name": "aligned"}},
    "shallow": {"dataset": MODES, "network": LAYERED | {"hidden": []}},
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
        "network": ROUTING | {"hidden": [3, 4], "pairs": {"name": "band", "partners": 1}},
    },
    "contexts": {"dataset": CONTEXTUAL, "network": CONTEXTS},
    "candidates": {"dataset": CONTEXTUAL, "network": RELU, "candidates": {"one": CONTEXTS}},
    "gaussian": {"dataset": GAUSSIAN, "network": RELU | {"readout": "mean"}},
    "half_spaces": {
        "dataset": GAUSSIAN,
        "network": {"name": "gated", "hidden": [1], "readout": "mean", "gates": HALF_SPACES},
    },
}
"""Runs by name, as in `config/`; what they leave out is in `SPEC`."""


def name_of(cls: type[ConfigModel]) -> str:
    """What a class is called in `config/`."""
    (name,) = get_args(cls.model_fields["name"].annotation)
    return name


def example_of(cls: type[ConfigModel]) -> dict[str, Any]:
    """An example of a class, as in `config/`."""
    return {"name": name_of(cls), **cls.example}


LOADED = {name_of(cls): cls for cls in DATASETS if not cls.reads_files}


def cell_of(spec: Spec, **more: Any) -> Cell:
    """A cell of 20 steps."""
    return Cell.model_validate_json(json.dumps({**SPEC, **spec, **more}))


def recording(spec: Spec, observables: Iterable[str]) -> dict[str, Any]:
    """The same run, with these observables."""
    record = spec.get("record", SPEC["record"])
    return {**spec, "record": {**record, "observables": list(observables)}}


@cache
def observed(name: str) -> tuple[str, ...]:
    """All that can be recorded in a small run."""
    return tuple(
        each
        for each, entry in sound(OBSERVABLES).items()
        if not unmet(cell_of(SMALL[name]), entry.declaration.requires, data=True)
        and _accepted(recording(SMALL[name], [each]))
    )


@cache
def solved(name: str) -> tuple[str, ...]:
    """All that a small run meets the requirements of."""
    ensemble = cell_of(SMALL[name])
    return tuple(
        each
        for each, entry in sound(SOLUTIONS).items()
        if not unmet(ensemble, entry.declaration.requires, data=True)
    )


@cache
def measured(name: str) -> tuple[str, ...]:
    """All metrics that a small run with all that can be recorded and solved meets the needs of.

    Those of the library that train networks of their own are left to its tests.
    """
    ensemble = cell_of(recording(SMALL[name], observed(name)))
    return tuple(
        each
        for each, entry in sound(METRICS).items()
        if not unmet(ensemble, entry.declaration.requires, data=True)
        and not entry.declaration.absent(observed(name), solved(name))
        and not (entry.declaration.trains and of_library(entry.module))
    )


class Trial(NamedTuple):
    """What is tried on a small run."""

    observables: tuple[str, ...]
    solutions: tuple[str, ...]
    metrics: tuple[str, ...]


def trials() -> dict[str, Trial]:
    """As few small runs as have all observables, and all metrics of other distributions.

    These metrics are tried on each of them, as they may refuse the samples of one; those of the
    library, which have tests of their own, on one if any.
    """
    known: set[str] = set()
    chosen = {}
    for name in SMALL:
        foreign = [each for each in measured(name) if not of_library(METRICS[each].module)]
        metrics = (*foreign, *(e for e in measured(name) if e not in {*known, *foreign}))
        declared = [METRICS[each].declaration for each in metrics]
        needed = {each for metric in declared for each in names(metric.observables)}
        seen = tuple(each for each in observed(name) if each not in known or each in needed)
        if not {*seen, *foreign} <= known:
            wanted = {each for metric in declared for each in names(metric.solutions)}
            every = any(each.startswith("*") for each in wanted)
            solutions = (each for each in solved(name) if every or each in wanted)
            chosen[name] = Trial(seen, tuple(solutions), metrics)
            known.update(seen, metrics)
    return chosen


def of_library(module: str) -> bool:
    """Whether a module is of this library, and no other distribution's."""
    return module.startswith("neuralrace.")


def _accepted(spec: Spec) -> bool:
    try:
        cell_of(spec).only(Ensemble).task()
    except UserError:
        return False
    return True
