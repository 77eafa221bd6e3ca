"""Which theory applies to a network: every solution, what it assumes, and until where it holds."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.config.requirements import OF_NETWORK, OF_TRAINING, unmet
from neuralrace.extensions.registry import SOLUTIONS

USUAL = frozenset(["one_task", "squared_error", "gates_fit", "domains_in_memory"])
"""Requirements that nearly every solution has, which a table need not repeat."""


class Theory(NamedTuple):
    """A solution, and what it assumes beside one task and squared error."""

    solution: str
    says: str
    """The first sentence of its description."""
    network: str
    data: str
    start: str
    training: str
    """Names of its requirements on each, as words."""
    derived_for: str
    """Initial weights for which it is derived, if it can be computed for others."""
    source: str
    unmet: str
    """The first requirement that the ensemble does not meet; empty where all are met."""


def theories(ensemble: SolvedEnsemble | None = None) -> list[Theory]:
    """All solutions but baselines, those of installed packages too.

    Args:
        ensemble: what they are to apply to; when absent, `unmet` is empty.
    """
    return [
        _theory(name, ensemble)
        for name, entry in SOLUTIONS.items()
        if not entry.declaration.baseline
    ]


def _theory(name: str, ensemble: SolvedEnsemble | None) -> Theory:
    entry = SOLUTIONS[name]
    required = [r for r in entry.declaration.requires.split() if r not in USUAL]
    network = [each for each in required if OF_NETWORK.intersection(each.split("|"))]
    training = [each for each in required if OF_TRAINING.intersection(each.split("|"))]
    start = [each for each in required if each.endswith("_start")]
    data = [each for each in required if each not in {*network, *training, *start}]
    source = re.search(r"(?s)^Source: (.+?)(?=\n\n|\Z)", entry.text, re.MULTILINE)
    reason = unmet(ensemble, entry.declaration.requires, data=True) if ensemble else None
    return Theory(
        solution=name,
        says=" ".join(entry.text.partition("\n\n")[0].split()),
        network=_in_words(network),
        data=_in_words(data),
        start=_in_words(start),
        training=_in_words(training),
        derived_for=entry.declaration.derived_for,
        source=" ".join(source[1].split()) if source else "",
        unmet=str(reason or ""),
    )


def _in_words(required: Sequence[str]) -> str:
    return ", ".join(each.replace("|", " or ").replace("_", " ") for each in required)
