"""The fixture that counts injected faults, and the table of docs/reliability.md.

`REPEAT=10 pytest -m faults --reliability docs/reliability.md` writes it between the marks of that
page; by default each fault is injected less often, and no page is written.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

MARKS = ("<!-- faults -->", "<!-- end of faults -->")
NAME = "fault"
"""Name of the test property that carries a `Fault` from a pytest worker to the main process."""
HEAD = "| fault | tried | lost | wrong | traceback | message | what you do | seconds |"
MOST = 10
"""Repetitions behind the published table."""
REPEAT = int(os.environ.get("REPEAT", "1"))
"""Least number of injections of a fault that has a random part: `make faults REPEAT=10`."""
TRACEBACK = "Traceback (most recent call last)"


@dataclass
class Fault:
    """One kind of fault: its injections, and their consequences. It is a row of the table.

    Attributes:
        kind: name of the fault, understood without the heading; the table is sorted by it.
        group: heading of its part of the table.
        recovers: what a person does about it, such as "run the same command again".
        lost: finished results that were gone, or were computed again although they were intact.
        wrong: results that differ from those of a run without faults, or damaged files that
            passed as intact.
        traceback: outputs in which a person saw a Python traceback; see `output`.
        message: the message that a person sees, its essential words; "none" where there is none.
        seconds: time from each injection to its recovery.
    """

    kind: str
    group: str
    recovers: str
    lost: int = 0
    wrong: int = 0
    traceback: int = 0
    message: str = ""
    seconds: list[float] = field(default_factory=list)

    def output(self, text: str) -> str:
        """Counts a Python traceback in what a command printed; returns the text."""
        if TRACEBACK in text:
            self.traceback += 1
            print(text)  # pytest shows it when the test fails
        return text

    @contextmanager
    def injection(self, at_once: int = 1) -> Iterator[None]:
        """Counts one injection, or several at the same time, and the time to their recovery."""
        begun = time.monotonic()
        yield
        self.seconds += [time.monotonic() - begun] * at_once


Injecting = Callable[..., "Iterator[Fault]"]


@pytest.fixture(scope="session")
def repeat() -> int:
    """How often a fault that has a random part is injected, or the unit of a larger number."""
    return REPEAT


@pytest.fixture
def workspace(workspace):
    """A workspace without results, in which two jobs run at a time: faults strike both."""
    workspace.cores = 2
    return workspace


@pytest.fixture
def copied(finished, tmp_path_factory):
    """A finished workspace of one's own, elsewhere, with the compile cache of all workspaces."""
    path, ignored = tmp_path_factory.mktemp("copied"), shutil.ignore_patterns(".snakemake")
    shutil.copytree(finished.path, path, ignore=ignored, dirs_exist_ok=True)
    return type(finished)(path)


@pytest.fixture
def injecting(record_property) -> Injecting:
    """Opens a `Fault` to count injections in; fails if anything is lost, wrong or a traceback."""

    @contextmanager
    def counted(
        kind: str,
        *,
        group: str,
        recovers: str = "run the same command again",
        chance: bool = False,
    ) -> Iterator[Fault]:
        fault = Fault(kind, group, recovers)
        yield fault
        record_property(NAME, json.dumps(asdict(fault)))
        assert len(fault.seconds) >= (REPEAT if chance else 1), fault
        assert fault.message, f"{kind}: no message"
        assert not fault.lost, fault
        assert not fault.wrong, fault
        assert not fault.traceback, fault

    return counted


class Reliability:
    """Collects the faults of all tests, and writes the table."""

    def __init__(self, page: Path | None):
        self.page = page
        self.faults: list[Fault] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            texts = [text for name, text in report.user_properties if name == NAME]
            self.faults += [Fault(**json.loads(text)) for text in texts]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.page is not None and exitstatus == 0 and self.faults:
            before, _, rest = self.page.read_text(encoding="utf-8").partition(MARKS[0])
            after = rest.partition(MARKS[1])[2]
            page = [before + MARKS[0], "", *table(self.faults), MARKS[1] + after]
            self.page.write_text("\n".join(page), encoding="utf-8")


def table(faults: list[Fault]) -> Iterator[str]:
    """Lines of the table, one part for each group of faults."""
    for group in sorted({fault.group for fault in faults}):
        yield from (f"## {group}", "", HEAD, "|---" * HEAD.count(" | ") + "|---|")
        for fault in sorted((f for f in faults if f.group == group), key=lambda f: f.kind):
            counts = (len(fault.seconds), fault.lost, fault.wrong, fault.traceback)
            mean = sum(fault.seconds) / len(fault.seconds)
            cells = (fault.kind, *counts, fault.message, fault.recovers, f"{mean:.1f}")
            escaped = [str(cell).replace("|", "\\|") for cell in cells]
            yield f"| {' | '.join(escaped)} |"
        yield ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--reliability", type=Path, default=None, help="page to write the table of faults into"
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        return
    page = config.getoption("--reliability", None)
    if page is not None and REPEAT < MOST:
        raise pytest.UsageError(f"{page} shows at least {MOST} repetitions: set REPEAT={MOST}")
    config.pluginmanager.register(Reliability(page))
