"""Where a cell stands in a sweep."""

from neuralrace.results.cells import CellResults


def smallest(cell: CellResults) -> int:
    """Number of the smallest init scale of a cell."""
    return int(cell.trajectory["init_scale"].values.argmin())


def learning_rate(cell: CellResults) -> float:
    """The learning rate of a cell."""
    return cell.spec.training.learning_rate
