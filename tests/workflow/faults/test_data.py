"""Data files and downloads that are not what they should be."""

import gc
import gzip
import hashlib
import os
import runpy
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pooch
import pytest

from builders import REPOSITORY
from neuralrace.datasets import mnist
from neuralrace.datasets.file import File
from neuralrace.datasets.mnist import Mnist
from neuralrace.errors import UserError

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
GROUP = "Data"
MUTATIONS = REPOSITORY / "tests/datasets/mutations.py"
RESTORE = "put the former file back, or run with the new one"
STEM = "train-images-idx3-ubyte"
SHAPES = {
    STEM: (40, 28, 28),
    "train-labels-idx1-ubyte": (40,),
    "t10k-images-idx3-ubyte": (9, 28, 28),
    "t10k-labels-idx1-ubyte": (9,),
}


@dataclass
class Answer:
    """What the server gives."""

    content: bytes
    status: int = 200
    announced: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    """Whether it never comes."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answer = self.server.elsewhere if self.path == "/elsewhere" else self.server.answer
        if answer.silent:
            self.rfile.read()  # until the client gives up
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(answer.announced or len(answer.content)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_):
        """Nothing is told."""


class Server(ThreadingHTTPServer):
    """On this machine alone."""

    daemon_threads = True
    patience = 300.0
    """Seconds that a client waits; nobody does as long as a test takes."""
    elsewhere = Answer(b"<html>You have to log in.</html>")

    def handle_error(self, *_):
        """Who asked has gone."""


@contextmanager
def serving() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A set of files that stands for the official one."""
    rng = np.random.default_rng(0)
    for stem, shape in SHAPES.items():
        array = rng.integers(0, 10, shape, np.uint8)
        header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        content = header + array.tobytes()
        packed = gzip.compress(content, mtime=0)
        (tmp_path / f"{stem}.gz").write_bytes(packed)
        monkeypatch.setitem(mnist.SHA256, stem, hashlib.sha256(content).hexdigest())
        monkeypatch.setitem(mnist.COMPRESSED_SHA256, stem, hashlib.sha256(packed).hexdigest())
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    """A server at the official address; clients wait for it as long as it says."""
    patient = pooch.HTTPDownloader.__init__
    with serving() as server:
        monkeypatch.setattr(
            pooch.HTTPDownloader,
            "__init__",
            lambda self, **given: patient(self, timeout=server.patience, **given),
        )
        monkeypatch.setattr(mnist, "ADDRESS", f"http://127.0.0.1:{server.server_port}/")
        yield server
    gc.collect()  # connections that requests leaves open, while that is no error


def load(folder):
    return Mnist(name="mnist", folder=str(folder), samples=40).load().x


