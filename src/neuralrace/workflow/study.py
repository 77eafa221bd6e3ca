"""A study: what a configuration asks for, as the rules of the workflow take it.

Rules take inputs, parameters and resources of their jobs from here. Nothing is written, and what
only some targets need is read when it is asked for.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, reduce
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from neuralrace.claims.blind import blind_cells
from neuralrace.claims.inputs import needed_cells
from neuralrace.claims.spec import claims_fingerprint, read_claims
from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.cost import Cost, estimate_cost
from neuralrace.config.load import merge_configs, paper_files, read_file, read_plan
from neuralrace.config.location import COMMAND_LINE
from neuralrace.config.variables import FileKind
from neuralrace.errors import UserError, shorten
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures import input_files, matching_cells
from neuralrace.figures.caption import caption
from neuralrace.figures.inputs import cells_of_figure, experiments_of
from neuralrace.results.checksums import (
    checksum_path,
    file_sha256,
    fingerprint,
    recorded_fingerprint,
)
from neuralrace.results.provenance import Stage, code_sha256
from neuralrace.workflow.stages import code, fingerprints, specifications, stale_files

PLANNED = "NEURALRACE_PLANNED"
"""Environment variable that jobs on other machines inherit: process and fingerprint of a plan."""
PICTURES = (".png", ".pdf", ".svg")
TABLES = ("md", "json", "csv")


SETTINGS = "settings"
"""Key of the configuration that names more files of it."""


def listed(named: Any) -> list[Path]:
    """Configuration files that are named, strongest last.

    Args:
        named: a file, several with commas between them, or a list; each may be a glob, whose files
            are sorted.

    Raises:
        UserError: it is none of these, or a glob that matches no file.
    """
    names = named.split(",") if isinstance(named, str) else [] if named is None else named
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(
            f"{SETTINGS}: {shorten(repr(named), 80)}: expected a file, several with commas between "
            "them, or a glob in quotes"
        )
    found: list[Path] = []
    for name in map(str.strip, names):
        files = sorted(glob(name)) if has_magic(name) and not os.path.exists(name) else [name]
        if not files:
            raise UserError(f"{SETTINGS}: {name!r}: matches no file")
        found += map(Path, files)
    return found


class Study:
    """Everything that is planned, and where it goes.

    Attributes:
        config: the merged configuration.
        plan: its cells and settings.
        results: the results folder.
        figures: the folder of figures: `figures`, or inside of other results than `results`.
        claims: paths of the papers' claims.
    """

    def __init__(
        self, config: Mapping[str, Any], read_before: Iterable[str | os.PathLike[str]] = ()
    ):
        """Reads the papers' experiments and other configuration files.

        They are read here, as Snakemake's loader runs what a file tells it to, and cannot say which
        file a value is from. What comes later is stronger: the papers', files of --configfile,
        those that the key `settings` names, and last all other keys that are given.

        Args:
            config: what was given on the command line, or by a workflow that has this one as a
                module.
            read_before: files that Snakemake has read.

        Raises:
            UserError: a mistake in one of them; file, key, value and remedy.
        """
        values = dict(config)
        named = listed(values.pop(SETTINGS, None))
        self._files = {str(path): read_file(path) for path in paper_files()}
        self._files |= {str(path): read_file(Path(path), True) for path in read_before}
        self._files |= {str(path): read_file(path) for path in named}
        self._files |= {COMMAND_LINE: values} if values else {}
        self.config = reduce(merge_configs, self._files.values())
        self.plan = read_plan(self.config, self._files)
        self.results = self.plan.results
        for path in (Path(self.results), *Path(self.results).parents):
            if os.path.lexists(path) and not os.path.isdir(path):
                what = "a link that leads nowhere" if path.is_symlink() else "a file"
                raise UserError(f"results: {path}: {what} is in the way; name a folder")
        self.figures = "figures" if self.results == "results" else f"{self.results}/figures"
        self.claims_files = list(map(str, paper_files("claims.yaml")))

    # Cells ---------------------------------------------------------------------------------------

    @cache  # noqa: B019 there is one study in a process
    def specifications(self, cell: str) -> Mapping[FileKind, Ensemble]:
        """The part of its specification that fixes each file of a cell."""
        return specifications(self.plan.cells[cell])

    def spec(self, cell: str, kind: FileKind) -> str:
        """The specification of a file, as JSON."""
        return self.specifications(cell)[kind].canonical()

    def code(self, cell: str, kind: FileKind) -> str:
        """Digest of the code that computes a file of a cell."""
        return code(kind, self.specifications(cell)[kind])

    def theory_files(self, cell: str) -> list[str]:
        """Path of the theory of a cell, where it has solutions."""
        return self.paths([(cell, "theory")])

    def paths(self, files: Iterable[tuple[str, str]]) -> list[str]:
        """Paths of result files by cell and kind; theory where there is any."""
        return [
            f"{self.results}/{c}/{kind}.nc" for c, kind in files if kind in self.specifications(c)
        ]

    @property
    def metrics_files(self) -> list[str]:
        """Paths of all metrics."""
        return self.paths((cell, "metrics") for cell in self.plan.cells)

    def spec_digests(self, cells: Iterable[str]) -> dict[str, dict[FileKind, str]]:
        """Digest of the specification of each file of cells."""
        return {
            cell: {kind: part.sha256() for kind, part in self.specifications(cell).items()}
            for cell in cells
        }

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprint that each result file is to have, by its path."""
        return {
            f"{self.results}/{cell}/{kind}.nc": planned
            for cell, spec in self.plan.cells.items()
            for kind, planned in fingerprints(cell, spec).items()
        }

    # Figures and claims --------------------------------------------------------------------------

    @cache  # noqa: B019
    def figure_cells(self, figure: str) -> Sequence[str]:
        """The cells that a figure shows.

        Raises:
            UserError: an experiment that it names is not configured, or records too little.
        """
        return cells_of_figure(figure, self.plan.cells, self._files)

    def figure_inputs(self, figure: str) -> list[str]:
        """Paths of the result files that a figure reads."""
        return self.paths(input_files(figure, self.figure_cells(figure)))

    def figure_code(self, figure: str) -> str:
        """Digest of the code that draws a figure."""
        return code_sha256("draw", [FIGURES[figure].module])

    def caption(self, figure: str) -> str:
        """The caption of a figure."""
        return caption(figure, self.plan.cells)

    def figure_files(self) -> list[str]:
        """Paths of the pictures of all figures; with `only`, of those that it has all cells of."""
        there = {cell.rpartition("/")[0] for cell in self.plan.cells}
        names = [n for n in FIGURES if not self.plan.only or there.issuperset(experiments_of(n))]
        return [f"{self.figures}/{name}.png" for name in names]

    @property
    def plot_files(self) -> list[str]:
        """Paths of the standard figures of cells that no figure module shows."""
        drawn = {cell for figure in FIGURES for cell in matching_cells(figure, self.plan.cells)}
        return [f"{self.figures}/{cell}.png" for cell in self.plan.cells if cell not in drawn]

    @cached_property
    def plot_code(self) -> str:
        """Digest of the code that draws the standard figure of a cell."""
        return code_sha256("plot")

    @cached_property
    def _statements(self) -> Any:
        return read_claims([Path(name) for name in self.claims_files])

    def claim_inputs(self) -> list[str]:
        """Paths of the metrics that decide the claims.

        Raises:
            UserError: a mistake in a claim.
        """
        cells = needed_cells(self._statements, self.plan.cells)
        return self.paths((cell, "metrics") for cell in cells)

    def claims_fingerprint(self) -> str:
        """Fingerprint of what the claims say.

        Raises:
            UserError: a mistake in a claim.
        """
        return claims_fingerprint(self._statements)

    @cached_property
    def blind(self) -> dict[str, dict[str, Cell]]:
        """Cells of the robustness runs, by experiment and by variant and label.

        Raises:
            UserError: a mistake in a claim.
        """
        return blind_cells(self._statements, self.plan.cells)

    def blind_files(self) -> list[str]:
        """Paths of the outcomes of all robustness runs.

        Raises:
            UserError: a mistake in a claim.
        """
        return [f"{self.results}/blind/{experiment}/failed.json" for experiment in self.blind]

    def blind_code(self, experiment: str) -> dict[str, str]:
        """Digest of the code that computes each robustness run of an experiment."""
        cells = self.blind[experiment].items()
        return {place: code_sha256("blind", cell.modules) for place, cell in cells}

    def table_params(self, stage: Stage) -> dict[str, Any]:
        """What tables of all cells are computed from, beside their metrics."""
        return {"code": code_sha256(stage), "cells": self.spec_digests(self.plan.cells)}

    def robustness_checksum(self) -> str:
        """Checksum of what came out of the robustness runs; empty where there are none."""
        path = Path(self.results, "blind.json")
        return file_sha256(path) if path.is_file() else ""

    # Resources -----------------------------------------------------------------------------------

    @cache  # noqa: B019
    def cost(self, cell: str) -> Cost:
        """Estimated cost of a cell."""
        return estimate_cost(self.plan.cells[cell], self.plan.gpus_each > 0)

    def seconds(self, cell: str) -> float:
        """Estimated core-seconds of training a cell."""
        return self.cost(cell).compile + self.cost(cell).train

    def memory(self, cell: str, attempt: int) -> int:
        """Megabytes to ask a cluster for: twice what is estimated, and again at each attempt."""
        asked = self.cost(cell).memory_mb * 2**attempt
        return min(asked, self.plan.memory_mb or asked)

    def minutes(self, seconds: float, attempt: int) -> int:
        """Minutes to ask a cluster for: four times what is estimated, and twice at each attempt."""
        return (1 + int(4 * seconds / 60)) * 2 ** (attempt - 1)

    def blind_seconds(self, experiment: str) -> float:
        """Estimated core-seconds of the robustness runs of an experiment."""
        return sum(estimate_cost(cell).seconds() for cell in self.blind[experiment].values())

    def blind_memory(self, experiment: str, attempt: int) -> int:
        """Megabytes to ask a cluster for."""
        most = max(estimate_cost(cell).memory_mb for cell in self.blind[experiment].values())
        return min(most * 2**attempt, self.plan.memory_mb or most * 2**attempt)

    # A run ---------------------------------------------------------------------------------------

    def refuse_changed_plan(self) -> None:
        """Refuses to compute anything but what was planned, on a machine that plans anew.

        Raises:
            UserError: configuration or code were changed after the run was planned.
        """
        own, now = str(os.getpid()), fingerprint(*self.fingerprints.values())
        process, digest = os.environ.setdefault(PLANNED, f"{own} {now}").split()
        if process == own:
            os.environ[PLANNED] = f"{own} {now}"
        elif digest != now:
            raise UserError(
                "configuration or code were changed after this run was planned; let it end, and "
                "run the same command again"
            )

    def up_to_date(self, files: Iterable[str]) -> bool:
        """Whether result files were computed from the present specification and code."""
        return all(recorded_fingerprint(Path(f)) == self.fingerprints.get(str(f)) for f in files)

    def outputs(self) -> list[Path]:
        """Paths of all files that the workflow writes, with their checksum files."""
        drawn = [Path(png) for png in (*self.figure_files(), *self.plot_files)]
        pictures = [png.with_suffix(kind) for png in drawn for kind in (*PICTURES, ".sha256")]
        judged = [f"{name}.{kind}" for name in ("claims", "findings") for kind in TABLES]
        alone = [Path(self.results, name) for name in ("metrics.csv", "blind.json")]
        alone += map(Path, self.fingerprints)
        together = [Path(self.results, name) for name in (*judged, "claims.sha256")]
        return [*alone, *map(checksum_path, alone), *pictures, *together]

    def locations(self) -> dict[str, str]:
        """Paths that a person looks at after a run, by what they hold; those that exist."""
        paths = {
            "results": self.results,
            "figures": self.figures,
            "claims": f"{self.results}/claims.md",
        }
        return {what: path for what, path in paths.items() if os.path.exists(path)}

    def estimate(self, factor: float) -> str:
        """A line on what is missing or stale, and what it is estimated to cost.

        Args:
            factor: seconds of this machine for one of the estimate's.
        """
        programs, seconds = set[Any](), 0.0
        todo = stale_files(Path(self.results), self.plan.cells)
        for cell in todo:
            seconds += self.cost(cell).seconds(programs)
            programs.add(self.cost(cell).program)
        return (
            f"{len(todo)} of {len(self.plan.cells)} cells are missing or stale: about "
            f"{max(seconds * factor / 60, 0.1):.2g} core-minutes on this machine"
        )
