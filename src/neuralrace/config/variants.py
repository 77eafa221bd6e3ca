"""Variants of cells: with fresh seeds, and with one quantity doubled.

They test claims that were written with the results in view. Every variant has fresh seeds of runs
and of datasets. All variants but `fresh` also double one quantity that the papers do not state.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from neuralrace.config.cell import Cell
from neuralrace.config.load import config_folder

Variant = Literal["fresh", "samples", "widths", "steps", "step_size"]
VariantSet = Literal["blind", "ranges"]
"""What variants are for: `blind` judges with fresh seeds, of which nothing was known when claims
were written; `ranges` tries other values of what papers do not print."""

OFFSET = 7919
"""Added to every seed. It is the thousandth prime, so that it is not tuned."""

DOUBLED: dict[Variant, tuple[str, ...]] = {
    "fresh": (),
    "samples": ("dataset.samples", "dataset.samples_per_component", "training.batch.size"),
    "widths": ("network.hidden", "candidates.*.hidden"),
    "steps": ("training.steps",),
    "step_size": ("training.learning_rate",),
}
"""The keys of a specification that a variant doubles."""
VARIANT_SETS: dict[VariantSet, tuple[Variant, ...]] = {
    "blind": ("fresh",),
    "ranges": ("samples", "widths", "steps", "step_size"),
}
"""The variants of each set."""


def variants_path(folder: Path, group: VariantSet) -> Path:
    """The verdicts on a set of variants in a results folder, or else those that are released."""
    own = folder / f"{group}.json"
    return own if own.exists() else config_folder() / f"{group}.json"


def variant_of(cell: Cell, variant: Variant) -> Cell | None:
    """The cell with fresh seeds and one quantity doubled; None if it has no such quantity.

    Twice the steps are recorded at the same intervals. Twice the step size comes with half the
    steps and intervals, so that the times of the records, and of the tasks of a sequence, stay the
    same; if one of these numbers is odd, training takes twice as long instead. Averaged pathways of
    one unit keep their width: wider ones would be another kind of network.
    """
    if variant == "widths" and any(network.averages_units for network in cell.networks):
        return None
    spec = json.loads(cell.canonical())
    for key in DOUBLED[variant]:
        _double(spec, key.split("."))
    if variant != "fresh" and spec == json.loads(cell.canonical()):
        return None
    training, record = spec["training"], spec["record"]
    if variant == "steps":
        record["snapshots"] *= 2
    switches = spec["dataset"].get("switches", [])
    even = not any(number % 2 for number in (training["steps"], record["every"], *switches))
    if variant == "step_size" and even:
        training["steps"] //= 2
        record["every"] //= 2
        switches[:] = [step // 2 for step in switches]
    spec["first_seed"] += OFFSET
    for part in ("dataset", "network", "candidates"):
        _reseed(spec[part])
    try:
        return Cell.model_validate_json(json.dumps(spec))
    except ValidationError:
        if variant == "fresh":
            raise
        return None  # a dataset of images that has no more of them


def _double(node: Any, path: list[str]) -> None:
    """Doubles the number, or each of a list of numbers, at the end of a path; `*` is any key."""
    key, *rest = path
    for name in list(node) if key == "*" else [key] if key in node else []:
        value = node[name]
        if rest:
            if isinstance(value, dict):
                _double(value, rest)
        else:
            node[name] = [2 * number for number in value] if isinstance(value, list) else 2 * value


def _reseed(node: Any) -> None:
    """Adds the offset to every seed inside."""
    if isinstance(node, list):
        for value in node:
            _reseed(value)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name == "seed" and isinstance(value, int):
                node[name] = value + OFFSET
            else:
                _reseed(value)
