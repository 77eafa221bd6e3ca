"""Arrays of other libraries as NumPy arrays, or messages that say why not.

Nothing is imported to recognise them: what an object can do decides, such as `detach` of PyTorch.
"""

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from neuralrace.datasets.base import MOST_NUMBERS
from neuralrace.errors import UserError, counted, listed, shorten

SAMPLE = ("sample", "samples", "observation", "obs", "example", "item", "batch", "row", "n")
"""Names of dimensions that number samples, first or second."""
MOST_CLASSES = 20
"""Most classes that whole numbers in a column are taken for."""
DUMPED = 40
"""Most characters of an entry in a message."""


def finite_matrix(argument: str, values: Any, axes: str) -> np.ndarray:
    """An array of any library, or nested lists, as finite numbers along two axes.

    Args:
        argument: name of the argument, for messages.
        values: the array.
        axes: what its two axes are, such as "(sample, input)".

    Raises:
        UserError: the values are no such numbers.
    """
    array = real_numbers(argument, values)
    if array.ndim != 2 or not array.size:
        raise UserError(
            f"has shape {array.shape}",
            key=argument,
            remedy=f"give an array with two axes {axes}, {_reshaped(argument, array, axes)}",
        )
    odd = ~np.isfinite(array)
    if odd.any():
        rows = odd.any(axis=1)
        values = counted(int(odd.sum()), "NaN or infinite value")
        remedy = "check how it was computed" if rows.all() else _without(argument)
        raise UserError(f"has {values}, first in row {rows.argmax()}", key=argument, remedy=remedy)
    return array


def _without(argument: str) -> str:
    """What to do about some bad entries of an argument."""
    if argument.removesuffix("_test") not in ("x", "y"):
        return "give numbers in their place"
    both = f"x{argument[1:]} and y{argument[1:]}"
    return f"fill them in, or leave those samples out of both {both}"


def _reshaped(argument: str, array: np.ndarray, axes: str) -> str:
    """How to give an array two axes."""
    row, column = axes.strip("()").split(", ")
    if array.ndim == 0:
        return f"such as [[{array}]]"
    if not array.size:
        return f"with at least one {row} and one {column}"
    if array.ndim == 1:
        return (
            f"such as np.reshape({argument}, (-1, 1)) for a single {column} or "
            f"np.reshape({argument}, (1, -1)) for a single {row}"
        )
    if len(array) == 1:
        return f"such as {argument}[0]"
    return f"such as np.reshape({argument}, ({len(array)}, -1))"


def targets(values: Any, argument: str = "y") -> np.ndarray:
    """Targets (sample, output); a vector of numbers is a single output.

    Raises:
        UserError: the values are no such numbers, or class labels.
    """
    values = _plain(argument, values)
    labels = _label_array(values)
    if labels is not None and (found := _classes(labels)) is not None:
        column = argument if labels.ndim == 1 else f"np.ravel({argument})"
        index, text = column, found.dtype.kind == "U"
        if found.dtype.kind in "Ub" or not np.array_equal(found, np.arange(len(found))):
            index = f"np.unique({column}, return_inverse=True)[1]"
        one_hot = f"one-hot columns, np.eye({len(found)})[{index}]"
        number = "" if text else f"; if they are quantities, np.asarray({argument}, dtype=float)"
        classes = f"{len(found)} class labels: {listed(map(_entry, found))}"
        raise UserError(f"has {classes}", key=argument, remedy=f"give {one_hot}{number}")
    array = real_numbers(argument, values)
    return finite_matrix(argument, array[:, None] if array.ndim == 1 else array, "(sample, output)")


def _label_array(values: Any) -> np.ndarray | None:
    """The values as one array, if they have one type; class labels do."""
    if hasattr(values, "columns") and len(values.columns) > 1:
        return None
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.dtype.kind == "O" and array.size and all(isinstance(v, str) for v in array.flat):
        array = array.astype(str)
    return array if array.size else None


