"""The environment that results are computed in, the same for all who compute them."""

import os
import re
import warnings

from neuralrace.training.devices import claim_gpu

EFFECTS = {
    r"JAX_\w+": "JAX's arithmetic, random numbers or compilation",
    r"XLA_FLAGS": "the arithmetic of compiled programs",
    r"NVIDIA_TF32_OVERRIDE": "the precision of products on a GPU",
    # another kernel sums in another order: some 1e-13 of a result
    r"(OPENBLAS|GOTO|MKL|BLIS)_\w+": "the kernels of linear algebra",
    r"NPY_(EN|DIS)ABLE_CPU_FEATURES": "the instructions that NumPy sums with",
}
"""What variables may change that change results, by patterns of their names."""
HARMLESS = re.compile(
    r"JAX_(PLATFORMS|\w*VISIBLE_DEVICES|\w*CACHE\w*|NUMPY_(DTYPE|RANK)_PROMOTION"
    r"|LOG\w*|EXPLAIN\w*|TRACEBACK\w*)|\w+_(NUM_THREADS|VERBOSE|THREAD_TIMEOUT|MAIN_FREE)"
)
"""Of these, those that choose a device or threads, keep or tell something, or refuse code that is
unclear."""
THREADS = (
    "NPROC",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)
"""Variables that say on how many threads to compute."""

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

COMPILE_EVENT = "/neuralrace/compiled"
"""Event by which a training tells JAX's monitoring the core-seconds of its compilation."""
FLAGS = "--xla_gpu_deterministic_ops=true"
"""Of the compiler: on a GPU, the same numbers in every run."""


_warned: set[str] = set()


def influences() -> dict[str, str]:
    """Variables of the environment that may change results, and what each of them changes."""
    return {
        name: effect
        for name, value in os.environ.items()
        for pattern, effect in EFFECTS.items()
        if re.fullmatch(pattern, name)
        and not HARMLESS.fullmatch(name)
        # as a worker of the same kind left it
        and (name, value) != ("XLA_FLAGS", FLAGS)
    }


def warn_of_environment() -> None:
    """Warns, once for each, of variables that change what this process computes.

    Jobs of the workflow leave them out; here libraries are loaded already.
    """
    found = {name: effect for name, effect in influences().items() if name not in _warned}
    if found:
        _warned.update(found)
        effects = "; ".join(f"{name} changes {effect}" for name, effect in sorted(found.items()))
        warnings.warn(
            f"{effects}: results may differ from those of the workflow, which leaves it out; to "
            "do so too, unset it before Python starts",
            RuntimeWarning,
            stacklevel=3,
        )


def set_up_environment(threads: int, gpu: bool = False) -> str:
    """Makes the environment that of every worker; to be called before JAX and NumPy are loaded.

    Results follow from specification and code: what a person set for other programs is left out.

    Args:
        threads: to compute with; what is small is no faster on many, and costs more.
        gpu: whether to compute on a GPU, if there is one. It is this process's own until it ends;
            while all are taken, this waits.

    Returns:
        A line that names what was left out; empty where nothing was.
    """
    left_out = sorted(influences())
    for name in left_out:
        del os.environ[name]
    for name in THREADS:
        os.environ[name] = str(threads)
    os.environ["XLA_FLAGS"] = FLAGS
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever a person has it shown by
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if gpu:
        claim_gpu()
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
    names = ", ".join(left_out)
    return f"{names}: left out of the environment, as they may change results" if names else ""
