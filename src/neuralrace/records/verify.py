"""Whether result files are what the workflow wrote, and what a configuration asks for."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.records.files import read
from neuralrace.seal import digest_of, seal_file

# Singular values are padded to the largest rank; there may be no pair that is never trained.
UNDEFINED = frozenset({"singular_values", "untrained_error", "untrained_power"})


def verify(files: Mapping[str, str | None], report: Callable[[str], None]) -> None:
    """Checks checksum, schema, specification and finiteness of every file.

    Args:
        files: SHA-256 of the specification that each file should have, by path; None where it may
            be any.
        report: takes the line that tells how many files are sound.

    Raises:
        UserError: what is wrong in which file and how to mend it, a line each.
    """
    problems = {path: list(_problems(Path(path), spec)) for path, spec in files.items()}
    wrong = [f"{path}: {what}" for path, found in problems.items() for what in found]
    if wrong:
        advice = "Delete the files named here and run the workflow again; nothing was changed."
        raise UserError("\n".join([f"{len(wrong)} problems", *wrong, advice]))
    report(f"{len(files)} files verified: checksum, schema, specification, finite values")


def _problems(path: Path, spec_sha256: str | None) -> Iterator[str]:
    if not path.is_file():
        yield "is missing"
        return
    if digest_of(path) is None:
        yield f"its checksum {seal_file(path).name} is missing"
    try:
        dataset = read(path)
    except UserError as error:
        yield str(error).removeprefix(f"{path}: ")
        return
    if spec_sha256 not in (None, dataset.attrs["spec_sha256"]):
        yield "was made from another specification than the present configuration"
    yield from _not_finite(dataset)


def _not_finite(dataset: xr.Dataset) -> Iterator[str]:
    """Values that are not finite although no run that they belong to has diverged.

    Metrics may be undefined (NaN, for a mode without target, say) but never infinite.
    """
    healthy = dataset["diverged_at"] < 0 if "diverged_at" in dataset else True
    metrics = dataset.attrs["kind"] == "metrics"
    for name, array in dataset.data_vars.items():
        if array.dtype.kind != "f" or name in UNDEFINED:
            continue
        if "solution" in array.dims and name != "loss":  # not all give every other variable
            array = array.dropna("solution", how="all")
        bad = np.isinf(array) if metrics else ~np.isfinite(array)
        if bool((bad & healthy).any()):
            yield f"variable {name!r} has {'infinite' if metrics else 'non-finite'} values"
