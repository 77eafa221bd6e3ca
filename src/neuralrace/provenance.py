"""Which code a stage of the workflow rests on, and what a result says about its origin."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from neuralrace.source import imports

ROOT = Path(__file__).parent

Stage = Literal["train", "solve", "measure", "judge", "draw"]

ENTRIES: dict[Stage, tuple[str, ...]] = {
    "train": ("neuralrace.records.trajectory", "neuralrace.records.files"),
    "solve": ("neuralrace.records.theory", "neuralrace.records.files"),
    "measure": ("neuralrace.metrics.measure", "neuralrace.records.files"),
    "judge": ("neuralrace.claims.judge", "neuralrace.claims.table"),
    "draw": ("neuralrace.figures.save",),
}
"""Modules that the job of each stage calls. A figure adds its own module to `draw`."""


def code_files(stage: Stage, *more: str) -> list[Path]:
    """Library files that a stage rests on, found by following imports, sorted.

    Args:
        stage: whose entry modules to follow.
        more: names of modules to follow beside them.
    """
    found: set[Path] = set()
    waiting = [*ENTRIES[stage], *more]
    while waiting:
        for path in _files(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting += imports(path)
    return sorted(found)


def code_sha256(stage: Stage, *more: str) -> str:
    """Hex digest over names and contents of the files that a stage rests on; see `code_files`.

    The workflow reruns a stage when it changes, and no other stage.
    """
    digest = hashlib.sha256()
    for path in code_files(stage, *more):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def versions(*packages: str) -> str:
    """Versions of Python and of the packages that a result depends on."""
    named = [f"{package} {version(package)}" for package in ("neuralrace", "numpy", *packages)]
    return ", ".join([f"python {platform.python_version()}", *named])


def _files(name: str) -> list[Path]:
    """Files that importing a dotted name of the library runs; none for other names."""
    package, *names = name.split(".")
    if package != ROOT.name:
        return []
    # the package's own __init__ is no step of any stage: it only opens results for people
    stems = [ROOT.joinpath(*names[: depth + 1]) for depth in range(len(names))]
    paths = [path for stem in stems for path in (stem / "__init__.py", stem.with_suffix(".py"))]
    return [path for path in paths if path.is_file()]
