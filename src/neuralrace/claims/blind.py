"""Whether verdicts hold on seeds that nobody looked at, and with what is ours doubled."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from neuralrace.claims.spec import (
    Claim,
    ClaimFile,
    Claims,
    Finding,
    Verdict,
    matching_cells,
    naming,
)
from neuralrace.config.cell import Cell
from neuralrace.config.robustness import DOUBLED, Variant, variant_of
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel

WORDS: dict[Variant, str] = {
    "fresh": "fresh seeds",
    "samples": "twice the samples",
    "widths": "twice the widths",
    "steps": "twice the steps",
    "step_size": "twice the step size",
}


class Trial(ConfigModel):
    """A statement judged on one variant of its cells."""

    variant: Variant
    """What was otherwise."""
    verdict: Verdict
    """What came out."""
    measured: float | None = None
    """As in a row."""
    interval: tuple[float, float] | None = None
    """As in a row."""
    told: str | None = None
    """Why nothing could be measured, such as runs that diverged."""


class Trials(ConfigModel):
    """A statement judged on all variants that concern it."""

    judged_as: str
    """Checksum of the statement as it was judged; another one was not judged blindly."""
    seeds: tuple[int, int]
    """First seed, and how many."""
    trials: tuple[Trial, ...]
    """Fresh seeds first."""


class BlindVerdict(ConfigModel):
    """Trials beside the verdict that they were held against."""

    seeds: str
    """Which seeds."""
    verdict: Verdict
    """On fresh seeds, all else alike."""
    measured: float | None
    """On fresh seeds."""
    interval: tuple[float, float] | None
    """On fresh seeds."""
    stochastic: bool
    """Whether fresh seeds give another number."""
    survives: bool
    """Whether all trials have the verdict of the claim."""
    lost: tuple[str, ...]
    """What it does not survive."""
    doubled: tuple[Trial, ...]
    """With one thing doubled besides."""


Blind = Mapping[str, Trials]
"""Trials by identifier of the statement."""


def blind_verdict(trials: Trials, verdict: Verdict, measured: float | None) -> BlindVerdict:
    """What trials say of a verdict and of the number that it rests on."""
    fresh, *doubled = trials.trials
    first, count = trials.seeds
    lost = tuple(WORDS[trial.variant] for trial in trials.trials if trial.verdict != verdict)
    return BlindVerdict(
        seeds=f"{first} to {first + count - 1}",
        verdict=fresh.verdict,
        measured=fresh.measured,
        interval=fresh.interval,
        stochastic=fresh.measured != measured,
        survives=not lost,
        lost=lost,
        doubled=tuple(doubled),
    )


def trials_of(
    claims: Claims, cells: Mapping[str, Cell]
) -> Iterator[tuple[Claim | Finding, Variant, dict[str, Cell]]]:
    """What is judged again: a statement, a variant that concerns it, and its cells so varied.

    A variant concerns a statement where all of its cells have it, none is said to be too large to
    be doubled, and the paper does not print what is doubled.

    Raises:
        UserError: a glob that matches no cell.
    """
    vary = cache(lambda cell, variant: variant_of(cells[cell], variant))
    for file, written in claims.items():
        large = _large(file, written, cells)
        for statement in written.statements:
            with naming(file, statement):
                globs = [glob for measure in statement.measures() for glob in measure.cells]
                read = matching_cells(globs, list(cells)) if globs else []
            for variant in DOUBLED if read else ():
                if variant != "fresh" and large.intersection(read):
                    continue
                if _printed(statement, written, variant):
                    continue
                others = {cell: vary(cell, variant) for cell in read}
                found = {cell: other for cell, other in others.items() if other}
                if len(found) == len(read):
                    yield statement, variant, found


def blind_cells(claims: Claims, cells: Mapping[str, Cell]) -> dict[str, dict[str, Cell]]:
    """What has to be run: by experiment `paper/experiment`, cells by `variant/label`.

    Raises:
        UserError: a glob that matches no cell.
    """
    needed: dict[str, dict[str, Cell]] = {}
    for _, variant, others in trials_of(claims, cells):
        for cell, other in others.items():
            experiment, _, label = cell.rpartition("/")
            needed.setdefault(experiment, {})[f"{variant}/{label}"] = other
    return needed


def _large(file: Path, claims: ClaimFile, cells: Mapping[str, Cell]) -> set[str]:
    """Cells that are not doubled."""
    try:
        return set(matching_cells(claims.undoubled, list(cells)))
    except UserError as error:
        raise UserError(f"{file}: undoubled: {error}") from error


def _printed(statement: Claim | Finding, claims: ClaimFile, variant: Variant) -> bool:
    """Whether the paper prints what a variant doubles, so that it is not ours to change."""
    if not isinstance(statement, Claim):
        return False
    printed = claims.setups[statement.setup].keys
    return any(fnmatchcase(key, name) for name in DOUBLED[variant] for key in printed)
