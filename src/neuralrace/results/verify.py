"""Verification of results: checksums, schema, provenance and finite values of every file."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.config.variables import REGISTRIES
from neuralrace.config.variants import VARIANT_SETS, is_variant
from neuralrace.errors import UserError, counted
from neuralrace.extensions.registry import FIGURES, SOLUTIONS
from neuralrace.results.cells import IDENTIFIER, cell_name
from neuralrace.results.checksums import (
    BOARD,
    PICTURES,
    TABLES,
    Checksums,
    UnreadableError,
    checksum_path,
    fingerprint,
    is_as_recorded,
    present_checksums,
    read_checksums,
    recorded_checksum,
    unreadable,
)
from neuralrace.results.files import read_result

# singular values are padded to the largest rank, and all pairs of domains may be trained
MAY_BE_UNDEFINED = frozenset(
    {"singular_values", "domain_singular_values", "untrained_error", "untrained_power"}
)


def verify(
    root: Path,
    gallery: Path,
    report: Callable[[str], None],
    planned: Mapping[Path, str] | None = None,
) -> None:
    """Checks every file of a results folder and of its figures.

    Every file must match its checksum. A result file must follow the schema, have finite values,
    lie in the folder of its cell, and match its specification, code and fingerprint. The inputs of
    every file must be the present result files.

    Args:
        root: the results folder.
        gallery: the folder of its figures.
        report: function that takes a line about the verified files.
        planned: fingerprint that each result file should have, by path; the existing files with any
            fingerprint when absent.

    Raises:
        UserError: there are no files, or files have problems. The message has a line for each
            problem, and the command that computes these files again.
    """
    existing = [path for path in root.rglob("*.nc") if path.stem in REGISTRIES]
    files = sorted(existing) if planned is None else list(planned)
    if not files:
        raise UserError("no result files", file=root, remedy="name the folder that holds some")
    outputs = [path for path, covered in _outputs(root, gallery) if _any_exists(path, *covered)]
    problems = {
        path: list(_problems_of_result(path, root, (planned or {}).get(path))) for path in files
    }
    problems |= {path: list(_problems_of_output(path, root)) for path in outputs}
    lines = [str(problem) for group in problems.values() for problem in group]
    if lines:
        count = counted(len(lines), "problem")
        # a file that cannot be read may be intact
        targets = [
            str(_snakemake_target(path, gallery))
            for path, group in problems.items()
            if any(not isinstance(problem, UnreadableError) for problem in group)
        ]
        recompute = [
            f"To compute them again: snakemake --cores all --force {' '.join(targets)}",
            "with --config settings=FILE, if you used one for these results. Then run your usual "
            "command, which computes all that depends on them. Nothing was changed.",
        ]
        raise UserError("\n".join([count, *lines, *(recompute if targets else ())]))
    figures = f" and {len(outputs)} of figures and tables" if outputs else ""
    report(
        f"{counted(len(files), 'file')} of cells{figures} verified: checksum, schema, "
        "specification, code, inputs, finite values"
    )


def _outputs(root: Path, gallery: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Checksum file of each possible figure and table, and the files that it covers.

    Other files in these folders are ignored, as the user may have put them there.
    """
    yield root / "claims.sha256", [root / name for name in TABLES]
    yield checksum_path(root / BOARD[0]), [root / name for name in BOARD]
    for name in ("metrics.csv", *(f"{group}.json" for group in VARIANT_SETS)):
        yield checksum_path(root / name), [root / name]
    drawn = {path for path in gallery.rglob("*.sha256") if read_checksums(path)}
    for path in sorted(drawn | {gallery / f"{name}.sha256" for name in FIGURES}):
        yield path, [path.with_suffix(kind) for kind in PICTURES]


def _any_exists(*paths: Path) -> bool:
    return any(map(os.path.lexists, paths))


def _snakemake_target(path: Path, gallery: Path) -> Path:
    """The file to ask Snakemake for, for a result file or the checksum file of an output."""
    if path.suffix != ".sha256":
        return path
    if path.is_relative_to(gallery):
        return path.with_suffix(".png")
    return path.with_suffix("" if "." in path.stem else ".md")


