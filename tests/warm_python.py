"""Python processes that start in milliseconds: forks of one that has imported other libraries.

Importing JAX, Flax, xarray and Snakemake takes three core-seconds. The library itself is not
imported there: each fork reads that of its own workspace, as a new process does.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

IMPORTED = (
    "click", "flax.nnx", "jax", "matplotlib.pyplot", "netCDF4", "optax", "pandas", "psutil",
    "pydantic", "pytest", "scipy.integrate", "scipy.optimize", "scipy.spatial", "scipy.special",
    "snakemake.cli", "threadpoolctl", "xarray", "yaml",
)  # fmt: skip
"""Modules, beside the plug-ins of Snakemake."""
UNREAD = frozenset(
    ["HTTPS_PROXY", "JAX_COMPILATION_CACHE_DIR", "PYTEST_CURRENT_TEST", "PYTHONPATH", "XLA_FLAGS"]
)
"""Environment variables that may change between calls: no import reads them, or they are told."""
LARGEST = 1 << 18
"""Bytes of the largest request."""


class Forked:
    """A process; as much of a `subprocess.Popen` as tests and the pool of workers need."""

    stdin: Any = None
    stdout: Any = None

    def __init__(self, channel: socket.socket, request: Mapping[str, Any], *streams: int):
        """Has it started, with three open files as its standard streams."""
        reading, writing = os.pipe()
        socket.send_fds(channel, [json.dumps(request).encode()], [*streams, writing])
        os.close(writing)
        self._replies = open(reading, encoding="ascii")  # noqa: SIM115
        self.pid = int(self._replies.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._replies], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._replies.readline())
            self._replies.close()
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class WarmPython:
    """Starts with the first call, and keeps its environment."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._server: subprocess.Popen[bytes] | None = None
        self._channel, self._servers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment: dict[str, str] = {}

    def run(
        self,
        arguments: Sequence[str],
        folder: str | os.PathLike[str] = "",
        environment: Mapping[str, str] = os.environ,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `python -m MODULE ...` or `python -c CODE ...` in a folder, and waits for its end.

        It is a new process where an import may read the environment differently.
        """
        read = {name: value for name, value in environment.items() if name not in UNREAD}
        if self._server is None:
            self._environment = read
            ends = (self._channel.fileno(), self._servers.fileno())
            self._server = subprocess.Popen(
                [sys.executable, __file__, *map(str, ends)], pass_fds=ends, stdin=subprocess.PIPE,
                env=read | {"OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        if read != self._environment:
            return subprocess.run(
                [sys.executable, *arguments], cwd=os.path.abspath(folder), env=environment,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        request = {"arguments": list(arguments), "folder": os.path.abspath(folder)}
        request |= {"environment": dict(environment)}
        with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as err:  # fmt: skip
            streams = (file.fileno() for file in (nothing, out, err))
            status = Forked(self._channel, request, *streams).wait()
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(arguments, status, out.read(), err.read())

    def end(self) -> None:
        """Ends the process, if one was started."""
        if self._server is not None:
            self._server.communicate()


PYTHON = WarmPython()
"""That of this process."""


def serve(requests: socket.socket, channel: socket.socket) -> None:
    """Forks for each request until standard input ends.

    Args:
        requests: where they arrive.
        channel: the other end, which forks use to start workers.
    """
    found = (module.name for module in pkgutil.iter_modules())
    for name in (*IMPORTED, *(name for name in found if name.startswith("snakemake_"))):
        import_module(name)
    assert not [name for name in sys.modules if name.startswith("neuralrace")]
    del os.environ["OPENBLAS_NUM_THREADS"]
    gc.freeze()
    while sys.stdin not in select.select([sys.stdin, requests], [], [])[0]:
        text, files, *_ = socket.recv_fds(requests, LARGEST, 4)
        if not os.fork():
            requests.close()
            become(json.loads(text), *files, channel=channel)
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def become(request: Mapping[str, Any], *files: int, channel: socket.socket) -> None:
    """Runs what is requested in a fork, and reports its process and its exit status."""
    *streams, replies = files
    if child := os.fork():
        os.write(replies, f"{child}\n".encode())
        for stream in streams:
            os.close(stream)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(replies, f"{status}\n".encode())
        os._exit(0)
    os.close(replies)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    import jax

    jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    subprocess.Popen = warm_popen(channel)
    (option, program, *arguments), path = request["arguments"], os.environ.get("PYTHONPATH")
    # Python puts the folder first for -m, and an empty text, which means the same, for -c
    sys.path[:0] = [
        "" if option == "-c" else os.getcwd(),
        *(path.split(os.pathsep) if path else ()),
    ]
    sys.argv = [option if option == "-c" else program, *arguments]
    sys.orig_argv = [sys.executable, *request["arguments"]]
    with suppress(ImportError):
        import_module("sitecustomize")
    status = 0
    try:
        if option == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = main = ModuleType("__main__")
            exec(compile(program, "<string>", "exec"), main.__dict__)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    # without the end of the interpreter, which takes a core-second with that many modules
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def warm_popen(channel: socket.socket) -> type:
    """A `subprocess.Popen` that starts workers of the library as forks too."""

    class Popen(subprocess.Popen):
        def __new__(cls, command: Any, *others: Any, **options: Any) -> Any:
            if "neuralrace.workflow.worker" not in command:
                return super().__new__(cls)
            (reading, requests), (replies, writing) = os.pipe(), os.pipe()
            request = {"arguments": command[1:], "folder": os.getcwd()}
            request |= {"environment": dict(os.environ)}
            worker = Forked(channel, request, reading, writing, 2)
            os.close(reading)
            os.close(writing)
            worker.stdin = open(requests, "w", encoding="utf-8")  # noqa: SIM115
            worker.stdout = open(replies, encoding="utf-8")  # noqa: SIM115
            return worker

    return Popen


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    starting, served = (socket.socket(fileno=int(end)) for end in sys.argv[1:])
    serve(served, starting)
