"""Files of a cell: the specification and code that each is computed from, and stale files."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.parts import PARTS
from neuralrace.config.variables import FileKind
from neuralrace.results.checksums import fingerprint, recorded_fingerprint
from neuralrace.results.provenance import Stage, code_sha256

STAGES: dict[FileKind, Stage] = {"trajectory": "train", "theory": "solve", "metrics": "measure"}
"""The stage that writes each file of a cell."""


def specifications(cell: Cell) -> dict[FileKind, Ensemble]:
    """The part of a cell's specification that each of its files depends on.

    A cell without solutions has no theory.
    """
    return {
        kind: cell.only(part) for kind, part in PARTS.items() if kind != "theory" or cell.solutions
    }


def code(kind: FileKind, specification: Ensemble) -> str:
    """Checksum of the code that computes a file of this specification."""
    return code_sha256(STAGES[kind], specification.modules)


def fingerprints(cell_id: str, cell: Cell) -> dict[FileKind, str]:
    """The fingerprint that each file of a cell should have.

    Args:
        cell_id: `paper/experiment/label`.
        cell: its specification.
    """
    return {
        kind: fingerprint(cell_id, part.sha256(), code(kind, part))
        for kind, part in specifications(cell).items()
    }


def stale_files(root: Path, cells: Mapping[str, Cell]) -> dict[str, list[FileKind]]:
    """Files that are missing, or were computed from another specification or code, by cell.

    Args:
        root: the results folder.
        cells: specifications by `paper/experiment/label`.
    """
    stale: dict[str, list[FileKind]] = {}
    for cell_id, cell in cells.items():
        for kind, planned in fingerprints(cell_id, cell).items():
            if recorded_fingerprint(root / cell_id / f"{kind}.nc") != planned:
                stale.setdefault(cell_id, []).append(kind)
    return stale
