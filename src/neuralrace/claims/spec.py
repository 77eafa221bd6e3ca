"""Models and reader of claim files, `config/<paper>/claims.yaml`."""

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from neuralrace.claims.criteria import CRITERIA
from neuralrace.config.variants import SettingName
from neuralrace.config.yaml import read_yaml
from neuralrace.errors import UserError, did_you_mean, shorten
from neuralrace.extensions.model import ConfigModel, problem_of
from neuralrace.results.checksums import fingerprint

Kind = Literal["equality", "bound", "ordering", "slope", "qualitative"]
Status = Literal[
    "wrong",
    "not reproduced",
    "depends on",
    "undecided",
    "analogue",
    "reproduced",
    "identity",
    "not assessed",
]
"""The decision on a claim, or on a sentence; docs/claims.md defines each. A sentence that several
claims are about has the first status of this list that one of them has."""
FindingStatus = Literal["holds", "does not hold", "undecided"]
Grade = Literal["slip", "false step", "false result"]
"""How much of a paper falls with a statement that is wrong: a sign or a factor in one place; a step
of an argument whose result stands; a result."""
Verdict = Literal["holds", "contradicted", "undecided", "undefined"]
"""How the measured interval lies to the range that a claim allows."""
OverSeeds = Literal["mean", "median", "worst"]
Relation = Literal["<=", ">="]

Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
OneOrMore = (
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
)


Factors = dict[SettingName, tuple[Annotated[float, Field(gt=0)], ...]]
"""By setting, what it is multiplied by, to see whether verdicts stay the same; none to leave it."""
Premises = dict[Text, Literal["small", "large"]]
"""By setting, as in `neuralrace.config.variants.SETTINGS` or `Elsewhere`, how a paper wants it."""


class Sweep(ConfigModel):
    """The axis along which a metric is fitted or crosses a level."""

    x: Text
    """A coordinate of the metric (`init_scale`, `mode`, ...), or the dotted key of a number in the
    specification of the cells (`training.learning_rate`)."""


class Fit(Sweep):
    """The slope of a straight line, fitted by least squares."""

    scale: Literal["loglog", "linear"]
    """Scale of the axes in which the line is fitted."""


class Crossing(Sweep):
    """The first `x` at which the metric crosses a level, by linear interpolation between points.

    It is undefined where the metric never reaches the level, and where the first point has reached
    it already: the crossing then lies before the sweep.
    """

    level: float
    """The level that is crossed."""
    direction: Literal["rising", "falling"]
    """Whether the metric rises or falls to the level as `x` increases."""


class Measure(ConfigModel):
    """A quantity that is computed from metrics files: one value per seed."""

    cells: Annotated[tuple[Text, ...], *OneOrMore]
    """Globs over cell identifiers `paper/experiment/label`; `*` crosses slashes."""
    metric: Text
    """Variable of the metrics files."""
    select: dict[str, Annotated[tuple[float | str, ...], *OneOrMore]] = Field(default={})
    """Labels by dimension; a dimension that is not named keeps all its labels."""
    reduce: Literal["mean", "max", "min", "median"] | None = None
    """How several values of one seed become one. It works over the remaining dimensions, and over
    cells unless `fit` or `crossing` runs through them. Required where several values remain."""
    fit: Fit | None = None
    """The slope of the metric against `x`, in place of its value."""
    crossing: Crossing | None = None
    """The `x` at which the metric crosses a level, in place of its value."""
    minus: "Measure | None" = None
    """A measure that is subtracted, seed by seed."""
    over: "Measure | None" = None
    """A measure that the value is divided by, seed by seed."""

    @model_validator(mode="after")
    def _checked(self) -> "Measure":
        if "seed" in self.select:
            raise UserError("a claim is judged over all seeds", key="select.seed")
        for first, second in (("fit", "crossing"), ("minus", "over")):
            if getattr(self, first) and getattr(self, second):
                raise UserError(f"has both {first} and {second}", remedy="leave one out")
        return self

    def parts(self) -> "Iterator[Measure]":
        """This measure and those it is compared with."""
        yield self
        for other in (self.minus, self.over):
            if other:
                yield from other.parts()


