"""The part of a cell's specification that each of its files depends on."""

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.variables import FileKind

PARTS: dict[FileKind, type[Ensemble]] = {
    "trajectory": Ensemble,
    "theory": SolvedEnsemble,
    "metrics": Cell,
}
"""Each part is as small as possible, so that another metric retrains nothing."""
