"""Arrays given in Python, which a specification names by shapes and checksum, as it names a file.

The arrays themselves are kept by the objects made from them: parameters, datasets, result trees.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from neuralrace.errors import UserError

PATH = "<given in Python: {}>"
"""Path in place of that of a file."""
Labelled = tuple[tuple[str, ...], np.ndarray]
"""Names of the axes of an array, and the array."""


class NotGivenError(UserError):
    """A specification names arrays that nothing holds."""


class Given:
    """Arrays by name, with names of their axes; equal if their checksums are.

    Args:
        checksum: SHA-256 of their names, types, shapes and numbers.
        read: gives the arrays; called at their first use.
    """

    def __init__(self, checksum: str, read: Callable[[], Mapping[str, Labelled]]):
        self.checksum, self._read = checksum, read

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Given) and other.checksum == self.checksum

    def __hash__(self) -> int:
        return hash(self.checksum)

    @cached_property
    def variables(self) -> Mapping[str, Labelled]:
        """The arrays, read-only, with names of their axes.

        Raises:
            UserError: they are not those of the checksum, as after a change of a saved file.
        """
        variables = _read_only(self._read())
        if _checksum(variables) != self.checksum:
            problem = "are not the arrays of the specification: they were changed"
            raise UserError(problem, key="data", remedy="simulate again")
        return variables


class Parameters(dict[str, Any]):
    """Parameters of a dataset or initialiser that keep the arrays which they name."""

    given: Given


_GIVEN = WeakValueDictionary[str, Given]()


def give(name: str, variables: Mapping[str, Labelled]) -> Parameters:
    """Parameters of the dataset or initialiser `name` that read arrays from memory.

    Args:
        name: its name.
        variables: arrays that are not changed afterwards, with names of their axes.
    """
    variables = _read_only(variables)
    shapes = ", ".join(f"{n} {array.shape}" for n, (_, array) in variables.items())
    checksum = _checksum(variables)
    parameters = Parameters(name=name, path=PATH.format(shapes), checksum=checksum)
    parameters.given = Given(checksum, lambda: variables)
    vars(parameters.given)["variables"] = variables  # they are not compared with the checksum again
    _GIVEN[checksum] = parameters.given
    return parameters


def give_again(checksum: str, read: Callable[[], Mapping[str, Labelled]]) -> Given:
    """The arrays of a checksum, such as those of a saved tree, which are read where needed."""
    known = _GIVEN.get(checksum)
    if known is None or "variables" not in vars(known):  # its file may be closed
        known = _GIVEN[checksum] = Given(checksum, read)
    return known


def is_given(path: str) -> bool:
    """Whether a path names arrays that were given in Python."""
    return path.startswith(PATH.partition("{")[0])


def given(path: str, checksum: Any) -> Given:
    """The arrays in memory that a path and a checksum name.

    Raises:
        NotGivenError: nothing holds them, as in a configuration.
    """
    if found := _GIVEN.get(checksum):
        return found
    raise NotGivenError(
        "these arrays were given in Python, and a specification holds their shapes and checksum "
        "only",
        key="path",
        value=path,
        remedy="write them into a file, such as numpy.savez('my.npz', x=x, y=y), and give "
        "`path: my.npz` without `checksum`",
    )


def _read_only(variables: Mapping[str, Labelled]) -> Mapping[str, Labelled]:
    whole = {name: (dims, np.ascontiguousarray(array)) for name, (dims, array) in variables.items()}
    for _, array in whole.values():
        array.flags.writeable = False
    return whole


def _checksum(variables: Mapping[str, Labelled]) -> str:
    digest = hashlib.sha256()
    for name, (_, array) in sorted(variables.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data.cast("B"))
    return digest.hexdigest()
