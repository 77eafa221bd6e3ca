"""Robustness runs: whether verdicts hold with fresh seeds, and with our own choices doubled."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache

from neuralrace.claims.spec import Claim, Claims, Finding, Verdict, errors_located, matching_cells
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


class VariantVerdict(ConfigModel):
    """The verdict on a statement for one variant of its cells."""

    variant: Variant
    verdict: Verdict
    measured: float | None = None
    """As in a row of the tables."""
    interval: tuple[float, float] | None = None
    """As in a row of the tables."""
    told: str | None = None
    """Why there is no measured value, such as runs that diverged."""


class VariantVerdicts(ConfigModel):
    """The verdicts on a statement for all variants that apply to it."""

    judged_as: str
    """`Statement.judged_as` of the statement; the verdicts do not apply to another one."""
    seeds: tuple[int, int]
    """First seed, and number of seeds."""
    verdicts: tuple[VariantVerdict, ...]
    """Fresh seeds first."""


class Robustness(ConfigModel):
    """Whether a verdict holds in the robustness runs."""

    seeds: str
    """First and last fresh seed."""
    verdict: Verdict
    """With fresh seeds."""
    measured: float | None
    """With fresh seeds."""
    interval: tuple[float, float] | None
    """With fresh seeds."""
    stochastic: bool
    """Whether the measured value depends on the seeds."""
    survives: bool
    """Whether every variant has the verdict of the claim."""
    lost: tuple[str, ...]
    """Variants with another verdict, in words."""
    doubled: tuple[VariantVerdict, ...]
    """Variants with fresh seeds and one setting doubled."""


RobustnessTable = Mapping[str, VariantVerdicts]
"""Verdicts by identifier of the statement."""


def robustness_of(
    variants: VariantVerdicts, verdict: Verdict, measured: float | None
) -> Robustness:
    """Compares the verdict and measured value of a statement with those of its variants."""
    fresh, *doubled = variants.verdicts
    first, count = variants.seeds
    lost = tuple(WORDS[each.variant] for each in variants.verdicts if each.verdict != verdict)
    return Robustness(
        seeds=f"{first} to {first + count - 1}",
        verdict=fresh.verdict,
        measured=fresh.measured,
        interval=fresh.interval,
        stochastic=fresh.measured != measured,
        survives=not lost,
        lost=lost,
        doubled=tuple(doubled),
    )


def varied_statements(
    claims: Claims, cells: Mapping[str, Cell]
) -> Iterator[tuple[Claim | Finding, Variant, dict[str, Cell]]]:
    """Each statement with each variant that applies to it, and its cells in that variant.

    A variant applies where all cells of the statement have it, none of them is listed under
    `undoubled`, and the paper does not print the setting that is doubled.

    Raises:
        UserError: a glob that matches no cell.
    """
    vary = cache(lambda cell, variant: variant_of(cells[cell], variant))
    for file, content in claims.items():
        try:
            undoubled = set(matching_cells(content.undoubled, list(cells), "undoubled"))
        except UserError as error:
            raise UserError(f"{file}: {error}") from error
        for statement in content.statements:
            with errors_located(file, statement):
                globs = [glob for measure in statement.measures() for glob in measure.cells]
                names = matching_cells(globs, list(cells))
            printed = content.setups[statement.setup].keys if isinstance(statement, Claim) else {}
            for variant, settings in DOUBLED.items() if names else ():
                if variant != "fresh" and undoubled.intersection(names):
                    continue
                if any(fnmatchcase(key, setting) for setting in settings for key in printed):
                    continue
                varied = {name: other for name in names if (other := vary(name, variant))}
                if len(varied) == len(names):
                    yield statement, variant, varied


def robustness_cells(claims: Claims, cells: Mapping[str, Cell]) -> dict[str, dict[str, Cell]]:
    """All cells of the robustness runs: by experiment `paper/experiment`, then `variant/label`.

    Raises:
        UserError: a glob that matches no cell.
    """
    runs: dict[str, dict[str, Cell]] = {}
    for _, variant, varied in varied_statements(claims, cells):
        for name, cell in varied.items():
            experiment, _, label = name.rpartition("/")
            runs.setdefault(experiment, {})[f"{variant}/{label}"] = cell
    return runs
