"""What claims and findings are, as they are written in `config/<paper>/claims.yaml`."""

import fnmatch
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from neuralrace.claims.criteria import CRITERIA
from neuralrace.config.yaml import read_yaml
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.checksums import fingerprint

Kind = Literal["equality", "bound", "ordering", "slope", "qualitative"]
Status = Literal["reproduced", "discrepant", "differs here", "undecided", "not assessed"]
"""What was decided; docs/claims.md says when."""
Verdict = Literal["holds", "contradicted", "undecided", "undefined"]
"""What came out, whatever is said of it."""
OverSeeds = Literal["mean", "median", "worst"]
Relation = Literal["<=", ">="]

Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
OneOrMore = (
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
)


class Sweep(ConfigModel):
    """What the metric is followed along."""

    x: Text
    """A coordinate of the metric (`init_scale`, `mode`, ...), or the dotted key of a number in the
    specification of the cells (`training.learning_rate`)."""


class Fit(Sweep):
    """A straight line by least squares, of which the slope counts."""

    scale: Literal["loglog", "linear"]
    """Axes in which the line is fitted."""


class Crossing(Sweep):
    """The first `x` at which the metric comes to a level, by straight lines between the points.

    Undefined where it never does, and where it is there at the first point: what it reached before
    cannot be told.
    """

    level: float
    """What the metric comes to."""
    direction: Literal["rising", "falling"]
    """Whether it comes from below or from above, as `x` increases."""


class Measure(ConfigModel):
    """What is read from metrics files: one value per seed."""

    cells: Annotated[tuple[Text, ...], *OneOrMore]
    """Globs over cell identifiers `paper/experiment/label`; `*` crosses slashes."""
    metric: Text
    """Variable of the metrics files."""
    select: dict[str, Annotated[tuple[float | str, ...], *OneOrMore]] = Field(default={})
    """Labels taken along dimensions; all labels of the others."""
    reduce: Literal["mean", "max", "min", "median"] | None = None
    """How several values of one seed become one: over the dimensions that are left, and over cells
    unless `fit` or `crossing` runs through them. Needed only where several are left, and never
    implied."""
    fit: Fit | None = None
    """The slope of the metric against `x`, in place of its value."""
    crossing: Crossing | None = None
    """The `x` at which the metric comes to a level, in place of its value."""
    minus: "Measure | None" = None
    """What is taken away, seed by seed."""
    over: "Measure | None" = None
    """What is divided by, seed by seed."""

    @model_validator(mode="after")
    def _checked(self) -> "Measure":
        if "seed" in self.select:
            raise ValueError("select: seed: a claim is judged over all seeds")
        if self.fit and self.crossing:
            raise ValueError("has both fit and crossing; a measure has one of them at most")
        if self.minus and self.over:
            raise ValueError("has both minus and over; a measure has one of them at most")
        return self

    def parts(self) -> "Iterator[Measure]":
        """This measure and those it is compared with."""
        yield self
        for other in (self.minus, self.over):
            if other:
                yield from other.parts()


class Number(ConfigModel):
    """A number with its reason, or a vague word with the one meaning it has in all papers."""

    @model_validator(mode="before")
    @classmethod
    def _criterion(cls, written: Any) -> Any:
        """Spells out `criterion: near`."""
        if not isinstance(written, dict) or "criterion" not in written:
            return written
        name = written["criterion"]
        if len(written) > 1 or name not in list(CRITERIA):
            known = ", ".join(CRITERIA)
            raise ValueError(f"criterion {name!r} stands alone and is one of {known}")
        meaning = CRITERIA[name]
        (reason,) = set(cls.model_fields) - {"value"}
        return {"value": meaning.value, reason: f"{name}: {meaning.means}"}


class Expected(Number):
    """The number that a measure is held against."""

    value: float
    """Equality, slope: the value. Bound, qualitative: the threshold. Ordering: the least increase
    between neighbours, 0 where they only have to increase."""
    source: Text
    """Where the number comes from."""


class Tolerance(Number):
    """By how much the number may be missed."""

    value: Annotated[float, Field(ge=0)]
    """In the units of the measure; it loosens every kind of claim."""
    why: Text
    """What the tolerance allows for."""