class Number(ConfigModel):
    """A number with its reason, or `criterion`, a vague word with one meaning in all papers."""

    criterion: str | None = None
    """The vague word, where there is one; value and reason are then its meaning."""

    @model_validator(mode="before")
    @classmethod
    def _criterion(cls, content: Any) -> Any:
        """Replaces `criterion: near` by its value and reason."""
        if not isinstance(content, dict) or content.get("criterion") is None:
            return content
        name = content["criterion"]
        if name not in list(CRITERIA):  # a list, as a name that is no text may have no hash
            known = ", ".join(CRITERIA)
            raise UserError("unknown", key="criterion", value=name, remedy=f"use one of {known}")
        if len(content) > 1:
            others = ", ".join(key for key in content if key != "criterion")
            raise UserError(
                "takes no other keys beside it", key="criterion", remedy=f"leave out {others}"
            )
        meaning = CRITERIA[name]
        (reason,) = set(cls.model_fields) - {"value", "criterion"}
        return {"criterion": name, "value": meaning.value, reason: f"{name}: {meaning.means}"}


class Expected(Number):
    """The number that a measure is compared with."""

    value: float
    """The value, for equality and slope; the threshold, for bound and qualitative; the least
    increase between neighbours, for ordering: 0 where any increase is enough."""
    source: Text
    """Where the number comes from."""


class Tolerance(Number):
    """The accepted distance from the expected number."""

    value: Annotated[float, Field(ge=0)]
    """In the units of the measure; it widens the allowed range for every kind of claim."""
    why: Text
    """The reason for the tolerance."""


class Instead(ConfigModel):
    """Keys of a measure that an alternative replaces; labels of `select` are replaced singly."""

    cells: Annotated[tuple[Text, ...], *OneOrMore] | None = None
    """As in a measure."""
    metric: Text | None = None
    """As in a measure."""
    select: dict[str, Annotated[tuple[float | str, ...], *OneOrMore]] = Field(default={})
    """Labels along these dimensions; other dimensions keep theirs."""
    reduce: Literal["mean", "max", "min", "median"] | None = None
    """As in a measure."""
    fit: Fit | None = None
    """As in a measure."""
    crossing: Crossing | None = None
    """As in a measure."""
    minus: Measure | None = None
    """As in a measure."""
    over: Measure | None = None
    """As in a measure."""

    def of(self, measure: Measure) -> Measure:
        """The measure with these keys in place of its own.

        Raises:
            UserError: these keys exclude keys that the measure keeps.
        """
        own = self.model_dump(exclude_none=True) | {"select": measure.select | self.select}
        try:
            return Measure.model_validate(measure.model_dump() | own)
        except ValidationError as error:
            reasons = ", ".join(str(_cause(mistake)) for mistake in error.errors())
            raise UserError(f"gives a measure that {reasons}", key="alternatives.instead") from None


class OtherMeasure(ConfigModel):
    """What is measured in place of a statement's own measure or sequence."""

    instead: Instead | None = None
    """Changes to the statement's own measure, or to each measure of its sequence."""
    measure: Measure | None = None
    """Another measure."""
    sequence: Annotated[tuple[Measure, ...], Field(min_length=2)] | None = None
    """Another sequence."""

    def levels(self, statement: "Statement") -> tuple[Measure, ...]:
        """The measures that are compared."""
        levels = self.sequence or (self.measure and (self.measure,)) or statement.levels
        return tuple(self.instead.of(level) for level in levels) if self.instead else tuple(levels)


class Alternative(OtherMeasure):
    """A plausible rival that must fail the claim: it shows that the claim has power."""

    name: Text
    """A rival theory, the other family, a wrong exponent, an untrained network."""
    shuffled: bool = False
    """Each seed is compared (`minus`, `over`, neighbours of a sequence) with the seed after it."""
    value: float | None = None
    """The number that a rival theory predicts for the measure, where that is a number (a wrong
    exponent)."""
    source: Text | None = None
    """Where that number comes from."""

    @model_validator(mode="after")
    def _one(self) -> "Alternative":
        forms = (self.instead, self.measure, self.sequence, self.shuffled or None, self.value)
        if sum(form is not None for form in forms) != 1:
            raise UserError("needs one of instead, measure, sequence, shuffled and value")
        if (self.value is None) != (self.source is None):
            raise UserError("needs value and source, or neither")
        return self

    def levels(self, statement: "Statement") -> tuple[Measure, ...]:
        """The measures that are compared; none where it is a number."""
        return () if self.value is not None else super().levels(statement)


