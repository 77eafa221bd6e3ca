"""The environment that results are computed in, the same for all who compute them."""

import os
import re

from neuralrace.devices import take

VALUES = re.compile(r"JAX_.*|XLA_FLAGS|NVIDIA_TF32_OVERRIDE")
"""Variables that may change what is computed: arithmetic, random streams, compiled loops."""
HARMLESS = re.compile(
    r"JAX_(PLATFORMS|\w*VISIBLE_DEVICES|\w*CACHE\w*|NUMPY_(DTYPE|RANK)_PROMOTION"
    r"|LOG\w*|EXPLAIN\w*|TRACEBACK\w*)"
)
"""Of these, those that choose a device, keep or tell something, or refuse code that is unclear."""

DEFAULTS = {
    # a compiled program is kept between runs; all three settings are needed to keep small ones
    "JAX_COMPILATION_CACHE_DIR": os.path.abspath(".cache/jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    # jaxlib 0.10 warns of every program that it loads from there, on the machine that wrote it too
    # (openxla issue 44565); errors reach us as exceptions
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # on a GPU: room for the processes that only borrow it for a moment
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""Variables that change no number, where nobody has set them."""

COMPILED = "/neuralrace/compiled"
"""Event by which a training tells JAX's monitoring the core-seconds of its compilation."""
FLAGS = "--xla_gpu_deterministic_ops=true"
"""Of the compiler: on a GPU, the same numbers in every run."""


def settle(threads: int, gpu: bool = False) -> str:
    """Makes the environment that of every worker; to be called before JAX and NumPy are loaded.

    Results follow from specification and code: what a person set for other programs is left out.

    Args:
        threads: to compute with; what is small is no faster on many, and costs more.
        gpu: whether to compute on a GPU, if there is one. It is this process's own until it ends;
            while all are taken, this waits.

    Returns:
        A line that names what was left out; empty where nothing was.
    """
    if os.environ.get("XLA_FLAGS") == FLAGS:  # as a worker of the same kind left it
        del os.environ["XLA_FLAGS"]
    found = [name for name in os.environ if VALUES.fullmatch(name)]
    left_out = sorted(name for name in found if not HARMLESS.fullmatch(name))
    for name in left_out:
        del os.environ[name]
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["XLA_FLAGS"] = FLAGS
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever a person has it shown by
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if gpu:
        take()
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
    names = ", ".join(left_out)
    return f"{names}: left out of the environment, as they may change results" if names else ""
