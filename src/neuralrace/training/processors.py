"""Processors of this process: how many it may use, and of which kind they are."""

import hashlib
import math
import os
import platform
from functools import cache
from pathlib import Path

from neuralrace.training.control_groups import group_files

KIND = (
    *("vendor_id", "cpu family", "model", "model name", "flags"),  # x86
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),  # ARM
    "cpu",  # POWER
)
"""Entries of /proc/cpuinfo that say which instructions a processor has."""


def usable_cores(system: Path = Path("/")) -> int:
    """Processors that this process may use, at least 1.

    It is the number of its affinity, or the quota of a container or of a SLURM job, rounded up,
    where that is smaller.

    Args:
        system: root of the file system in which the kernel publishes control groups.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # macOS and Windows
        cores = os.cpu_count() or 1
    quotas = [
        *(text.split() for (text,) in group_files(system, ("cpu.max",))),
        *group_files(system, ("cpu.cfs_quota_us", "cpu.cfs_period_us"), "cpu"),
    ]
    granted = (math.ceil(int(q) / int(p)) for q, p in quotas if q not in ("max", "-1"))
    return max(min([cores, *granted]), 1)


@cache
def processor_kind(system: Path = Path("/")) -> str:
    """The instruction set and a digest of model and features, for the names of folders.

    Args:
        system: root of the file system in which the kernel describes processors.
    """
    try:
        described = (system / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        described = f"model: {platform.processor()}"
    first = described.partition("\n\n")[0]
    kept = [line for line in first.splitlines() if line.partition(":")[0].strip() in KIND]
    return f"{platform.machine()}-{hashlib.sha256(chr(10).join(kept).encode()).hexdigest()[:8]}"
