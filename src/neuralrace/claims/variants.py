"""Verdicts on variants of cells: with fresh seeds, and with other values of our own settings.

The set `blind` has fresh seeds, and the set `ranges` other settings. The repository carries what
came out for its own configuration, in `config/<set>.json`; `make blind` and `make ranges` compute
it anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache

from pydantic import Field

from neuralrace.claims.spec import (
    Claim,
    Claims,
    Factors,
    Finding,
    Measure,
    Statement,
    Verdict,
    errors_located,
    matching_cells,
)
from neuralrace.config.cell import Cell
from neuralrace.config.variants import (
    FRESH,
    SETTINGS,
    SettingName,
    Variant,
    VariantSet,
    multiplied,
    variant_of,
)
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.checksums import fingerprint


class VariantVerdict(ConfigModel):
    """The verdict on a statement for one variant of its cells."""

    setting: SettingName | None = None
    """The setting that is multiplied; None where only seeds are fresh."""
    factor: float = 1.0
    """What it is multiplied by."""
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

    def of(
        self, statement: Statement, checksum: str, factors: Factors
    ) -> tuple[VariantVerdict, ...]:
        """The verdicts on a statement, as far as it is to be varied by these factors.

        There are none if it or its cells were others in the set: `checksum` is its `judged_as`.
        """
        varied = self.statements.get(statement.id)
        if varied is None or varied.judged_as != checksum:
            return ()
        return tuple(
            verdict
            for verdict in varied.verdicts
            if verdict.setting is None
            or verdict.factor in factors.get(verdict.setting, SETTINGS[verdict.setting].factors)
        )


def judged_as(
    statement: Statement, cells: Iterable[str], specification: Callable[[str], str]
) -> str:
    """Checksum of what decides a verdict: keys of the statement, and specifications of its cells.

    Args:
        statement: a claim or finding that is judged.
        cells: identifiers of all cells; not of their variants.
        specification: the checksum of a cell's specification.
    """
    globs = [glob for measure in statement.measures() for glob in measure.cells]
    names = matching_cells(globs, list(cells))
    return fingerprint(statement.judged_as(), *map(specification, names))


def at_variant(statement: Statement, variant: Variant) -> Statement:
    """The statement with the labels that its measures select in the metrics of a variant."""
    if variant.setting != "init_scale":
        return statement
    levels = [_rescaled(level, variant.factor) for level in statement.levels]
    if statement.sequence:
        return statement.model_copy(update={"sequence": tuple(levels)})
    return statement.model_copy(update={"measure": levels[0]})


def _rescaled(measure: Measure, factor: float) -> Measure:
    """A measure that selects init scales which are multiplied by a factor."""
    select = {
        dim: tuple(multiplied(v, factor) if isinstance(v, float) else v for v in labels)
        if dim == "init_scale"
        else labels
        for dim, labels in measure.select.items()
    }
    others = {name: getattr(measure, name) for name in ("minus", "over")}
    return measure.model_copy(
        update={"select": select}
        | {name: _rescaled(other, factor) for name, other in others.items() if other}
    )


def _variants(group: VariantSet, factors: Factors) -> Iterator[Variant]:
    """The variants of a set, whether or not they apply; `factors` in place of the usual ones."""
    if group == "blind":
        yield FRESH
        return
    for name, setting in SETTINGS.items():
        for factor in factors.get(name, setting.factors):
            yield Variant(name, factor)


def varied_statements(
    claims: Claims, cells: Mapping[str, Cell], group: VariantSet
) -> Iterator[tuple[Claim | Finding, Variant, dict[str, Cell]]]:
    """Each statement with each variant of a set that applies to it, and its cells in it.

    A variant applies where all cells of the statement have it, and the paper does not print the
    setting that is changed. Cells that are listed under `unvaried` are varied only in settings that
    the statement or its file names under `ranges`.

    Raises:
        UserError: a glob that matches no cell.
    """
    vary = cache(lambda cell, variant: variant_of(cells[cell], variant))
    for file, content in claims.items():
        try:
            unvaried = set(matching_cells(content.unvaried, list(cells), "unvaried"))
        except UserError as error:
            raise UserError(f"{file}: {error}") from error
        for statement in content.statements:
            with errors_located(file, statement):
                globs = [glob for measure in statement.measures() for glob in measure.cells]
                names = matching_cells(globs, list(cells))
            printed = content.setups[statement.setup].keys if isinstance(statement, Claim) else {}
            named = content.ranges | statement.ranges
            for variant in _variants(group, named) if names else ():
                if variant.setting:
                    keys = SETTINGS[variant.setting].keys
                    stated = any(fnmatchcase(key, each) for each in keys for key in printed)
                    large = variant.setting not in named and unvaried.intersection(names)
                    if stated or large:
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
            runs.setdefault(experiment, {})[f"{variant.name}/{label}"] = cell
    return runs
