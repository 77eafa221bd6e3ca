"""Which code a stage of the workflow rests on, and what a result says about its origin."""

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
SEEN: dict[Path, tuple[int, ...]] = {}
"""State of source files when this process first saw them; workers look before they import any."""

Stage = Literal[
    "train", "solve", "measure", "tabulate", "judge", "draw", "plot", "robustness", "judge_robustness"
]
"""Each has a module of its name in `neuralrace.workflow`, which its jobs call."""
RUNNER = "neuralrace.workflow.worker"
"""What calls it, and prepares the process for it."""


def code_files(stage: Stage, more: Iterable[str] = ()) -> list[Path]:
    """Source files that a stage rests on, found by following imports, sorted.

    Those of this library and of the packages that extend it; see `neuralrace.extensions.registry`.

    Args:
        stage: whose module to follow.
        more: names of modules to follow beside its own, such as what a cell names.
    """
    return list(_together(_entries(stage, more)))


def code_sha256(stage: Stage, more: Iterable[str] = ()) -> str:
    """Hex digest over names and contents of the files that a stage rests on; see `code_files`.

    What the stage computes is stale when it changes, and nothing else is.
    """
    return _sha256(_entries(stage, more))


def note_source_files() -> None:
    """Notes the state of all source files, before they are imported: see `planned`."""
    for root in _roots().values():
        SEEN.update({path: _state(path) for path in root.rglob("*.py")})


def code_guard(stage: Stage, more: Iterable[str], digest: str) -> Callable[[], None]:
    """Refuses code other than a job was planned with.

    Args:
        stage: of the job.
        more: names of modules that it rests on beside those of the stage.
        digest: `code_sha256` of them when the job was planned.

    Returns:
        A function to call before anything is written. It refuses to go on once a source file that
        the job rests on was edited since this process first saw it: what was imported may be
        another text than the digest tells of, even where the edit was taken back.

    Raises:
        UserError: the library was edited after the job was planned.
    """
    entries = _entries(stage, more)
    if _sha256(entries) != digest:
        raise UserError(
            "the library was edited after this run was planned; run the same command again"
        )

    def guard() -> None:
        for path in _together(entries):
            try:
                same = _state(path) == SEEN[path]
            except OSError:
                same = False
            if not same:
                raise UserError(
                    f"{path}: was edited while this job ran; nothing was written, as nobody could "
                    "tell by which code it was computed. Run the same command again"
                )

    return guard


def package_versions(*packages: str) -> str:
    """Versions of Python and of the packages that a result depends on."""
    named = [f"{package} {version(package)}" for package in ("neuralrace", "numpy", *packages)]
    return ", ".join([f"python {platform.python_version()}", *named])


@cache
def processor_attributes() -> dict[str, str]:
    """What sums depend on beside versions: kernels of linear algebra, and instructions.

    Other kernels and instructions sum in another order, which changes results in their last digits.
    """
    import numpy as np
    import scipy.linalg  # noqa: F401 with a BLAS of its own, which is told although nobody asked yet
    from threadpoolctl import threadpool_info

    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    known = ("internal_api", "version", "architecture")
    kernels = {" ".join(str(each[key]) for key in known if each.get(key)) for each in loaded}
    extensions = cast(dict, np.show_config(mode="dicts"))["SIMD Extensions"]
    return {
        "blas": ", ".join(sorted(kernels)) or "unknown",
        "cpu_features": " ".join([*extensions["baseline"], *extensions["found"]]) or "unknown",
    }


def _entries(stage: Stage, more: Iterable[str]) -> frozenset[str]:
    """Names of the modules that a stage begins with."""
    return frozenset([RUNNER, f"{ENTRY_POINT_GROUP}.workflow.{stage}", *more])


@cache
def _sha256(names: frozenset[str]) -> str:
    return hashlib.sha256(b"".join(map(_described, _together(names)))).hexdigest()


@cache
def _together(names: frozenset[str]) -> tuple[Path, ...]:
    """Files that modules rest on, sorted."""
    # the order of paths themselves, which compare four times as slowly
    return tuple(sorted(frozenset[Path]().union(*map(_reached, names)), key=attrgetter("parts")))


@cache
def _described(path: Path) -> bytes:
    """Name and content of a file, for a digest: without comments, where it is the library's own."""
    root = next(root for root in _roots().values() if path.is_relative_to(root))
    SEEN.setdefault(path, _state(path))
    content = without_comments(path).encode() if root == ROOT else path.read_bytes()
    return path.relative_to(root).as_posix().encode() + content


def _state(path: Path) -> tuple[int, ...]:
    """What the file system says of a file; no program can take back the time of its last change."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@cache
def _reached(name: str) -> frozenset[Path]:
    """Files that a module rests on, its own among them."""
    found: set[Path] = set()
    waiting = {*_files(name)}
    while waiting:
        found |= waiting
        waiting = {other for path in waiting for other in _imported(path)} - found
    return frozenset(found)


@cache
def _imported(path: Path) -> frozenset[Path]:
    """Files that a file imports."""
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
    """Files that importing a dotted name runs; none for names of other libraries."""
    package, *names = name.split(".")
    root = _roots().get(package)
    # the library's own __init__ is no step of any stage: it only opens results for people
    if root is None or name == ENTRY_POINT_GROUP:
        return ()
    stem = root.joinpath(*names)
    paths = (path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file())
    return (*_files(name.rpartition(".")[0]), *paths)
