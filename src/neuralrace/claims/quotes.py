"""Check of quotes: `python -m neuralrace.claims.quotes FOLDER [CLAIMS.yaml ...]`.

FOLDER holds the texts of the papers, which are not part of this repository. A text is recognised by
its checksum, and must contain each quote word for word. Without names of files, the claims of all
papers are checked.
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuralrace.claims.spec import ClaimFile, combined, read_claims
from neuralrace.errors import UserError, counted

ELLIPSIS = " … "
"""Marks an omission in a quote."""
LONGEST_OMISSION = 200
"""Most characters that are left out at one place: further apart are two quotes."""


def mistakes(file: Path, claims: ClaimFile, text: str) -> Iterator[UserError]:
    """Errors of claims whose quote is not in the text; white space of any length counts as one.

    An omission is short: a quote from two places is two quotes.
    """
    text = _folded(text)
    for claim in claims.claims:
        first, *others = (re.escape(part) for part in _folded(claim.quote).split(ELLIPSIS))
        gap = f".{{0,{LONGEST_OMISSION}}}?"
        if not re.search(gap.join([first, *others]), text):
            problem = f"not in the source, with at most {LONGEST_OMISSION} characters for each …"
            yield UserError(problem, file=file, key=f"{claim.id}.quote", value=claim.quote)


def check(claim_files: Sequence[Path], folder: Path) -> int:
    """Checks all quotes.

    Args:
        claim_files: `config/<paper>/claims.yaml` of each paper.
        folder: the texts of the papers.

    Returns:
        The number of quotes.

    Raises:
        UserError: a text that is not in the folder, or quotes that are not in their text.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    texts = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in files}
    errors, count = list[UserError](), 0
    for file, claims in read_claims(claim_files).items():
        checksum = claims.quoted.text_sha256
        if checksum not in texts:
            raise UserError(
                f"holds no text with the SHA-256 {checksum}, from which {file} quotes "
                f"({claims.quoted.title})",
                file=folder,
                remedy="put it there",
            )
        errors += mistakes(file, claims, texts[checksum].read_text(encoding="utf-8"))
        count += len(claims.claims)
    if errors:
        raise combined(errors)
    return count


def _folded(text: str) -> str:
    return " ".join(text.split())


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    folder, *files = map(Path, arguments or [""])
    if not arguments or not folder.is_dir():
        usage = "usage: python -m neuralrace.claims.quotes FOLDER_WITH_TEXTS [CLAIMS.yaml ...]"
        print(usage, file=sys.stderr)
        return 2
    try:
        count = check(files or sorted(Path("config").glob("*/claims.yaml")), folder)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{counted(count, 'quote')} {'is' if count == 1 else 'are'} exact")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
