"""Cells of three small tasks, trained, solved and scored once for the tests of this folder."""

import pytest
from small_tasks import TASKS, finished, planned

from neuralrace.board.build import board


@pytest.fixture(scope="session")
def cells():
    """Results of the cells of `TASKS`, by identifier."""
    return {name: finished(name, cell) for name, cell in planned(TASKS).items()}


@pytest.fixture(scope="session")
def small_board(cells):
    """Their board."""
    return board(cells.values())
