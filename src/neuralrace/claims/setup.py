"""Comparison of a paper's set-up with ours, computed from the specifications of cells."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuralrace.claims.spec import Claim, Setup, matching_cells
from neuralrace.errors import UserError
from neuralrace.results.cells import Results


def differences(claim: Claim, setup: Setup, results: Results) -> Iterator[str]:
    """Differences between a paper's set-up and the cells that judge a claim, in words.

    More seeds than in the paper do not count, and neither does a part of the values that it used.

    Raises:
        UserError: a key that the specification of a cell does not have.
    """
    ours: dict[str, list[Any]] = {key: [] for key in setup.keys}
    for measure in claim.measures():
        scales = measure.select.get("init_scale")
        for cell in matching_cells(measure.cells, list(results)):
            spec = json.loads(results[cell].metrics.attrs["spec"])
            for key, values in ours.items():
                value = _at(spec, key, cell)
                if key == "init_scales" and scales:
                    value = list(scales)
                if value not in values:
                    values.append(value)
    for key, values in ours.items():
        theirs = setup.keys[key]
        if any(not _within(key, value, theirs) for value in values):
            here = " and ".join(map(_text, values))
            yield f"{key}: {_text(theirs)} in the source, {here} here"


def _at(spec: Any, key: str, cell: str) -> Any:
    """The value of a dotted key."""
    value = spec
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(value) if isinstance(value, dict) else "none"
            raise UserError(
                f"no such key in the specification of {cell}",
                key="setup.keys",
                value=key,
                remedy=f"at {part!r} there are {known}",
            )
        value = value[part]
    return value


def _within(key: str, ours: Any, theirs: Any) -> bool:
    """Whether our value is the paper's, or one of those that the paper used."""
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


def _text(value: Any) -> str:
    return ", ".join(map(_text, value)) if isinstance(value, list) else f"{value}"
