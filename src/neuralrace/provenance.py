"""Which code a stage of the workflow rests on, and what a result says about its origin."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parent

Stage = Literal["train", "solve", "measure", "judge", "draw"]

_DEFINITIONS = (
    "base.py",
    "errors.py",
    "spec.py",
    "datasets",
    "models/__init__.py",
    "models/initialisation.py",
)
_RECORDS = ("provenance.py", "records")
SCOPES: dict[Stage, tuple[str, ...]] = {
    "train": (*_DEFINITIONS, "models", "training", *_RECORDS),
    "solve": (*_DEFINITIONS, "theory", *_RECORDS),
    "measure": (*_DEFINITIONS, "theory", "metrics", *_RECORDS),
    "judge": ("base.py", "errors.py", "claims", *_RECORDS),
    "draw": ("errors.py", "figures/results.py", "figures/save.py", "figures/style.py", *_RECORDS),
}
"""Files and folders of the library that each stage reads: the workflow reruns a stage when one of
them changes, and no other stage."""


def code_files(stage: Stage, *more: str) -> list[Path]:
    """Library files in the scope of a stage, sorted; `more` names files beside its scope."""
    paths: set[Path] = set()
    for entry in (*SCOPES[stage], *more):
        path = ROOT / entry
        paths.update(path.rglob("*.py") if path.is_dir() else [path])
    return sorted(paths)


def code_sha256(stage: Stage) -> str:
    """Hex digest over names and contents of the files in a stage's scope."""
    digest = hashlib.sha256()
    for path in code_files(stage):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def versions(*packages: str) -> str:
    """Versions of Python and of the packages that a result depends on."""
    named = [f"{package} {version(package)}" for package in ("neuralrace", "numpy", *packages)]
    return ", ".join([f"python {platform.python_version()}", *named])
