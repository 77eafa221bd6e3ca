"""GPUs of the machine, and the choice of one for each job.

A scheduler selects GPUs by `CUDA_VISIBLE_DEVICES`. Without a scheduler, jobs that run at the same
time on a machine with several GPUs take one each.
"""

import os
import shutil
import subprocess
import time
from itertools import takewhile
from pathlib import Path
from tempfile import gettempdir

VISIBLE = "CUDA_VISIBLE_DEVICES"
NO_GPU = ("", "-1", "NoDevFiles")
"""Values by which schedulers say that there is no GPU."""
PAUSE = 1.0
"""Seconds between two searches for a free GPU."""
_locks: list[int] = []
"""File descriptors of this process's locks; the kernel releases them when the process ends."""


def visible_gpus() -> tuple[str, ...]:
    """Names, as CUDA uses them, of the GPUs that this process may use."""
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        names = (name.strip() for name in listed.split(","))
        return tuple(takewhile(lambda name: name not in NO_GPU, names))
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    output = subprocess.run([tool, "--list-gpus"], capture_output=True, text=True, check=False)  # noqa: S603
    lines = [line for line in output.stdout.splitlines() if line.startswith("GPU ")]
    return tuple(map(str, range(len(lines))))


def claim_gpu() -> None:
    """Reserves one of several GPUs for this process until it ends; waits while all are in use.

    Call it before JAX is imported.
    """
    names = visible_gpus()
    if len(names) > 1:  # a single GPU was chosen by a scheduler, or all jobs share it
        os.environ[VISIBLE] = _lock_one(names)


def _lock_one(names: tuple[str, ...]) -> str:
    """Locks a GPU that no other process of this user has locked, and returns its name."""
    import fcntl  # Windows has none, where only workers of the workflow come here

    folder = Path(gettempdir(), f"neuralrace-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        for name in names:
            lock = os.open(folder / name.replace("/", "-"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
            else:
                _locks.append(lock)
                return name
        time.sleep(PAUSE)
