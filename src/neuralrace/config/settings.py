"""Settings of the whole workflow, and the plan: settings with all cells."""

import os
import re
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field, SkipValidation

from neuralrace.config.cell import Cell
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel, Positive
from neuralrace.training.devices import visible_gpus

LONGEST_NAME = 200
"""Most characters of a cell's label and of a results folder: file systems have room for 255."""
RESERVED = frozenset({"checkpoints", "figures", "logs", "slim", "smoke", "variants"})
"""Folders of the workflow, next to those of papers in results and among figures."""
# Snakemake takes braces and globs in a path for patterns
FOLDER = r"^[^{}*?\[\]\x00-\x1f]+$"


def _folder(name: str) -> str:
    """The shortest form of a folder's name, with the home folder in place of `~`."""
    if not re.fullmatch(FOLDER, name):
        raise UserError(
            remedy="name a folder, without {}, *, ?, [] or control characters in its name"
        )
    return os.path.normpath(os.path.expanduser(name))


class Settings(ConfigModel):
    """Settings of the whole workflow: all keys but `experiments`."""

    checkpoint_seconds: Annotated[float, Field(ge=0)] = 300.0
    """Seconds of training between two checkpoints. An interrupted training continues from its last
    checkpoint."""
    gpus: Annotated[int, Field(ge=0)] | None = None
    """GPUs of each machine that trains; cells that are faster there ask for one. When absent, those
    of this machine, if jobs run on it; a profile of a cluster has to state it."""
    results: Annotated[
        str,
        Field(max_length=LONGEST_NAME, json_schema_extra={"pattern": FOLDER}),
        AfterValidator(_folder),
    ] = "results"
    """Folder of the results. Figures of the default one go to `figures`, those of others to
    `figures` inside it."""
    only: tuple[str, ...] = ()
    """The papers, experiments (`paper/experiment`) or cells to plan; everything when empty."""
    memory_mb: Positive | None = None
    """Megabytes of memory of the machines that train. A cell that cannot fit is refused before
    anything runs. When absent, the memory of the machine that plans."""


class Plan(Settings):
    """A configuration, expanded into cells."""

    cells: SkipValidation[dict[str, Cell]]
    """Cells by identifier `paper/experiment/label`."""

    @cached_property
    def gpus_each(self) -> int:
        """GPUs of each machine that trains; those of this machine if none are configured."""
        return len(visible_gpus()) if self.gpus is None else self.gpus


def refuse_reserved(paper: str) -> None:
    """Refuses a name of a paper that a folder of the workflow has.

    Raises:
        UserError: the name is reserved.
    """
    if paper in RESERVED:
        raise UserError(
            "is no name for a paper, as the workflow has a folder of that name next to those of "
            "papers",
            value=paper,
            remedy="use another",
        )
