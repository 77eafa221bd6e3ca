"""What every job of the workflow does around its work: a log, messages for people, its own cost.

It tells its cost itself: to measure a process from outside, by all the memory that it maps, takes
Snakemake a third of a second each time, and cannot tell cells apart.
"""

import json
import logging
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuralrace.atomic import write_text
from neuralrace.errors import UserError
from neuralrace.stopping import Requests, Stopped, follow

Stage = dict[str, str | float]
"""Name, cell (or none) and core-seconds of a stage."""


class Job:
    """A job that tells what it does, and counts the core-seconds that it spends on what.

    Attributes:
        requests: requests to end it.
    """

    def __init__(self, logger: logging.Logger):
        """Nothing is counted yet."""
        self.logger = logger
        self.requests = Requests()
        self.stages: list[Stage] = []
        self.compiling = 0.0
        self.counting = False
        self.started = time.time()

    def report(self, line: str) -> None:
        """Tells a line of progress, in the terminal and in the log."""
        self.logger.info(line)

    def failed(self, what: str, error: Exception) -> None:
        """Tells what could not be done: in words, and with a traceback if it is a bug."""
        if isinstance(error, UserError):
            self.logger.error("error: %s%s", f"{what}: " if what else "", error)
        else:
            self.logger.error("unexpected error: %s", what, exc_info=error)

    @contextmanager
    def stage(self, name: str, cell_id: str = "") -> Iterator[None]:
        """Counts what is done inside, for a cell; what JAX takes to compile is told apart."""
        begin, compiling = time.process_time(), self.compiling
        yield
        compiling = self.compiling - compiling
        self._spent("compile", cell_id, compiling)
        self._spent(name, cell_id, time.process_time() - begin - compiling)

    def count_compilation(self, told: str) -> None:
        """Counts what is told to JAX's monitoring under a name; once is enough."""
        import jax

        if self.counting:
            return
        self.counting = True

        def count(event: str, duration_secs: float, **_: object) -> None:
            if event == told:
                self.compiling += duration_secs

        jax.monitoring.register_event_duration_secs_listener(count)

    def write(self, path: Path) -> None:
        """Writes what was counted; all else, such as imports, was spent on the start.

        Raises:
            UserError: the folder cannot be written to or is full.
        """
        write_record("start", self.started, path, self.stages)

    def _spent(self, stage: str, cell_id: str, seconds: float) -> None:
        if seconds > 0:
            self.stages.append(_stage(stage, cell_id, seconds))


def _stage(stage: str, cell_id: str, seconds: float) -> Stage:
    return {"stage": stage, "cell": cell_id, "core_seconds": round(seconds, 3)}


def write_record(rest: str, started: float, path: Path, stages: Sequence[Stage] = ()) -> None:
    """Writes what a process cost: seconds, megabytes at most, and core-seconds by stage.

    Args:
        rest: stage that core-seconds of no other stage belong to.
        started: when it began, in seconds since the epoch.
        path: where to.
        stages: what is known, by stage and cell.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    known = sum(float(entry["core_seconds"]) for entry in stages)
    record = {
        "seconds": round(time.time() - started, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "stages": [*stages, _stage(rest, "", time.process_time() - known)],
    }
    write_text(json.dumps(record, indent=1) + "\n", path)


@contextmanager
def job(name: str, log: str, first: str = "") -> Iterator[Job]:
    """A job that reports to the terminal and to its log; what it cost goes to a `.json` beside it.

    It begins with the line `first`, if that says anything.

    A `UserError` ends the process with its message and exit status 1, without a traceback; so does
    a request to end, with the status that shells give its signal. Any other error is a bug and
    keeps its own.
    """
    logger = logging.getLogger("neuralrace")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.raiseExceptions = False  # of a full disk tells what was to be written, not its log
    try:
        written = logging.FileHandler(log, mode="w", encoding="utf-8")
    except OSError as error:
        print(f"error: {log}: cannot be written ({error.strerror})", file=sys.stderr)
        sys.exit(1)
    for handler in (written, logging.StreamHandler(sys.stderr)):
        handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
    this = Job(logger)
    try:
        with this.requests.heard():
            follow()
            if first:
                this.report(first)
            yield this
            this.write(Path(log).with_suffix(".json"))
    except Stopped as stopped:
        this.report(str(stopped))
        sys.exit(128 + signal.Signals[this.requests.asked])
    except UserError as error:
        this.failed("", error)
        sys.exit(1)
    except Exception as error:
        this.failed(name, error)
        raise
