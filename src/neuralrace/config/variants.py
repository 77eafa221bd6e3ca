"""Variants of cells: with fresh seeds, and with one setting changed by a factor.

They test claims that were written with the results in view. Every variant has fresh seeds of runs
and of datasets. Those of the set `ranges` also change one setting that the papers do not state.
"""

import json
import math
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from neuralrace.config.cell import Cell
from neuralrace.config.load import config_folder

VariantSet = Literal["blind", "ranges"]
"""What variants are for: `blind` judges with fresh seeds, of which nothing was known when claims
were written; `ranges` tries other values of what papers do not print."""
SettingName = Literal["init_scale", "samples", "widths", "steps", "step_size"]

VARIANT_SETS: tuple[VariantSet, ...] = ("blind", "ranges")
OFFSET = 7919
"""Added to every seed. It is the thousandth prime, so that it is not tuned."""


class Setting(NamedTuple):
    """A setting that variants change."""

    words: str
    """Its name in tables."""
    keys: tuple[str, ...]
    """Dotted keys of a specification that are multiplied; `*` is any key."""
    factors: tuple[float, ...]
    """The factors, unless a statement names others."""


SETTINGS: dict[SettingName, Setting] = {
    "init_scale": Setting("init scale", ("init_scales",), (0.1, 10.0)),
    "samples": Setting(
        "samples",
        ("dataset.samples", "dataset.samples_per_component", "training.batch.size"),
        (0.5, 2.0),
    ),
    "widths": Setting("width", ("network.hidden", "candidates.*.hidden"), (0.5, 2.0)),
    "steps": Setting("steps", ("training.steps",), (2.0,)),
    "step_size": Setting("step size", ("training.learning_rate",), (0.5, 2.0)),
}


class Variant(NamedTuple):
    """A change of cells: fresh seeds, and a setting that is multiplied by a factor."""

    setting: SettingName | None = None
    """None where only seeds change."""
    factor: float = 1.0

    @property
    def name(self) -> str:
        """Name of its folder: `fresh`, or such as `widths_x2`."""
        return f"{self.setting}_x{self.factor:g}" if self.setting else "fresh"


FRESH = Variant()


def is_variant(name: str) -> bool:
    """Whether a folder has the name of a variant."""
    setting, _, factor = name.rpartition("_x")
    return name == FRESH.name or (setting in SETTINGS and factor[:1].isdigit())


def variants_path(folder: Path, group: VariantSet) -> Path:
    """The verdicts on a set of variants in a results folder, or else those that are released."""
    own = folder / f"{group}.json"
    return own if own.exists() else config_folder() / f"{group}.json"


def variant_of(cell: Cell, variant: Variant) -> Cell | None:
    """The cell with fresh seeds and one setting changed; None if it has no such setting.

    More steps are recorded at the same intervals. A smaller initialisation is trained for longer,
    as learning takes a time that grows with the logarithm of its scale. With another step size the
    times of the records, and of the tasks of a sequence, stay the same; where a number of steps
    would be no integer, training takes longer instead. Averaged pathways of one unit keep their
    width: another one would be another kind of network.
    """
    setting, factor = variant
    if setting == "widths" and any(network.averages_units for network in cell.networks):
        return None
    spec = json.loads(cell.canonical())
    if setting:
        for key in SETTINGS[setting].keys:
            _multiply(spec, key.split("."), factor)
        if spec == json.loads(cell.canonical()):
            return None
    training, record = spec["training"], spec["record"]
    if setting == "steps":
        record["snapshots"] = math.ceil(record["snapshots"] * factor)
    elif setting == "init_scale":
        longer = _slowdown(cell.init_scales, factor)
        training["steps"] *= longer
        record["snapshots"] *= longer
    elif setting == "step_size":
        _keep_times(spec, factor)
    spec["first_seed"] += OFFSET
    for part in ("dataset", "network", "candidates"):
        _reseed(spec[part])
    try:
        return Cell.model_validate_json(json.dumps(spec))
    except ValidationError:
        if setting is None:
            raise
        return None  # such as a dataset of images that has no more of them, or half a unit


def multiplied(value: int | float, factor: float) -> int | float:
    """A number times a factor: an integer for an integer, and 0.01 for 0.1 times 0.1."""
    return int(value * factor) if isinstance(value, int) else float(f"{value * factor:.12g}")


def _slowdown(scales: tuple[float, ...], factor: float) -> int:
    """How many times longer to train from scales that are multiplied by a factor."""
    decades = [-math.log10(scale) for scale in scales]
    ratios = [(start - math.log10(factor)) / max(start, 1.0) for start in decades]
    return max(1, *(math.ceil(ratio - 1e-9) for ratio in ratios))


def _keep_times(spec: dict[str, Any], factor: float) -> None:
    """Divides numbers of steps by a factor, if all of them then are integers."""
    training, record = spec["training"], spec["record"]
    switches = spec["dataset"].get("switches", [])
    counts = [training["steps"], record["every"], *switches]
    if all((count / factor).is_integer() for count in counts):
        training["steps"], record["every"], *switches[:] = (int(c / factor) for c in counts)


def _multiply(node: Any, path: list[str], factor: float) -> None:
    """Multiplies the number, or each of a list of numbers, at the end of a path."""
    key, *rest = path
    for name in list(node) if key == "*" else [key] if key in node else []:
        value = node[name]
        if rest:
            if isinstance(value, dict):
                _multiply(value, rest, factor)
        else:
            many = isinstance(value, list)
            times = [multiplied(number, factor) for number in (value if many else [value])]
            node[name] = times if many else times[0]


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
