"""Memory of a compiled training program, and of the machine and device that it runs on.

What does not fit is refused before it runs.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralrace.errors import UserError

if TYPE_CHECKING:  # a plan is made without JAX
    from jax.stages import Compiled

COPIES = 3
"""How often records are held at once: as they came, as arrays of all runs, and read back."""


# Compiled programs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramMemory:
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

    def __str__(self) -> str:
        """All of it, and the share of each run where there are many."""
        least = "" if self.exact else "at least "
        each = f", {_gigabytes(self.total / self.runs)} for each of {self.runs} runs,"
        return f"{least}{_gigabytes(self.total)}{each if self.runs > 1 else ''}"


def program_memory(compiled: "Compiled", runs: int = 1) -> ProgramMemory:
    """The memory that a compiled program takes.

    Args:
        compiled: `jax.jit(f).lower(...).compile()`; the arguments need not exist, shapes do.
        runs: runs that it trains at once.

    Returns:
        What the compiler tells; what shapes of arguments and outputs tell where it tells nothing.
    """
    analysis = compiled.memory_analysis()
    if analysis is None:
        import jax

        arguments = jax.tree.leaves(compiled.args_info)
        donated = size_of([argument for argument in arguments if argument.donated])
        outputs = size_of(jax.tree.leaves(compiled.out_info))
        return ProgramMemory(size_of(arguments), max(outputs - donated, 0), runs, exact=False)
    # an output in the place of a donated argument is counted among the outputs and the aliases
    own = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    working = own + analysis.temp_size_in_bytes + analysis.generated_code_size_in_bytes
    return ProgramMemory(analysis.argument_size_in_bytes, working, runs)


def size_of(arrays: list[Any]) -> int:
    """Bytes of arrays that may exist in outline only."""
    return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)


def refuse_program(needed: ProgramMemory, left: int | None) -> None:
    """Refuses a program that does not fit into the memory of its device.

    Args:
        needed: memory of the program.
        left: bytes that the device has left; None if unknown, and then nothing is refused.

    Raises:
        UserError: it needs more.
    """
    if left is not None and needed.total > left:
        raise UserError(
            f"memory: training needs {needed} of memory, and the device has "
            f"{_gigabytes(left)} left; train fewer runs (seeds, init_scales), or take fewer "
            "domains (dataset.count), narrower layers (network.hidden), a smaller "
            "training.batch.size, fewer images (dataset.images.samples) or precision: float32"
        )


def refuse_records(size: int, left: int) -> None:
    """Refuses records that do not fit into the memory of the machine.

    Args:
        size: bytes of all records and snapshots of all runs.
        left: bytes that the machine has left.

    Raises:
        UserError: they take more, in all the copies that are held at once.
    """
    if COPIES * size > left:
        raise UserError(
            f"record: what is recorded takes {_gigabytes(COPIES * size)} of memory, and the "
            f"machine has {_gigabytes(left)} left; record less often (record.every), fewer "
            "snapshots (record.snapshots) or observables (record.observables), or fewer seeds"
        )


def describe(needed: ProgramMemory, left: int | None) -> str:
    """One line for the log: what a program needs and what there is."""
    there = "an unknown amount" if left is None else _gigabytes(left)
    return (
        f"memory: {needed} ({_gigabytes(needed.arguments)} arguments, "
        f"{_gigabytes(needed.working)} working), {there} left on the device"
    )


def _gigabytes(size: int | float) -> str:
    return f"{size / 1e9:.3f} GB"


# Limits of machine and device -------------------------------------------------------------------


def total_memory() -> int:
    """Bytes of memory of this machine, in use or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_on_device(device: Any) -> int | None:
    """Bytes of memory that a device has left; ask before the arguments of a program are made.

    Args:
        device: JAX device on which the program will run.

    Returns:
        Of an accelerator, the pool of its allocator less what is in use, or None where it does not
        tell; of a processor, what `available` tells.
    """
    if device.platform == "cpu":
        return available_memory()
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None


def available_memory(system: Path = Path("/")) -> int:
    """Bytes of memory that this machine has left, or the control group of this process if less.

    Args:
        system: root of the file system in which the kernel tells its limits.
    """
    import psutil  # planning does without

    return max(min([psutil.virtual_memory().available, *_left_in_groups(system)]), 0)


def _left_in_groups(system: Path) -> Iterator[int]:
    """Bytes left in each limited control group of this process, innermost first.

    Both versions of control groups are read. Pages of files that were not touched lately are given
    back by the kernel when memory runs short, and count as left.
    """
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
            yield from _left_in_group(folder, *files)
            if folder == system / mount:
                break


def _left_in_group(group: Path, limit: str, usage: str, reclaimable: str) -> list[int]:
    """Bytes left in one control group; empty where there is no limit."""
    try:
        most = (group / limit).read_text(encoding="utf-8").strip()
        used = int((group / usage).read_text(encoding="utf-8"))
        lines = (group / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:  # the root group of version 2 has none of these files
        return []
    given_back = int(dict(line.split() for line in lines).get(reclaimable, 0))
    return [] if most == "max" else [int(most) - used + given_back]
