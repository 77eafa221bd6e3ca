"""Snakemake in a fork of a process that has imported it, which takes a second of each call.

The library is not imported there: each fork reads that of its own workspace, as a new process does.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SERVER = """
import json, os, sys
from snakemake.cli import main

assert not [name for name in sys.modules if name.startswith("neuralrace")]
for line in sys.stdin:
    request = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(request["folder"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = (os.devnull, os.O_RDONLY), (request["out"], flags), (request["err"], flags)
    for stream, file in enumerate(files):
        os.dup2(os.open(*file), stream)
    os.environ["PYTHONPATH"] = request["path"]
    sys.path[:0] = request["path"].split(os.pathsep)
    sys.argv = ["snakemake", *request["arguments"]]
    sys.exit(main())
"""
"""Runs Snakemake for each line, and replies with its exit status."""


class WarmSnakemake:
    """Starts with the first call, and keeps its environment."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._server: subprocess.Popen[str] | None = None
        self._environment: dict[str, str] = {}

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        """Runs Snakemake in a folder; returns its exit status and what it prints.

        It runs in a new process where the environment is another one than at the first call.
        """
        path = environment["PYTHONPATH"]
        changing = ("PYTHONPATH", "PYTEST_CURRENT_TEST")
        others = {name: value for name, value in environment.items() if name not in changing}
        if self._server is None:
            self._environment = others
            self._server = subprocess.Popen(
                [sys.executable, "-c", SERVER], env=others, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        if others != self._environment:
            done = subprocess.run(
                [sys.executable, "-m", "snakemake", *arguments], cwd=folder, env=environment,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr
        with tempfile.TemporaryDirectory() as printed:
            out, err = Path(printed, "out"), Path(printed, "err")
            request = {"arguments": list(arguments), "folder": str(folder), "path": path}
            request |= {"out": str(out), "err": str(err)}
            print(json.dumps(request), file=self._server.stdin, flush=True)
            status = int(self._server.stdout.readline())
            return status, out.read_text() + err.read_text()

    def end(self) -> None:
        """Ends the process, if one was started."""
        if self._server is not None:
            self._server.communicate()