def _classes(array: np.ndarray) -> np.ndarray | None:
    """The different class labels, if these are such: text, or few whole numbers in one column."""
    column = array.ndim == 2 and array.shape[1] == 1
    if (array.ndim != 1 and not column) or array.dtype.kind not in "biuUS":
        return None
    if array.dtype.kind in "US":
        try:
            array.astype(float)
        except ValueError:
            return np.unique(array.astype(str))
        return None  # numbers as text, which are refused later
    found = np.unique(array)
    few = 3 <= len(found) <= min(MOST_CLASSES, len(array) // 2)
    return found if few or not column else None


def matching(x: np.ndarray, y: np.ndarray) -> None:
    """Raises UserError unless inputs and targets have a row for each sample."""
    if len(x) == len(y):
        return
    key, other, remedy = "y", "x", "give both one row for each sample"
    if x.shape[1] == len(y):
        key, other, remedy = "x", "y", "x looks transposed; did you mean x.T?"
    elif y.shape[1] == len(x):
        remedy = "y looks transposed; did you mean y.T?"
    elif x.shape[1] == y.shape[1]:
        remedy = "both look transposed; did you mean x.T and y.T?"
    rows = {"x": len(x), "y": len(y)}
    raise UserError(f"has {rows[key]} rows, and {other} has {rows[other]}", key=key, remedy=remedy)


def real_numbers(argument: str, values: Any) -> np.ndarray:
    """Values of any library as an array of floats, of any shape.

    Raises:
        UserError: they are no real numbers, or too many.
    """
    if values is None:
        raise UserError("is None", key=argument, remedy="give an array of numbers")
    values, kind = _plain(argument, values), type(values).__name__
    if np.ma.is_masked(values):
        raise UserError("has masked entries", key=argument, remedy=_without(argument))
    if hasattr(values, "columns"):
        _check_columns(argument, values)
    try:
        array = np.asarray(values)
        problem, remedy = _wrong_type(argument, array)
        if not problem:
            with np.errstate(over="ignore"):  # of longer floats
                numbers = array.astype(float)
            if array.dtype.itemsize <= numbers.itemsize or np.array_equal(
                np.isinf(array), np.isinf(numbers)
            ):
                return numbers
            problem, remedy = "has numbers that are too large for float64", "rescale them"
    except (TypeError, ValueError, RuntimeError) as error:
        problem, remedy = _wrong_entry(argument, values) or (
            f"cannot convert {kind} to an array ({shorten(str(error), 200)})",
            "give an array of numbers",
        )
    raise UserError(problem, key=argument, remedy=remedy)


def _plain(argument: str, values: Any) -> Any:
    """Values without what NumPy cannot read: gradients, devices, sparse storage, named axes."""
    if isinstance(values, list | tuple):
        tensors = any(hasattr(each, "detach") for each in values)
        return [_plain(argument, each) for each in values] if tensors else values
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # PyTorch
        values = values.detach().cpu()
        if getattr(values, "is_sparse", False):
            values = values.to_dense()
        return values.float() if str(values.dtype).endswith("bfloat16") else values
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):  # CuPy
        return values.get()
    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # SciPy
        if np.prod(values.shape, dtype=float) > MOST_NUMBERS:
            problem = f"is too large for a dense array: shape {values.shape}, and at most "
            problem += f"{MOST_NUMBERS:.0e} numbers are read"
            raise UserError(problem, key=argument, remedy="use fewer samples or columns")
        return values.toarray()
    if hasattr(values, "data_vars"):  # xarray
        names = listed(map(repr, values.data_vars))
        remedy = f"give one of them, such as {argument}[{next(iter(values.data_vars), '')!r}]"
        problem = f"is an xarray Dataset of the variables {names}"
        raise UserError(problem, key=argument, remedy=remedy)
    dims = getattr(values, "dims", ())
    if isinstance(dims, tuple) and len(dims) == 2 and dims[1] in SAMPLE and dims[0] not in SAMPLE:
        return values.T
    return values


