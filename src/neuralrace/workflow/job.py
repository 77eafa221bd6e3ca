"""A job: its files, its log, its messages and its cost.

A job measures its own cost: Snakemake's `benchmark:` would measure the process of Snakemake, which
only hands work to workers.
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
from neuralrace.results.checksums import writing_checksums
from neuralrace.results.provenance import Stage, code_guard
from neuralrace.training.environment import COMPILE_EVENT
from neuralrace.workflow.shutdown import Shutdown, Stopped

Cost = dict[str, str | float]
"""Name, cell (or none), core-seconds and sometimes solution of a stage."""
STOPPED = os.EX_TEMPFAIL
"""Exit status of a process that was asked to end: the same command continues."""
LOG_ONLY = "log_only"
"""Attribute of log records that the terminal does not show."""
_spent = 0.0
"""Core-seconds of this process up to the end of its last job."""


class Job:
    """A job that reports progress and measures the core-seconds of its stages.

    Attributes:
        name: of the cell, figure, experiment or table.
        inputs: paths of the files to read, as strings.
        outputs: paths of the files to write, as strings.
        shutdown: the request to end it.
    """

    def __init__(
        self,
        logger: logging.Logger,
        name: str = "",
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        exits: bool = False,
    ):
        """Writes nothing yet.

        Args:
            logger: receives progress messages and errors.
            name: of the cell, figure, experiment or table.
            inputs: paths of the files to read.
            outputs: paths of the files to write.
            exits: whether a request to end exits the process, in place of raising `Stopped`.
        """
        self.logger = logger
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.shutdown = Shutdown(self._exit) if exits else Shutdown()
        self.stages: list[Cost] = []
        self.started = time.time()
        with suppress(OSError):  # Linux then counts the process's peak of memory from here on
            Path("/proc/self/clear_refs").write_text("5")

    @property
    def output(self) -> Path:
        """Path of the first output."""
        return Path(self.outputs[0])

    def report(self, line: str) -> None:
        """Prints a line of progress, in the terminal and in the log."""
        self.logger.info(line)

    def log(self, line: str) -> None:
        """Writes a line into the log only: how a stopped job ends is for Snakemake to print."""
        self.logger.info(line, extra={LOG_ONLY: True})

    def _exit(self, message: str) -> None:
        """Exits the process at once.

        An exception could be raised while a library holds a lock, which would never be released,
        or inside a callback, which would swallow it.
        """
        self.log(message)
        os._exit(STOPPED)

    @contextmanager
    def stage(self, name: str, cell_id: str = "", solution: str = "") -> Iterator[None]:
        """Measures the core-seconds spent inside; JAX compilation is counted separately.

        Args:
            name: of the stage.
            cell_id: the cell or figure that they are counted for.
            solution: the solution that they are counted for.
        """
        begin, compiling = time.process_time(), _Compiling.seconds
        yield
        compiling = _Compiling.seconds - compiling
        self._count("compile", cell_id, compiling)
        self._count(name, cell_id, time.process_time() - begin - compiling, solution)

    @contextmanager
    def writing(
        self,
        stage: Stage,
        code: str,
        checksums: Path,
        root: Path,
        *computed_from: str,
        inputs: Sequence[str] | None = None,
        modules: Sequence[str] = (),
        cell_id: str = "",
    ) -> Iterator[None]:
        """Runs a stage that writes a figure or table, and then writes its checksum file.

        Args:
            stage: name of the stage.
            code: checksum of its code when the job was planned.
            checksums: path of the checksum file.
            root: the results folder.
            computed_from: texts and checksums that the outputs depend on, beside code and inputs.
            inputs: result files that are read; `self.inputs` when absent.
            modules: modules that the stage runs beside its own.
            cell_id: the cell or figure that the cost is counted for.

        Raises:
            UserError: code that was edited since the job was planned, or inputs that changed while
                they were read.
        """
        guard = code_guard(stage, modules, code)
        inputs = self.inputs if inputs is None else inputs
        with (
            self.stage(stage, cell_id),
            writing_checksums(
                checksums, root, inputs, self.outputs, code, *computed_from, guard=guard
            ),
        ):
            yield

    def count_compilation(self) -> None:
        """Counts the core-seconds of compilation, in this and all later jobs of this process."""
        import jax

        if not _Compiling.counted:
            _Compiling.counted = True
            jax.monitoring.register_event_duration_secs_listener(_Compiling.count)

    def _count(self, stage: str, cell_id: str, seconds: float, solution: str = "") -> None:
        if seconds > 0:
            of_solution: Cost = {"solution": solution} if solution else {}
            self.stages.append(_cost(stage, cell_id, seconds) | of_solution)


class _Compiling:
    """Core-seconds that this process has spent on compilation."""

    counted = False
    seconds = 0.0

    @classmethod
    def count(cls, event: str, duration_secs: float, **_: object) -> None:
        """Listener of JAX's monitoring."""
        if event == COMPILE_EVENT:
            cls.seconds += duration_secs


def _cost(stage: str, cell_id: str, seconds: float) -> Cost:
    return {"stage": stage, "cell": cell_id, "core_seconds": round(seconds, 3)}


def write_record(rest: str, started: float, path: Path, stages: Sequence[Cost] = ()) -> None:
    """Writes the cost of a job: seconds, peak megabytes of its process, core-seconds by stage.

    Args:
        rest: stage that all other core-seconds are counted for, such as those of imports.
        started: start of the job, in seconds since the epoch.
        path: the file to write.
        stages: the cost of each stage.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    spent = time.process_time() - _spent
    measured = sum(float(entry["core_seconds"]) for entry in stages)
    record = {
        "seconds": round(time.time() - started, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "stages": [*stages, _cost(rest, "", max(spent - measured, 0.0))],
    }
    write_text(json.dumps(record, indent=1) + "\n", path)


@contextmanager
def job(
    name: str,
    log: str,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    exits: bool = False,
) -> Iterator[Job]:
    """Runs a job with messages in the terminal and in its log; its cost goes to `<log>.json`.

    Errors are logged and raised: a `UserError` as its message, others as a traceback. That the job
    was stopped stands in the log only.

    Args:
        name: of the cell, figure, experiment or table; messages begin with it.
        log: path of the log.
        inputs: paths of the files to read.
        outputs: paths of the files to write.
        exits: whether a request to end exits the process, in place of raising `Stopped`.

    Raises:
        UserError: the log cannot be written, or an error of the job.
        Stopped: the process was asked to end.
    """
    global _spent
    logger = logging.getLogger("neuralrace")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.raiseExceptions = False  # on a full disk, the error of the output is reported instead
    this = Job(logger, name, inputs, outputs, exits)
    terminal = logging.StreamHandler(sys.stderr)
    terminal.addFilter(lambda record: not hasattr(record, LOG_ONLY))
    try:
        for handler in (terminal, _log_file(log)):
            handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", "%H:%M:%S"))
            logger.addHandler(handler)
        with this.shutdown.handled():
            yield this
            write_record("start", this.started, Path(log).with_suffix(".json"), this.stages)
    except Stopped as stopped:
        this.log(str(stopped))
        raise
    except UserError as error:
        logger.error("error: %s", error)
        raise
    except Exception as error:
        logger.error("unexpected error: %s", name, exc_info=error)
        raise
    finally:
        _spent = time.process_time()  # a failed job must not count for the next one
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()


def _log_file(log: str) -> logging.Handler:
    try:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        return logging.FileHandler(log, mode="w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot be written ({error.strerror})", file=log) from error
