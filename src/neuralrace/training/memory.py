"""Memory of a compiled program, known before it runs.

Compiled programs say how large their buffers are, so that training too large for its device is
refused at once and not after hours in a queue.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import psutil
from jax.stages import Compiled

from neuralrace.errors import UserError
from neuralrace.room import COPIES


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of a compiled program, in bytes.

    Attributes:
        arguments: the arrays that it is called with.
        working: what it needs beside them: intermediate values, and outputs that do not take the
            place of a donated argument.
        runs: runs that it trains at once.
        exact: whether the compiler told; else intermediate values are missing.
    """

    arguments: int
    working: int
    runs: int = 1
    exact: bool = True

    @property
    def total(self) -> int:
        """All of it."""
        return self.arguments + self.working


def plan(compiled: Compiled, runs: int = 1) -> MemoryPlan:
    """The memory that a compiled program takes.

    Args:
        compiled: `jax.jit(f).lower(...).compile()`; the arguments need not exist, shapes do.
        runs: runs that it trains at once.

    Returns:
        The plan, from the compiler; from the shapes of arguments and outputs where it tells none.
    """
    analysis = compiled.memory_analysis()
    if analysis is None:
        arguments = jax.tree.leaves(compiled.args_info)
        donated = size_of([argument for argument in arguments if argument.donated])
        outputs = size_of(jax.tree.leaves(compiled.out_info))
        return MemoryPlan(size_of(arguments), max(outputs - donated, 0), runs, exact=False)
    # an output in the place of a donated argument is counted among the outputs and the aliases
    own = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    working = own + analysis.temp_size_in_bytes + analysis.generated_code_size_in_bytes
    return MemoryPlan(analysis.argument_size_in_bytes, working, runs)


def available(device: Any, system: Path = Path("/")) -> int | None:
    """Memory that a device has left; ask before the arguments of the program are made.

    Args:
        device: JAX device on which the program will run.
        system: root of the file system in which the kernel tells its limits.

    Returns:
        Bytes: of an accelerator, the pool of its allocator less what is in use; of a processor,
        what the machine has left, or the control group of this process if that is less. None where
        the device does not tell.
    """
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None
    return of_machine(system)


def of_machine(system: Path = Path("/")) -> int:
    """Bytes of memory that this machine has left, or the control group of this process if less."""
    return max(min([psutil.virtual_memory().available, *_group_rooms(system)]), 0)


def refuse_if_too_large(plan: MemoryPlan, available: int | None, what: str) -> None:
    """Refuses a program that the device has no room for.

    Args:
        plan: what the program needs.
        available: bytes that the device has left; None if unknown, and then nothing is refused.
        what: whose program it is, for the message.

    Raises:
        UserError: it needs more.
    """
    if available is not None and plan.total > available:
        raise UserError(
            f"{what}: training needs {_needs(plan)} of memory, and the device has "
            f"{_gigabytes(available)} left; train fewer runs (seeds, init_scales), or take fewer "
            "domains (dataset.count), narrower layers (network.hidden), a smaller "
            "training.batch.size, fewer images (dataset.images.samples) or precision: float32"
        )


def refuse_records(size: int, available: int) -> None:
    """Refuses to record more than the machine has room for.

    Args:
        size: bytes of all records and snapshots of all runs.
        available: bytes that the machine has left.

    Raises:
        UserError: they take more, in all the copies that are held at once.
    """
    if COPIES * size > available:
        raise UserError(
            f"record: what is recorded takes {_gigabytes(COPIES * size)} of memory, and the "
            f"machine has {_gigabytes(available)} left; record less often (record.every), fewer "
            "snapshots (record.snapshots) or observables (record.observables), or fewer seeds"
        )


def describe(plan: MemoryPlan, available: int | None) -> str:
    """One line for the log: what a program needs and what there is."""
    left = "an unknown amount" if available is None else _gigabytes(available)
    return (
        f"memory: {_needs(plan)} ({_gigabytes(plan.arguments)} arguments, "
        f"{_gigabytes(plan.working)} working), {left} left on the device"
    )


def _needs(plan: MemoryPlan) -> str:
    least = "" if plan.exact else "at least "
    each = f", {_gigabytes(plan.total / plan.runs)} for each of {plan.runs} runs,"
    return f"{least}{_gigabytes(plan.total)}{each if plan.runs > 1 else ''}"


def _gigabytes(size: int | float) -> str:
    return f"{size / 1e9:.3f} GB"


def size_of(arrays: list[Any]) -> int:
    """Bytes of arrays that may exist in outline only."""
    return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)


def _group_rooms(system: Path) -> list[int]:
    """Memory left in this process's control groups, innermost first; empty where none is limited.

    Both versions of control groups are read. Pages of files that were not touched lately are given
    back by the kernel when memory runs short, and count as left.
    """
    rooms: list[int] = []
    listed = system / "proc/self/cgroup"
    for line in listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, files = "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mount, files = "sys/fs/cgroup/memory", names
        else:
            continue
        group = system / mount / path.lstrip("/")
        # in a container the path may be that of the host: its own group is then the mount itself
        for folder in [group, *group.parents]:
            rooms += _room(folder, *files)
            if folder == system / mount:
                break
    return rooms


def _room(group: Path, limit: str, usage: str, reclaimable: str) -> list[int]:
    """Memory left in one control group; empty where there is no limit."""
    try:
        most = (group / limit).read_text(encoding="utf-8").strip()
        used = int((group / usage).read_text(encoding="utf-8"))
        lines = (group / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:  # the root group of version 2 has none of these files
        return []
    given_back = int(dict(line.split() for line in lines).get(reclaimable, 0))
    return [] if most == "max" else [int(most) - used + given_back]
