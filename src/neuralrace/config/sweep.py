"""Sweep expansion: one cell for each combination of swept values.

The `sweep` of an experiment maps dotted keys to lists of values. Keys that are joined by commas
take their values together.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json

from neuralrace.config.location import KeyPath, Location
from neuralrace.config.settings import LONGEST_NAME
from neuralrace.errors import UserError

NAME = r"[a-z][a-z0-9_]{0,99}"
"""Pattern of the names of papers, experiments and keys."""
PATH = rf"{NAME}(\.{NAME})*"
SWEPT = rf"{PATH}( *, *{PATH})*"
MOST_CELLS = 100_000
"""Most cells of a configuration."""
MOST_CHARACTERS = 10**8
"""Most characters in the specifications of all cells of an experiment."""


class SweptCell(NamedTuple):
    """One combination of swept values."""

    label: str
    """Name of the cell: the last part of each swept key, with its value."""
    specification: dict[str, Any]
    location: Location
    """Location of the experiment, which knows the swept keys."""


def names(value: Any, location: Location, pattern: str = NAME) -> Mapping[str, Any]:
    """The value, if it is a mapping with names as keys.

    Raises:
        UserError: it is no mapping, or a key does not match the pattern.
    """
    if value is None:
        raise location.located(UserError("is empty", remedy="write keys and values below it"))
    if not isinstance(value, Mapping):
        location.refuse(value, "a mapping of keys to values")
    for key in value:
        if not re.fullmatch(pattern, str(key)):
            location.refuse(key, "keys of lower-case letters, digits and underscores, at most 100")
    return value


def expand_sweep(raw: Any, location: Location, most: int) -> Iterator[SweptCell]:
    """The cells of one experiment.

    Args:
        raw: the experiment as it is configured.
        location: where it is configured.
        most: largest number of cells.

    Raises:
        UserError: an invalid sweep, one of more cells, or two cells with the same label.
    """
    experiment = dict(names(raw, location))
    sweep_location = location.inside("sweep")
    sweep = names(experiment.pop("sweep", {}), sweep_location, SWEPT)
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            sweep_location.inside(key).refuse(values, "a list with at least one value")
    count = math.prod(map(len, sweep.values()))
    if count > most:
        sweep_location.refuse(f"{count} cells", f"at most {MOST_CELLS} in a configuration")
    length = _length(experiment) + sum(max(map(_length, values)) for values in sweep.values())
    if count * length > MOST_CHARACTERS:
        sweep_location.refuse(
            f"{count} cells of {length} characters", f"at most {MOST_CHARACTERS} characters in all"
        )
    axes = [list(_axis(key, values, sweep_location)) for key, values in sweep.items()]
    paths = sorted(path for axis in axes for path, _ in axis[0])
    # in sorted order, a key inside another one comes next to it
    for outer, inner in itertools.pairwise(paths):
        if inner[: len(outer)] == outer:
            sweep_location.refuse(".".join(inner), f"no key inside {'.'.join(outer)}")
    labels: set[str] = set()
    for point in itertools.product(*axes):
        values = list(itertools.chain(*point))
        label = "_".join(f"{path[-1]}-{_slug(value)}" for path, value in values)
        if len(label) > LONGEST_NAME:
            sweep_location.refuse(
                label,
                f"at most {LONGEST_NAME} characters, not {len(label)}; "
                "sweep fewer or shorter values",
            )
        # Snakemake takes a name that ends in twenty equal parts for a rule that feeds itself
        label = re.sub(r"(.+)\1{19}$", r"\g<0>_", label)
        if label in labels:
            sweep_location.refuse(label, "values with distinct names")
        labels.add(label)
        specification = dict(experiment)
        for path, value in values:
            _set(specification, path, value, sweep_location)
        swept = Location(location.files, location.path, frozenset(paths))
        yield SweptCell(label or "main", specification, swept)


def _axis(key: str, values: list[Any], sweep: Location) -> Iterator[list[tuple[KeyPath, Any]]]:
    """Key paths with their values at each point of a swept axis."""
    paths = [tuple(name.strip().split(".")) for name in key.split(",")]
    for point in values if len(paths) > 1 else [[value] for value in values]:
        if not isinstance(point, list) or len(point) != len(paths):
            sweep.inside(key).refuse(point, f"lists of {len(paths)} values")
        yield list(zip(paths, point, strict=True))


def _set(specification: dict[str, Any], path: KeyPath, value: Any, sweep: Location) -> None:
    """Sets a key inside a specification, on copies of the mappings that other cells share."""
    node = specification
    for key in path[:-1]:
        inner = node.get(key, {})
        if not isinstance(inner, dict):
            sweep.inside(".".join(path)).refuse(inner, f"{key} as a mapping")
        node[key] = dict(inner)
        node = node[key]
    node[path[-1]] = value


def _slug(value: Any) -> str:
    """A swept value as part of a path."""
    if isinstance(value, dict):
        return "-".join(map(_slug, value.values()))
    if isinstance(value, list):
        return "x".join(map(_slug, value)) or "none"
    return re.sub(r"[^a-z0-9._]+", "-", str(value).lower())


def _length(value: Any) -> int:
    """Characters of a value as JSON, about."""
    # a table of a million numbers takes a second by `json`
    return len(to_json(value, fallback=str, bytes_mode="base64", inf_nan_mode="constants"))
