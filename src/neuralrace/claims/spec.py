"""What a claim is, as it is written in `config/claims/<paper>.yaml`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from neuralrace.base import Strict
from neuralrace.errors import UserError, yaml_hint

Kind = Literal["equality", "bound", "ordering", "slope", "qualitative"]
Expectation = Literal["reproduced", "discrepant", "not assessed"]
Relation = Literal["<=", ">="]

Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
OneOrMore = (
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
)


class Sweep(Strict):
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


class Measure(Strict):
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


class Expected(Strict):
    """The number that a measure is held against."""

    value: float
    """Equality, slope: the value. Bound, qualitative: the threshold. Ordering: the least increase
    between neighbours, 0 where they only have to increase."""
    source: Text
    """Where the number comes from."""


class Tolerance(Strict):
    """By how much the paper's number may be missed."""

    value: Annotated[float, Field(ge=0)]
    """In the units of the measure; it loosens every kind of claim."""
    why: Text
    """What the tolerance allows for."""


class Claim(Strict):
    """One statement of a paper and how it is judged."""

    id: Id
    """Kebab-case name, unique over all papers."""
    locator: Text
    """Where in the paper."""
    statement: Text
    """What the paper says, in our words."""
    kind: Kind
    """How it is judged."""
    measure: Measure | None = None
    """What is compared; every kind but ordering."""
    sequence: Annotated[tuple[Measure, ...], Field(min_length=2)] | None = None
    """What is claimed to increase from each to the next; for ordering."""
    relation: Relation | None = None
    """Side of the threshold, for bound and qualitative."""
    expected: Expected | None = None
    """The number that the paper or its theory gives."""
    tolerance: Tolerance | None = None
    """By how much it may be missed."""
    expect: Expectation
    """What is known to come out; anything else makes the judging fail."""
    reason: Text | None = None
    """Why the claim is discrepant or not assessed."""
    corrected_by: Id | None = None
    """The claim that holds in place of a discrepant one."""
    figure: Annotated[str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+$")] | None = None
    """Figure that shows it, `paper/figure`."""

    @model_validator(mode="after")
    def _consistent(self) -> "Claim":
        judged = self.expect != "not assessed"
        needed = {
            "measure": judged and self.kind != "ordering",
            "sequence": judged and self.kind == "ordering",
            "relation": judged and self.kind in ("bound", "qualitative"),
            "expected": judged or self.expected is not None,
            "tolerance": judged,
            "reason": self.expect != "reproduced",
            "corrected_by": self.expect == "discrepant" and self.corrected_by is not None,
        }
        mistakes = [
            f"{key} {'is missing from' if need else 'has no place in'}"
            for key, need in needed.items()
            if need != (getattr(self, key) is not None)
        ]
        if self.kind == "slope" and self.measure and not self.measure.fit:
            mistakes.append("measure.fit is missing from")
        if mistakes:
            raise ValueError(
                f"{', '.join(mistakes)} a claim of kind {self.kind!r} with expect {self.expect!r}"
            )
        return self

    def measures(self) -> Iterator[Measure]:
        """Everything that is read to judge this claim."""
        for measure in self.sequence or (self.measure,):
            if measure:
                yield from measure.parts()


class ClaimFile(Strict):
    """The claims of one paper."""

    claims: tuple[Claim, ...]
    """In the order of the paper."""


Claims = Mapping[Path, tuple[Claim, ...]]
"""Claims by file; the stem of a file is its paper."""


def read_claims(files: Sequence[Path]) -> Claims:
    """The claims of all papers.

    Raises:
        UserError: an unreadable file; a key or value that is unknown, missing or out of range; an
            identifier used twice; a correction that is not there or is not said to hold.
    """
    claims = {file: _read(file) for file in files}
    known: dict[str, tuple[Path, Claim]] = {}
    for file, claim in _each(claims):
        if claim.id in known:
            raise UserError(
                f"{file}: {claim.id}: id: {claim.id!r} is already in {known[claim.id][0]}"
            )
        known[claim.id] = file, claim
    for file, claim in _each(claims):
        if claim.corrected_by is None:
            continue
        if claim.corrected_by not in known:
            problem = "is no claim"
        elif known[claim.corrected_by][1].expect != "reproduced":
            problem = "is not expected to be reproduced"
        else:
            continue
        raise UserError(
            f"{file}: {claim.id}: corrected_by: {claim.corrected_by!r} {problem}; "
            "expected the id of a claim that holds"
        )
    return claims


def needed_cells(claims: Claims, cell_ids: Sequence[str]) -> list[str]:
    """The cells whose metrics decide these claims, sorted.

    Raises:
        UserError: a glob that matches no cell.
    """
    needed: set[str] = set()
    for file, claim in _each(claims):
        with naming(file, claim):
            for measure in claim.measures():
                needed.update(matching(measure.cells, cell_ids))
    return sorted(needed)


def matching(globs: Sequence[str], cell_ids: Sequence[str]) -> list[str]:
    """Cells that match any of the globs, sorted.

    Raises:
        UserError: a glob that matches no cell.
    """
    found: set[str] = set()
    for glob in globs:
        hits = {cell for cell in cell_ids if fnmatchcase(cell, glob)}
        if not hits:
            experiments = sorted({cell.rpartition("/")[0] + "/*" for cell in cell_ids})
            raise UserError(
                f"cells: {glob!r} matches no cell; there are {', '.join(experiments) or 'none'}"
            )
        found |= hits
    return sorted(found)


@contextmanager
def naming(file: Path, claim: Claim) -> Iterator[None]:
    """Mistakes found inside are told with the file and the claim they are in."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{file}: {claim.id}: {error}") from error


def _each(claims: Claims) -> Iterator[tuple[Path, Claim]]:
    return ((file, claim) for file, listed in claims.items() for claim in listed)


def _read(file: Path) -> tuple[Claim, ...]:
    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
        text = json.dumps(raw, default=str)  # dates become text
    except (OSError, TypeError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{file}: cannot be read as YAML: {error}") from error
    try:  # JSON mode, so that YAML lists are welcome where tuples are kept
        return ClaimFile.model_validate_json(text).claims
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
        if path[:1] == ["claims"] and len(path) > 1:
            claim = raw["claims"][path[1]]
            known = claim.get("id") if isinstance(claim, dict) else None
            names = [str(known or f"claim number {path[1] + 1}"), ".".join(map(str, path[2:]))]
        if not isinstance(node, dict | list | None):
            names.append(repr(node))
        reason = mistake["msg"].removeprefix("Value error, ") + yaml_hint(node)
        if mistake["type"] == "extra_forbidden":
            reason = "unknown key; docs/claims.md lists the known ones"
        told.setdefault(": ".join(filter(None, names)), []).append(reason)
    return [f"{where}: {', or '.join(reasons)}".lstrip(": ") for where, reasons in told.items()]
