"""Which code a stage of the workflow rests on, and what a result says about its origin."""

import hashlib
import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Literal

from neuralrace.errors import UserError
from neuralrace.registry import GROUP, packages
from neuralrace.source import imports

ROOT = Path(__file__).parent
READ: dict[Path, tuple[int, ...]] = {}
"""Source files that a digest of this process rests on, with the state that they were read in."""

Stage = Literal["train", "solve", "measure", "tabulate", "judge", "draw"]

ENTRIES: dict[Stage, tuple[str, ...]] = {
    "train": ("neuralrace.records.trajectory", "neuralrace.records.files"),
    "solve": ("neuralrace.records.theory", "neuralrace.records.files"),
    "measure": ("neuralrace.metrics.measure", "neuralrace.records.files"),
    "tabulate": ("neuralrace.analysis",),
    "judge": ("neuralrace.claims.judge", "neuralrace.claims.table"),
    "draw": ("neuralrace.figures.save",),
}
"""Modules that the job of each stage calls. A figure adds its own module to `draw`."""


def code_files(stage: Stage, more: Iterable[str] = ()) -> list[Path]:
    """Source files that a stage rests on, found by following imports, sorted.

    Those of this library and of the packages that extend it; see `neuralrace.registry`.

    Args:
        stage: whose entry modules to follow.
        more: names of modules to follow beside them, such as what a cell names.
    """
    return list(_together(frozenset([*ENTRIES[stage], *more])))


def code_sha256(stage: Stage, more: Iterable[str] = ()) -> str:
    """Hex digest over names and contents of the files that a stage rests on; see `code_files`.

    What the workflow makes is outdated when it changes, and nothing else is.
    """
    return _sha256(frozenset([*ENTRIES[stage], *more]))


def refuse_edited() -> None:
    """Refuses to go on once a source file is not as it was when its digest was taken.

    To be asked before anything is written: what was imported since may be another text than the
    digest tells of, even where that was taken back meanwhile.

    Raises:
        UserError: the library was edited; which file.
    """
    for path, state in READ.items():
        try:
            same = _state(path) == state
        except OSError:
            same = False
        if not same:
            raise UserError(
                f"{path}: was edited while this job ran; nothing was written, as nobody could tell "
                "by which code it was made. Run the same command again"
            )


def versions(*packages: str) -> str:
    """Versions of Python and of the packages that a result depends on."""
    named = [f"{package} {version(package)}" for package in ("neuralrace", "numpy", *packages)]
    return ", ".join([f"python {platform.python_version()}", *named])


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
    """Name and content of a file, for a digest."""
    root = next(root for root in _roots().values() if path.is_relative_to(root))
    READ[path] = _state(path)
    return path.relative_to(root).as_posix().encode() + path.read_bytes()


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
    roots = {GROUP: ROOT}
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
    if root is None or name == GROUP:
        return ()
    stem = root.joinpath(*names)
    paths = (path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file())
    return (*_files(name.rpartition(".")[0]), *paths)
