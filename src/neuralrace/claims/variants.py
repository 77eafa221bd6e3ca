"""Variants: whether verdicts are the same with fresh seeds, and with our own choices doubled.

The set `blind` has fresh seeds, and the set `ranges` doubled settings. The repository carries what
came out for its own configuration, in `config/<set>.json`; `make blind` and `make ranges` compute
it anew.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from pydantic import Field

from neuralrace.claims.spec import (
    Claim,
    Claims,
    Finding,
    Statement,
    Verdict,
    errors_located,
    matching_cells,
)
from neuralrace.config.cell import Cell
from neuralrace.config.variants import DOUBLED, VARIANT_SETS, Variant, VariantSet, variant_of
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.checksums import fingerprint

if TYPE_CHECKING:  # a plan is made without xarray
    from neuralrace.results.cells import Results

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
    seeds: tuple[int, int]
    """First and last seed."""
    verdict: Verdict
    measured: float | None = None
    """As in a row of the tables."""
    interval: tuple[float, float] | None = None
    """As in a row of the tables."""
    told: str | None = None
    """Why there is no measured value, such as runs that diverged."""


class Varied(ConfigModel):
    """The verdicts on a statement for all variants of a set that apply to it."""

    judged_as: str
    """`judged_as` when it was judged; the verdicts do not apply to another statement or cells."""
    verdicts: tuple[VariantVerdict, ...]


class VariantTable(ConfigModel):
    """The verdicts of a set of variants."""

    made_by: dict[str, str] = Field(default={})
    """Versions that made it."""
    statements: dict[str, Varied] = Field(default={})
    """By identifier."""

    def of(self, statement: Statement, results: "Results") -> tuple[VariantVerdict, ...]:
        """The verdicts on a statement; none if it or its cells were others in the set."""
        varied = self.statements.get(statement.id)
        if varied is None or varied.judged_as != judged_as(statement, results):
            return ()
        return varied.verdicts


def judged_as(statement: Statement, results: "Results") -> str:
    """Checksum of what decides a verdict: keys of the statement, and specifications of its cells.

    Args:
        statement: a claim or finding that is judged.
        results: the cells themselves, and not their variants.
    """
    globs = [glob for measure in statement.measures() for glob in measure.cells]
    cells = matching_cells(globs, list(results))
    specs = [results[cell].attributes("metrics")["spec_sha256"] for cell in cells]
    return fingerprint(statement.judged_as(), *specs)


def varied_statements(
    claims: Claims, cells: Mapping[str, Cell], group: VariantSet
) -> Iterator[tuple[Claim | Finding, Variant, dict[str, Cell]]]:
    """Each statement with each variant of a set that applies to it, and its cells in it.

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
            for variant in VARIANT_SETS[group] if names else ():
                if variant != "fresh" and undoubled.intersection(names):
                    continue
                if any(fnmatchcase(key, each) for each in DOUBLED[variant] for key in printed):
                    continue
                varied = {name: other for name in names if (other := vary(name, variant))}
                if len(varied) == len(names):
                    yield statement, variant, varied


def variant_cells(
    claims: Claims, cells: Mapping[str, Cell], group: VariantSet
) -> dict[str, dict[str, Cell]]:
    """All cells of a set: by experiment `paper/experiment`, then `variant/label`.

    Raises:
        UserError: a glob that matches no cell.
    """
    runs: dict[str, dict[str, Cell]] = {}
    for _, variant, varied in varied_statements(claims, cells, group):
        for name, cell in varied.items():
            experiment, _, label = name.rpartition("/")
            runs.setdefault(experiment, {})[f"{variant}/{label}"] = cell
    return runs
