"""The board as text: Markdown, lines for the terminal, and a table of numbers."""

from collections.abc import Collection, Iterator, Sequence
from math import exp
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from neuralrace.board.build import BASELINES, GOOD, STATISTICS, SUMMARY, tasks_of
from neuralrace.claims.judge import FindingRow
from neuralrace.claims.pages import READING, Links, findings_sections

COLUMNS = {
    "holds_share": "holds at",
    "loss_error": "loss",
    "loss_shape_error": "shape",
    "halfway_time_log_ratio": "half time",
    "final_loss_error": "final loss",
    "mode_error": "modes",
    "layer_norm_error": "norms",
    "zero_shot_error": "zero-shot",
    "receptive_field_error": "fields",
}
"""Heading of each column; the table of numbers has the other scores, too."""
PLAIN = Links()
FINDINGS = """\
# Findings

What the board says, judged by the rules of all findings of this suite: over seeds, with an
interval, against rivals that must fail."""
SEEN = 0.0005
"""Smallest number that is not shown as 0."""
EXPLANATION = f"""\
Each task is trained over a grid of init scales and one more axis, with several seeds. A number is
the median over the grid, then the mean over seeds, with its 95% confidence interval. Errors are
relative: of the loss to the initial loss, of strengths, norms and fields to the largest.

- *Holds at* is the share of the grid where the loss error is below {GOOD:g}; *init scales* are the
  smallest and the largest of it.
- *Shape* is the error of the loss once both curves are halfway down at the same time.
- *Half time* is the factor between the predicted and the simulated time halfway down.

An empty field means that an entry does not predict the quantity; an entry that is not listed does
not apply. Baselines: {", ".join(f"`{name}`" for name in BASELINES)}."""


def markdown(board: xr.DataTree, findings: Sequence[FindingRow] = (), links: Links = PLAIN) -> str:
    """The board as a page.

    Args:
        board: result of `neuralrace.board.build.board`.
        findings: what was found on its tasks.
        links: how findings are linked.
    """
    parts = ["# Which theory of learning holds where", EXPLANATION, _overview(board)]
    for task in tasks_of(board):
        heading, *rows = _rows(board, task, None)
        table = [_line(heading), _line(["---"] * len(heading)), *map(_line, rows)]
        parts += [f"## {task}", _about(board[task].dataset), "\n".join(table)]
    if findings:
        parts += [FINDINGS, READING, "\n".join(findings_sections(findings, links)).strip()]
    commit = f", commit {board.attrs['commit'][:12]}" if "commit" in board.attrs else ""
    parts += [
        f"Version {board.attrs['version']} of the benchmark{commit}; {board.attrs['versions']}."
    ]
    return "\n\n".join(parts) + "\n"


def lines(board: xr.DataTree, only: Collection[str] = ()) -> Iterator[str]:
    """The board for a terminal, task by task.

    Args:
        board: result of `neuralrace.board.build.board`.
        only: entries to show, each beside the best of all others; all when empty.
    """
    for task in tasks_of(board):
        table = list(_rows(board, task, only))
        if len(table) == 1:
            continue
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        yield f"{task}: {_about(board[task].dataset)}"
        for row in table:
            yield "  " + "  ".join(map(str.ljust, row, widths)).rstrip()
        yield ""


def frame(board: xr.DataTree) -> pd.DataFrame:
    """The summary as a table: a row for each task, entry and score that is assessed."""
    scores = board[SUMMARY].to_dataset()
    long: Any = scores.to_array("score").to_series()
    wide = long.unstack("statistic")[list(STATISTICS)].dropna(subset="mean")
    rows = wide.reset_index()[["task", "entry", "score", *STATISTICS]]
    order = {name: number for number, name in enumerate(tasks_of(board))}
    return rows.sort_values("task", key=lambda column: column.map(order), kind="stable")


def _overview(board: xr.DataTree) -> str:
    """Share of the grid at which each entry holds, by task."""
    table: Any = board[SUMMARY].dataset["holds_share"].sel(statistic="mean").to_pandas()
    share = table.T.dropna(how="all")
    heading = ["share of the grid", *share.columns]
    rows = [
        [f"`{entry}`", *("" if np.isnan(value) else f"{value:.2f}" for value in row)]
        for entry, row in zip(share.index, share.values, strict=True)
    ]
    return "\n".join([_line(heading), _line(["---"] * len(heading)), *map(_line, rows)])


def _about(task: xr.Dataset) -> str:
    """The grid of a task in words."""
    scales = task["init_scale"].values
    text = f"init scales {scales.min():g} to {scales.max():g}"
    if task.attrs["axis"]:
        text += f", {task.attrs['axis']} {', '.join(task['value'].values)}"
    held_out = "; drawn for this board" if task.attrs["held_out"] else ""
    return f"{text}, {task.sizes['seed']} seeds{held_out}"


def _rows(board: xr.DataTree, task: str, only: Collection[str] | None) -> Iterator[list[str]]:
    """Heading and rows of a task's table, best loss first."""
    scores = board[SUMMARY].to_dataset().sel(task=task)
    known = [name for name in COLUMNS if name in scores and scores[name].notnull().any()]
    assessed = scores[known].to_array().notnull().any(("variable", "statistic"))
    loss = scores["loss_error"].sel(statistic="mean").where(assessed, drop=True).to_series()
    entries = list(loss.fillna(np.inf).sort_values(kind="stable").index)
    if only:
        shown = set(only).intersection(entries)
        best = next((entry for entry in entries if entry not in only), None)
        entries = [entry for entry in entries if entry in shown or (shown and entry == best)]
    yield ["entry", *(COLUMNS[name] for name in known), "init scales"]
    for entry in entries:
        own = scores.sel(entry=entry)
        values = [_number(name, own[name].values.tolist()) for name in known]
        yield [entry, *values, _scales(board[task].dataset.sel(entry=entry))]


def _number(name: str, statistics: Sequence[float]) -> str:
    """Mean and half of the interval; empty where nothing is assessed."""
    mean, low, high = statistics
    if np.isnan(mean):
        return ""
    if name == "halfway_time_log_ratio":
        return f"x {exp(mean):.2f}"
    half = "" if np.isnan(low) or high - low < 2 * SEEN else f" ± {(high - low) / 2:.3f}"
    return f"{mean:.3f}{half}" if mean >= SEEN else f"0{half}"


def _scales(entry: xr.Dataset) -> str:
    """The init scales at which an entry holds, whatever the value of the axis."""
    low, high = float(entry["holds_from"].min()), float(entry["holds_until"].max())
    return "none" if np.isnan(low) else f"{low:g} to {high:g}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
