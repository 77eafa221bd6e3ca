"""Whether claims quote their sources exactly: `python -m neuralrace.claims.quotes FOLDER`.

The texts of the sources are not part of this repository. Given a folder that holds them, each is
found by its checksum, and each quote must stand in it, word for word.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuralrace.claims.spec import ClaimFile, read_claims
from neuralrace.errors import UserError

ELLIPSIS = " … "
"""Stands for what a quote leaves out."""


def mistakes(claims: ClaimFile, text: str) -> Iterator[str]:
    """Claims whose quote is not in the text; line breaks and runs of spaces count as one space."""
    text = _folded(text)
    for claim in claims.claims:
        start = 0
        for part in _folded(claim.quote).split(ELLIPSIS):
            found = text.find(part, start)
            if found < 0:
                yield f"{claim.id}: quote: not in the source: {part!r}"
                break
            start = found + len(part)


def check(claim_files: Sequence[Path], folder: Path) -> int:
    """Checks all quotes.

    Returns:
        How many there are.

    Raises:
        UserError: a source that is not in the folder, or quotes that are not in their source.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    texts = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in files}
    told, count = [], 0
    for file, claims in read_claims(claim_files).items():
        checksum = claims.source.text_sha256
        if checksum not in texts:
            raise UserError(
                f"{folder}: holds no text with the SHA-256 {checksum}, from which {file} quotes "
                f"({claims.source.title}); put it there"
            )
        text = texts[checksum].read_text(encoding="utf-8")
        told += [f"{file}: {mistake}" for mistake in mistakes(claims, text)]
        count += len(claims.claims)
    if told:
        raise UserError("\n".join(told))
    return count


def _folded(text: str) -> str:
    return " ".join(text.split())


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m neuralrace.claims.quotes FOLDER_WITH_TEXTS", file=sys.stderr)
        return 2
    try:
        count = check(sorted(Path("config").glob("*/claims.yaml")), Path(arguments[0]))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} quotes stand in their sources")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
