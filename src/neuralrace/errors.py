"""User-facing errors: shown as one message, without a traceback."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

_ABSENT = object()


class UserError(ValueError):
    """A mistake that the user can correct: a key, an argument, a file, a disk.

    The message reads `file: key: value: problem; remedy`, without the parts that are absent. It is
    a `ValueError`, so that Pydantic collects it where a model's validator raises it.

    Attributes:
        problem: what is wrong.
        file: the file that has the mistake.
        key: dotted key of a configuration, or name of an argument.
        value: the value as it is shown; empty where none is.
        remedy: what to do, in the imperative.
    """

    def __init__(
        self, problem: str, *, file: Any = "", key: str = "", value: Any = _ABSENT, remedy: str = ""
    ):
        super().__init__(problem)
        self.problem, self.file, self.key, self.remedy = problem, str(file), key, remedy
        self.value = "" if value is _ABSENT else shorten(_shown(value), 80)

    def __str__(self) -> str:
        """The whole message."""
        parts = [part for part in (self.file, self.key, self.value, self.problem) if part]
        return ": ".join(parts) + (f"; {self.remedy}" if self.remedy else "")

    def moved(self, key: str, to: str) -> "UserError":
        """The same mistake under another key, as `network.gates` is `candidates.a.gates`."""
        moved = UserError(self.problem, file=self.file, key=self.key, remedy=self.remedy)
        moved.value = self.value
        if f"{self.key}.".startswith(f"{key}."):
            moved.key = to + self.key[len(key) :]
        return moved


@contextmanager
def configured_as(key: str) -> Iterator[None]:
    """Names the key under which a network is configured, where it is not `network`."""
    try:
        yield
    except UserError as error:
        raise error.moved("network", key) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names similar names, to stand inside a message; empty if there are none."""
    close = get_close_matches(name, list(known), 3)
    return f"did you mean {' or '.join(close)}? " if close else ""


def shorten(text: str, most: int = 400) -> str:
    """The text, without its middle where it is longer than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