def _wrong_type(argument: str, array: np.ndarray) -> tuple[str, str]:
    """Problem and remedy for arrays whose type says that they hold no real numbers; or nothing."""
    kind, first = array.dtype.kind, array.flat[0] if array.size else ""
    if array.dtype.names:
        remedy = "convert it by numpy.lib.recfunctions.structured_to_unstructured"
        return f"is a structured array with the fields {listed(array.dtype.names)}", remedy
    if kind == "c":
        parts = f"np.hstack([np.real({argument}), np.imag({argument})])"
        return "holds complex numbers", f"give real and imaginary parts as columns, {parts}"
    if kind == "M":
        days = f"({argument} - np.min({argument})) / np.timedelta64(1, 'D')"
        return f"holds dates ({array.dtype})", f"give numbers, such as {days}"
    if kind == "m":
        seconds = f"{argument} / np.timedelta64(1, 's')"
        return f"holds durations ({array.dtype})", f"give numbers, such as {seconds}"
    if kind in "US":
        try:
            array.astype(float)
        except ValueError:
            return f"holds text, such as {_entry(first)}", "give numbers"
        remedy = f"convert them by np.asarray({argument}, dtype=float)"
        return f"holds numbers as text, such as {_entry(first)}", remedy
    if kind == "O" and array.ndim == 0:
        return _no_array(argument, array.item())
    if kind == "O" and (wrong := _wrong_entry(argument, array)):
        return wrong
    return "", ""


def _no_array(argument: str, value: Any) -> tuple[str, str]:
    """Problem and remedy for an object that NumPy takes for a single entry."""
    if callable(value):
        return "is a function", "give an array of numbers; did you forget to call it?"
    if isinstance(value, set | frozenset):
        return "is a set, which has no order", "give a list or an array of numbers"
    if hasattr(value, "__next__"):
        return f"is a {type(value).__name__}", f"give np.array(list({argument}))"
    return f"is of type {type(value).__name__}", "give an array of numbers"


def _wrong_entry(argument: str, values: Any) -> tuple[str, str] | None:
    """Problem and remedy of the first entry that is no real number, or of unequal rows."""
    if isinstance(values, np.ndarray):
        for at in np.ndindex(values.shape):
            if not isinstance(values[at], Number) or isinstance(values[at], complex):
                if _is_number(values[at]):
                    continue
                where = f"entry {list(map(int, at))} is {_entry(values[at])}"
                return where, _without(argument) if values[at] is None else "give real numbers"
        return None
    if not isinstance(values, list | tuple):
        return None
    sizes = [np.size(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in values]
    for number, size in enumerate(sizes):
        if size != sizes[0]:
            row, first = (
                f"has {counted(s, 'number')}" if s >= 0 else "is not a list"
                for s in (size, sizes[0])
            )
            problem = f"has rows of unequal length: row {number} {row}, row 0 {first}"
            return problem, "give all rows the same length"
    return None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes)


def _check_columns(argument: str, frame: Any) -> None:
    """Raises UserError about the first column of a pandas or polars frame that is no numbers."""
    by_position: Callable[[int], Any]
    pandas = hasattr(frame, "iloc")
    if pandas:
        by_position = lambda number: frame.iloc[:, number]  # noqa: E731  names may repeat
    else:
        by_position = lambda number: frame[frame.columns[number]]  # noqa: E731
    for number, name in enumerate(frame.columns):
        column = by_position(number)
        kind, dtype = np.asarray(column).dtype.kind, str(column.dtype)
        missing = column.isnull() if hasattr(column, "isnull") else column.is_null()
        if pandas:
            encoded = f"pd.get_dummies({argument}, columns=[{str(name)!r}], dtype=float)"
        else:
            encoded = f"{argument}.to_dummies({name!r})"
        if dtype.lower().startswith(("category", "categorical", "enum")):
            problem, remedy = "is categorical", f"one-hot encode it, {encoded}"
        elif absent := int(missing.sum()):
            problem, remedy = f"has {counted(absent, 'missing value')}", _without(argument)
        elif kind in "mM":
            problem, remedy = f"holds dates or times ({dtype})", "give numbers or leave it out"
        elif kind in "OUST" and any(isinstance(each, str) for each in column):
            text = next(each for each in column if isinstance(each, str))
            problem = f"holds text, such as {_entry(text)}"
            remedy = f"leave it out, or one-hot encode it, {encoded}"
        else:
            continue
        raise UserError(f"the column {str(name)!r} {problem}", key=argument, remedy=remedy)


def _entry(value: Any) -> str:
    return shorten(repr(value.item() if isinstance(value, np.generic) else value), DUMPED)
