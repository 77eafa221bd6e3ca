"""Official files of image sets: read from disk, held to their checksum, downloaded if necessary."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from neuralrace.errors import UserError


def official_content(
    paths: Sequence[Path],
    read: Callable[[Path], bytes],
    sha256: str,
    download: Callable[[str], None],
) -> bytes:
    """The content of an official file, which is downloaded if no file on disk is intact.

    Args:
        paths: files that may hold the content.
        read: reads and decompresses a file.
        sha256: checksum of the decompressed content.
        download: replaces the first of the files by the official one. Its argument says what is
            wrong with the files on disk.

    Raises:
        UserError: the file is missing or damaged, and cannot be downloaded.
    """

    def intact(path: Path) -> bytes:
        content = read(path)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError("its checksum is not that of the official file")
        return content

    faults: list[str] = []
    for path in filter(Path.is_file, paths):
        try:
            return intact(path)
        except UserError as error:
            faults.append(f"unreadable ({path.name}: {error.problem})")
        except ValueError as error:
            faults.append(f"damaged ({path.name}: {error})")
    download(", ".join(faults) or "not found")
    return intact(paths[0])


def fetch(path: Path, url: str, sha256: str, dataset: str, fault: str = "not found") -> None:
    """Downloads a missing or damaged file, complete and with the right checksum or not at all.

    An existing file is replaced only after the download has been verified.

    Args:
        path: where to save the file; its folder is created if necessary.
        url: official address of the file.
        sha256: checksum of the file at this address.
        dataset: name of the dataset, whose key `folder` sets the folder of the file.
        fault: what is wrong with the file on disk, for the message.

    Raises:
        UserError: the address cannot be reached, the download has another checksum, the folder
            cannot be written, or the path is a folder, a pipe or a device.
    """
    if path.exists() and not path.is_file():  # pooch would read a pipe, and never return
        remedy = f"remove it, or set `folder` of {dataset}"
        raise UserError("is no regular file", file=path, remedy=remedy)
    import pooch  # imported here because only downloads need it

    pooch.get_logger().setLevel(logging.WARNING)  # it logs every file at INFO
    try:
        pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent)
    except (OSError, ValueError) as error:  # OSError: connection or folder; ValueError: checksum
        raise UserError(
            f"file of dataset {dataset} {fault}, and fetching {url} failed ({error})",
            file=path,
            remedy=f"put the file into {path.parent}/ by hand, or set `folder` of dataset "
            f"{dataset} to the folder that holds it",
        ) from error
