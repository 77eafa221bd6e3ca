"""A board as JSON, without the scores of single runs.

The board of a release is `config/benchmark/board.json`; the site and `neuralrace theories` show it.

    python -m neuralrace.board.stored results config/benchmark/board.json COMMIT
"""

import json
import sys
from collections.abc import Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from neuralrace.board.build import STATISTICS, SUMMARY, all_tasks, in_range, tasks_of
from neuralrace.claims.judge import FindingRow
from neuralrace.claims.table import read_findings
from neuralrace.errors import UserError
from neuralrace.results.atomic import write_text
from neuralrace.results.checksums import BOARD

DIGITS = 4
"""Significant digits of stored numbers."""
TASK_ATTRIBUTES = ("axis", "family", "held_out", "spec_sha256")


def store(results: Path, path: Path, commit: str) -> None:
    """Writes the board of a results folder, and what was found.

    Args:
        results: the results folder.
        path: of the JSON file.
        commit: of the code that made it.

    Raises:
        UserError: there is no board, or the file cannot be written.
    """
    board = xr.load_datatree(results / BOARD[0])
    findings = [row.model_dump(mode="json") for row in read_findings(results / BOARD[-1])]
    tasks = {}
    for name in tasks_of(board):
        task, summary = board[name].to_dataset(), board[SUMMARY].to_dataset().sel(task=name)
        entries = {}
        for entry in map(str, task["entry"].values):
            scores = {
                score: _numbers(summary[score].sel(entry=entry).values)
                for score in map(str, summary.data_vars)
                if bool(summary[score].sel(entry=entry).notnull().any())
            }
            holds = [_numbers(row) for row in task["holds"].sel(entry=entry).values]
            entries[entry] = {"holds": holds, "scores": scores}
        attrs = {key: task.attrs[key] for key in TASK_ATTRIBUTES}
        tasks[name] = attrs | {
            "held_out": int(attrs["held_out"]),
            "value": task["value"].values.tolist(),
            "init_scale": task["init_scale"].values.tolist(),
            "seeds": task.sizes["seed"],
            "entries": entries,
        }
    content = {**board.attrs, "commit": commit, "tasks": tasks, "findings": findings}
    write_text(json.dumps(content, indent=1) + "\n", path)


def stored_board(path: Path) -> xr.DataTree:
    """Reads a board; its tasks have no scores of single runs.

    Raises:
        UserError: there is no such file, or it is no board.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        tasks, _ = content.pop("tasks"), content.pop("findings")
        nodes = {name: _task(task) for name, task in tasks.items()}
        summaries = {name: _summary(task["entries"]) for name, task in tasks.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "`make board` writes it"
        raise UserError(f"is no board ({error})", file=path, remedy=remedy) from error
    tree = xr.DataTree.from_dict({SUMMARY: all_tasks(summaries), **nodes})
    tree.attrs = content
    return tree


def stored_findings(path: Path) -> list[FindingRow]:
    """Reads what was found on a stored board.

    Raises:
        UserError: as `stored_board`.
    """
    stored_board(path)
    rows = json.loads(path.read_text(encoding="utf-8"))["findings"]
    return [FindingRow.model_validate_json(json.dumps(row)) for row in rows]


def _task(task: Mapping[str, Any]) -> xr.Dataset:
    entries = task["entries"]
    holds = np.array([[_floats(row) for row in entry["holds"]] for entry in entries.values()])
    coords = {"entry": list(entries), "value": task["value"], "init_scale": task["init_scale"]}
    seeds = {"seed": list(range(task["seeds"]))}
    held = {"holds": (("entry", "value", "init_scale"), holds)}
    return xr.Dataset(held, coords | seeds, {key: task[key] for key in TASK_ATTRIBUTES})


def _summary(entries: Mapping[str, Any]) -> xr.Dataset:
    names = dict.fromkeys(score for entry in entries.values() for score in entry["scores"])
    scores = {
        name: (
            ("entry", "statistic"),
            np.array([_floats(e["scores"].get(name, [None] * 3)) for e in entries.values()]),
        )
        for name in names
    }
    summary = xr.Dataset(scores, {"entry": list(entries), "statistic": list(STATISTICS)})
    return in_range(summary)  # older boards have whole intervals


def _numbers(values: np.ndarray) -> list[float | None]:
    """Rounded numbers; None for NaN, which JSON does not know."""
    return [None if isnan(value) else float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _floats(values: Sequence[float | None]) -> list[float]:
    return [nan if value is None else value for value in values]


if __name__ == "__main__":
    folder, target, version = sys.argv[1:]
    store(Path(folder), Path(target), version)
