"""The files of a cell, and what each of them is computed from."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.variables import FileKind
from neuralrace.results.checksums import fingerprint, recorded_fingerprint
from neuralrace.results.provenance import Stage, code_sha256

STAGES: dict[FileKind, Stage] = {"trajectory": "train", "theory": "solve", "metrics": "measure"}
"""The stage that writes each file of a cell."""


def specifications(cell: Cell) -> dict[FileKind, Ensemble]:
    """The part of a cell's specification that fixes each of its files.

    It is as small as possible: another metric retrains nothing. No theory without solutions.
    """
    theory: dict[FileKind, Ensemble] = (
        {"theory": cell.only(SolvedEnsemble)} if cell.solutions else {}
    )
    return {"trajectory": cell.only(Ensemble), **theory, "metrics": cell}


def code(kind: FileKind, specification: Ensemble) -> str:
    """Digest of the code that writes a file of this specification."""
    return code_sha256(STAGES[kind], specification.modules)


def fingerprints(cell_id: str, cell: Cell) -> dict[FileKind, str]:
    """Fingerprint that each file of a cell is to have, `paper/experiment/label`."""
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
    found: dict[str, list[FileKind]] = {
        cell_id: [
            kind
            for kind, planned in fingerprints(cell_id, cell).items()
            if recorded_fingerprint(root / cell_id / f"{kind}.nc") != planned
        ]
        for cell_id, cell in cells.items()
    }
    return {cell_id: kinds for cell_id, kinds in found.items() if kinds}
