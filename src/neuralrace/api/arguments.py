"""Arguments of the Python functions: their signatures, their checks and their errors."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import cleandoc, signature
from typing import Any, TypeVar, cast

import numpy as np

from neuralrace.errors import UserError, did_you_mean

F = TypeVar("F", bound=Callable)
ARGUMENT = re.compile(r"^    (\w+): .*(?:\n {8}.*)*\n", re.MULTILINE)
"""The description of an argument in a docstring."""
SAME = ": as in `specify`.\n"
"""The end of a description that help takes from `specify`."""
KEYS = {
    "training.learning_rate": "learning_rate",
    "training.steps": "steps",
    "training.optimiser.name": "optimiser",
    "training.optimiser": "optimiser",
    "training.loss.name": "loss",
    "training.loss": "loss",
    "training.batch.name": "batch",
    "training.batch": "batch",
    "record.observables": "observables",
    "record.snapshots": "snapshots",
    "dataset.x_test": "x_test",
    "dataset.y_test": "y_test",
    "dataset.test": "test",
    "dataset.x": "x",
    "dataset.y": "y",
    "dataset.name": "x",
    "dataset": "x",
    "init.name": "init",
    "solutions": "theory",
}
"""Argument of each key of a configuration, where their names differ; longer keys come first."""
OF_ARRAYS = ("'table'", "'file'")
"""Names of the datasets that arrays make, as messages show them."""
KEYS_OF_NETWORK = {
    "network.hidden": "hidden",
    "network.activation": "activation",
    "network.gates.name": "gates",
    "network.gates.rows": "gates",
    "network.gates": "gates",
    "network.name": "network",
}
"""The same for networks without the argument `network`."""
SPELLINGS = {"optimizer": "optimiser"}
"""Other spellings of arguments."""
ELSEWHERE = {
    "epochs": "steps",
    "layers": "hidden",
    "lr": "learning_rate",
    "width": "hidden",
    "widths": "hidden",
}
"""Arguments by names that they have in other libraries, for messages."""
LONGEST_MESSAGE = 5
"""Largest number of mistakes in a message."""


def checked_arguments(base: Callable | None = None) -> Callable[[F], F]:
    """Decorator that refuses unknown and missing arguments with a message for users.

    Args:
        base: a function whose arguments replace `**options` in signature and docstring, for help
            and completion. Defaults and descriptions of the decorated function have precedence,
            except descriptions that say "as in `specify`".
    """

    def decorate(function: F) -> F:
        own = signature(function)
        parameters = dict(own.parameters)
        text = cleandoc(function.__doc__ or "")
        if base is not None:
            del parameters["options"]
            parameters = {**signature(base).parameters, **parameters}
            texts = {
                match[1]: match[0]
                for docstring in (base.__doc__ or "", text)
                for match in ARGUMENT.finditer(docstring)
                if docstring is not text or not match[0].endswith(SAME)
            }
            before, _, after = re.split(r"^(Args:\n(?: {4}.*\n)+)", text, flags=re.MULTILINE)
            text = before + "Args:\n" + "".join(texts[name] for name in parameters) + after
        full = own.replace(parameters=list(parameters.values()))

        @wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            for other in SPELLINGS.keys() & options.keys():
                name = SPELLINGS[other]
                if name in options:
                    raise UserError("is there twice", key=name, remedy=f"leave out {other}")
                options[name] = options.pop(other)
            refuse_unknown(options, checked)
            try:
                full.bind(*arguments, **options)
            except TypeError as error:
                raise UserError(
                    str(error),
                    key=function.__name__,
                    remedy="give x and y first and all else by name, such as hidden=[16]",
                ) from None
            return function(*arguments, **options)

        checked.__doc__ = text
        vars(checked)["__signature__"] = full
        return cast(F, checked)

    return decorate


def refuse_unknown(names: Iterable[str], function: Callable, prefix: str = "") -> None:
    """Raises UserError about the first name that is no argument of a function."""
    known = signature(function).parameters
    for name in names:
        if name not in known:
            raise UserError(
                f"is no argument of {function.__name__}",
                key=f"{prefix}{name}",
                remedy=f"{did_you_mean(ELSEWHERE.get(name, name), known)}"
                f"there are {', '.join(known)}",
            )


def check_positive_whole(argument: str, value: Any) -> None:
    """Raises UserError unless the value is a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UserError("expected a positive whole number", key=argument, value=value)


def by_argument(error: UserError, prefix: str, network: Any) -> UserError:
    """An error of a configuration that names an argument in place of a key.

    Args:
        error: an error with a key of a configuration, or a group of such errors as its cause;
            others keep their text.
        prefix: the key of the experiment in the configuration.
        network: the argument of that name.
    """
    result = error.moved(prefix, "")
    if result.key != error.key:
        result.key, result.file = result.key.removeprefix("."), ""
    lines = error.problem.splitlines()
    if isinstance(error.__cause__, ExceptionGroup):  # several mistakes at once
        causes = (e for e in error.__cause__.exceptions if isinstance(e, UserError))
        mistakes = [str(by_argument(cause, prefix, network)) for cause in causes]
        lines = [*mistakes, *lines[len(mistakes) :]]  # the last line counts further mistakes
        result.problem = "\n".join(lines)
    if (more := len(lines) - LONGEST_MESSAGE) > 1:
        result.problem = "\n".join([*lines[:LONGEST_MESSAGE], f"and {more} more lines like these"])
    keys = KEYS | ({} if network is not None else KEYS_OF_NETWORK)
    if result.key == "dataset.name" and result.value in OF_ARRAYS:
        result.value = ""
    for key, argument in keys.items():
        moved = result.moved(key, argument)
        if moved.key != result.key:
            result = moved
            break
    result.problem = _text_by_argument(result.problem, keys)
    result.remedy = _text_by_argument(result.remedy, keys)
    return result


def _text_by_argument(text: str, keys: Mapping[str, str]) -> str:
    """A text with arguments in place of keys before a colon or a part of theirs."""
    for name in OF_ARRAYS:
        text = text.replace(f"dataset.name: {name}: ", "x: ")
    for key, argument in keys.items():
        text = re.sub(rf"(?<![\w.]){re.escape(key)}(?=\.\w|: )", argument, text)
    return text


def reason_by_argument(reason: UserError | str, network: Any) -> str:
    """An unmet requirement as text, with arguments in place of keys of a configuration."""
    return str(by_argument(reason, "", network) if isinstance(reason, UserError) else reason)