class Instead(ConfigModel):
    """Keys of a measure that an alternative replaces; labels of `select` one by one."""

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
            ValueError: keys that do not go together with those that the measure keeps.
        """
        own = self.model_dump(exclude_none=True) | {"select": measure.select | self.select}
        try:
            return Measure.model_validate(measure.model_dump() | own)
        except ValidationError as error:
            told = ", ".join(each["msg"].removeprefix("Value error, ") for each in error.errors())
            raise ValueError(f"alternatives: instead: the measure then {told}") from None


class Alternative(ConfigModel):
    """Something near and plausible that must fail the claim: it shows that the claim has power."""

    name: Text
    """What it is: a rival theory, the other family, a wrong exponent, an untrained network."""
    instead: Instead | None = None
    """What is read in place of the claim's own measure, or of each of its sequence."""
    measure: Measure | None = None
    """Another measure altogether."""
    sequence: Annotated[tuple[Measure, ...], Field(min_length=2)] | None = None
    """Another sequence altogether."""
    shuffled: bool = False
    """Each seed is compared (`minus`, `over`, neighbours of a sequence) with the seed after it."""
    value: float | None = None
    """What a rival theory predicts for the measure, where that is a number."""
    source: Text | None = None
    """Where that number comes from."""

    @model_validator(mode="after")
    def _one(self) -> "Alternative":
        given = (self.instead, self.measure, self.sequence, self.shuffled or None, self.value)
        if sum(each is not None for each in given) != 1:
            raise ValueError("needs one of instead, measure, sequence, shuffled and value")
        if (self.value is None) != (self.source is None):
            raise ValueError("value and source go together")
        return self

    def measures(self, statement: "Statement") -> tuple[Measure, ...]:
        """What is read for it; nothing for a number."""
        if self.value is not None:
            return ()
        read = self.sequence or (self.measure and (self.measure,)) or statement.levels
        return tuple(self.instead.of(each) for each in read) if self.instead else tuple(read)


