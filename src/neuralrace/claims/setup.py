"""A paper's set-up beside ours: what differs is computed where both are in a specification."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuralrace.claims.spec import Claim, Setup, matching_cells
from neuralrace.errors import UserError
from neuralrace.results.cells import Results


def differences(claim: Claim, setup: Setup, results: Results) -> Iterator[str]:
    """What is otherwise in the cells that a claim is judged by, key by key.

    More seeds than the paper's are no difference, nor is a part of the values it used.

    Raises:
        UserError: a key that a cell's specification does not have.
    """
    ours: dict[str, list[Any]] = {key: [] for key in setup.keys}
    for measure in claim.measures():
        scales = measure.select.get("init_scale")
        for cell in matching_cells(measure.cells, list(results)):
            spec = json.loads(results[cell].metrics.attrs["spec"])
            for key, found in ours.items():
                value = _at(spec, key, cell)
                if key == "init_scales" and scales:
                    value = list(scales)
                found.extend(v for v in [value] if v not in found)
    for key, found in ours.items():
        theirs = setup.keys[key]
        if any(not _within(key, value, theirs) for value in found):
            told = " and ".join(_told(value) for value in found)
            yield f"{key}: {_told(theirs)} in the source, {told} here"


def _at(spec: Any, key: str, cell: str) -> Any:
    """The value of a dotted key."""
    value = spec
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise UserError(
                f"setup: keys: {key!r} is no key of the specification of {cell}; "
                f"at {part!r} there are {', '.join(value) if isinstance(value, dict) else 'none'}"
            )
        value = value[part]
    return value


def _within(key: str, ours: Any, theirs: Any) -> bool:
    """Whether our value is the paper's, or one of those it used."""
    if key == "seeds":
        return ours >= theirs
    if isinstance(ours, list):
        if key == "init_scales":
            return all(_within("", value, theirs) for value in ours)
        return (
            isinstance(theirs, list)
            and len(ours) == len(theirs)
            and all(_within("", a, b) for a, b in zip(ours, theirs, strict=True))
        )
    if isinstance(theirs, list):
        return any(_within(key, ours, value) for value in theirs)
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return bool(np.isclose(ours, theirs, rtol=1e-9, atol=0))
    return ours == theirs


def _told(value: Any) -> str:
    return ", ".join(map(_told, value)) if isinstance(value, list) else f"{value}"