def _problems_of_output(checksum_file: Path, root: Path) -> Iterator[UserError]:
    """Problems of the pictures or tables of a checksum file."""
    checksums = present_checksums(checksum_file)
    if checksums is None:
        problem = "is missing or no checksum file, so that its files cannot be verified"
        yield UserError(problem, file=checksum_file)
        return
    for path in (checksum_file.parent / name for name in checksums.files):
        try:
            if is_as_recorded(path, checksum_file) is False:
                yield UserError("is not what was written; it was changed or damaged", file=path)
        except OSError as error:
            yield unreadable(path, error)
    yield from _problems_of_inputs(checksum_file, checksums, root)


def _problems_of_inputs(path: Path, checksums: Checksums, root: Path) -> Iterator[UserError]:
    for name, digest in checksums.inputs.items():
        if recorded_checksum(root / name) != digest:
            yield UserError(f"was computed from another {root / name} than there is", file=path)


def _problems_of_result(path: Path, root: Path, planned: str | None) -> Iterator[UserError]:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        yield UserError("is missing", file=path)
        return
    except OSError:  # read_result reports it with the reason
        pass
    checksums = present_checksums(checksum_path(path))
    if checksums is None:
        yield UserError(f"its checksum {checksum_path(path).name} is missing or damaged", file=path)
    try:
        dataset = read_result(path)
    except UserError as error:
        yield error
        return
    attrs = dataset.attrs
    if not _in_its_folder(path, root, tuple(str(attrs.get(part)) for part in IDENTIFIER)):
        yield UserError(
            f"is of {cell_name(attrs)}, and lies in the place of another cell", file=path
        )
    if checksums is not None:
        own = fingerprint(cell_name(attrs), attrs["spec_sha256"], attrs["code_sha256"])
        if planned not in (None, checksums.fingerprint):
            problem = "was computed from another configuration or other code than the present ones"
            yield UserError(problem, file=path)
        elif checksums.fingerprint not in ("", own):
            problem = "names another cell, specification or code than its checksum file"
            yield UserError(problem, file=path)
        # not `root`: variants of cells have their inputs in a deeper results folder
        yield from _problems_of_inputs(path, checksums, path.parent.parent.parent.parent)
    for problem in _values_not_finite(dataset):
        yield UserError(problem, file=path)


def _in_its_folder(path: Path, root: Path, cell: tuple[str, ...]) -> bool:
    """Whether the folders of a file below `root` are those of its cell.

    They are `paper/experiment/label`, or `paper/experiment/variant/label` for a variant.
    Folders above `root` may have any name.
    """
    parts = path.parent.relative_to(root).parts
    plain = (*parts[:-2], *parts[-1:]) if any(map(is_variant, parts[-2:-1])) else parts
    return any(cell[-len(ends) :] == ends for ends in (parts[-3:], plain[-3:]) if ends) or not parts


def _values_not_finite(dataset: xr.Dataset) -> Iterator[str]:
    """Variables with values that are not finite in runs that did not diverge.

    Metrics may be undefined (NaN, as for a mode without target) but never infinite.
    """
    healthy = dataset["diverged_at"] < 0 if "diverged_at" in dataset else True
    metrics = dataset.attrs["kind"] == "metrics"
    for name, array in dataset.data_vars.items():
        if array.dtype.kind != "f" or name in MAY_BE_UNDEFINED:
            continue
        if "solution" in array.dims:
            # a solution may lack any variable, but not a loss that it declares
            array = array.isel(
                solution=[_declares(str(s), str(name)) for s in array["solution"].values]
            )
            array = array if name == "loss" else array.dropna("solution", how="all")
        bad = np.isinf(array) if metrics else ~np.isfinite(array)
        if bool((bad & healthy).any()):
            yield f"variable {name!r} has {'infinite' if metrics else 'non-finite'} values"


def _declares(solution: str, variable: str) -> bool:
    """Whether a solution declares a variable; one that is not installed may declare any."""
    return solution not in SOLUTIONS or variable in SOLUTIONS[solution].declaration.variables
