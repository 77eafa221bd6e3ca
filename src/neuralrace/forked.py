"""Short jobs that start from a process which has already imported what they need.

A figure is drawn in half a second, and what draws it takes three to import.
"""

import gc
import os
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import wait
from threading import Lock

from neuralrace.errors import UserError

LOCK = Lock()


def call(module: str, function: str, *arguments: object) -> None:
    """Calls a function of a module in a process of its own.

    All such processes start from one that has imported the module of the first call, which may not
    start threads, as JAX does when it computes.

    Args:
        module: its dotted name; it is not imported here.
        function: name of the function; it tells its errors itself, as a job does.
        arguments: plain values.

    Raises:
        UserError: the process failed.
    """
    context = get_context("forkserver")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # they run side by side
    # each process runs the script that Snakemake was started by: what that imports is to be there
    context.set_forkserver_preload(["snakemake.cli", module])
    process = context.Process(target=_called, args=(module, function, arguments))
    # a process that starts asks after all that have ended: two threads that asked after one at a
    # time would both read its exit status, which can be read once
    with LOCK:
        process.start()
    wait([process.sentinel])
    with LOCK:
        process.join()
    if process.exitcode:
        raise UserError(f"{module}.{function} ended with exit status {process.exitcode}")


def _called(module: str, function: str, arguments: tuple[object, ...]) -> None:
    gc.disable()  # looking through all that was imported, again and again, takes it a tenth longer
    getattr(import_module(module), function)(*arguments)