class Elsewhere(OtherMeasure):
    """The value of a setting at other cells of the same run, at which a statement is judged too.

    Without `instead`, `measure` and `sequence` it is the value at the statement's own cells.
    """

    setting: Text
    """What differs, in words."""
    value: float | Text
    """Its value there."""

    @model_validator(mode="after")
    def _one(self) -> "Elsewhere":
        if sum(form is not None for form in (self.instead, self.measure, self.sequence)) > 1:
            raise UserError("takes one of instead, measure and sequence")
        return self

    @property
    def own(self) -> bool:
        """Whether the value is that of the statement's own cells."""
        return not (self.instead or self.measure or self.sequence)


class Statement(ConfigModel):
    """The keys that claims and findings share."""

    id: Id
    """Kebab-case name, unique over all papers."""
    statement: Text
    """The statement that is judged, in our words."""
    kind: Kind
    """How it is judged."""
    measure: Measure | None = None
    """The measured quantity; for every kind but ordering."""
    sequence: Annotated[tuple[Measure, ...], Field(min_length=2)] | None = None
    """Measures that are claimed to increase from one to the next; for ordering."""
    relation: Relation | None = None
    """The side of the threshold; for bound and qualitative."""
    expected: Expected | None = None
    """The number that the paper or its theory gives."""
    tolerance: Tolerance | None = None
    """The accepted distance from that number."""
    over_seeds: OverSeeds | None = None
    """The statistic over seeds that is judged: `mean`, the default; `median`, for heavy tails;
    `worst`, where the paper says each or every, and for every bound."""
    alternatives: tuple[Alternative, ...] = ()
    """Rivals that must fail; every statement that is judged has one."""
    ranges: Factors = Field(default={})
    """The factors of the set `ranges` for this statement, in place of those of its file."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """Other values of settings, at other cells; by setting, one is the value of its own cells."""
    depends: Text | None = None
    """A choice of ours on which the verdict is known to depend."""
    reason: Text | None = None
    """Why the statement does not hold, or is not known to."""
    figure: Annotated[str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+$")] | None = None
    """The figure that shows it, `paper/figure`."""

    @property
    def judged(self) -> bool:
        """Whether anything is measured."""
        return True

    @property
    def levels(self) -> tuple[Measure, ...]:
        """The measures that are compared: the sequence, or the one measure."""
        return self.sequence or ((self.measure,) if self.measure else ())

    @property
    def statistic(self) -> OverSeeds:
        """The statistic over seeds that is judged."""
        return self.over_seeds or ("worst" if self.kind == "bound" else "mean")

    def judged_as(self) -> str:
        """Checksum of the keys that decide a verdict; texts are left out."""
        value = {"value"}
        keys: Any = dict.fromkeys(("kind", "measure", "sequence", "relation"), True)
        keys |= {"over_seeds": True, "expected": value, "tolerance": value}
        return hashlib.sha256(self.model_dump_json(include=keys).encode()).hexdigest()

    def measures(self) -> Iterator[Measure]:
        """All measures that are read to judge this statement."""
        for level in self.levels:
            yield from level.parts()

    def other_measures(self) -> Iterator[Measure]:
        """All measures that are read for its alternatives, and for other values of settings."""
        for other in (*self.alternatives, *self.elsewhere):
            for level in other.levels(self):
                yield from level.parts()

    def requirements(self) -> dict[str, bool]:
        """Optional keys: those that this statement must have (true) or must not have (false)."""
        judged = self.judged
        return {
            "measure": judged and self.kind != "ordering",
            "sequence": judged and self.kind == "ordering",
            "relation": judged and self.kind in ("bound", "qualitative"),
            "expected": judged or self.expected is not None,
            "tolerance": judged,
            "over_seeds": self.over_seeds is not None and judged and self.kind != "bound",
            "alternatives": judged,
        }

    @model_validator(mode="after")
    def _consistent(self) -> "Statement":
        required = self.requirements()
        missing = [key for key, need in required.items() if need and not getattr(self, key)]
        surplus = [key for key, need in required.items() if not need and getattr(self, key)]
        if self.kind == "slope" and self.measure and not self.measure.fit:
            missing.append("measure.fit")
        if missing or surplus:
            needs = f" needs {' and '.join(missing)}" if missing else ""
            refuses = f" takes no {' and no '.join(surplus)}" if surplus else ""
            raise UserError(f"{self.described()}{needs}{' and' * bool(needs and refuses)}{refuses}")
        list(self.other_measures())  # raises where keys exclude one another
        for setting, group in groupby(self.elsewhere, key=lambda each: each.setting):
            if sum(each.own for each in group) != 1:
                raise UserError(
                    "has no value of its own cells, or several",
                    key="elsewhere.setting",
                    value=setting,
                    remedy="give one value without instead, measure and sequence",
                )
        return self

    def described(self) -> str:
        """Its kind, for a message."""
        return f"a finding of kind {self.kind!r}"


class Claim(Statement):
    """A statement of a paper, and how it is judged."""

    locator: Text
    """Place in the paper."""
    quote: Text
    """The paper's own words, one sentence; ` … ` marks an omission."""
    setup: Text
    """The set-up of the paper that the quote is about; a name in `setups`."""
    premises: Premises = Field(default={})
    """Settings that the quote itself wants small or large, beside those of its set-up."""
    differs: tuple[Text, ...] = ()
    """Differences from that set-up and its measure that no specification shows."""
    expect: Status
    """The known status; `snakemake claims` fails at any other."""
    identity: Text | None = None
    """Why no measurement could refuse it: it is an identity, or a constant of the run."""
    analogue: Text | None = None
    """What is measured in place of what the quote is about, such as digits in place of MNIST."""
    grade: Grade | None = None
    """How much falls with a statement that is wrong."""
    argument: Text | None = None
    """A counterexample, a proof or an identity: why the statement is wrong in any set-up. With it,
    a wrong statement needs no measure."""
    fair: Text | None = None
    """Why it is fair to call the statement wrong, by a second reader of the paper."""
    follows_from: Id | None = None
    """The wrong statement that this one repeats or is derived from: an error counts once."""
    corrected_by: Id | None = None
    """The claim or finding that holds in its place."""

    @property
    def judged(self) -> bool:
        """Whether anything is measured."""
        by_argument = self.expect == "wrong" and self.argument and not self.levels
        return self.expect != "not assessed" and not by_argument

    def requirements(self) -> dict[str, bool]:
        """See `Statement.requirements`."""
        expect, wrong = self.expect, self.expect == "wrong"
        required = super().requirements()
        return required | {
            "alternatives": required["alternatives"]
            and (expect != "identity" or bool(self.alternatives)),
            "reason": expect not in ("reproduced", "identity", "analogue"),
            "identity": expect == "identity",
            "analogue": expect == "analogue"
            or (expect not in ("identity", "not assessed") and self.analogue is not None),
            "depends": expect == "depends on" or self.depends is not None,
            "grade": wrong,
            "argument": wrong and self.argument is not None,
            "fair": wrong,
            "follows_from": wrong and self.follows_from is not None,
            "corrected_by": expect in ("wrong", "not reproduced", "depends on", "undecided")
            and self.corrected_by is not None,
        }

    def described(self) -> str:
        """Its kind and `expect`, for a message."""
        return f"a claim of kind {self.kind!r} with expect {self.expect!r}"


