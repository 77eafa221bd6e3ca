"""Whether results are what the workflow wrote, from the files of cells to pictures and claims."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.config.variables import REGISTRIES
from neuralrace.results.files import read_result
from neuralrace.results.cells import IDENTIFIER, named
from neuralrace.extensions.registry import FIGURES
from neuralrace.results.checksums import Checksums, recorded_checksum, fingerprint, read_checksums, checksum_path, file_sha256
from neuralrace.config.robustness import DOUBLED

PICTURES = (".png", ".pdf", ".svg")
TABLES = ("md", "json", "csv")
# Singular values are padded to the largest rank; there may be no pair that is never trained.
UNDEFINED = frozenset({"singular_values", "untrained_error", "untrained_power"})


def verify(
    root: Path,
    gallery: Path,
    report: Callable[[str], None],
    planned: Mapping[Path, str] | None = None,
) -> None:
    """Checks every file of a results folder and of its figures.

    Of each, its checksum; of result files schema, finite values, that their specification has the
    checksum which they name, that they lie where the cell that they name belongs, and that
    specification and code are those of their fingerprint; of what was computed from result files,
    that they are those that are there.

    Args:
        root: the results folder.
        gallery: the folder of its figures.
        report: takes the line that tells how many files are sound.
        planned: fingerprint that each result file should have, by path; those that are there,
            whatever they were computed from, when absent.

    Raises:
        UserError: there are no files; what is wrong in which file, a line each, and the command
            that mends it.
    """
    found = [path for path in root.rglob("*.nc") if path.stem in REGISTRIES]
    files = sorted(found) if planned is None else list(planned)
    if not files:
        raise UserError(f"{root}: no result files; name the folder that holds some")
    products = [place for place, made in _products(root, gallery) if _any(place, *made)]
    problems = {path: list(_of_file(path, root, (planned or {}).get(path))) for path in files}
    problems |= {place: list(_of_product(place, root)) for place in products}
    wrong = [f"{path}: {what}" for path, told in problems.items() for what in told]
    if wrong:
        again = " ".join(str(_output(path, gallery)) for path, told in problems.items() if told)
        advice = (
            f"To compute them again: snakemake --cores all --force {again}\n"
            "with --config settings=FILE, if these results have a file of yours. Then run what you "
            "ran: it computes what rests on them. Nothing was changed."
        )
        count = f"{len(wrong)} problem{'s' * (len(wrong) > 1)}"
        raise UserError("\n".join([count, *wrong, advice]))
    pictures = f" and {len(products)} figures and tables" if products else ""
    report(
        f"{len(files)} files{pictures} verified: checksum, schema, specification, code, inputs, "
        "finite values"
    )


def _products(root: Path, gallery: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Checksum files of all figures and tables that there may be, and the files that they are of.

    Others may lie beside them, and are nobody's business here.
    """
    judged = [root / f"{name}.{kind}" for name in ("claims", "findings") for kind in TABLES]
    yield root / "claims.sha256", judged
    for name in ("metrics.csv", "robustness.json"):
        yield checksum_path(root / name), [root / name]
    drawn = {place for place in gallery.rglob("*.sha256") if read_checksums(place)}
    for place in sorted(drawn | {gallery / f"{name}.sha256" for name in FIGURES}):
        yield place, [place.with_suffix(kind) for kind in PICTURES]


def _any(*paths: Path) -> bool:
    return any(map(os.path.lexists, paths))


def _output(path: Path, gallery: Path) -> Path:
    """The file that Snakemake computes, for a checksum file of a figure or table."""
    if path.suffix != ".sha256":
        return path
    if path.is_relative_to(gallery):
        return path.with_suffix(".png")
    return path.with_suffix("" if "." in path.stem else ".md")


def _of_product(place: Path, root: Path) -> Iterator[str]:
    """What is wrong with pictures or tables, as their checksum file says."""
    found = read_checksums(place)
    if found is None:
        yield "is missing or no checksum file, so that nobody can tell whether its files are sound"
        return
    for name, digest in found.files.items():
        path = place.parent / name
        try:
            if file_sha256(path) != digest:
                yield f"{path}: is not what was written; it was changed or damaged"
        except OSError as error:
            yield f"{path}: cannot be read ({error.strerror})"
    yield from _of_inputs(found, root)


def _of_inputs(found: Checksums, root: Path) -> Iterator[str]:
    for name, digest in found.inputs.items():
        if recorded_checksum(root / name) != digest:
            yield f"was computed from another {root / name} than there is"


def _of_file(path: Path, root: Path, planned: str | None) -> Iterator[str]:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        yield "is missing"
        return
    except OSError:  # who reads it tells why it cannot be
        pass
    found = read_checksums(checksum_path(path))
    if found is None:
        yield f"its checksum {checksum_path(path).name} is missing or damaged"
    try:
        dataset = read_result(path)
    except UserError as error:
        yield str(error).removeprefix(f"{path}: ")
        return
    attrs = dataset.attrs
    if not _belongs(path, root, tuple(str(attrs.get(part)) for part in IDENTIFIER)):
        yield f"is of {named(attrs)}, and lies in the place of another cell"
    if found is not None:
        own = fingerprint(named(attrs), attrs["spec_sha256"], attrs["code_sha256"])
        if planned not in (None, found.fingerprint):
            yield "was computed from another configuration or other code than the present ones"
        elif found.fingerprint not in ("", own):
            yield "names another cell, specification or code than its checksum file"
        # cells of other runs may lie in folders of this one
        yield from _of_inputs(found, path.parent.parent.parent.parent)
    yield from _not_finite(dataset)


def _belongs(path: Path, root: Path, place: tuple[str, ...]) -> bool:
    """Whether a file lies below `root` where the cell that it names belongs.

    That is `paper/experiment/label`, or `paper/experiment/variant/label` of a robustness run; what
    is above `root` may have any name.
    """
    parts = path.parent.relative_to(root).parts
    plain = (*parts[:-2], *parts[-1:]) if set(parts[-2:-1]) & DOUBLED.keys() else parts
    return (
        any(place[-len(ends) :] == ends for ends in (parts[-3:], plain[-3:]) if ends) or not parts
    )


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
