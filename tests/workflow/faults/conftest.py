"""Faults that tests inject, and the table that they write of them.

`pytest -m faults --reliability docs/reliability.md` writes what was counted between the marks of
that page.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

MARKS = ("<!-- faults -->", "<!-- end of faults -->")
NAME = "fault"
"""Under which a test hands over what it counted, from process to process."""
HEAD = "| fault | injections | lost | wrong | message | how it recovers | seconds |"
DAMAGE = 10
"""Injections at least, where chance plays a part."""


@dataclass
class Fault:
    """One kind of fault, and what came of its injections.

    Attributes:
        kind: in a few words; the table is sorted by group and kind.
        group: heading that it stands under.
        recovers: how it recovers, such as "the same command".
        lost: results that had been finished, and were gone or had to be made again although
            nothing had happened to them.
        wrong: results that differ from those of a run without faults, or were taken for sound.
        message: what is told, its essential words.
        seconds: from each injection to its recovery.
    """

    kind: str
    group: str
    recovers: str
    lost: int = 0
    wrong: int = 0
    message: str = ""
    seconds: list[float] = field(default_factory=list)

    @contextmanager
    def injection(self, at_once: int = 1) -> Iterator[None]:
        """One injection, or several at once, to their recovery."""
        begun = time.monotonic()
        yield
        self.seconds += [time.monotonic() - begun] * at_once


Injecting = Callable[..., "Iterator[Fault]"]


@pytest.fixture
def injecting(record_property) -> Injecting:
    """A kind of fault to be injected; afterwards nothing may be lost or wrong, and all is told."""

    @contextmanager
    def counted(
        kind: str, *, group: str, recovers: str = "the same command", chance: bool = False
    ) -> Iterator[Fault]:
        fault = Fault(kind, group, recovers)
        yield fault
        record_property(NAME, json.dumps(asdict(fault)))
        assert len(fault.seconds) >= (DAMAGE if chance else 1), fault
        assert fault.message, f"{kind}: nothing is told"
        assert not fault.lost, fault
        assert not fault.wrong, fault

    return counted


class Reliability:
    """Collects what tests counted, in whichever process they ran."""

    def __init__(self, page: Path | None):
        self.page = page
        self.faults: list[Fault] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            told = [
                Fault(**json.loads(text)) for name, text in report.user_properties if name == NAME
            ]
            self.faults += told

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.page is not None and exitstatus == 0 and self.faults:
            before, _, rest = self.page.read_text(encoding="utf-8").partition(MARKS[0])
            after = rest.partition(MARKS[1])[2]
            told = "\n".join([before + MARKS[0], "", *table(self.faults), "", MARKS[1] + after])
            self.page.write_text(told, encoding="utf-8")


def table(faults: list[Fault]) -> Iterator[str]:
    """The lines of the table, a part for each group."""
    for group in sorted({fault.group for fault in faults}):
        yield from (f"## {group}", "", HEAD, "|---" * 7 + "|")
        for fault in sorted((f for f in faults if f.group == group), key=lambda f: f.kind):
            mean = sum(fault.seconds) / len(fault.seconds)
            cells = (fault.kind, len(fault.seconds), fault.lost, fault.wrong, fault.message)
            told = " | ".join(str(cell).replace("|", "\\|") for cell in cells)
            yield f"| {told} | {fault.recovers} | {mean:.1f} |"
        yield ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--reliability", type=Path, default=None, help="page to write the table of faults into"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not in the workers of pytest-xdist
        config.pluginmanager.register(Reliability(config.getoption("--reliability", None)))
