"""The file and the key that a message about a configuration names."""

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from neuralrace.errors import UserError, shorten

Files = Mapping[str, Mapping[str, Any]]
"""Content of each configuration file by its name, weakest first."""
KeyPath = tuple[str, ...]
"""A key and the keys around it, outermost first."""
COMMAND_LINE = "--config"
"""Name of the values that are passed to Snakemake itself, in place of a file name."""


@dataclass(frozen=True)
class Location:
    """A key of a configuration.

    Attributes:
        files: the files that its value may come from.
        path: the key and those around it.
        swept: for the location of an experiment, keys inside it whose values its `sweep` sets.
    """

    files: Files
    path: KeyPath = ()
    swept: Set[KeyPath] = frozenset()

    def inside(self, *keys: str) -> "Location":
        """The location of a key inside this one; a swept key stands in `sweep`."""
        swept = max((path for path in self.swept if keys[: len(path)] == path), key=len, default=())
        sweep = ("sweep", ".".join(swept)) if swept else ()
        return Location(self.files, (*self.path, *sweep, *keys[len(swept) :]))

    def located(self, error: UserError) -> UserError:
        """The error with its file, and with its key relative to the whole configuration."""
        if error.file:  # a mistake in a file that the configuration names, such as a dataset
            error = UserError(str(error))
        place = self.inside(*error.key.split(".")) if error.key else self
        key = shorten(".".join(place.path))
        return error.replaced(file=file_of(place.path, self.files), key=key)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Adds file and key to a `UserError` that is raised inside."""
        try:
            yield
        except UserError as error:
            raise self.located(error) from error

    def refuse(self, value: Any, expected: str) -> NoReturn:
        """Raises a `UserError` about a value of this key."""
        raise self.located(UserError(f"expected {expected}", value=value))


def file_of(path: KeyPath, files: Files) -> str:
    """The strongest file that holds the longest part of a key path."""
    strongest, longest = next(iter(files), "configuration"), 0
    for name, content in files.items():
        node: Any = content
        depth = 0
        for key in path:
            if not isinstance(node, Mapping) or key not in node:
                break
            node, depth = node[key], depth + 1
        if depth >= longest:
            strongest, longest = name, depth
    return strongest
