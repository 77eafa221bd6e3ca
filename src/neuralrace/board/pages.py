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
Each task is trained over a grid of init scales (factors on all initial weights) and one more axis,
with several seeds. An entry *applies* to a point of the grid if its requirements are met there; it
*holds* there if it misses the loss, at the worst time, by less than {GOOD:g} of the initial loss.
A number is the median over the points to which an entry applies, seed by seed, then the mean over
seeds, with its 95% confidence interval (Student's, without values below 0, and for shares above 1)
in brackets. An entry holds *on a task* if the whole interval of its loss is below {GOOD:g}.

- *Holds at* is the share of the whole grid; where an entry does not apply it does not hold. Rows
  are sorted by it.
- *Loss* is the largest distance of the loss over training, divided by the initial loss; *final
  loss* that at the end.
- *Shape* is the same distance once both curves are moved to be halfway down at the same time.
- *Half time* is the factor, above 1, between the predicted and the simulated time halfway down. An
  entry that never gets there counts as if it did at the end of training.
- *Modes*, *norms*, *zero-shot* and *fields* are the largest distances of the strengths of modes and
  of the norms of layers over the largest of them, of the relative error on pairs of domains that
  are never trained, and of the final receptive fields over their norm.
- *Holds for init scales* tells them for each value of the axis, where values differ.

An empty field means that an entry does not predict the quantity. Baselines are
{", ".join(f"`{name}`" for name in BASELINES)}: integration of gradient flow, whose remaining error
is that training makes finite steps; the tangent kernel at the start; regression on trained pairs;
and the mean curve of the other seeds at the same setting."""


def markdown(board: xr.DataTree, findings: Sequence[FindingRow] = (), links: Links = PLAIN) -> str:
    """The board as a page.

    Args:
        board: result of `neuralrace.board.build.board`.
        findings: what was found on its tasks.
        links: how findings are linked.
    """
    parts = ["# Which theory of learning holds where", EXPLANATION]
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


def _about(task: xr.Dataset) -> str:
    """The grid of a task in words."""
    scales = task["init_scale"].values
    text = f"{len(scales)} init scales, {scales.min():g} to {scales.max():g}"
    if task.attrs["axis"]:
        *most, last = task["value"].values.tolist()
        text += f"; {task.attrs['axis']} {', '.join(most)} or {last}"
    held_out = "; held out" if task.attrs["held_out"] else ""
    return f"{text}; {task.sizes['seed']} seeds{held_out}"


def _rows(board: xr.DataTree, task: str, only: Collection[str] | None) -> Iterator[list[str]]:
    """Heading and rows of a task's table; the largest share comes first, then the best loss."""
    scores = board[SUMMARY].to_dataset().sel(task=task)
    known = [name for name in COLUMNS if name in scores and scores[name].notnull().any()]
    assessed = scores[known].to_array().notnull().any(("variable", "statistic"))
    mean = scores.sel(statistic="mean", entry=assessed)
    rank = list(zip(-mean["holds_share"].fillna(0), mean["loss_error"].fillna(1), strict=True))
    names = mean["entry"].values.tolist()
    entries = [name for _, name in sorted(zip(rank, names, strict=True), key=lambda pair: pair[0])]
    if only:
        shown = set(only).intersection(entries)
        best = next((entry for entry in entries if entry not in only), None)
        entries = [entry for entry in entries if entry in shown or (shown and entry == best)]
    yield ["entry", *(COLUMNS[name] for name in known), "holds for init scales"]
    for entry in entries:
        own = scores.sel(entry=entry)
        values = [_number(name, own[name].values.tolist()) for name in known]
        yield [entry, *values, where_it_holds(board[task].dataset, entry)]


def _number(name: str, statistics: Sequence[float]) -> str:
    """Mean and interval, if it can be seen; empty where nothing is assessed."""
    mean, low, high = statistics
    if np.isnan(mean):
        return ""
    if name == "halfway_time_log_ratio":
        return f"x {exp(mean):.2f}"
    number = f"{mean:.3f}" if mean >= SEEN else "0"
    return f"{number} [{low:.3f}, {high:.3f}]" if high - low >= 2 * SEEN else number


def where_it_holds(task: xr.Dataset, entry: str) -> str:
    """The init scales at which an entry holds, in words; empty where it predicts no loss.

    Args:
        task: a task of a board.
        entry: an entry that applies to some of it.
    """
    holds = task["holds"].sel(entry=entry).transpose("value", "init_scale")
    values: dict[str, list[str]] = {}
    for row in holds[holds.notnull().any("init_scale").values]:
        scales = [f"{scale:g}" for scale in row["init_scale"].values[row.values == 1]]
        first, *others = np.flatnonzero(row.values == 1).tolist() or [0]
        through = others and others[-1] - first == len(others)
        text = f"{scales[0]} to {scales[-1]}" if through else ", ".join(scales) or "none"
        values.setdefault(text, []).append(str(row["value"].values))
    if len(values) == 1 and len(values[text := next(iter(values))]) == holds.sizes["value"]:
        return text
    return " / ".join(f"{text} ({', '.join(names)})" for text, names in values.items())


def holding_scales(board: xr.DataTree, entry: str) -> dict[str, str]:
    """The init scales at which an entry holds, by each task that everybody sees."""
    tasks = {name: board[name].dataset for name in tasks_of(board)}
    known = {n: t for n, t in tasks.items() if entry in t["entry"] and not t.attrs["held_out"]}
    return {name: where_it_holds(task, entry) for name, task in known.items()}


def held_tasks(board: xr.DataTree, entry: str) -> str:
    """The same in one line; "not tested" if it is on no task."""
    parts = (f"{name} {scales}" for name, scales in holding_scales(board, entry).items())
    return "; ".join(parts) or "not tested"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
