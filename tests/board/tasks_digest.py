"""Digest of the benchmark's shown tasks, beside the version of the board that it belongs to.

Run this file to write `tasks.sha256` again, after the version was raised.
"""

from pathlib import Path

import yaml

from neuralrace.board.build import VERSION
from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.load import read_plan
from neuralrace.results.checksums import fingerprint

REPOSITORY = Path(__file__).parents[2]
FILE = Path(__file__).with_name("tasks.sha256")
COMMAND = f".venv/bin/python {Path(__file__).relative_to(REPOSITORY)}"
TASKS = yaml.safe_load((REPOSITORY / "config/benchmark/tasks.yaml").read_text(encoding="utf-8"))


def planned() -> dict[str, Cell]:
    """The cells of all shown tasks."""
    return dict(read_plan(TASKS, {}).cells)


def digest(cells: dict[str, Cell]) -> str:
    """The version, and a hash of everything that determines the simulations of the cells."""
    parts = (f"{name} {cell.only(Ensemble).sha256()}" for name, cell in sorted(cells.items()))
    return f"{VERSION}  {fingerprint(*parts)}\n"


if __name__ == "__main__":
    FILE.write_text(digest(planned()), encoding="utf-8")
