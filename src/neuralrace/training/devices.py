"""The GPUs of a machine, and which of them a job computes on.

A scheduler's `CUDA_VISIBLE_DEVICES` says which GPUs there are. Jobs that a person runs side by side
on a machine of several take one each.
"""

import fcntl
import os
import shutil
import subprocess
import time
from itertools import takewhile
from pathlib import Path
from tempfile import gettempdir

CHOSEN = "CUDA_VISIBLE_DEVICES"
NONE = ("", "-1", "NoDevFiles")
"""How schedulers spell no GPU."""
PAUSE = 1.0
"""Seconds between two looks for a GPU that has become free."""
_taken: list[int] = []
"""File descriptors of the locks of this process, which the kernel opens when it ends."""


def visible_gpus() -> tuple[str, ...]:
    """Names of the GPUs that this process may use, by which CUDA knows them."""
    told = os.environ.get(CHOSEN)
    if told is not None:
        names = (name.strip() for name in told.split(","))
        return tuple(takewhile(lambda name: name not in NONE, names))
    asked = shutil.which("nvidia-smi")
    if asked is None:
        return ()
    listed = subprocess.run([asked, "--list-gpus"], capture_output=True, text=True, check=False)  # noqa: S603
    found = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return tuple(map(str, range(len(found))))


def claim_gpu() -> None:
    """Takes one of the GPUs, if there are several, for this process alone until it ends.

    While all are taken, it waits. To be called before JAX is loaded.
    """
    names = visible_gpus()
    if len(names) > 1:  # a single one was chosen by a scheduler, or is shared by all there is
        os.environ[CHOSEN] = _free(names)


def _free(names: tuple[str, ...]) -> str:
    """The name of a GPU that no other process of this user has taken; it is taken now."""
    folder = Path(gettempdir(), f"neuralrace-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        for name in names:
            slot = os.open(folder / name.replace("/", "-"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
            else:
                _taken.append(slot)
                return name
        time.sleep(PAUSE)
