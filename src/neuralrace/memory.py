"""Memory of a cell: estimated from its specification, and told by its compiled program.

What cannot fit is refused: by the estimate before anything is loaded or allocated, and by the
program before it runs, not after hours in a queue. The estimate also says what a cluster is asked
for; the program knows better, as the compiler says how large its buffers are.
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralrace.base import Strict
from neuralrace.datasets.base import Sizes
from neuralrace.errors import UserError
from neuralrace.given import given
from neuralrace.networks.base import Arithmetic
from neuralrace.spec import Cell, Ensemble

if TYPE_CHECKING:  # a plan is made without JAX
    from jax.stages import Compiled

Key = tuple[str, ...]
COPIES = 3
"""How often records are held at once: as they came, as arrays of all runs, and read back."""
PROCESS_MB = 700
"""Megabytes of a process that has imported everything."""


# Estimate from a specification ------------------------------------------------------------------


def estimate_mb(ensemble: Ensemble, each: Arithmetic, sizes: Sizes) -> int:
    """Estimated memory of a process that trains an ensemble, in megabytes.

    Args:
        ensemble: its specification.
        each: what one run computes.
        sizes: of the dataset.
    """
    return PROCESS_MB + int(4 * numbers(ensemble, each, sizes) * 8 / 1e6)


def too_large(cell: Cell, limit: int) -> tuple[Key, str] | None:
    """The key that makes a cell too large, and its value with the remedy; None if it can fit.

    Only what is needed at the least counts, as its program will tell what it needs in all.

    Args:
        cell: its specification.
        limit: bytes of memory of the machine that trains.

    Raises:
        UserError: gates or trained pairs that do not fit the domains; a dataset that cannot be
            loaded, where its size or pathways are not known without.
    """
    sizes = cell.dataset.sizes
    counts = (
        lambda: examples(cell, sizes),
        lambda: COPIES * recorded(cell, sizes),
        # last, as counting weights may load the dataset
        lambda: numbers(cell, cell.resolved.arithmetic(cell.dataset, sizes, cell.training), sizes),
    )
    for count in counts:
        try:
            needed = count() * (8 if cell.precision == "float64" else 4)
        except OverflowError:  # more than the largest number
            needed = math.inf
        if needed > limit:
            key, value, _ = max(_sizes(cell), key=lambda size: size[2])
            remedy = "record less often" if key == ("record", "every") else "use less"
            return key, (
                f"{value}: needs {needed / 1e9:.3g} GB of memory, and the machine has "
                f"{limit / 1e9:.3g} GB; {remedy}, or say by memory_mb what machines have"
            )
    return None


def numbers(ensemble: Ensemble, each: Arithmetic, sizes: Sizes) -> float:
    """Numbers held at once: weights and gradients, what all runs see, and what is recorded."""
    runs = len(ensemble.init_scales) * ensemble.seeds
    held = runs * (3 * each.weights + each.step ** (2 / 3))
    return held + examples(ensemble, sizes) + recorded(ensemble, sizes)


def examples(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in inputs and targets: of the dataset, and of the batches of a step."""
    batch = ensemble.training.batch
    drawn = 0 if batch.whole else ensemble.seeds * batch.samples(sizes.samples)
    return float(sizes.samples + drawn) * (sizes.inputs + sizes.outputs)


def recorded(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in the records of all runs: dimensions that sizes do not tell count as 1."""
    known = {
        "time": ensemble.training.steps // ensemble.record.every + 1,
        "snapshot": ensemble.record.snapshots + 1,
        "sample": sizes.samples,
        "input": sizes.inputs,
        "output": sizes.outputs,
        "mode": min(sizes.inputs, sizes.outputs),
    }
    variables = given("trajectory", ensemble.record.observables).values()
    each = sum(math.prod(known.get(dim, 1) for dim in variable.dims) for variable in variables)
    return float(len(ensemble.init_scales) * ensemble.seeds * each)


def _sizes(cell: Cell) -> Iterator[tuple[Key, int, int]]:
    """Whole numbers that say how much there is, by key: value, and how much that makes."""
    yield ("seeds",), cell.seeds, cell.seeds
    yield ("record", "every"), cell.record.every, cell.training.steps // cell.record.every
    parts = {("dataset",): cell.dataset, ("network",): cell.network}
    for key, part in (parts | {("training", "batch"): cell.training.batch}).items():
        for inside, number in _whole(part):
            yield (*key, *inside), number, number


def _whole(value: Any) -> Iterator[tuple[Key, int]]:
    """All whole numbers inside a value, by key, leaving out those that only name a draw."""
    if isinstance(value, Strict | Mapping):
        for name, each in dict(value).items():
            if name != "seed":
                yield from (((name, *key), number) for key, number in _whole(each))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from (((str(place), *key), number) for key, number in _whole(each))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield (), value


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


def installed() -> int:
    """Bytes of memory of this machine, in use or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_on(device: Any) -> int | None:
    """Bytes of memory that a device has left; ask before the arguments of a program are made.

    Args:
        device: JAX device on which the program will run.

    Returns:
        Of an accelerator, the pool of its allocator less what is in use, or None where it does not
        tell; of a processor, what `available` tells.
    """
    if device.platform == "cpu":
        return available()
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None


def available(system: Path = Path("/")) -> int:
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
