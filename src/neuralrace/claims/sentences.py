"""Sentences: the claims about one quote, which have one status together."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple, get_args

from neuralrace.claims.judge import ClaimRow
from neuralrace.claims.spec import Status

STATUSES: tuple[Status, ...] = get_args(Status)


class Sentence(NamedTuple):
    """A quoted sentence of a paper, and the claims about it."""

    paper: str
    number: int
    """Among the distinct quotes of the paper, from 1."""
    rows: tuple[ClaimRow, ...]

    @property
    def deciding(self) -> ClaimRow:
        """The first of its claims that has its status."""
        return min(self.rows, key=lambda row: STATUSES.index(row.status))

    @property
    def status(self) -> Status:
        """The first status of `Status` that one of its claims has: a sentence holds as a whole."""
        return self.deciding.status


def sentences(rows: Iterable[ClaimRow]) -> list[Sentence]:
    """The sentences behind claims, by paper, in the order of their first claims."""
    found: dict[tuple[str, int], list[ClaimRow]] = {}
    for row in rows:
        found.setdefault((row.paper, row.sentence), []).append(row)
    return [Sentence(paper, number, tuple(of)) for (paper, number), of in found.items()]


def counts(rows: Iterable[ClaimRow]) -> dict[str, Counter[Status]]:
    """Number of sentences of each status, by paper."""
    return {
        paper: Counter(sentence.status for sentence in group)
        for paper, group in groupby(sentences(rows), key=lambda sentence: sentence.paper)
    }


def errors(rows: Iterable[ClaimRow]) -> list[ClaimRow]:
    """The wrong statements, each error once: without those that follow from another."""
    return [row for row in rows if row.status == "wrong" and not row.follows_from]
