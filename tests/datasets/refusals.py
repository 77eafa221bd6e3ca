"""The error that refuses a configuration, from a validator of the library or from Pydantic."""

import pytest
from pydantic import ValidationError

from neuralrace.errors import UserError
from neuralrace.extensions.model import problem_of


def refusal(build, **parameters) -> UserError:
    """The first error of `build(**parameters)`; for Pydantic's own, the key is its location."""
    with pytest.raises(ValidationError) as error:
        build(**parameters)
    first = error.value.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UserError):
        return cause
    return UserError(problem_of(first), key=".".join(map(str, first["loc"])))


def check_refusal(build, parameters, key, words) -> None:
    """Checks the key of the error and words of its message; the remedy follows a semicolon."""
    error = refusal(build, **parameters)
    assert error.key == key
    for part in words.split(" ... "):
        assert part in str(error)
