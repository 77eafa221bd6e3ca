"""The archive of results: what stands in one, how it is written, and how it is read safely.

A zip file with one folder, `results`. It may come from anybody: nothing of it is unpacked to a name
that it chooses, and whatever `neuralrace.cli.export` does not write is refused.
"""

import hashlib
import io
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from neuralrace.config.variables import REGISTRIES
from neuralrace.errors import UserError, shorten
from neuralrace.results.checksums import check_checksum, checksum_path

NAME = "results"
"""The folder inside the archive."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file in it: the first that an archive can say."""
CHUNK = 1 << 20
"""Bytes that are copied at once."""
RESULT = re.compile(
    rf"{NAME}/(?P<file>[a-z0-9_]+/[a-z0-9_]+/[a-z0-9_][a-z0-9._-]*/({'|'.join(REGISTRIES)})\.nc)"
    r"(?P<seal>\.sha256)?"
)
"""Names of result files and of their seals."""
BESIDE = re.compile(
    rf"{NAME}/(README\.md|claims\.sha256|(claims|findings)\.(md|json|csv)|metrics\.csv(\.sha256)?|"
    r"figures/(slim/)?[a-z0-9_]+/[a-z0-9_]+(/[a-z0-9_][a-z0-9._-]*)?\.(png|pdf|svg|sha256))"
)
"""Names of all else, for people: no merge reads it."""
SMALL = 1 << 16
"""Bytes that a seal has at most."""
LISTED = 1 << 26
"""Bytes of the directory at most: half a million files. It is read whole."""


def add(path: Path, name: str, archive: zipfile.ZipFile) -> Iterator[int]:
    """Adds a file to an archive, and yields the bytes of each chunk of it.

    The same file gives the same bytes: no date of it is kept.

    Args:
        path: the file.
        name: inside the folder of the archive.
        archive: open for writing.

    Raises:
        UserError: the file is damaged.
    """
    entry = zipfile.ZipInfo(f"{NAME}/{name}", DATE)
    entry.create_system = 3  # of files with permissions, on every machine
    entry.external_attr = 0o644 << 16
    entry.file_size = path.stat().st_size
    # NetCDF files are compressed already
    entry.compress_type = zipfile.ZIP_STORED if path.suffix == ".nc" else zipfile.ZIP_DEFLATED
    digest = hashlib.sha256()
    with path.open("rb") as source, archive.open(entry, "w") as target:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            target.write(chunk)
            yield len(chunk)
    check_checksum(path, digest.hexdigest())


@dataclass(frozen=True)
class Archive:
    """An archive to read from, whose directory was checked.

    Attributes:
        path: of the archive.
        sizes: bytes of each sealed result file, by `paper/experiment/label/kind.nc`.
    """

    path: Path
    sizes: dict[str, int]

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """A result file with its seal beside it, unpacked for as long as it is used.

        Raises:
            UserError: the archive is damaged, or there is no room to unpack.
        """
        with _refusing(self.path):
            room = TemporaryDirectory()
        with room as folder:
            path = Path(folder, Path(name).name)
            inside = f"{NAME}/{name}"
            with _reading(self.path) as archive:
                for source, target in ((inside, path), (f"{inside}.sha256", checksum_path(path))):
                    with archive.open(source) as packed, target.open("wb") as unpacked:
                        shutil.copyfileobj(packed, unpacked, CHUNK)
            yield path


def opened(path: Path) -> Archive:
    """An archive, its directory checked; no file of it is read yet.

    Raises:
        UserError: it is none, is damaged, or is not as `neuralrace.cli.export` writes it: other
            names, links, names that stand twice, other compression, or sizes that cannot be true.
    """
    with _reading(path) as archive:
        entries = archive.infolist()
    sizes: dict[str, int] = {}
    seals, names = set[str](), set[str]()
    for entry in entries:
        result = RESULT.fullmatch(entry.filename)
        if wrong := _wrong(entry, result, names):
            raise _refusal(path, entry.filename, wrong)
        names.add(entry.filename)
        if result and result["seal"]:
            seals.add(result["file"])
        elif result:
            sizes[result["file"]] = entry.file_size
    for name in sorted(sizes.keys() ^ seals):
        raise _refusal(path, f"{NAME}/{name}", "lacks its seal, or is lacking beside it")
    # files that share bytes would be larger than the archive that they are stored in
    if not 0 < sum(sizes.values()) <= path.stat().st_size:
        raise _refusal(path, NAME, "holds no results, or more than the archive is large")
    return Archive(path, sizes)


def _refusal(path: Path, name: str, wrong: str) -> UserError:
    return UserError(
        f"{path}: {shorten(repr(name))}: {wrong}; `neuralrace export` writes no such archive. "
        "Nothing was unpacked. Ask for another one, or unpack it yourself and name the folder."
    )


def _wrong(entry: zipfile.ZipInfo, result: re.Match | None, names: set[str]) -> str | None:
    """What is not as it is written here; None where all is."""
    if not result and not BESIDE.fullmatch(entry.filename):
        return "is no name of a result file or table"
    if entry.filename in names:
        return "stands in it twice"
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return "is no file, but a link or a folder"
    if entry.flag_bits & 1:
        return "is encrypted"
    # damage or malice can hide entries in one that stands before; what is large has a size there
    size = entry.extra.startswith(b"\x01\x00") and len(entry.extra) == 4 + entry.extra[2]
    if entry.comment or (entry.extra and not size):
        return "has a note"
    if not result:
        return None  # is never read
    if result["seal"]:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return "is compressed by another method"  # some take memory before they unpack a byte
        return "is too large for a seal" if entry.file_size > SMALL else None
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size
    return None if stored else "is compressed"


class _Whole(io.FileIO):
    """A file of which nobody reads more at once than an archive can need.

    `zipfile` reads as many bytes as the archive says that its directory has.
    """

    def read(self, size: int = -1, /) -> bytes:
        if size > LISTED:
            raise zipfile.BadZipFile("its directory is too large")
        return super().read(size)


@contextmanager
def _reading(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive open for reading.

    Raises:
        UserError: it cannot be read, or is none.
    """
    with _refusing(path):
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise OSError("it is no file")
        with _Whole(path) as file, zipfile.ZipFile(file) as archive:
            yield archive


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Refuses an archive that cannot be read."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error}). Check that it is a file that you may read, and "
            "that temporary files have room (TMPDIR says where they go)."
        ) from error
    except (EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); it is cut short or damaged, or no archive. Ask for "
            "another one."
        ) from error
