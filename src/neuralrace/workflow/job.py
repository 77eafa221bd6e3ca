"""A job: its log, its messages to people, and what it cost.

It tells its cost itself: Snakemake's `benchmark:` would measure Snakemake's own process, which only
hands work to workers.
"""

import json
import logging
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.results.atomic import write_text
from neuralrace.training.environment import COMPILE_EVENT
from neuralrace.workflow.stopping import Requests, Stopped

Cost = dict[str, str | float]
"""Name, cell (or none) and core-seconds of a stage."""
STOPPED = os.EX_TEMPFAIL
"""Exit status of a process that was asked to end: the same command goes on."""
_spent = 0.0
"""Core-seconds of this process up to the end of its last job."""


class Job:
    """A job that reports what it does, and counts the core-seconds that it spends on what.

    Attributes:
        requests: requests to end it.
    """

    def __init__(self, logger: logging.Logger, alone: bool = False):
        """Nothing is counted yet."""
        self.logger = logger
        self.requests = Requests(self._exit) if alone else Requests()
        self.stages: list[Cost] = []
        self.started = time.time()
        with suppress(OSError):  # Linux then counts a process's peak of memory from here on
            Path("/proc/self/clear_refs").write_text("5")

    def report(self, line: str) -> None:
        """Tells a line of progress, in the terminal and in the log."""
        self.logger.info(line)

    def _exit(self, message: str) -> None:
        """Ends the process, whatever it does.

        An exception could come while a library holds a lock, which nobody would release, or inside
        a callback, which would drop it.
        """
        self.report(message)
        os._exit(STOPPED)

    def failed(self, what: str, error: Exception) -> None:
        """Tells what could not be done: in words, and with a traceback if it is a bug."""
        if isinstance(error, UserError):
            self.logger.error("error: %s%s", f"{what}: " if what else "", error)
        else:
            self.logger.error("unexpected error: %s", what, exc_info=error)

    @contextmanager
    def stage(self, name: str, cell_id: str = "") -> Iterator[None]:
        """Counts what is done inside, for a cell; what JAX takes to compile is told apart."""
        begin, compiling = time.process_time(), _Compiling.seconds
        yield
        compiling = _Compiling.seconds - compiling
        self._count("compile", cell_id, compiling)
        self._count(name, cell_id, time.process_time() - begin - compiling)

    def count_compilation(self) -> None:
        """Counts what trainings compile, in this and all later jobs of this process."""
        import jax

        if not _Compiling.counted:
            _Compiling.counted = True
            jax.monitoring.register_event_duration_secs_listener(_Compiling.count)

    def write(self, path: Path) -> None:
        """Writes what was counted; all else, such as imports, was spent on the start.

        Raises:
            UserError: the folder cannot be written to or is full.
        """
        write_record("start", self.started, path, self.stages)

    def _count(self, stage: str, cell_id: str, seconds: float) -> None:
        if seconds > 0:
            self.stages.append(_cost(stage, cell_id, seconds))


class _Compiling:
    """Core-seconds that this process has spent on compilation."""

    counted = False
    seconds = 0.0

    @classmethod
    def count(cls, event: str, duration_secs: float, **_: object) -> None:
        """Listens to JAX's monitoring."""
        if event == COMPILE_EVENT:
            cls.seconds += duration_secs


def _cost(stage: str, cell_id: str, seconds: float) -> Cost:
    return {"stage": stage, "cell": cell_id, "core_seconds": round(seconds, 3)}


def write_record(rest: str, started: float, path: Path, stages: Sequence[Cost] = ()) -> None:
    """Writes what a job cost: seconds, megabytes of its process at most, core-seconds by stage.

    Args:
        rest: stage that core-seconds of no other stage belong to: those since the last job of this
            process.
        started: when it began, in seconds since the epoch.
        path: where to.
        stages: what is known, by stage and cell.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    whole = time.process_time()
    known = sum(float(entry["core_seconds"]) for entry in stages)
    record = {
        "seconds": round(time.time() - started, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "stages": [*stages, _cost(rest, "", max(whole - _spent - known, 0.0))],
    }
    write_text(json.dumps(record, indent=1) + "\n", path)


@contextmanager
def job(name: str, log: str, alone: bool = False) -> Iterator[Job]:
    """A job that reports to the terminal and to its log; what it cost goes to a `.json` beside it.

    An error is told there, in words if it is a `UserError` or a request to end, and raised.

    Args:
        name: what messages call it.
        log: path of its log.
        alone: whether the process is for jobs alone: a request to end then ends the process.

    Raises:
        UserError: the log cannot be written, or what the job refuses.
        Stopped: the process was asked to end.
    """
    global _spent
    logger = logging.getLogger("neuralrace")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.raiseExceptions = False  # of a full disk tells what was to be written, not its log
    this, format = Job(logger, alone), f"%(asctime)s {name}: %(message)s"
    try:
        _told_to(logger, logging.StreamHandler(sys.stderr), format)
        _told_to(logger, _log_file(log), format)
        with this.requests.heard():
            yield this
            this.write(Path(log).with_suffix(".json"))
    except Stopped as stopped:
        this.report(str(stopped))
        raise
    except UserError as error:
        this.failed("", error)
        raise
    except Exception as error:
        this.failed(name, error)
        raise
    finally:
        _spent = time.process_time()  # those of a job that fails are not of the next one
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()


def _log_file(log: str) -> logging.Handler:
    try:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        return logging.FileHandler(log, mode="w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{log}: cannot be written ({error.strerror})") from error


def _told_to(logger: logging.Logger, handler: logging.Handler, format: str) -> None:
    handler.setFormatter(logging.Formatter(format, "%H:%M:%S"))
    logger.addHandler(handler)
