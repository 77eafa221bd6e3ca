"""Pages of judged claims and findings: Markdown, for results folders and for the site."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from neuralrace.claims.judge import ClaimRow, FindingRow, JudgedAlternative, Row
from neuralrace.claims.ranges import MARKS, Point
from neuralrace.claims.sentences import STATUSES, counts, errors
from neuralrace.claims.spec import Status
from neuralrace.claims.variants import VariantVerdict
from neuralrace.claims.verdict import INTERVALS
from neuralrace.errors import counted

FINDING = "A result that no paper states. It is measured in experiments of the paper that is named."
"""What a finding is."""
HEADINGS: Mapping[Status, tuple[str, str]] = {
    "wrong": (
        "Wrong",
        "Shown at the paper's own set-up and measure, or by an argument that needs none. A *slip* "
        "is a mistake in one place, such as a sign, a factor or an index; after a *false step* the "
        "result still stands; a *false result* falls.",
    ),
    "not reproduced": (
        "Not reproduced",
        "Contradicted in our set-up, and at every other setting that counts. Our set-up differs "
        "from the paper's, so that the statement may still be right there. Where it holds under "
        "conditions that are not the paper's, the details say so under *Depends on*.",
    ),
    "depends on": (
        "Depends on an unprinted choice",
        "Comes out for some values of it and not for others, or only if a vague word is read more "
        "loosely than elsewhere.",
    ),
    "undecided": (
        "Undecided",
        "The interval reaches across the limit, or fresh seeds give another verdict.",
    ),
    "reproduced": (
        "Holds",
        "The interval over seeds lies inside the limit, and every rival lies outside.",
    ),
    "analogue": (
        "Holds for an analogue",
        "Measured on something that stands for what the paper speaks of.",
    ),
    "identity": (
        "Identities",
        "Follow from definitions or algebra. Numbers check the code, and say nothing about the "
        "paper.",
    ),
    "not assessed": ("Not assessed", "Nothing is measured, for the reason that is given."),
}
"""Title and explanation of the section of each status."""
READING = (
    "How to read the tables: a claim holds if the measured value meets the criterion; what is "
    "measured, or why this number is expected, follows in parentheses. In brackets is the 95% "
    "confidence interval over n seeds, of the mean, or of the median where tails are heavy. Where "
    "a claim is about every run, the least favourable one decides: the *lowest* or *highest* of "
    "all, with the other end in parentheses, or the *farthest* where a value can be missed on "
    "either side. Where fresh seeds give another verdict, their value is given too, and the claim "
    "is undecided. A rival is what a sceptic would believe instead; by the same criterion it must "
    "fail."
)
RANGES = (
    "Ranges show the verdict at other values of a setting that the paper does not print, or of a "
    f"vague word such as “near”: {MARKS['holds']} holds, {MARKS['contradicted']} is contradicted, "
    f"{MARKS['undecided']} is undecided, {MARKS['undefined']} has no result, as the run diverged "
    "or did not finish learning. Our own value is bold. A value in parentheses gives up a premise "
    "of the paper, such as small weights, and does not count; neither does a stricter reading of a "
    "vague word. *Unchanged* lists settings along which the verdict does not change."
)
WEAK = "A claim is marked *weak* if its rivals are numbers, and none was measured."
SENTENCES = (
    "Several claims may be about one sentence, which is counted once and has the first status in "
    "the order of this page that one of them has."
)
CITING = (
    "To cite a verdict, give its identifier and the version of neuralrace, which `claims.csv` has "
    "in a row for each: for example *rotation-equivariance, neuralrace 0.1.0* (the package)."
)


@dataclass(frozen=True)
class Links:
    """How a page links to a claim, and to a figure."""

    target: Callable[[str], str] = '<a id="{}"></a>'.format
    """What stands before the details of a claim, given its identifier."""
    claim: Callable[[str], str] = "[{0}](#{0})".format
    """A link to them on the same page."""
    elsewhere: Callable[[str], str] = "[{0}](../findings.md#{0})".format
    """A link to a finding from the page of a paper."""
    figure: Callable[[str], str] = "`{}`".format
    """A link to a figure, `paper/figure`."""
    paper: Callable[[str], str] = str
    """What the page calls a paper, given its identifier."""


def paper_page(rows: Sequence[ClaimRow], links: Links = Links()) -> Iterator[str]:
    """The page of a paper: what was found, a line for each claim, and details.

    Args:
        rows: its claims, in the order of the paper; at least one.
        links: how it links.
    """
    yield from (f"# {rows[0].title}", "", f"By {rows[0].authors}.", "")
    if rows[0].summary:
        yield from (" ".join(rows[0].summary.split()), "")
    sections: dict[str, tuple[Status, list[ClaimRow]]] = {}
    for status, (title, _) in HEADINGS.items():
        chosen = [row for row in rows if row.status == status]
        if chosen:
            sections[f"{title}: {counted(len(chosen), 'claim')}"] = status, chosen
    yield from (f"{counts_in_words(rows)} {SENTENCES}", "", contents(sections), "", READING)
    yield from ("", RANGES)
    if any(row.weak for row in rows):
        yield from ("", WEAK)
    yield from surprises(rows)
    own = {row.id for row in rows}
    for heading, (status, chosen) in sections.items():
        yield from ("", f"## {heading}", "", HEADINGS[status][1], "")
        if status == "not assessed":
            yield from _table(
                ("Claim", "Statement", "Why it is not assessed"),
                ((links.claim(row.id), row.statement, row.reason or "") for row in chosen),
            )
        else:
            last = "Nearest rival" if status in HELD else "Instead"
            yield from _table(
                ("Claim", "Statement", *NUMBERS, last, "Figure"),
                (_claim_line(row, links, own) for row in chosen),
            )
    yield from _all_details(rows, links)


INTRODUCTION = (
    "What papers on the theory of learning dynamics say, tested. Each sentence is quoted, measured "
    "on networks that are trained here, from the same set-up as far as it is printed, and judged "
    "by a criterion and against rivals."
)


def index_page(
    rows: Sequence[ClaimRow],
    links: Mapping[str, str],
    picture: str,
    table: str = "[claims.csv](claims.csv)",
) -> Iterator[str]:
    """The first page: the verdict on each paper in one sentence, and a table of counts.

    Args:
        rows: claims of all papers.
        links: by paper, the link to its page.
        picture: address of the picture of all verdicts.
        table: how the page names the table of all claims.
    """
    yield from ("# Claims", "", INTRODUCTION, "", counts_in_words(rows), "")
    yield from (f"![A tile for each sentence, by paper, with its status]({picture})", "")
    papers = counts(rows)
    shown: list[Status] = [s for s in STATUSES if any(of[s] for of in papers.values())]
    yield from _table(
        ("Paper", *(HEADINGS[status][0] for status in shown)),
        ((links[paper], *(str(of[status]) for status in shown)) for paper, of in papers.items()),
    )
    yield from (
        "",
        "Sentences are counted, each once, however many claims are about it; and so are errors, "
        "whatever follows from them. Identities follow from definitions or algebra, and could not "
        f"fail. All claims with their numbers are in {table}.",
        "",
    )
    for paper, group in groupby(rows, key=lambda row: row.paper):
        listed = list(group)
        found = f" {' '.join(listed[0].summary.split())}" if listed[0].summary else ""
        yield f"- {links[paper]}, *{listed[0].title}*:{found} {counts_in_words(listed)}"
    yield from ("", CITING)
    yield from surprises(rows)


def findings_page(rows: Sequence[FindingRow], links: Links = Links()) -> Iterator[str]:
    """The page of findings: what did not hold, then a line for each that holds, then details."""
    yield from ("# Findings", "", "Results of ours that no paper states.", "")
    yield from (contents(_sections(rows, links)), "", READING, "", RANGES)
    yield from findings_sections(rows, links)


def findings_sections(rows: Sequence[FindingRow], links: Links = Links()) -> Iterator[str]:
    """The sections of a page of findings."""
    yield from surprises(rows)
    for heading, chosen in _sections(rows, links).items():
        yield from ("", f"## {heading}", "")
        yield from _findings_table(chosen, links)
    yield from _all_details(rows, links)


def _sections(rows: Sequence[FindingRow], links: Links) -> dict[str, list[FindingRow]]:
    """The findings of each section, by its heading: those that did not hold, then by paper."""
    failed = [row for row in rows if row.status != "holds"]
    held = [row for row in rows if row.status == "holds"]
    sections = {"Expected, and did not hold": failed} if failed else {}
    sections |= {
        links.paper(paper): list(group) for paper, group in groupby(held, key=lambda row: row.paper)
    }
    return {f"{title}: {len(chosen)}": chosen for title, chosen in sections.items()}


def contents(headings: Iterable[str]) -> str:
    """Links to the sections of a page, of which the last has the details.

    Their addresses are made from the headings as git hosts and MyST do.
    """
    listed = (*headings, DETAILS)
    addresses = (re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in listed)
    links = (f"[{each}](#{to})" for each, to in zip(listed, addresses, strict=True))
    return f"On this page: {', '.join(links)}."


def _findings_table(rows: Sequence[FindingRow], links: Links) -> Iterator[str]:
    for_each = (
        (
            links.claim(row.id),
            " ".join(filter(None, (row.statement, row.reason, _depends(row)))),
            *_numbers(row),
            _rival(row),
            links.figure(row.figure) if row.figure else "",
        )
        for row in rows
    )
    yield from _table(("Finding", "Statement", *NUMBERS, "Nearest rival", "Figure"), for_each)


def _all_details(rows: Sequence[Row], links: Links) -> Iterator[str]:
    yield from ("", f"## {DETAILS}", "")
    own = {row.id for row in rows}
    for row in rows:
        yield from _details(row, links, own)


def counts_in_words(rows: Sequence[ClaimRow]) -> str:
    """Number of sentences of each status, in one sentence."""
    together = sum(counts(rows).values(), Counter[Status]())
    told: dict[Status, tuple[str, str]] = {  # of one sentence, and of several
        "reproduced": ("holds", "hold"),
        "analogue": ("holds for an analogue", "hold for an analogue"),
        "identity": ("identity", "identities"),
        "depends on": ("depends on an unprinted choice", "depend on an unprinted choice"),
        "undecided": ("undecided", "undecided"),
        "not reproduced": ("not reproduced", "not reproduced"),
        "wrong": ("wrong", "wrong"),
    }
    found = [(together[status], words) for status, words in told.items() if together[status]]
    parts = [f"{number} {one if number == 1 else several}" for number, (one, several) in found]
    assessed = together.total() - together["not assessed"]
    tail = f" ({counted(len(errors(rows)), 'error')})" if together["wrong"] else ""
    tested = sum(row.status != "not assessed" for row in rows)
    by = f"Of {counted(assessed, 'sentence')} tested, by {counted(tested, 'claim')}"
    return f"{by}: {', '.join(parts)}{tail}."


def surprises(rows: Sequence[Row]) -> Iterator[str]:
    """A section of the rows that differ from their known outcome, if there are any."""
    surprising = [row for row in rows if row.surprise]
    if surprising:
        yield from ("", "## Different from the known outcome", "")
        yield from (surprise_told(row) for row in surprising)


def surprise_told(row: Row) -> str:
    """A surprise, with what was expected and measured, and what to do."""
    surprise = row.surprise or ""
    remedy = {
        "undefined": "find out why in the files below; a run may have diverged or not finished "
        "learning",
        "undecided": "the seeds do not decide it: raise `seeds` in the configuration, or correct "
        "the expected value or tolerance if they are mistaken",
        "contradicted": "find what changed; before the paper is called wrong, suspect set-up, "
        "measure, sample size and reading",
        "holds": "find what changed; if the statement holds after all, write expect: reproduced",
    }[row.verdict or "undefined"]
    # the tables have no column for the known status, so its words decide
    unknown = surprise.startswith("known ")
    if any(not alternative.fails for alternative in row.alternatives):
        sharper = "where it has no power, find a sharper measure or another alternative"
        remedy = f"{sharper}; else {remedy}" if unknown else sharper
    place = f" ({row.locator})" if isinstance(row, ClaimRow) else ""
    return (
        f"- {row.paper}: {row.id}{place}: {surprise}: {row.verdict}: "
        f"expected {limit(row)}, measured {measured(row)}\n"
        f"  To do: {remedy}.\n"
        f"  Evidence: {', '.join(row.evidence)}"
    )


def limit(row: Row) -> str:
    """What a measured value must be."""
    if row.expected is None:
        return ""
    tolerance = row.tolerance or 0.0
    if row.kind == "ordering":
        least = row.expected - tolerance
        return f"an increase of more than {least:.3g}" if least else "an increase"
    if row.relation:
        sign = 1 if row.relation == "<=" else -1
        words = "at most" if row.relation == "<=" else "at least"
        return f"{words} {row.expected + sign * tolerance:.3g}"
    return f"{row.expected:.4g} ± {tolerance:.2g}" if tolerance else f"{row.expected:.4g}"


def measured(row: Row | JudgedAlternative) -> str:
    """The measured value with its interval, and the number of seeds; of a rival, the value."""
    if row.measured is None or row.interval is None:
        if isinstance(row, JudgedAlternative):
            return "undefined"
        return f"undefined in {row.undefined_seeds} of {row.seeds} seeds" if row.verdict else ""
    if not isinstance(row, Row):
        return f"{row.measured:.3g}"
    if row.interval_is != INTERVALS["worst"]:
        return f"{number(row.measured, row.interval)}, n = {row.seeds}"
    least, most = row.interval
    if row.kind != "ordering" and row.relation is None:
        return f"{row.measured:.3g}, farthest of {row.seeds} ({least:.3g} to {most:.3g})"
    if row.relation == "<=":
        return f"{most:.3g}, highest of {row.seeds} (lowest {least:.3g})"
    return f"{least:.3g}, lowest of {row.seeds} (highest {most:.3g})"


def number(value: float | None, interval: tuple[float, float] | None) -> str:
    """A measured value with its interval; empty where there is none."""
    if value is None or interval is None:
        return ""
    low, high = interval
    return f"{value:.3g}" + (f" [{low:.3g}, {high:.3g}]" if low < high else "")


def nearest_rival(row: Row) -> JudgedAlternative | None:
    """The alternative whose value is nearest to what is expected."""
    goal = row.expected or 0.0

    def distance(rival: JudgedAlternative) -> float:
        return float("inf") if rival.measured is None else abs(rival.measured - goal)

    return min(row.alternatives, key=distance, default=None)


DETAILS = "Details"
"""Heading of the last section of a page."""
NUMBERS = ("Measured", "Criterion", "Ranges")
HELD: Sequence[Status] = ("undecided", "reproduced", "analogue", "identity")
"""Statuses of claims that are shown beside their nearest rival; others have what holds instead."""


def _numbers(row: Row) -> tuple[str, str, str]:
    """The cells of `NUMBERS`."""
    if row.verdict is None:
        return "", "", ""
    fresh = row.blind if row.blind and row.blind.verdict != row.verdict else None
    values = [measured(row)]
    if fresh:
        values.append(f"with fresh seeds {_variant_value(fresh)}: {fresh.verdict}")
    return "; ".join(values), f"{limit(row)} ({row.source})", _ranges(row)


def _rival(row: Row) -> str:
    rival = nearest_rival(row)
    return f"{rival.name}: {measured(rival)}" if rival else ""


def _ranges(row: Row) -> str:
    """Bars of the ranges along which the verdict changes, and names of the others."""
    same = ", ".join(each.setting for each in row.ranges if not each.varies)
    bars = [f"{each.setting}: {each.bar}" for each in row.ranges if each.varies]
    return "; ".join([*bars, *([f"unchanged: {same}"] if same else [])]) or "not varied"


def _claim_line(row: ClaimRow, links: Links, own: Collection[str]) -> tuple[str, ...]:
    last = _rival(row) if row.status in HELD else _link(row.corrected_by, links, own)
    marks = (f"*{row.grade}*." if row.grade else "", "*weak*." if row.weak else "")
    statement = " ".join(filter(None, (*marks, row.statement)))
    figure = links.figure(row.figure) if row.figure else ""
    return links.claim(row.id), statement, *_numbers(row), last, figure


def _link(other: str | None, links: Links, own: Collection[str]) -> str:
    """A link to another claim or finding, if there is one; `own` are those of the same page."""
    if not other:
        return ""
    return links.claim(other) if other in own else links.elsewhere(other)


def _details(row: Row, links: Links, own: Collection[str]) -> Iterator[str]:
    """Everything about a claim or finding; `own` are the identifiers of the same page."""
    yield from (links.target(row.id), f"### {row.id}", "")
    facts: dict[str, str | None] = {"Statement": row.statement}
    interval = None if row.interval_is == INTERVALS["worst"] else row.interval_is
    if isinstance(row, ClaimRow):
        yield from (f"> “{' '.join(row.quote.split())}”", "", f"({row.locator})", "")
        facts |= {
            "Status": row.status + (f", {row.grade}" if row.grade else ""),
            "Why": row.reason,
            "Identity": row.identity,
            "Analogue": row.analogue,
            "Argument": row.argument,
            "Fair, by a second reader": row.fair,
            "Follows from": _link(row.follows_from, links, own),
            "Instead": _link(row.corrected_by, links, own),
        }
    facts |= {
        "Depends on": row.depends,
        "Measured": measured(row) + (f" ({interval})" if interval else ""),
        "Criterion": limit(row),
        "Expected value": row.source,
        "Tolerance": row.why,
        "Rivals": "; ".join(f"{each.name}: {measured(each)}" for each in row.alternatives),
        "With fresh seeds": row.blind and _variant(row.blind),
        "Ranges": "; ".join(
            f"{each.setting}: {', '.join(map(_point, each.points))}" for each in row.ranges
        ),
    }
    if isinstance(row, ClaimRow):
        printed = row.source_setup.printed.items()
        facts["Set-up of the paper"] = "; ".join(f"{key}: {value}" for key, value in printed)
        facts["Differs here"] = "; ".join(row.differs)
    facts["Metrics"] = "; ".join(
        f"`{name}` of {', '.join(f'`{cell}`' for cell in cells)}"
        for name, cells in row.metrics.items()
    )
    facts["Figure"] = row.figure and links.figure(row.figure)
    for name, text in facts.items():
        if text:
            yield f"- {name}: {' '.join(text.split())}"
    yield ""


def _variant(variant: VariantVerdict) -> str:
    seeds = f"seeds {variant.seeds[0]} to {variant.seeds[1]}"
    return f"{variant.verdict}, {_variant_value(variant)} ({seeds})"


def _variant_value(variant: VariantVerdict) -> str:
    return variant.told or number(variant.measured, variant.interval)


def _point(point: Point) -> str:
    value = point.told or number(point.measured, point.interval)
    note = " (ours)" if point.own else "" if point.decides else " (does not count)"
    return f"{point.value} {point.verdict} {value}".rstrip() + note


def _depends(row: Row) -> str:
    return f"Depends on {row.depends}." if row.depends else ""


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield _line(head)
    yield f"|{'---|' * len(head)}"
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"