DOWNLOADS = {
    "cut short": lambda file: Answer(file[: len(file) // 2], announced=len(file)),
    "one byte missing": lambda file: Answer(file[:-1]),
    "another file": lambda file: Answer(gzip.compress(b"another set of images")),
    "empty": lambda file: Answer(b""),
    "page not found (404)": lambda file: Answer(b"not found", status=404),
    "server error (500)": lambda file: Answer(b"sorry", status=500),
    "redirected to a login page": lambda file: Answer(b"", 302, headers={"Location": "/elsewhere"}),
    "no answer": lambda file: Answer(file, silent=True),
}


@pytest.mark.parametrize("kind", DOWNLOADS)
def test_a_download_that_is_not_the_file(kind, folder, server, injecting):
    path, before = folder / f"{STEM}.gz", load(folder)
    official = path.read_bytes()
    path.unlink()
    left = {each.name for each in folder.iterdir()}
    with injecting(f"download: {kind}", group=GROUP) as fault:
        with fault.injection():
            server.answer = DOWNLOADS[kind](official)
            server.patience = 0.5 if server.answer.silent else Server.patience
            with pytest.raises(UserError) as caught:
                load(folder)
            server.patience = Server.patience
            fault.wrong += {each.name for each in folder.iterdir()} != left
            server.answer = Answer(official)
            fault.wrong += not np.array_equal(load(folder), before)
        told = str(caught.value)
        assert told.startswith(f"{path}: file of dataset mnist not found, and fetching http://")
        assert f"put the file into {folder}/ by hand" in told
        fault.message = "not found, and fetching ... failed (why); put the file into ... by hand"


def damaged(content, rng):
    """The content with a bit flipped, or cut, at a random place."""
    at = int(rng.integers(len(content)))
    return content[:at] if rng.random() < 0.5 else flipped(content, at, int(rng.integers(8)))


def flipped(content, at, bit):
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def test_a_damaged_file_of_a_data_set_is_fetched_again(folder, server, injecting, repeat):
    path, before = folder / f"{STEM}.gz", load(folder)
    official, rng = path.read_bytes(), np.random.default_rng(1)
    server.answer = Answer(official)
    with injecting(
        "a downloaded data file is damaged (bit flipped, or cut)", group=GROUP, chance=True
    ) as fault:
        for _ in range(2 * repeat):
            with fault.injection():
                path.write_bytes(damaged(official, rng))
                fault.wrong += not np.array_equal(load(folder), before)
        server.answer = Answer(b"", status=404)
        path.write_bytes(damaged(official, rng))
        with pytest.raises(UserError, match=r"damaged \(.*, and fetching .* failed") as caught:
            load(folder)
        assert str(path) in str(caught.value)
        fault.message = "fetched again; without a network: damaged (why), and fetching ... failed"


def test_a_damaged_file_beside_a_whole_one(folder, injecting, monkeypatch, repeat):
    monkeypatch.setattr(pooch, "retrieve", None)  # nothing is fetched
    path, before = folder / f"{STEM}.gz", load(folder)
    official, rng = path.read_bytes(), np.random.default_rng(2)
    (folder / STEM).write_bytes(gzip.decompress(official))
    with injecting("a damaged .gz beside the intact file", group=GROUP, chance=True) as fault:
        for _ in range(repeat):
            with fault.injection():
                path.write_bytes(damaged(official, rng))
                fault.wrong += not np.array_equal(load(folder), before)
        fault.message = "none: the whole one is read"


@pytest.mark.parametrize(("suffix", "each"), [(".npz", 600), (".csv", 600), (".nc", 6)])
def test_damaged_files_of_ones_own(suffix, each, injecting, repeat):
    examples = each * repeat
    fuzz = runpy.run_path(str(MUTATIONS))["fuzz"]
    kind = f"your own data, damaged anywhere ({suffix})"
    nothing = "nothing to recover: refused before anything runs"
    with injecting(kind, group=GROUP, chance=True, recovers=nothing) as fault:
        with fault.injection(at_once=examples):
            fuzz(suffix, examples)
        fault.seconds = [fault.seconds[0] / examples] * examples
        fault.message = f"my{suffix}: where: what it is; what to do"


def test_hostile_files_of_ones_own(tmp_path, injecting):
    """A pipe, a device that never ends, and 40 GB of nothing."""
    nothing = "nothing to recover: refused before anything runs"
    kind = "your own data is not a file, or has no end"
    with injecting(kind, group=GROUP, recovers=nothing) as fault:
        for suffix in (".npz", ".nc", ".csv"):
            os.mkfifo(tmp_path / f"pipe{suffix}")
            os.symlink("/dev/zero", tmp_path / f"device{suffix}")
            os.symlink(tmp_path, tmp_path / f"folder{suffix}")
            with open(tmp_path / f"sparse{suffix}", "wb") as file:
                file.truncate(40 * 10**9)
        for path in sorted(tmp_path.iterdir()):
            with fault.injection(), pytest.raises(ValueError, match=rf"{path}: cannot be read"):
                File(name="file", path=str(path))
        fault.message = "my.npz: cannot be read (why); put the file there, or correct `path`"


def test_a_file_of_ones_own_that_changed(tmp_path, injecting, repeat):
    path, rng = tmp_path / "my.npz", np.random.default_rng(3)
    np.savez(path, x=rng.normal(size=(9, 3)), y=rng.normal(size=(9, 2)))
    content = path.read_bytes()
    planned = File(name="file", path=str(path))
    before = planned.load().x
    with injecting(
        "your own data file changes after planning", group=GROUP, recovers=RESTORE, chance=True
    ) as fault:
        for _ in range(repeat):
            with fault.injection():
                path.write_bytes(damaged(content, rng))
                again = File.model_validate(planned.model_dump())  # the path anew: nothing is kept
                with pytest.raises(UserError, match=r"my\.npz: has the checksum .* put the former"):
                    again.model_copy(update={"path": f"{tmp_path}/./my.npz"}).load()
                path.write_bytes(content)
                fault.wrong += not np.array_equal(again.load().x, before)
        fault.message = "my.npz: has the checksum ..., not ...; put the former file back, or ..."
