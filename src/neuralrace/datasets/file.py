"""Samples from the user's own file: NumPy, NetCDF or CSV."""

import csv
import io
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from neuralrace.datasets.base import Data, Dataset
from neuralrace.datasets.content import refuse_array
from neuralrace.datasets.held_out import check_keys, with_test
from neuralrace.datasets.user_file import (
    ARRAY_LISTERS,
    ARRAY_READERS,
    Arrays,
    Lister,
    Reader,
    UserFile,
    readable,
    suffix_of,
)
from neuralrace.errors import UserError, listed, shorten
from neuralrace.extensions.model import is_absent

LARGEST = 1e100
"""Largest absolute value that is read: correlations of larger values can overflow."""
NAMES = ("x", "y", "context")
"""Arrays of a file whose arrays the user does not name."""
NAMED = re.compile(r"(x|y)(?=[\W\d_]|$)|context$", re.IGNORECASE)
"""Names of the columns of inputs, targets and contexts, but not `year` or `xmin`."""
TABLES = (".csv", ".tsv")
"""Suffixes of tables."""
DELIMITERS = (",", ";", "\t")
"""Characters between columns."""


def _table(path: str, content: bytes) -> tuple[list[str], Iterator[list[str]], bool]:
    """Names of the columns, entries of each row, and whether numbers may have decimal commas."""
    with readable(path, "is no table", "name the columns in the first line"):
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        first = next((line for line in text if line.strip()), "")
        fields = {each: next(csv.reader([first], delimiter=each), []) for each in DELIMITERS}
        delimiter = max(DELIMITERS, key=lambda each: len(fields[each]))
        text.seek(0)
        lines = (line for line in csv.reader(text, delimiter=delimiter) if line)
        header = [name.strip() for name in next(lines, [])]
        if not header:
            raise ValueError("it is empty")
    if all(_is_number(name) for name in header):
        remedy = "add a first line with their names, such as x1,x2,y"
        raise UserError(
            "has numbers in its first line, not names of columns", file=path, remedy=remedy
        )
    return header, lines, delimiter != ","


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(path: str, header: Sequence[str]) -> dict[str, list[int]]:
    """Columns of x, y and context by the rule for tables whose columns the user does not name."""
    columns: dict[str, list[int]] = {name: [] for name in NAMES}
    for at, column in enumerate(header):
        if found := NAMED.match(column):
            columns[found[0].lower()].append(at)
        elif at or column:  # pandas writes its index as a first column without a name
            raise UserError(
                "is no column of x, y or context",
                file=path,
                value=column,
                remedy=f"choose columns by name, such as dataset: {{name: file, path: {path}, x: "
                f"[{shorten(header[0] or 'a', 40)}], y: [{shorten(column, 40)}]}}; the file has "
                f"{listed(header)}",
            )
    return columns


def _read_csv(path: str, content: bytes, names: Sequence[str]) -> Arrays:
    """Columns of a table; for `NAMES`, the columns of x, y and context by the rule."""
    header, lines, decimal_comma = _table(path, content)
    if names is NAMES:
        columns = _columns(path, header)
    else:
        columns = {name: [at for at, each in enumerate(header) if each == name] for name in names}
    chosen = sorted({at for places in columns.values() for at in places})
    numbers = array("d")  # a list of lists takes ten times the memory
    with readable(path, "is no table", "use numbers, separated by commas"):
        for row, line in enumerate(lines):
            if len(line) != len(header):
                raise UserError(
                    f"row {row} has {len(line)} entries, and the first line names {len(header)} "
                    "columns",
                    file=path,
                    remedy="use one entry for each column",
                )
            refuse_array(path, "table", np.dtype(float), (row, len(chosen)))
            for at in chosen:
                entry = line[at].replace(",", ".") if decimal_comma else line[at]
                try:
                    numbers.append(float(entry))
                except ValueError as error:
                    raise _no_number(path, row, header[at], line[at]) from error
    rows = np.frombuffer(numbers).reshape(-1, len(chosen))
    arrays = {
        name: rows[:, [chosen.index(at) for at in places]]
        for name, places in columns.items()
        if places
    }
    if len(columns.get("context", ())) == 1:
        arrays["context"] = arrays["context"][:, 0]
    return arrays