class Finding(Statement):
    """A result of ours that no paper states, or what we expected and did not find."""

    expect: FindingStatus = "holds"
    """The known status."""

    def requirements(self) -> dict[str, bool]:
        """See `Statement.requirements`."""
        return super().requirements() | {"reason": self.expect != "holds"}


class Setup(ConfigModel):
    """A set-up of a paper, as far as the paper prints it."""

    locator: Text
    """Place in the paper."""
    printed: dict[Text, Text]
    """Network, widths, data, learning rate, start, measure and seeds, in words."""
    keys: dict[Text, Any] = Field(default={})
    """Dotted keys of a specification with the paper's values, which are compared with ours. A list
    for a key that holds one value means that the paper used all of them."""
    premises: Premises = Field(default={})
    """Settings that the paper wants small or large, without a number. A larger, or smaller, value
    than ours is then no test of the paper: what comes out there is shown, and decides nothing."""
    differs: tuple[Text, ...] = ()
    """Differences of ours that the specifications do not show, for all claims of this set-up."""


def _checksum(value: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", value):
        raise UserError(
            "is not a SHA-256, 64 digits of 0-9 and a-f",
            remedy="save the text that you quote as a file; `sha256sum FILE` prints its SHA-256",
        )
    return value


class Source(ConfigModel):
    """The text of a paper, which claims quote."""

    title: Text
    """Title of the paper."""
    authors: Text
    """Its authors."""
    text_sha256: Annotated[str, AfterValidator(_checksum)]
    """SHA-256 of the text file that the quotes are copied from."""


class ClaimFile(ConfigModel):
    """The claims of one paper, and our findings beyond them; or findings alone."""

    source: Source | None = None
    """The text that is quoted; required if there are claims."""
    summary: Text | None = None
    """What was found of the paper, in a sentence or two; it opens the page of the paper."""
    setups: dict[Id, Setup] = Field(default={})
    """The paper's set-ups, by names of our choice."""
    claims: tuple[Claim, ...] = ()
    """In the order of the paper."""
    findings: tuple[Finding, ...] = ()
    """Results of ours that no paper states."""
    ranges: Factors = Field(default={})
    """The factors of the set `ranges` for all statements of this file, in place of those of
    `neuralrace.config.variants.SETTINGS`."""
    unvaried: tuple[Text, ...] = ()
    """Globs of cells that are too large to be varied: they are tried with fresh seeds, and at the
    factors that this file or a statement names."""

    @property
    def statements(self) -> tuple[Claim | Finding, ...]:
        """Claims, then findings."""
        return (*self.claims, *self.findings)

    def sentence(self, claim: Claim) -> int:
        """Number of a claim's quote among the distinct quotes of the file, from 1."""
        quotes = list(dict.fromkeys(" ".join(each.quote.split()) for each in self.claims))
        return quotes.index(" ".join(claim.quote.split())) + 1

    @property
    def quoted(self) -> Source:
        """The text that its claims quote."""
        if self.source is None:
            raise ValueError("a file without claims quotes nothing")
        return self.source

    @model_validator(mode="after")
    def _set_up(self) -> "ClaimFile":
        if self.claims and self.source is None:
            raise UserError("is required where claims quote it", key="source")
        for claim in self.claims:
            if claim.setup not in self.setups:
                raise UserError(
                    "is not among the setups of this file",
                    key=f"{claim.id}.setup",
                    value=claim.setup,
                    remedy=f"use one of {', '.join(self.setups)}",
                )
        return self


Claims = Mapping[Path, ClaimFile]
"""Claims and findings by file; the folder of a file is named after its paper."""


REFERENCES = (
    ("corrected_by", ("reproduced", "holds"), "give the id of a claim or finding that holds"),
    ("follows_from", ("wrong",), "give the id of a claim that is wrong"),
)
"""Keys that name another statement, what this must be known as, and what to do where it is not."""


def read_claims(files: Sequence[Path]) -> Claims:
    """Claims and findings of all papers.

    Args:
        files: `config/<paper>/claims.yaml` of each.

    Raises:
        UserError: a file that cannot be read; a key or value that is unknown, missing or out of
            range; an identifier used twice; `corrected_by` names no claim or finding that holds,
            or `follows_from` no claim that is wrong.
    """
    claims = {file: _read(file) for file in files}
    statements = [(file, each) for file, content in claims.items() for each in content.statements]
    known: dict[str, tuple[Path, Claim | Finding]] = {}
    for file, statement in statements:
        if statement.id in known:
            other, _ = known[statement.id]
            raise UserError(
                f"this identifier is already in {other}",
                file=file,
                key=f"{statement.id}.id",
                remedy="choose another one",
            )
        known[statement.id] = file, statement
    for file, claim in statements:
        if isinstance(claim, Finding):
            continue
        for key, expected, remedy in REFERENCES:
            name: str | None = getattr(claim, key)
            _, other = known.get(name or "", (None, None))
            if name is None or (other and other.expect in expected):
                continue
            problem = f"is not expected to be {expected[0]}" if other else "is no claim or finding"
            raise UserError(problem, file=file, key=f"{claim.id}.{key}", value=name, remedy=remedy)
    return claims


def matching_cells(globs: Sequence[str], cell_ids: Sequence[str], key: str = "cells") -> list[str]:
    """Cells that match any of the globs, sorted.

    Args:
        globs: patterns of `paper/experiment/label`; `*` crosses slashes.
        cell_ids: all cells, `paper/experiment/label`.
        key: key of the globs in the claim file, for messages.

    Raises:
        UserError: a glob that matches no cell.
    """
    matches: set[str] = set()
    for glob in globs:
        hits = fnmatch.filter(cell_ids, glob)
        if not hits:
            experiments = sorted({cell.rpartition("/")[0] + "/*" for cell in cell_ids})
            raise UserError(
                "matches no cell",
                key=key,
                value=glob,
                remedy=did_you_mean(glob, [*experiments, *cell_ids])
                + f"there are {shorten(', '.join(experiments)) or 'none'}",
            )
        matches.update(hits)
    return sorted(matches)


@contextmanager
def errors_located(file: Path, statement: Statement) -> Iterator[None]:
    """Adds the claim file and the statement to errors that are raised inside."""
    try:
        yield
    except UserError as error:
        if error.file:  # a results file is at fault, and a message names one file at its beginning
            raise UserError(str(error), file=file, key=statement.id) from error
        raise _located(error, file, statement.id) from error


def claims_fingerprint(claims: Claims) -> str:
    """Fingerprint of the content of claim files; comments and layout do not count."""
    return fingerprint(*(content.model_dump_json() for content in claims.values()))


def planned_claims(files: Sequence[Path], statements: str) -> Claims:
    """Claims and findings, unchanged since the job was planned.

    Args:
        files: as for `read_claims`.
        statements: their `claims_fingerprint` when the job was planned.

    Raises:
        UserError: they were edited since; as `read_claims`.
    """
    claims = read_claims(files)
    if claims_fingerprint(claims) != statements:
        raise UserError(
            "claims were edited after this run was planned", remedy="run the same command again"
        )
    return claims


def _read(file: Path) -> ClaimFile:
    content = read_yaml(file)
    try:  # JSON mode, so that YAML lists are accepted for tuples
        return ClaimFile.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise combined(_mistakes(error, file, content)) from None


def combined(errors: Sequence[UserError]) -> UserError:
    """One error for several: the only one itself, or a message with a line for each."""
    return errors[0] if len(errors) == 1 else UserError("\n".join(map(str, errors)))


def _mistakes(error: ValidationError, file: Path, content: Any) -> list[UserError]:
    """One error for each value at fault."""
    mistakes: dict[tuple[str, str], UserError] = {}
    for details in error.errors():
        path: list[Any] = []
        node = content
        for part in details["loc"]:
            if isinstance(node, dict):
                node = node.get(part)
            elif isinstance(node, list) and isinstance(part, int):
                node = node[part]
            else:
                break  # a branch of a union, not a key
            path.append(part)
        cause = _cause(details)
        if not (cause.value or isinstance(node, dict | list | None)):
            cause = UserError(cause.problem, key=cause.key, value=node, remedy=cause.remedy)
        mistake = _located(cause, file, _key(path, content))
        earlier = mistakes.setdefault((mistake.key, mistake.value), mistake)
        if earlier is not mistake:  # a branch of the same union
            earlier.problem += f", or {mistake.problem}"
    return list(mistakes.values())


def _key(path: Sequence[Any], content: Any) -> str:
    """Dotted key of a value; it begins with the identifier of a claim or finding."""
    if len(path) < 2 or path[0] not in ("claims", "findings"):
        return ".".join(map(str, path))
    section, number, *rest = path
    statement = content[section][number]
    known = statement.get("id") if isinstance(statement, dict) else None
    return ".".join(map(str, (known or f"{section[:-1]} number {number + 1}", *rest)))


def _cause(details: ErrorDetails) -> UserError:
    """The mistake, without its place in the file."""
    raised = details.get("ctx", {}).get("error")
    if isinstance(raised, UserError):  # by a validator of these models
        return raised
    if details["type"] == "extra_forbidden":
        return UserError("unknown key", remedy="docs/claims.md lists the known ones")
    return UserError(problem_of(details))


def _located(error: UserError, file: Path, key: str) -> UserError:
    """The same error with its file, and its key under another one."""
    return error.replaced(file=str(file), key=".".join(filter(None, (key, error.key))))
