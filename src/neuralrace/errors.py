"""User-facing errors: shown as one message, without a traceback."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from difflib import get_close_matches
from itertools import islice
from typing import Any

_ABSENT = object()
MOST_LISTED = 8
"""Most names in a message."""


class UserError(ValueError):
    """A mistake that the user can correct: a key, an argument, a file, a disk.

    The message reads `file: key: value: problem; remedy`, without the parts that are absent. It is
    a `ValueError`, so that Pydantic collects it where a model's validator raises it. A validator
    writes keys relative to its own model.

    Attributes:
        problem: what is wrong; it may be empty where key and value show it.
        file: the file that has the mistake.
        key: dotted key of a configuration, or name of an argument.
        value: the value as it is shown; empty where there is none.
        remedy: what to do, in the imperative.

    Example:
        >>> import neuralrace as nr
        >>> try:
        ...     nr.specify("hierarchy", hidden=[0])
        ... except nr.UserError as error:
        ...     print(error)
        hidden.0: 0: must be greater than 0
    """

    def __init__(
        self,
        problem: str = "",
        *,
        file: Any = "",
        key: str = "",
        value: Any = _ABSENT,
        remedy: str = "",
    ):
        super().__init__(problem)
        self.problem, self.file, self.key, self.remedy = problem, str(file), key, remedy
        self.value = "" if value is _ABSENT else _shown(value)

    def __str__(self) -> str:
        """The whole message."""
        advice = "; ".join(filter(None, (self.problem, self.remedy)))
        return ": ".join(filter(None, (self.file, self.key, self.value, advice)))

    def replaced(self, **parts: Any) -> "UserError":
        """A copy with other parts, named as the arguments are."""
        if "value" in parts:
            parts["value"] = _shown(parts["value"])
        error = copy(self)
        vars(error).update(parts)
        return error

    def moved(self, key: str, to: str) -> "UserError":
        """The same mistake under another key.

        `moved("network", "candidates.a")` turns `network.gates` into `candidates.a.gates`.
        """
        inside = f"{self.key}.".startswith(f"{key}.")
        return self.replaced(key=to + self.key[len(key) :] if inside else self.key)


@contextmanager
def configured_as(key: str) -> Iterator[None]:
    """Corrects the key in errors about a network that is configured under another key.

    Networks write their own keys as `network.…`.
    """
    try:
        yield
    except UserError as error:
        raise error.moved("network", key) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names similar names, with a space at its end; empty if there are none."""
    by_lower = {each.lower(): each for each in known}
    close = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, 3)]
    return f"did you mean {' or '.join(close)}? " if close else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun, whose plural ends in s: `1 cell`, `2 cells`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def listed(names: Iterable[Any]) -> str:
    """The first names of a list, as text."""
    first, *others = [*islice(names, MOST_LISTED + 1)] or ["nothing"]
    shown = [shorten(str(name), 40) for name in (first, *others)]
    return ", ".join([*shown[:MOST_LISTED], *["..."] * (len(shown) > MOST_LISTED)])


def shorten(text: str, most: int = 400) -> str:
    """The text, without its middle if it is longer than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _shown(value: Any) -> str:
    return shorten(repr(list(value) if isinstance(value, tuple) else value), 80)
