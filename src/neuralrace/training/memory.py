"""Memory limits: what training needs, what is available, and refusal of what cannot fit."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralrace.errors import UserError
from neuralrace.training.control_groups import group_files

if TYPE_CHECKING:  # a plan is made without JAX
    from jax.stages import Compiled

CACHE, GPU_PART = 2**19, 2**30
"""Bytes of what is used at once, see `at_once`: on a processor, half of a second-level cache of
1 MiB, measured on two kinds (between 256 KiB and 1 MiB the time of a step changes by some 5%); on a
GPU, which computes many things at once, a small part of its memory."""
WORTH_A_LINE = 10**8
"""Bytes above which the log tells what training needs."""
COPIES = 3
"""Copies of the records that exist at once: those of single calls, the arrays of all runs, and the
contents of the file."""


@dataclass(frozen=True)
class ProgramMemory:
    """Memory of a compiled program, in bytes.

    Attributes:
        arguments: arrays that it is called with, and those of runs that wait for their turn.
        working: intermediate values, and outputs that do not replace a donated argument.
        runs: runs that it trains.
    """

    arguments: int
    working: int
    runs: int = 1

    @property
    def total(self) -> int:
        """Arguments and working memory."""
        return self.arguments + self.working

    def __str__(self) -> str:
        share = f", {_gigabytes(self.total / self.runs)} for each of {self.runs} runs,"
        return f"{_gigabytes(self.total)}{share if self.runs > 1 else ''}"


def program_memory(compiled: "Compiled", runs: int = 1, waiting: int = 0) -> ProgramMemory:
    """The memory that a compiled program takes, as the compiler reports it.

    Where a backend reports nothing, it is that of the arguments alone: a lower bound.

    Args:
        compiled: the program.
        runs: runs that it trains, at once or in turn.
        waiting: bytes of the runs that wait for their turn.
    """
    analysis = compiled.memory_analysis()
    if analysis is None:
        import jax

        arguments = size_of(jax.tree.leaves(compiled.args_info))
        return ProgramMemory(arguments + waiting, 0, runs)
    # an output that replaces a donated argument is counted among both outputs and aliases
    outputs = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    working = outputs + analysis.temp_size_in_bytes + analysis.generated_code_size_in_bytes
    return ProgramMemory(analysis.argument_size_in_bytes + waiting, working, runs)


def at_once() -> int:
    """Bytes of weights, or of activations, that a part of a step should have.

    What a step of training reads and writes is divided into such parts: of runs, and of samples.
    """
    import jax

    return CACHE if jax.default_backend() == "cpu" else GPU_PART


def size_of(arrays: list[Any]) -> int:
    """Bytes of arrays, or of arrays of which only shape and dtype are known."""
    return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)


def refuse_program(needed: ProgramMemory, available: int | None) -> None:
    """Raises UserError if a program needs more than the free bytes of its device, where known."""
    if available is not None and needed.total > available:
        raise UserError(
            f"training needs {needed} of memory, and the device has {_gigabytes(available)} left",
            remedy="train fewer runs (seeds, init_scales), or take fewer domains (dataset.count), "
            "narrower layers (network.hidden), a smaller training.batch.size, fewer images "
            "(dataset.images.samples) or precision: float32",
        )


def refuse_records(size: int, available: int) -> None:
    """Raises UserError if all copies of records of this size exceed the machine's free bytes."""
    if COPIES * size > available:
        raise UserError(
            f"records take {_gigabytes(COPIES * size)} of memory, and the machine has "
            f"{_gigabytes(available)} left",
            key="record",
            remedy="record less often (record.every), fewer snapshots (record.snapshots) or "
            "observables (record.observables), or train fewer seeds",
        )


def describe(needed: ProgramMemory, available: int | None) -> str:
    """One line for the log: memory that a program needs and memory that the device has."""
    left = "an unknown amount" if available is None else _gigabytes(available)
    return (
        f"memory: {needed} ({_gigabytes(needed.arguments)} arguments, "
        f"{_gigabytes(needed.working)} working), {left} left on the device"
    )


def _gigabytes(size: int | float) -> str:
    return f"{size / 1e9:.3f} GB"


def total_memory() -> int:
    """Bytes of memory of this machine, in use or not."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    import psutil  # for Windows; planning does without

    return psutil.virtual_memory().total


def available_on_device(device: Any) -> int | None:
    """Free bytes of a JAX device.

    On an accelerator, the free part of its allocator's pool, or None if it does not report it; on a
    CPU, `available_memory`.
    """
    if device.platform == "cpu":
        return available_memory()
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None


def available_memory(system: Path = Path("/")) -> int:
    """Free bytes of the machine; less if a container or a SLURM job limits this process to less.

    Args:
        system: root of the file system in which the kernel publishes control groups.
    """
    import psutil  # planning does without

    left = [psutil.virtual_memory().available, *_left_in_control_groups(system)]
    if limit := _slurm_limit():
        left.append(limit - psutil.Process().memory_info().rss)
    return max(min(left), 0)


def _left_in_control_groups(system: Path) -> Iterator[int]:
    """Free bytes of each limited control group (version 2) of this process, innermost first."""
    for limit, used, statistics in group_files(
        system, ("memory.max", "memory.current", "memory.stat")
    ):
        if limit != "max":
            # the kernel reclaims pages of files that were not read lately when memory runs short
            cached = dict(line.split() for line in statistics.splitlines()).get("inactive_file", 0)
            yield int(limit) - int(used) + int(cached)


def _slurm_limit() -> int:
    """Bytes that SLURM grants to a job on this node, also where it uses no control groups; or 0.

    SLURM counts megabytes of 2^20 bytes.
    """
    megabytes, cpus = os.environ.get("SLURM_MEM_PER_NODE"), "1"
    if megabytes is None:
        megabytes, cpus = os.environ.get("SLURM_MEM_PER_CPU"), os.environ.get("SLURM_CPUS_ON_NODE")
    return int(megabytes) * int(cpus) * 2**20 if megabytes and cpus else 0
