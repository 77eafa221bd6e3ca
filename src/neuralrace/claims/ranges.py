"""Ranges: between which values of a setting a verdict is the same."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from neuralrace.claims.criteria import CRITERIA
from neuralrace.claims.spec import Number, Premises, Statement, Verdict, matching_cells
from neuralrace.claims.variants import VariantVerdict
from neuralrace.claims.verdict import outcome_of, samples_of
from neuralrace.config.variants import SETTINGS, SettingName, multiplied
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.cells import Results

MARKS: dict[Verdict, str] = {"holds": "●", "contradicted": "○", "undecided": "◐", "undefined": "–"}
"""The mark of a verdict in a bar."""


class Point(ConfigModel):
    """The verdict on a statement at one value of a setting."""

    value: str
    """The value, or the factor that ours is multiplied by."""
    verdict: Verdict
    own: bool = False
    """Whether this is our own value."""
    decides: bool = True
    """Whether it counts: not where the paper's premise, such as a small start, is given up."""
    measured: float | None = None
    interval: tuple[float, float] | None = None
    told: str | None = None
    """Why there is no measured value."""


class Range(ConfigModel):
    """The verdicts on a statement at several values of a setting, in their order."""

    setting: str
    points: tuple[Point, ...]

    @property
    def own(self) -> Point:
        """The point at our own value."""
        return next(point for point in self.points if point.own)

    @property
    def turns(self) -> bool:
        """Whether the verdict turns into its opposite, at a value that counts."""
        verdicts = {point.verdict for point in self.points if point.decides}
        return {"holds", "contradicted"} <= verdicts | {self.own.verdict}

    @property
    def varies(self) -> bool:
        """Whether any verdict differs from that at our own value."""
        return any(point.verdict != self.own.verdict for point in self.points)

    @property
    def bar(self) -> str:
        """Each value with the mark of its verdict.

        Our own value is bold, and one that does not count is in parentheses.
        """

        def shown(point: Point) -> str:
            mark = MARKS[point.verdict]
            if point.own:
                return f"**{point.value}** {mark}"
            return f"{point.value} {mark}" if point.decides else f"({point.value} {mark})"

        return " ".join(map(shown, self.points))


def ranges_of(
    statement: Statement,
    own: Mapping[str, Any],
    results: Results,
    varied: Sequence[VariantVerdict],
    premises: Premises,
) -> tuple[Range, ...]:
    """The ranges of a judged statement: of settings, of other cells, and of vague words.

    Args:
        statement: a claim or finding that is judged.
        own: its verdict, measured value and interval.
        results: the cells.
        varied: its verdicts in the set `ranges`.
        premises: settings that the paper wants small or large.

    Raises:
        UserError: a measure that cannot be evaluated.
    """
    return (
        *_of_settings(statement, own, results, varied, premises),
        *_elsewhere(statement, own, results, premises),
        *_of_criteria(statement, own, results),
    )


def _of_settings(
    statement: Statement,
    own: Mapping[str, Any],
    results: Results,
    varied: Sequence[VariantVerdict],
    premises: Premises,
) -> Iterator[Range]:
    for name in SETTINGS:
        group = [each for each in varied if each.setting == name]
        if not group:
            continue
        values = _own_values(statement, name, results)
        points = {1.0: _point(_times(values, 1.0), own, own=True)}
        for each in group:
            points[each.factor] = Point(
                value=_times(values, each.factor),
                verdict=each.verdict,
                decides=_counts(premises.get(name), each.factor, 1.0),
                measured=each.measured,
                interval=each.interval,
                told=each.told,
            )
        ordered = tuple(points[factor] for factor in sorted(points))
        yield Range(setting=SETTINGS[name].words, points=ordered)


def _own_values(
    statement: Statement, name: SettingName, results: Results
) -> tuple[int | float, ...] | None:
    """Our own value of a setting, of each layer for widths; None if cells or measures differ."""
    found: set[tuple[int | float, ...]] = set()
    for measure in statement.measures():
        for cell in matching_cells(measure.cells, list(results)):
            if name == "init_scale" and "init_scale" in measure.select:
                found.add(tuple(float(label) for label in measure.select["init_scale"]))
                continue
            spec = json.loads(results[cell].attributes("metrics")["spec"])
            for key in SETTINGS[name].keys:
                value: Any = spec
                for part in key.split("."):
                    value = value.get(part) if isinstance(value, dict) else None
                if value is not None:
                    found.add(tuple(value) if isinstance(value, list) else (value,))
    same = found.pop() if len(found) == 1 else None
    # several scales are a sweep, and no value
    return None if same is None or (name == "init_scale" and len(same) > 1) else same


def _times(values: tuple[int | float, ...] | None, factor: float) -> str:
    """Values times a factor, or the factor where values differ."""
    if values is None:
        return f"×{factor:g}"
    return ", ".join(f"{multiplied(value, factor):g}" for value in values)


def _counts(premise: str | None, value: float | str, own: float | str) -> bool:
    """Whether a value keeps to the premise at least as well as our own."""
    if premise is None or isinstance(value, str) or isinstance(own, str):
        return True
    return value <= own if premise == "small" else value >= own


def _elsewhere(
    statement: Statement, own: Mapping[str, Any], results: Results, premises: Premises
) -> Iterator[Range]:
    for setting, group in groupby(statement.elsewhere, key=lambda each: each.setting):
        places = list(group)
        ours = next(place.value for place in places if place.own)
        points = []
        for place in places:
            value = place.value if isinstance(place.value, str) else f"{place.value:g}"
            if place.own:
                points.append(_point(value, own, own=True))
                continue
            levels = place.levels(statement)
            outcome = outcome_of(statement, levels, samples_of(levels, results))
            decides = _counts(premises.get(setting), place.value, ours)
            points.append(_point(value, outcome, decides=decides))
        yield Range(setting=setting, points=tuple(points))


def _of_criteria(statement: Statement, own: Mapping[str, Any], results: Results) -> Iterator[Range]:
    """The verdicts if a vague word is read more strictly, or more loosely.

    Words are read in favour of the paper: another reading counts only if the statement holds by it.
    """
    numbers = {"expected": statement.expected, "tolerance": statement.tolerance}
    vague = {key: number for key, number in numbers.items() if number and number.criterion}
    if not vague:
        return
    samples = samples_of(statement.levels, results)
    for key, number in vague.items():
        name = number.criterion or ""
        criterion = CRITERIA[name]
        points = []
        for value in sorted((criterion.strict, criterion.value, criterion.loose)):
            if value == criterion.value:
                points.append(_point(f"{value:.2g}", own, own=True))
                continue
            read: Number = number.model_copy(update={"value": value})
            other = statement.model_copy(update={key: read})
            outcome = outcome_of(other, statement.levels, samples)
            lost = own["verdict"] == "holds" and outcome["verdict"] != "holds"
            points.append(_point(f"{value:.2g}", outcome, decides=not lost))
        yield Range(setting=f"“{name}”", points=tuple(points))


def _point(
    value: str, outcome: Mapping[str, Any], own: bool = False, decides: bool = True
) -> Point:
    return Point(
        value=value,
        verdict=outcome["verdict"],
        own=own,
        decides=decides,
        measured=outcome.get("measured"),
        interval=outcome.get("interval"),
    )
