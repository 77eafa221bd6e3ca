"""Criteria: one meaning for each vague word, such as "near", the same in all papers."""

from typing import NamedTuple


class Criterion(NamedTuple):
    """The meaning of a vague word."""

    value: float
    """In units of the measure, which is a ratio or a share."""
    strict: float
    """A stricter reading: half of what may be missed or missing; twice the excess of `much`."""
    loose: float
    """A looser one: twice as much may be missed or missing; half of the excess."""
    means: str
    """The meaning."""
    words: str
    """The words of the papers that are read so."""


CRITERIA = {
    "near": Criterion(
        *(0.1, 0.05, 0.2),
        means="within a tenth of what it is compared with",
        words="near, about, roughly, similar, constant",
    ),
    "good": Criterion(
        *(0.1, 0.05, 0.2),
        means="misses by at most a tenth of the range of what is described",
        words="good, close, accurate",
    ),
    "small": Criterion(
        *(0.1, 0.05, 0.2),
        means="at most a tenth of what it is compared with",
        words="small, negligible, hardly any",
    ),
    "most": Criterion(
        *(0.5, 2 / 3, 1 / 3),
        means="more than half",
        words="most, mostly, mainly, dominated by, typically",
    ),
    "nearly-all": Criterion(
        *(0.9, 0.95, 0.8),
        means="at least nine tenths",
        words="nearly all, consistently, reliably, always nearly",
    ),
    "much": Criterion(
        *(2.0, 3.0, 1.5),
        means="at least twice as much",
        words="much, far, significantly, dramatically",
    ),
}
