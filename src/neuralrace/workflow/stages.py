"""The files of a cell, and what each of them is computed from."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.variables import Kind
from neuralrace.results.checksums import fingerprint, fingerprint_of
from neuralrace.results.provenance import Stage, code_sha256

STAGES: dict[Kind, Stage] = {"trajectory": "train", "theory": "solve", "metrics": "measure"}
"""The stage that writes each file of a cell."""


def specifications(cell: Cell) -> dict[Kind, Ensemble]:
    """The part of a cell's specification that fixes each of its files.

    It is as small as possible: another metric retrains nothing. No theory without solutions.
    """
    theory: dict[Kind, Ensemble] = {"theory": cell.only(SolvedEnsemble)} if cell.solutions else {}
    return {"trajectory": cell.only(Ensemble), **theory, "metrics": cell}


def code(kind: Kind, specification: Ensemble) -> str:
    """Digest of the code that writes a file of this specification."""
    return code_sha256(STAGES[kind], specification.modules)


def fingerprints(cell_id: str, cell: Cell) -> dict[Kind, str]:
    """Fingerprint that each file of a cell is to have, `paper/experiment/label`."""
    return {
        kind: fingerprint(cell_id, part.sha256(), code(kind, part))
        for kind, part in specifications(cell).items()
    }


def unmade(root: Path, cells: Mapping[str, Cell]) -> dict[str, list[Kind]]:
    """Files that are missing, or were computed from another specification or code, by cell.

    Args:
        root: the results folder.
        cells: specifications by `paper/experiment/label`.
    """
    found: dict[str, list[Kind]] = {
        cell_id: [
            kind
            for kind, planned in fingerprints(cell_id, cell).items()
            if fingerprint_of(root / cell_id / f"{kind}.nc") != planned
        ]
        for cell_id, cell in cells.items()
    }
    return {cell_id: kinds for cell_id, kinds in found.items() if kinds}
