"""The seal beside a file: its checksum, and the key of what it was made from.

It is a text as `sha256sum --check` reads it; the key stands in a comment, and can be told without
opening the file itself.
"""

import hashlib
from pathlib import Path

from neuralrace.atomic import write_text
from neuralrace.errors import UserError

KEY = "# made from "


def seal_file(path: Path) -> Path:
    """Where the seal of a file stands."""
    return path.with_name(f"{path.name}.sha256")


def seal(path: Path, digest: str, key: str) -> None:
    """Writes the seal of a file.

    Args:
        path: the file.
        digest: `sha256` of its content.
        key: stands for all that it was made from; empty where nobody asks.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    write_text(f"{KEY}{key}\n{digest}  {path.name}\n", seal_file(path))


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest_of(path: Path) -> str | None:
    """The checksum that a file was sealed with; None where it has no seal."""
    return (_seal(path) or (None, None))[1]


def refuse_damage(path: Path, digest: str) -> None:
    """Refuses a file with another checksum than it was sealed with; one without a seal passes.

    Args:
        path: the file.
        digest: `sha256` of its content.

    Raises:
        UserError: it is damaged.
    """
    if digest_of(path) not in (None, digest):
        raise UserError(
            f"{path}: its content does not have the checksum it was written with; it is damaged. "
            "Delete it and run the workflow again."
        )


def key_of(path: Path) -> str | None:
    """The key of what a file was made from; None where the file or its seal is missing."""
    return (_seal(path) or (None, None))[0] if path.is_file() else None


def _seal(path: Path) -> tuple[str, str] | None:
    try:
        first, last = seal_file(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # no text, or not of two lines
        return None
    return first.removeprefix(KEY), last.partition(" ")[0]