class Statement(ConfigModel):
    """What claims and findings share: a statement, how it is judged, and what must fail it."""

    id: Id
    """Kebab-case name, unique over all papers."""
    statement: Text
    """What is judged, in our words."""
    kind: Kind
    """How it is judged."""
    measure: Measure | None = None
    """What is compared; every kind but ordering."""
    sequence: Annotated[tuple[Measure, ...], Field(min_length=2)] | None = None
    """What is said to increase from each to the next; for ordering."""
    relation: Relation | None = None
    """Side of the threshold, for bound and qualitative."""
    expected: Expected | None = None
    """The number that the paper or its theory gives."""
    tolerance: Tolerance | None = None
    """By how much it may be missed."""
    over_seeds: OverSeeds | None = None
    """What is judged of the seeds: `mean`, the default; `median`, for heavy tails; `worst`, where
    the words say each or every, and for every bound."""
    alternatives: tuple[Alternative, ...] = ()
    """What must fail; every statement that is judged has one."""
    depends: Text | None = None
    """On what of ours the verdict is known to depend."""
    figure: Annotated[str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+$")] | None = None
    """Figure that shows it, `paper/figure`."""

    @property
    def judged(self) -> bool:
        """Whether anything is measured."""
        return True

    @property
    def levels(self) -> tuple[Measure, ...]:
        """What is compared: the sequence, or the one measure."""
        return self.sequence or ((self.measure,) if self.measure else ())

    @property
    def statistic(self) -> OverSeeds:
        """What is judged of the seeds."""
        return self.over_seeds or ("worst" if self.kind == "bound" else "mean")

    def judged_as(self) -> str:
        """Checksum of all that a verdict rests on, leaving words aside."""
        value = {"value"}
        rests_on: Any = dict.fromkeys(("kind", "measure", "sequence", "relation"), True)
        rests_on |= {"over_seeds": True, "expected": value, "tolerance": value}
        return hashlib.sha256(self.model_dump_json(include=rests_on).encode()).hexdigest()

    def measures(self) -> Iterator[Measure]:
        """Everything that is read to judge this statement."""
        for level in self.levels:
            yield from level.parts()

    def alternative_measures(self) -> Iterator[Measure]:
        """Everything that is read for its alternatives."""
        for alternative in self.alternatives:
            for level in alternative.measures(self):
                yield from level.parts()

    def needed(self) -> dict[str, bool]:
        """Optional keys, and whether this statement must have them."""
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
        mistakes = [
            f"{key} {'is missing from' if need else 'has no place in'}"
            for key, need in self.needed().items()
            if need != bool(getattr(self, key))
        ]
        if self.kind == "slope" and self.measure and not self.measure.fit:
            mistakes.append("measure.fit is missing from")
        if mistakes:
            raise ValueError(f"{', '.join(mistakes)} {self.told()}")
        list(self.alternative_measures())  # raises where keys do not go together
        return self

    def told(self) -> str:
        """What it is, in a message."""
        return f"a finding of kind {self.kind!r}"


class Claim(Statement):
    """One statement of a paper and how it is judged."""

    locator: Text
    """Where in the paper."""
    quote: Text
    """The paper's own words, one sentence; what is left out stands as ` … `."""
    setup: Text
    """Name of the paper's set-up that the words are about, in `setups`."""
    differs: tuple[Text, ...] = ()
    """What differs here from that set-up and measure, beyond what the specifications show."""
    expect: Status
    """What is known to come out; anything else makes the judging fail."""
    reason: Text | None = None
    """Why it does not hold, is not decided or not assessed."""
    argument: Text | None = None
    """A counterexample, a proof or an identity that fails: why a statement is wrong whatever the
    set-up."""
    fair: Text | None = None
    """Why it is fair to call the statement wrong, by a second reader of the paper."""
    corrected_by: Id | None = None
    """The claim or finding that holds in its place."""

    @property
    def judged(self) -> bool:
        """Whether anything is measured."""
        return self.expect != "not assessed"

    def needed(self) -> dict[str, bool]:
        """Optional keys, and whether this claim must have them."""
        wrong = self.expect == "discrepant"
        return super().needed() | {
            "reason": self.expect != "reproduced",
            "argument": wrong and self.argument is not None,
            "fair": wrong,
            "corrected_by": self.expect in ("discrepant", "differs here")
            and self.corrected_by is not None,
        }

    def told(self) -> str:
        """What it is, in a message."""
        return f"a claim of kind {self.kind!r} with expect {self.expect!r}"


class Finding(Statement):
    """What no source says and was found here."""


class Setup(ConfigModel):
    """What a paper prints of how a result of its was got."""

    locator: Text
    """Where it is printed."""
    printed: dict[Text, Text]
    """Network, widths, data, learning rate, start, measure, seeds, as far as they are printed."""
    keys: dict[Text, Any] = Field(default={})
    """Dotted keys of a specification and the paper's values: these are compared with ours. A list
    for a key that holds one value: the paper used all of them."""


class Source(ConfigModel):
    """The text that is quoted."""

    title: Text
    """Its title."""
    authors: Text
    """Who wrote it."""
    text_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Checksum of the text that the quotes were taken from."""


class ClaimFile(ConfigModel):
    """The claims of one paper, and what was found beyond them."""

    source: Source
    """What is quoted."""
    setups: dict[Id, Setup]
    """The paper's set-ups by names of our choice."""
    claims: tuple[Claim, ...]
    """In the order of the paper."""
    findings: tuple[Finding, ...] = ()
    """What no source says."""
    undoubled: tuple[Text, ...] = ()
    """Globs of cells that are too large for blind trials to double them; fresh seeds they get."""

    @property
    def statements(self) -> tuple[Claim | Finding, ...]:
        """Claims, then findings."""
        return (*self.claims, *self.findings)

    @model_validator(mode="after")
    def _set_up(self) -> "ClaimFile":
        for claim in self.claims:
            if claim.setup not in self.setups:
                known = ", ".join(self.setups)
                raise ValueError(f"{claim.id}: setup: {claim.setup!r} is none of setups: {known}")
        return self


Claims = Mapping[Path, ClaimFile]
"""Claims and findings by file; the stem of a file is its paper."""


def read_claims(files: Sequence[Path]) -> Claims:
    """The claims and findings of all papers.

    Raises:
        UserError: an unreadable file; a key or value that is unknown, missing or out of range; an
            identifier used twice; a correction that is not there or is not said to hold.
    """
    claims = {file: _read(file) for file in files}
    known: dict[str, tuple[Path, Claim | Finding]] = {}
    for file, statement in _each(claims):
        if statement.id in known:
            raise UserError(
                f"{file}: {statement.id}: id: {statement.id!r} is already in "
                f"{known[statement.id][0]}"
            )
        known[statement.id] = file, statement
    for file, claim in _each(claims):
        if isinstance(claim, Finding) or claim.corrected_by is None:
            continue
        _, correction = known.get(claim.corrected_by, (None, None))
        if correction is None:
            problem = "is no claim or finding"
        elif isinstance(correction, Claim) and correction.expect != "reproduced":
            problem = "is not expected to be reproduced"
        else:
            continue
        raise UserError(
            f"{file}: {claim.id}: corrected_by: {claim.corrected_by!r} {problem}; "
            "expected the id of one that holds"
        )
    return claims


def matching_cells(globs: Sequence[str], cell_ids: Sequence[str]) -> list[str]:
    """Cells that match any of the globs, sorted.

    Raises:
        UserError: a glob that matches no cell.
    """
    found: set[str] = set()
    for glob in globs:
        hits = fnmatch.filter(cell_ids, glob)
        if not hits:
            experiments = sorted({cell.rpartition("/")[0] + "/*" for cell in cell_ids})
            raise UserError(
                f"cells: {glob!r} matches no cell; there are {', '.join(experiments) or 'none'}"
            )
        found.update(hits)
    return sorted(found)


@contextmanager
def naming(file: Path, statement: Statement) -> Iterator[None]:
    """Mistakes found inside are told with the file and the statement they are in."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{file}: {statement.id}: {error}") from error


def claims_fingerprint(claims: Claims) -> str:
    """Fingerprint of what claims and findings say, without comments and layout."""
    return fingerprint(*(each.model_dump_json() for each in claims.values()))


def planned_claims(files: Sequence[Path], statements: str) -> Claims:
    """The claims and findings that a job was planned with.

    Args:
        files: as for `read_claims`.
        statements: fingerprint of what they said, `stated`.

    Raises:
        UserError: they say something else; as `read_claims`.
    """
    claims = read_claims(files)
    if claims_fingerprint(claims) != statements:
        raise UserError("claims were edited after this run was planned; run the same command again")
    return claims


def _each(claims: Claims) -> Iterator[tuple[Path, Claim | Finding]]:
    return ((file, each) for file, listed in claims.items() for each in listed.statements)


def _read(file: Path) -> ClaimFile:
    raw = read_yaml(file)
    try:  # JSON mode, so that YAML lists are welcome where tuples are kept
        return ClaimFile.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise UserError(f"{file}: " + f"\n{file}: ".join(_mistakes(error, raw))) from None


def _mistakes(error: ValidationError, raw: Any) -> list[str]:
    """Each mistake as: claim: key: value: what is allowed."""
    told: dict[str, list[str]] = {}
    for mistake in error.errors():
        path: list[Any] = []
        node = raw
        for part in mistake["loc"]:
            if isinstance(node, dict):
                node = node.get(part)
            elif isinstance(node, list) and isinstance(part, int):
                node = node[part]
            else:
                break  # a branch of a union, not a key
            path.append(part)
        names = [".".join(map(str, path))]
        if path[:1] in (["claims"], ["findings"]) and len(path) > 1:
            statement = raw[path[0]][path[1]]
            known = statement.get("id") if isinstance(statement, dict) else None
            place = f"{path[0].removesuffix('s')} number {path[1] + 1}"
            names = [str(known or place), ".".join(map(str, path[2:]))]
        if not isinstance(node, dict | list | None):
            names.append(repr(node))
        reason = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            reason = "unknown key; docs/claims.md lists the known ones"
        told.setdefault(": ".join(filter(None, names)), []).append(reason)
    return [f"{where}: {', or '.join(reasons)}".lstrip(": ") for where, reasons in told.items()]
