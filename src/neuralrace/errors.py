"""Errors that are the user's to mend."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class UserError(Exception):
    """Something outside the code is wrong: a key, a file, a disk.

    The message names the file, the key, the value and the remedy. It is shown without a traceback.
    """


@contextmanager
def configured_as(key: str) -> Iterator[None]:
    """Mistakes in a network that stands under another key than `network` are told with that key."""
    try:
        yield
    except UserError as error:
        message = str(error)
        raise UserError(re.sub(r"^network\b", lambda _: key, message)) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What is spelt like a name, as a question to stand inside a message; empty if nothing is."""
    close = get_close_matches(name, list(known), 3)
    return f"did you mean {' or '.join(close)}? " if close else ""


def shorten(text: str, most: int = 400) -> str:
    """A text, without its middle where it is longer than `most` letters: what a message repeats."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"
