"""Downloads of the official files of image sets."""

import logging
from pathlib import Path

from neuralrace.errors import UserError


def fetch(path: Path, url: str, sha256: str, dataset: str, found: str = "not found") -> None:
    """Fetches a missing or damaged file, complete and with the right checksum or not at all.

    What lies there is replaced by the official file alone.

    Args:
        path: where the file is to lie; its folder is made where there is none.
        url: the official address.
        sha256: checksum of the file at this address.
        dataset: name of the dataset whose key `folder` says where files lie.
        found: what is wrong with what is there.

    Raises:
        UserError: the address cannot be reached, what it gives is another file, the folder cannot
            be written, or something is in the way that is no file.
    """
    if path.exists() and not path.is_file():  # pooch would read a pipe, and never end
        raise UserError(f"{path}: is no regular file; take it away, or set `folder` of {dataset}")
    import pooch  # only such a file needs it

    pooch.get_logger().setLevel(logging.WARNING)  # it announces every file
    try:
        pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent)
    except (OSError, ValueError) as error:  # connections and folders; checksums
        raise UserError(
            f"{path}: file of dataset {dataset} {found}, and fetching {url} failed ({error}). "
            f"Put the file into {path.parent}/ by hand, or set `folder` of dataset {dataset} to "
            "where it lies."
        ) from error
