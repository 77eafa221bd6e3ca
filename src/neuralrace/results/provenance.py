"""Provenance: digests of the code behind each stage of the workflow, and versions of packages."""

import hashlib
import os
import platform
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Literal, cast

from neuralrace.errors import UserError
from neuralrace.extensions.registry import ENTRY_POINT_GROUP, packages
from neuralrace.extensions.source import imports, without_comments

ROOT = Path(__file__).parents[1]
SOURCE_STATES: dict[Path, tuple[int, ...]] = {}
"""State of each source file when this process first read it; workers note it before imports."""

Stage = Literal[
    "train",
    "solve",
    "measure",
    "tabulate",
    "judge",
    "draw",
    "plot",
    "board",
    "draw_board",
    "variants",
    "judge_variants",
]
"""Each stage is a module of that name in `neuralrace.workflow`, which its jobs call."""
RUNNER = "neuralrace.workflow.worker"
"""The module that prepares the process and calls the stage."""


def code_files(stage: Stage, more: Iterable[str] = ()) -> list[Path]:
    """Source files that a stage depends on, found by following imports, sorted.

    They belong to this library and the packages that extend it; see
    `neuralrace.extensions.registry`.

    Args:
        stage: the stage whose module is followed.
        more: names of further modules to follow, such as the extensions that a cell names.
    """
    return list(_together(_entries(stage, more)))


def code_sha256(stage: Stage, more: Iterable[str] = ()) -> str:
    """Hex digest of the names and contents of `code_files`.

    Outputs of the stage are stale if it changes. Comments and blank lines of this library do not
    count.
    """
    return _sha256(_entries(stage, more))


def note_source_files() -> None:
    """Records the state of all source files before they are imported, for `code_guard`."""
    for root in _roots().values():
        SOURCE_STATES.update({path: _state(path) for path in root.rglob("*.py")})


def code_guard(stage: Stage, more: Iterable[str], digest: str) -> Callable[[], None]:
    """Checks that the code is still the code that a job was planned with.

    Args:
        stage: the stage of the job.
        more: names of further modules that the job depends on.
        digest: `code_sha256` of them when the job was planned.

    Returns:
        A function to call before anything is written. It raises UserError if a source file of the
        job was edited since this process first read it. Even if the edit was reverted, the imported
        code may differ from the digest.

    Raises:
        UserError: the library was edited after the job was planned.
    """
    entries = _entries(stage, more)
    again = "run the same command again"
    if _sha256(entries) != digest:
        raise UserError("the library was edited after this run was planned", remedy=again)

    def guard() -> None:
        for path in _together(entries):
            try:
                same = _state(path) == SOURCE_STATES[path]
            except OSError:
                same = False
            if not same:
                raise UserError(
                    "was edited while this job ran, so that the code of its results would be "
                    "unknown; nothing was written",
                    file=path,
                    remedy=again,
                )

    return guard


@cache  # reading the metadata of a package takes milliseconds
def package_versions(*packages: str) -> str:
    """Versions of Python, neuralrace, NumPy and further packages, as one line."""
    versions = [f"{package} {version(package)}" for package in ("neuralrace", "numpy", *packages)]
    return ", ".join([f"python {platform.python_version()}", *versions])


@cache
def processor_attributes() -> dict[str, str]:
    """Linear algebra kernels and processor instructions in use.

    They decide the order of sums, which changes results in their last digits.
    """
    import numpy as np
    import scipy.linalg  # noqa: F401 threadpool_info lists only loaded libraries, as SciPy's BLAS
    from threadpoolctl import threadpool_info

    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    keys = ("internal_api", "version", "architecture")
    kernels = {" ".join(str(blas[key]) for key in keys if blas.get(key)) for blas in loaded}
    extensions = cast(dict, np.show_config(mode="dicts"))["SIMD Extensions"]
    return {
        "blas": ", ".join(sorted(kernels)) or "unknown",
        "cpu_features": " ".join([*extensions["baseline"], *extensions["found"]]) or "unknown",
    }


def _entries(stage: Stage, more: Iterable[str]) -> frozenset[str]:
    return frozenset([RUNNER, f"{ENTRY_POINT_GROUP}.workflow.{stage}", *more])


@cache
def _sha256(names: frozenset[str]) -> str:
    return hashlib.sha256(b"".join(map(_described, _together(names)))).hexdigest()


@cache
def _together(names: frozenset[str]) -> tuple[Path, ...]:
    """Files that modules depend on, sorted."""
    # `parts` give the same order as the paths themselves, which compare four times as slowly
    return tuple(sorted(frozenset[Path]().union(*map(_reached, names)), key=attrgetter("parts")))


@cache
def _described(path: Path) -> bytes:
    """Name and content of a file, for a digest; without comments if it belongs to this library."""
    root = next(root for root in _roots().values() if path.is_relative_to(root))
    SOURCE_STATES.setdefault(path, _state(path))
    content = without_comments(path).encode() if root == ROOT else path.read_bytes()
    return path.relative_to(root).as_posix().encode() + content


def _state(path: Path) -> tuple[int, ...]:
    # programs can reset the modification time (mtime), but not the time of the last change (ctime)
    stat = os.stat(path)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@cache
def _reached(name: str) -> frozenset[Path]:
    """Files that a module depends on, including its own."""
    reached: set[Path] = set()
    new = {*_files(name)}
    while new:
        reached |= new
        new = {other for path in new for other in _imported(path)} - reached
    return frozenset(reached)


@cache
def _imported(path: Path) -> frozenset[Path]:
    return frozenset(other for name in imports(path) for other in _files(name))


@cache
def _roots() -> dict[str, Path]:
    """Folders of this library and of the packages that extend it, by top-level name."""
    roots = {ENTRY_POINT_GROUP: ROOT}
    for name in {package.partition(".")[0] for package in packages()}:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            roots[name] = Path(next(iter(spec.submodule_search_locations)))
    return roots


@cache
def _files(name: str) -> tuple[Path, ...]:
    """Files that run when a dotted name is imported; none for other libraries."""
    package, *names = name.split(".")
    root = _roots().get(package)
    # the library's own __init__ only offers functions to users, and no stage depends on it
    if root is None or name == ENTRY_POINT_GROUP:
        return ()
    stem = root.joinpath(*names)
    paths = (path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file())
    return (*_files(name.rpartition(".")[0]), *paths)
