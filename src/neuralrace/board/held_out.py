"""Held-out tasks: problems and seeds that are drawn from a stated law when a board is made.

A theory can be tuned to the tasks that everybody sees, and not to these. The law of each family is
in `config/benchmark/held_out.yaml`; the drawn tasks are written as ordinary experiments.
"""

import re
import secrets
import zlib
from copy import deepcopy
from math import floor, log10
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import Field, model_validator

from neuralrace.config.bundled import root
from neuralrace.config.load import config_folder, read_file, validate
from neuralrace.config.location import Location
from neuralrace.config.sweep import names
from neuralrace.config.yaml import read_mapping
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.model import ConfigModel, Positive
from neuralrace.results.atomic import write_text

PAPER = "benchmark"
"""Name under which the tasks stand among the experiments."""
MOST_DRAWS = 10**6
"""Numbers of random draws are below this."""
HEADING = re.compile(r"# Held-out tasks of draw (\d+),")
DIGITS = 3
"""Significant digits of a drawn number."""


class Law(ConfigModel):
    """The law of a value: uniform between two numbers; whole if both are."""

    low: int | float
    high: int | float
    count: Positive | None = None
    """Numbers in a list, largest first; a single number when absent."""

    @model_validator(mode="after")
    def _has_values(self) -> "Law":
        if self.low > self.high:
            raise UserError(
                f"is above high ({self.high})", key="low", value=self.low, remedy="exchange them"
            )
        return self


class HeldOut(ConfigModel):
    """The law of a held-out task."""

    like: str
    """The task that it equals in everything that is not drawn."""
    draw: Annotated[dict[str, Law], Field(min_length=1)]
    """Laws by dotted key."""


def configured(name: str) -> Path:
    """A file of the benchmark in the configuration of this folder, or else the bundled one.

    Args:
        name: `tasks.yaml`, `held_out.yaml` (laws), `findings.yaml` (what is stated about the
            board) or `board.json` (the board of the release).
    """
    own = config_folder() / PAPER / name
    return own if own.is_file() else root() / "config" / PAPER / name


def is_held_out(task: str) -> bool:
    """Whether a task was drawn, by its name."""
    return re.search(r"_drawn_\d+$", task) is not None


def drawn_tasks(number: int) -> dict[str, Any]:
    """A configuration with one task of each family, `<family>_drawn_<number>`.

    Args:
        number: of the draw; the same number gives the same tasks.

    Raises:
        UserError: the laws or the tasks cannot be read.
    """
    tasks = read_file(configured("tasks.yaml"))["experiments"][PAPER]
    path = configured("held_out.yaml")
    laws = read_mapping(path)
    whole = Location({str(path): laws})
    drawn = {}
    for family, raw in names(laws, whole).items():
        location = whole.inside(family)
        law = validate(HeldOut, raw, location)
        if law.like not in tasks:
            remedy = f"{did_you_mean(law.like, tasks)}there is {', '.join(tasks)}"
            error = UserError("is no task", key="like", value=law.like, remedy=remedy)
            raise location.located(error)
        rng = np.random.default_rng([number, zlib.crc32(family.encode())])
        task = deepcopy(tasks[law.like])
        for key, each in law.draw.items():
            *outer, last = key.split(".")
            node = task
            for part in outer:
                node = node.setdefault(part, {})
                if not isinstance(node, dict):
                    location.inside("draw", key).refuse(node, f"{part} as a mapping")
            node[last] = _value(each, rng)
        drawn[f"{family}_drawn_{number}"] = task
    return {"experiments": {PAPER: drawn}}


def write_drawn_tasks(path: Path, number: int | None = None) -> Path:
    """Writes a configuration of drawn tasks, or brings it up to date.

    Args:
        path: of the configuration.
        number: of the draw; when absent that of the file, and a random one if there is none.

    Raises:
        UserError: the laws or the tasks cannot be read, or the file cannot be written.
    """
    known = HEADING.match(path.read_text(encoding="utf-8")) if path.is_file() else None
    if number is None:
        number = int(known[1]) if known else secrets.randbelow(MOST_DRAWS)
    heading = f"# Held-out tasks of draw {number}, by the laws of config/{PAPER}/held_out.yaml"
    write_text(f"{heading}\n{yaml.safe_dump(drawn_tasks(number), sort_keys=False)}", path)
    return path


def _value(law: Law, rng: np.random.Generator) -> Any:
    whole = isinstance(law.low, int) and isinstance(law.high, int)
    values = (
        rng.integers(law.low, law.high, law.count or 1, endpoint=True)
        if whole
        else (_rounded(v, law) for v in rng.uniform(law.low, law.high, law.count or 1))
    )
    numbers = sorted((int(v) if whole else float(v) for v in values), reverse=True)
    return numbers if law.count else numbers[0]


def _rounded(value: float, law: Law) -> float:
    digits = DIGITS - 1 - floor(log10(abs(value))) if value else 0
    return min(max(round(value, digits), law.low), law.high)
