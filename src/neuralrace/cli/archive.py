"""Safe reading of archives of results.

An archive of `neuralrace.cli.export` is a zip file with one folder, `results`. As it may come from
anybody, files are unpacked under names that this module chooses, and an archive with anything that
`export` does not write is refused.
"""

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
from neuralrace.errors import UserError
from neuralrace.results.checksums import checksum_path

NAME = "results"
"""The folder inside the archive."""
RESULT = re.compile(
    rf"{NAME}/(?P<file>[a-z0-9_]+/[a-z0-9_]+/[a-z0-9_][a-z0-9._-]*/({'|'.join(REGISTRIES)})\.nc)"
    r"(?P<checksum>\.sha256)?"
)
"""Names of result files and of their checksum files."""
OTHER = re.compile(
    rf"{NAME}/(README\.md|claims\.(sha256|svg)|claims/[a-z0-9_]+\.md|"
    r"(claims|findings)\.(md|json|csv)|metrics\.csv(\.sha256)?|"
    r"figures/(slim/)?[a-z0-9_]+/[a-z0-9_]+(/[a-z0-9_][a-z0-9._-]*)?\.(png|pdf|svg|sha256))"
)
"""Names of all other files, which are for people and never read here."""
LARGEST_CHECKSUM = 1 << 16
"""Largest size of a checksum file in bytes."""
LARGEST_DIRECTORY = 1 << 26
"""Largest size of the zip directory in bytes: half a million files."""


@dataclass(frozen=True)
class Archive:
    """An archive whose directory was checked.

    Attributes:
        path: path of the archive.
        sizes: size of each result file in bytes, by `paper/experiment/label/kind.nc`.
    """

    path: Path
    sizes: dict[str, int]

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """A temporary copy of a result file, with its checksum file beside it.

        Raises:
            UserError: the archive is damaged, or the disk for temporary files is full.
        """
        with _readable(self.path):
            temporary = TemporaryDirectory()
        with temporary as folder:
            path = Path(folder, Path(name).name)
            packed = f"{NAME}/{name}"
            with _reading(self.path) as archive:
                for entry, copy in ((packed, path), (f"{packed}.sha256", checksum_path(path))):
                    with archive.open(entry) as source, copy.open("wb") as target:
                        shutil.copyfileobj(source, target)
            yield path


def open_archive(path: Path) -> Archive:
    """Opens an archive and checks its directory; no file is unpacked yet.

    Raises:
        UserError: this is no archive, it is damaged, or `export` did not write it: it has other
            names, links, duplicate names, other compression, or impossible sizes.
    """
    with _reading(path) as archive:
        entries = archive.infolist()
    sizes: dict[str, int] = {}
    checksums, names = set[str](), set[str]()
    for entry in entries:
        result = RESULT.fullmatch(entry.filename)
        if problem := _problem(entry, result, names):
            raise _refusal(path, entry.filename, problem)
        names.add(entry.filename)
        if result and result["checksum"]:
            checksums.add(result["file"])
        elif result:
            sizes[result["file"]] = entry.file_size
    for name in sorted(sizes.keys() ^ checksums):
        raise _refusal(path, f"{NAME}/{name}", "the file or its checksum file is missing")
    # result files are not compressed: larger ones share bytes, as in a bomb of overlapping files
    if not 0 < sum(sizes.values()) <= path.stat().st_size:
        raise _refusal(path, NAME, "has no result files, or says that they are larger than itself")
    return Archive(path, sizes)


def _refusal(path: Path, name: str, problem: str) -> UserError:
    return UserError(
        f"{problem}; `neuralrace export` writes no such archive. Nothing was unpacked",
        file=path,
        value=name,
        remedy="ask for another archive, or unpack it yourself and name the folder",
    )


def _problem(entry: zipfile.ZipInfo, result: re.Match | None, names: set[str]) -> str | None:
    """What `export` would not write in an entry of the directory; None if there is nothing."""
    if not result and not OTHER.fullmatch(entry.filename):
        return "is no name of a result file or table"
    if entry.filename in names:
        return "is listed twice"
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return "is no file, but a link or a folder"
    # A damaged length of such a note can hide the entries after it. Zip files of more than 4 GB
    # have sizes there, of type 1.
    sizes = entry.extra.startswith(b"\x01\x00") and len(entry.extra) == 4 + entry.extra[2]
    if entry.comment or (entry.extra and not sizes):
        return "has a note"
    if not result:
        return None
    if result["checksum"]:
        # LZMA and bzip2 can ask for much memory before they unpack a byte
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return "is compressed by another method"
        return "is too large for a checksum file" if entry.file_size > LARGEST_CHECKSUM else None
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size
    return None if stored else "is compressed"


class _BoundedFile(io.FileIO):
    """A file that is read in small parts only.

    `zipfile` reads the whole directory at once, however large the archive says that it is.
    """

    def read(self, size: int = -1, /) -> bytes:
        if size > LARGEST_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too large")
        return super().read(size)


@contextmanager
def _reading(path: Path) -> Iterator[zipfile.ZipFile]:
    with _readable(path):
        if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
            raise OSError("it is no file")
        with _BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
            yield archive


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns errors of reading and unpacking into UserError."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.exists():
            raise UserError("there is no such file", file=path, remedy="check its name") from None
        raise UserError(
            f"cannot be read ({error})",
            file=path,
            remedy="check that it is a file that you may read, and that the disk for temporary "
            "files has room (TMPDIR says where they go)",
        ) from error
    except (EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(
            f"cannot be read ({error}); it is cut short or damaged, or no archive",
            file=path,
            remedy="ask for another one",
        ) from error
