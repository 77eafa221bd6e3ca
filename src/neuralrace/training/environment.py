"""The process environment of computations, the same on every machine."""

import os
import re
import sys
import warnings

from neuralrace.errors import UserError
from neuralrace.training.devices import claim_gpu
from neuralrace.training.processors import processor_kind

EFFECTS = {
    r"JAX_\w+": "JAX's arithmetic, random numbers or compilation",
    r"XLA_FLAGS": "the arithmetic of compiled programs",
    r"NVIDIA_TF32_OVERRIDE": "the precision of products on a GPU",
    # another kernel sums in another order, which changes results by some 1e-13
    r"(OPENBLAS|GOTO|MKL|BLIS)_\w+": "the kernels of linear algebra",
    r"NPY_(EN|DIS)ABLE_CPU_FEATURES": "the instructions that NumPy sums with",
}
"""What environment variables may change that changes results, by patterns of their names."""
HARMLESS = re.compile(
    r"JAX_(PLATFORMS|\w*VISIBLE_DEVICES|\w*CACHE\w*|NUMPY_(DTYPE|RANK)_PROMOTION"
    r"|LOG\w*|EXPLAIN\w*|TRACEBACK\w*)|\w+_(NUM_THREADS|VERBOSE|THREAD_TIMEOUT|MAIN_FREE)"
)
"""Exceptions: variables that choose devices or threads, control caches and logs, or make JAX refuse
ambiguous code."""
THREADS = (
    "NPROC",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)
"""Variables that set the number of threads."""

DEFAULTS = {
    # small programs are kept between runs only with both settings
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    # jaxlib 0.10 warns of every program that it loads from the cache, even on the machine that
    # wrote it (openxla issue 44565); errors still arrive as exceptions
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # on a GPU: leave memory to the processes that use it for a moment only
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""Values of variables that change no result, for those that the user has not set."""
CACHE = os.path.abspath(".cache/jax")
"""Folder of compiled programs, which are kept between runs, by kind of processor: a cluster shares
it between its nodes, and a program for another processor may end with an illegal instruction."""

COMPILE_EVENT = "/neuralrace/compiled"
"""Event of JAX's monitoring that carries the core-seconds of a compilation."""
FLAGS = "--xla_gpu_deterministic_ops=true"
"""Compiler flags: the same numbers in every run on a GPU."""


_warned: set[str] = set()
_jax_process: int | None = None
"""The first process in which JAX had started when it was forked; inherited by forked processes."""


def _note_jax() -> None:
    global _jax_process
    # JAX has no public function that tells without starting it
    bridge = sys.modules.get("jax._src.xla_bridge")
    if _jax_process is None and bridge is not None and bridge.backends_are_initialized():
        _jax_process = os.getpid()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_note_jax)


def refuse_forked_jax() -> None:
    """Refuses to compute in a process that was forked after JAX had started.

    JAX waits for ever there: its threads are not in the forked process.

    Raises:
        UserError: this is such a process.
    """
    if _jax_process not in (None, os.getpid()):
        raise UserError(
            "this process was forked from one that had used JAX, which cannot compute here",
            remedy='use multiprocessing.get_context("spawn"), or try many values by sweep=',
        )


def influences() -> dict[str, str]:
    """Environment variables that may change results, each with what it changes."""
    return {
        name: effect
        for name, value in os.environ.items()
        for pattern, effect in EFFECTS.items()
        if re.fullmatch(pattern, name)
        and not HARMLESS.fullmatch(name)
        # set by `set_up_environment` in the parent process
        and (name, value) != ("XLA_FLAGS", FLAGS)
    }


def warn_of_environment() -> None:
    """Warns, once for each, of variables that change the results of this process.

    Jobs of the workflow remove them; here it is too late, as libraries are already loaded.

    Raises:
        UserError: as `refuse_forked_jax`.
    """
    refuse_forked_jax()
    variables = {name: effect for name, effect in influences().items() if name not in _warned}
    if variables:
        _warned.update(variables)
        effects = "; ".join(
            f"{name} changes {effect}" for name, effect in sorted(variables.items())
        )
        warnings.warn(
            f"{effects}: results may differ from those of the workflow, which ignores such "
            "variables; to ignore them too, unset them before Python starts",
            RuntimeWarning,
            stacklevel=3,
        )


def set_up_environment(threads: int, gpu: bool = False) -> str:
    """Gives this process the environment of every worker; call it before JAX and NumPy load.

    Results must follow from specification and code: variables that a user set for other programs
    are removed.

    Args:
        threads: number of threads; more make small computations no faster, and cost more.
        gpu: whether to compute on a GPU, if there is one. The process reserves it until it ends,
            and waits while all are in use.

    Returns:
        A line that names the removed variables; empty if there were none.
    """
    removed = sorted(influences())
    for name in removed:
        del os.environ[name]
    for name in THREADS:
        os.environ[name] = str(threads)
    os.environ["XLA_FLAGS"] = FLAGS
    os.environ["MPLBACKEND"] = "agg"  # draw to files, with any window system
    folder = {"JAX_COMPILATION_CACHE_DIR": os.path.join(CACHE, processor_kind())}
    for name, value in (DEFAULTS | folder).items():
        os.environ.setdefault(name, value)
    if gpu:
        claim_gpu()
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
    names = ", ".join(removed)
    return f"{names}: left out of the environment, as they may change results" if names else ""
