"""Core-seconds of entries and of simulation, from the records of the jobs.

They are no part of the board: a time is another one at each run.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SIMULATION = "simulation"


def core_seconds(results: Path, cells: Iterable[str]) -> dict[str, float]:
    """Core-seconds over all cells: of simulation, then of each solution, costliest first.

    Args:
        results: the results folder.
        cells: identifiers `paper/experiment/label`; cells without a record of jobs count as 0.
    """
    spent: Counter[str] = Counter()
    for cell in cells:
        for job in ("train", "solve"):
            path = results / "logs" / cell / f"{job}.json"
            for stage in json.loads(path.read_text())["stages"] if path.is_file() else ():
                if stage["stage"] in ("train", "compile") and job == "train":
                    spent[SIMULATION] += stage["core_seconds"]
                elif solution := stage.get("solution"):
                    spent[solution] += stage["core_seconds"]
    simulation = spent.pop(SIMULATION, 0.0)
    return {SIMULATION: simulation, **dict(spent.most_common())}