def _no_number(path: str, row: int, column: str, entry: str) -> UserError:
    where = f"row {row}, column {shorten(column, 40)!r}"
    if not entry.strip():
        return UserError(f"{where} is empty", file=path, remedy="fill it in, or leave the row out")
    return UserError(
        f"{where} is {shorten(entry, 80)!r}, which is no number",
        file=path,
        remedy="use numbers; for classes, a column for each with 1 or 0",
    )


def _list_csv(path: str, content: bytes) -> Sequence[str]:
    return _table(path, content)[0]


def _several(value: Any) -> Any:
    """A name as one of several, and lists as tuples: after `_add_checksum`, only these are."""
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


Names = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_several),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A name, or several."""


class File(UserFile, Dataset):
    """Samples from your own file: NumPy arrays (`.npz`), NetCDF (`.nc`) or a table (`.csv`).

    The arrays are `x` (sample, input), `y` (sample, output) and optionally `context` (sample),
    which numbers the context of each sample from 0 without gaps. If they have other names, the keys
    `x`, `y` and `context` name them.

    The first line of a table names its columns, and every other line is a sample. Columns are
    separated by commas, semicolons or tabs; with the last two, numbers may have decimal commas.
    Columns `x`, `x1`, `x_size` or `x size` are inputs, columns of such names with `y` are targets,
    and a column `context` is optional. Tables with other columns need the keys `x` and `y`; columns
    that these do not name are ignored.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "my.npz", "checksum": "0" * 64}
    readers: ClassVar[Mapping[str, Reader]] = {
        **ARRAY_READERS,
        **dict.fromkeys(TABLES, _read_csv),
    }
    listers: ClassVar[Mapping[str, Lister]] = {
        **ARRAY_LISTERS,
        **dict.fromkeys(TABLES, _list_csv),
    }
    name: Literal["file"]
    path: str
    """Path of the file; `.npz`, `.nc`, `.csv` or, for columns that are separated by tabs,
    `.tsv`."""
    x: Names | None = None
    """Name of the array of inputs, or names of columns, such as `[height, weight]`."""
    y: Names | None = None
    """Name of the array of targets, or names of columns."""
    context: str | None = None
    """Name of the array or column of contexts."""
    x_test: Names | None = Field(None, exclude_if=is_absent)
    """Name of the array of inputs of test samples, which are not trained on; the observable
    `test_loss` is their loss."""
    y_test: Names | None = Field(None, exclude_if=is_absent)
    """Name of the array of targets of test samples."""
    test: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, exclude_if=is_absent)
    """Share of the samples that become test samples in place of `x_test`, the same ones in all
    runs."""

    @model_validator(mode="after")
    def _test_fits(self) -> "File":
        check_keys(self.x_test, self.y_test, self.test)
        return self

    @property
    def has_test(self) -> bool:
        """See `Dataset.has_test`."""
        return self.x_test is not None or self.test is not None

    @property
    def contexts(self) -> Int[np.ndarray, " sample"] | None:
        """Context of each sample; None if the file has none.

        Raises:
            UserError: see `load`.
        """
        return self.load().contexts

    def load(self) -> Data:
        """The arrays, read-only.

        Raises:
            UserError: the file is missing, has another checksum, or cannot be read; or an array is
                missing, is too large, has another shape, or holds values that are not finite.
        """
        return _data(self)  # pyright: ignore[reportArgumentType]  frozen models have a hash

    def describe(self) -> str:
        """See `Dataset.describe`: the arrays or columns of `x` and `y`, and those not read."""
        if self.given is not None:
            return ""
        names, (inputs, targets, context) = self.names(), self.chosen
        if suffix_of(self.path) in TABLES and not self.named:
            columns = _columns(self.path, names)
            inputs, targets = ([names[at] for at in columns[each]] for each in ("x", "y"))
        contexts = [context] * (context in names)
        parts = {"x": inputs, "y": targets, "context": contexts}
        parts |= {"x_test": self.x_test or (), "y_test": self.y_test or ()}
        read = {name for part in parts.values() for name in part}
        unused = [name for name in names if name and name not in read]
        shown = (f"{key}: {listed(of)}" for key, of in {**parts, "not read": unused}.items() if of)
        return f"{self.path}, {'; '.join(shown)}"

    @property
    def named(self) -> bool:
        """Whether the user names any array or column."""
        return bool(self.x or self.y or self.context or self.x_test)

    @property
    def chosen(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Names of the arrays or columns of inputs, targets and contexts."""
        return self.x or ("x",), self.y or ("y",), self.context or "context"


@lru_cache(maxsize=1)  # planning reads the sizes once for every cell
def _data(file: File) -> Data:
    path, (inputs, targets, context) = file.path, file.chosen
    tests = (*(file.x_test or ()), *(file.y_test or ()))
    arrays = file.arrays((*inputs, *targets, context, *tests) if file.named else NAMES)
    required = [*inputs, *targets, *[context] * (file.context is not None), *tests]
    for name in required:
        if name not in arrays:
            raise UserError(
                f"is missing; the file has {listed(file.names())}",
                file=path,
                key=name,
                remedy="name the arrays or columns by the keys x and y of the dataset",
            )
    x = _joined(path, inputs, "input", arrays)
    y = _joined(path, targets, "output", arrays)
    if len(x) != len(y):
        raise UserError(
            f"{len(y)} rows, and x has {len(x)}",
            file=path,
            key="y",
            remedy="use one row of x and one row of y for each sample",
        )
    contexts = _contexts(path, arrays[context], len(x)) if context in arrays else None
    test = None
    if file.x_test and file.y_test:
        test = (
            _joined(path, file.x_test, "input", arrays),
            _joined(path, file.y_test, "output", arrays),
            None,
        )
    return with_test(Data(x=x, y=y, contexts=contexts), test, file.test)


def _joined(
    path: str, names: Sequence[str], unit: str, arrays: Arrays
) -> Float[np.ndarray, "sample unit"]:
    """Arrays side by side; where several are named, each may be a single column."""
    parts = []
    for name in names:
        part = arrays[name]
        if part.ndim == 1 and (len(names) > 1 or (unit == "output" and part.dtype.kind == "f")):
            part = part[:, None]
        parts.append(_matrix(path, name, unit, part))
    if len({len(part) for part in parts}) > 1:
        rows = ", ".join(f"{name} {len(part)}" for name, part in zip(names, parts, strict=True))
        remedy = "use arrays with one row for each sample"
        raise UserError(f"differ in rows: {rows}", file=path, key=unit, remedy=remedy)
    joined = np.hstack(parts) if len(parts) > 1 else parts[0]
    joined.flags.writeable = False
    return joined


def _matrix(path: str, name: str, unit: str, array: np.ndarray) -> Float[np.ndarray, "sample unit"]:
    refuse_array(path, name, array.dtype, array.shape)
    if array.ndim != 2 or not array.size:
        problem, remedy = (
            f"has the shape {array.shape}",
            f"use (sample, {unit}), without empty axes",
        )
        if unit == "output" and array.ndim == 1 and array.dtype.kind in "iu":
            remedy += "; for classes, a column for each with 1 or 0"
        raise UserError(problem, file=path, key=name, remedy=remedy)
    with np.errstate(over="ignore"):  # longdouble can exceed the range of float64
        matrix = array.astype(np.float64, copy=False)
    for problem, limit, remedy in (
        ("is not finite", np.finfo(float).max, "correct it or leave the sample out"),
        (f"has a value above {LARGEST:.0e}", LARGEST, "use other units"),
    ):
        # without a copy of the matrix, and false for NaN
        if not -limit <= matrix.min() <= matrix.max() <= limit:
            row = (np.abs(matrix) <= limit).all(axis=1).argmin()
            problem = f"row {row} {problem}"
            raise UserError(problem, file=path, key=name, remedy=remedy)
    matrix.flags.writeable = False
    return matrix


def _contexts(path: str, array: np.ndarray, samples: int) -> Int[np.ndarray, " sample"]:
    with np.errstate(invalid="ignore"):
        numbers = array.astype(np.int64) if array.dtype.kind in "fiu" else array
    if array.shape != (samples,) or numbers is array or (numbers != array).any():
        raise UserError(
            f"has type {array.dtype} and shape {array.shape}",
            file=path,
            key="context",
            remedy=f"use one whole number for each sample, shape ({samples},)",
        )
    distinct = np.unique(numbers)
    if not np.array_equal(distinct, np.arange(len(distinct))):
        raise UserError(
            f"has the numbers {shorten(', '.join(map(str, distinct)), 80)}",
            file=path,
            key="context",
            remedy="number contexts from 0 without gaps",
        )
    return numbers
