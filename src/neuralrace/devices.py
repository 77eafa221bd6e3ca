"""What a job computes with: threads, and one of the GPUs of its machine.

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


def gpus() -> tuple[str, ...]:
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


def compute_with(threads: int, gpu: bool) -> None:
    """Keeps this process to some threads, and to one GPU or none.

    Call it before JAX and NumPy are loaded.

    Args:
        threads: of each library. What is small is no faster on many, and costs more.
        gpu: whether to compute on a GPU, if there is one. It is this process's own until it ends;
            while all are taken, this waits.
    """
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    if not gpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
        return
    names = gpus()
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
