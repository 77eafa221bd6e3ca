"""Study: inputs, params and resources of the workflow's rules, from a configuration.

Nothing is written here. Claims and figures are read only for targets that need them.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, reduce
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from neuralrace.board.held_out import PAPER as BENCHMARK
from neuralrace.board.held_out import configured
from neuralrace.claims.inputs import needed_cells
from neuralrace.claims.spec import Claims, claims_fingerprint, read_claims
from neuralrace.claims.variants import variant_cells
from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.cost import Cost, estimate_cost
from neuralrace.config.load import merge_configs, paper_files, read_file, read_plan
from neuralrace.config.location import COMMAND_LINE
from neuralrace.config.variables import FileKind
from neuralrace.config.variants import VARIANT_SETS, VariantSet, variants_path
from neuralrace.errors import UserError, counted
from neuralrace.extensions.registry import FIGURES, SOLUTIONS
from neuralrace.figures import input_files, matching_cells
from neuralrace.figures.caption import caption
from neuralrace.figures.inputs import cells_of_figure, experiments_of
from neuralrace.metrics.benchmark import OTHER_SEEDS
from neuralrace.results.checksums import (
    BOARD,
    PICTURES,
    TABLES,
    checksum_path,
    file_sha256,
    fingerprint,
    recorded_fingerprint,
)
from neuralrace.results.provenance import Stage, code_sha256
from neuralrace.workflow.stages import STAGES, code, fingerprints, specifications

PLANNED = "NEURALRACE_PLANNED"
"""Environment variable that jobs on other machines inherit: process and fingerprint of a plan."""
SETTINGS = "settings"
"""Key of the command line that names more configuration files."""


def settings_files(value: Any) -> list[Path]:
    """The configuration files that `settings` names; later files override earlier ones.

    Args:
        value: a file, several separated by commas, or a list; each may be a glob, whose files are
            sorted.

    Raises:
        UserError: another kind of value, or a glob that matches no file.
    """
    names = value.split(",") if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(
            "expected a file, several separated by commas, or a glob in quotes",
            key=SETTINGS,
            value=value,
        )
    paths: list[Path] = []
    for name in (os.path.expanduser(name.strip()) for name in names):
        files = sorted(glob(name)) if has_magic(name) and not os.path.exists(name) else [name]
        if not files:
            raise UserError("matches no file", key=SETTINGS, value=name)
        paths += map(Path, files)
    return paths


class Study:
    """The cells, figures and claims of a configuration, and the files that belong to them.

    Attributes:
        config: the merged configuration.
        plan: its cells and settings.
        results: the results folder.
        figures: the folder of figures: `figures`, or `<results>/figures` for another results folder
            than `results`.
        claims_files: paths of the papers' claims; with `only`, of the papers that it names.
    """

    def __init__(
        self, config: Mapping[str, Any], configfiles: Iterable[str | os.PathLike[str]] = ()
    ):
        """Reads the papers' experiments and other configuration files.

        They are read here, as Snakemake's loader may run code and does not know the file of a
        value. Later values override earlier ones: those of the papers, of --configfile, of files
        that `settings` names, and of other keys of the command line.

        Args:
            config: values of the command line, or of a workflow that uses this one as a module.
            configfiles: files that Snakemake has read (--configfile).

        Raises:
            UserError: a mistake in one of them; file, key, value and remedy.
        """
        values = dict(config)
        more = settings_files(values.pop(SETTINGS, None))
        self._files = {str(path): read_file(path) for path in paper_files()}
        self._files |= {str(path): read_file(Path(path), True) for path in configfiles}
        self._files |= {str(path): read_file(path) for path in more}
        self._files |= {COMMAND_LINE: values} if values else {}
        self.config = reduce(merge_configs, self._files.values())
        self.plan = read_plan(self.config, self._files)
        self.results = self.plan.results
        for path in (Path(self.results), *Path(self.results).parents):
            if os.path.lexists(path) and not os.path.isdir(path):
                what = "a broken link" if path.is_symlink() else "a file"
                raise UserError(
                    f"{path}: {what} is in the way", key="results", remedy="name a folder"
                )
        self.figures = "figures" if self.results == "results" else f"{self.results}/figures"
        claims = list(map(str, paper_files("claims.yaml")))
        whole = [path for path in claims if Path(path).parent.name in self.plan.only]
        self.claims_files = whole or claims

    # Cells ---------------------------------------------------------------------------------------

    @cache  # noqa: B019 there is one study in a process
    def specifications(self, cell: str) -> Mapping[FileKind, Ensemble]:
        """See `neuralrace.workflow.stages.specifications`."""
        return specifications(self.plan.cells[cell])

    def spec(self, cell: str, kind: FileKind) -> str:
        """The specification of a file as canonical JSON, the form in which it reaches a worker."""
        return self.specifications(cell)[kind].canonical()

    def code(self, cell: str, kind: FileKind) -> str:
        """Checksum of the code that computes a file of a cell."""
        return code(kind, self.specifications(cell)[kind])

    def theory_files(self, cell: str) -> list[str]:
        """Path of the theory of a cell; none for a cell without solutions."""
        return self.paths([(cell, "theory")])

    def paths(self, files: Iterable[tuple[str, str]]) -> list[str]:
        """Paths of result files by cell and kind; without theory of cells that have none."""
        return [
            f"{self.results}/{c}/{kind}.nc" for c, kind in files if kind in self.specifications(c)
        ]

    @property
    def metrics_files(self) -> list[str]:
        """Paths of the metrics of all cells."""
        return self.paths((cell, "metrics") for cell in self.plan.cells)

    def spec_digests(self, cells: Iterable[str]) -> dict[str, dict[FileKind, str]]:
        """Checksum of the specification of each file, by cell and kind."""
        return {
            cell: {kind: part.sha256() for kind, part in self.specifications(cell).items()}
            for cell in cells
        }

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint that each result file should have, by its path."""
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
        """Checksum of the code that draws a figure."""
        return code_sha256("draw", [FIGURES[figure].module])

    def caption(self, figure: str) -> str:
        """The caption of a figure."""
        claims = self.claims_fingerprint() if FIGURES[figure].declaration.claims else ""
        return caption(figure, self.plan.cells, claims)

    def figure_files(self) -> list[str]:
        """Paths of all figures; with `only`, of those whose experiments are all configured."""
        known = {cell.rpartition("/")[0] for cell in self.plan.cells}
        names = [
            name
            for name in FIGURES
            if not self.plan.only or ((own := set(experiments_of(name))) and known.issuperset(own))
        ]
        return [f"{self.figures}/{name}.png" for name in names]

    @property
    def plot_files(self) -> list[str]:
        """Paths of the standard figures of cells that no figure module shows."""
        drawn = {cell for figure in FIGURES for cell in matching_cells(figure, self.plan.cells)}
        return [f"{self.figures}/{cell}.png" for cell in self.plan.cells if cell not in drawn]

    @cached_property
    def plot_code(self) -> str:
        """Checksum of the code that draws the standard figure of a cell."""
        return code_sha256("plot")

    @cached_property
    def _claims(self) -> Claims:
        return read_claims([Path(name) for name in self.claims_files])

    def claim_inputs(self) -> list[str]:
        """Paths of the metrics that decide the claims.

        Raises:
            UserError: a mistake in a claim; so do all that follow here. Or another configuration
                than that of the papers, which lacks what a claim reads.
        """
        try:
            cells = needed_cells(self._claims, self.plan.cells)
        except UserError as error:
            if self._files.keys() <= set(map(str, paper_files())):
                raise
            remedy = (
                "claims need all cells of config/*/experiments.yaml, which other settings change; "
                f"for the figures without the claims, name the target gallery; {error.remedy}"
            )
            raise error.replaced(remedy=remedy.removesuffix("; ")) from None
        return self.paths((cell, "metrics") for cell in cells)

    @property
    def claim_pages(self) -> list[str]:
        """The page of each paper's claims, in the results folder."""
        return [f"claims/{Path(name).parent.name}.md" for name in self.claims_files]

    def claims_fingerprint(self) -> str:
        """Fingerprint of the content of the claim files."""
        return claims_fingerprint(self._claims)

    def table_params(self, stage: Stage) -> dict[str, Any]:
        """Params of a rule that reads the metrics of all cells."""
        return {"code": code_sha256(stage), "cells": self.spec_digests(self.plan.cells)}

    # Benchmark -----------------------------------------------------------------------------------

    @property
    def benchmark_cells(self) -> list[str]:
        """The cells of the benchmark's tasks; most configurations have none."""
        return [cell for cell in self.plan.cells if cell.split("/")[0] == BENCHMARK]

    def board_inputs(self) -> list[str]:
        """Paths of the metrics that the board shows.

        Raises:
            UserError: no task is configured.
        """
        if not self.benchmark_cells:
            raise UserError(
                "no task of the benchmark is configured",
                remedy="call `neuralrace benchmark`, or add --config settings="
                f"config/{BENCHMARK}/tasks.yaml",
            )
        return self.paths((cell, "metrics") for cell in self.benchmark_cells)

    @property
    def board_findings_file(self) -> str:
        """Path of what is stated about the board."""
        return str(configured("findings.yaml"))

    def board_findings_fingerprint(self) -> str:
        """Fingerprint of what is stated about the board.

        Raises:
            UserError: a mistake in it.
        """
        findings = read_claims([configured("findings.yaml")])
        needed_cells(findings, self.plan.cells)  # raises if a cell or metric is missing
        return claims_fingerprint(findings)

    @property
    def board_pictures(self) -> list[str]:
        """Paths of the picture of the board, and of the map of each entry that predicts a loss."""
        cells = [self.plan.cells[name] for name in self.benchmark_cells]
        solved = {name for cell in cells for name in cell.solutions}
        entries = [n for n in sorted(solved) if "loss" in SOLUTIONS[n].declaration.variables]
        entries += [OTHER_SEEDS] if any(cell.seeds > 1 for cell in cells) else []
        folder = f"{self.figures}/{BENCHMARK}"
        return [f"{folder}/board.png", *(f"{folder}/maps/{name}.png" for name in entries)]

    @cached_property
    def draw_board_code(self) -> str:
        """Checksum of the code that draws the board."""
        return code_sha256("draw_board")

    @cached_property
    def board_code(self) -> str:
        """Checksum of the code that puts the board together."""
        return code_sha256("board")

    # Variants ------------------------------------------------------------------------------------

    @cached_property
    def variants(self) -> dict[VariantSet, dict[str, dict[str, Cell]]]:
        """Cells of each set, by experiment `paper/experiment`, then `variant/label`."""
        return {
            group: variant_cells(self._claims, self.plan.cells, group) for group in VARIANT_SETS
        }

    def variant_files(self, group: VariantSet) -> list[str]:
        """Paths of the lists of failed variants of a set, one for each experiment."""
        folder = f"{self.results}/variants/{group}"
        return [f"{folder}/{name}/failed.json" for name in self.variants[group]]

    def variant_code(self, group: VariantSet, experiment: str) -> dict[str, str]:
        """Checksum of the code that computes each variant of an experiment's cells."""
        cells = self.variants[group][experiment].items()
        return {label: code_sha256("variants", cell.modules) for label, cell in cells}

    def variant_checksums(self) -> dict[VariantSet, str]:
        """Checksum of the outcome of each set; empty where there is none."""
        checksums: dict[VariantSet, str] = {}
        for group in VARIANT_SETS:
            path = variants_path(Path(self.results), group)
            checksums[group] = file_sha256(path) if path.is_file() else ""
        return checksums

    def variant_seconds(self, group: VariantSet, experiment: str) -> float:
        """Estimated core-seconds of the variants of an experiment's cells."""
        cells = self.variants[group][experiment].values()
        return sum(estimate_cost(cell).seconds() for cell in cells)

    def variant_memory(self, group: VariantSet, experiment: str, attempt: int) -> int:
        """Megabytes to request from a cluster."""
        cells = self.variants[group][experiment].values()
        return self._megabytes(max(estimate_cost(cell).memory_mb for cell in cells), attempt)

    # Resources -----------------------------------------------------------------------------------

    @cache  # noqa: B019
    def cost(self, cell: str) -> Cost:
        """Estimated cost of a cell."""
        return estimate_cost(self.plan.cells[cell], self.plan.gpus_each > 0)

    def seconds(self, cell: str) -> float:
        """Estimated core-seconds of training a cell."""
        return self.cost(cell).compile + self.cost(cell).train

    def memory(self, cell: str, attempt: int) -> int:
        """Megabytes to request from a cluster."""
        return self._megabytes(self.cost(cell).memory_mb, attempt)

    def _megabytes(self, estimate: int, attempt: int) -> int:
        """Twice the estimate, and again at each attempt, up to the memory of a node."""
        request = estimate * 2**attempt
        return min(request, self.plan.memory_mb or request)

    def minutes(self, seconds: float, attempt: int) -> int:
        """Minutes to request from a cluster: four times the estimate, doubled at each attempt."""
        return (1 + int(4 * seconds / 60)) * 2 ** (attempt - 1)

    # A run ---------------------------------------------------------------------------------------

    def refuse_changed_plan(self) -> None:
        """Refuses to run jobs on another machine if its configuration or code differs.

        Raises:
            UserError: configuration or code were changed after the run was planned.
        """
        own, now = str(os.getpid()), fingerprint(*self.fingerprints.values())
        process, digest = os.environ.setdefault(PLANNED, f"{own} {now}").split()
        if process == own:
            os.environ[PLANNED] = f"{own} {now}"
        elif digest != now:
            raise UserError(
                "configuration or code were changed after this run was planned",
                remedy="let it end, and run the same command again",
            )

    def up_to_date(self, files: Iterable[str]) -> bool:
        """Whether result files were computed from the current specification and code."""
        return all(recorded_fingerprint(Path(f)) == self.fingerprints.get(str(f)) for f in files)

    def outputs(self) -> list[Path]:
        """Paths of all files that the workflow writes, with their checksum files."""
        drawn = [Path(png) for png in (*self.figure_files(), *self.plot_files)]
        pictures = [png.with_suffix(kind) for png in drawn for kind in (*PICTURES, ".sha256")]
        single = [
            Path(self.results, name)
            for name in ("metrics.csv", *(f"{group}.json" for group in VARIANT_SETS))
        ]
        single += map(Path, self.fingerprints)
        tables = [
            Path(self.results, name) for name in (*TABLES, *self.claim_pages, "claims.sha256")
        ]
        board = [Path(self.results, name) for name in BOARD]
        board += map(Path, self.board_pictures if self.benchmark_cells else ())
        return [
            *single,
            *map(checksum_path, single),
            *pictures,
            *tables,
            *board,
            checksum_path(board[0]),
        ]

    def locations(self) -> dict[str, str]:
        """Existing paths to open after a run: results, figures and claims."""
        paths = {
            "results": self.results,
            "figures": self.figures,
            "claims": f"{self.results}/claims.md",
        }
        return {what: path for what, path in paths.items() if os.path.exists(path)}

    def estimate(self, files: Iterable[str], speed: Callable[[], float]) -> str:
        """A line with the estimated time to compute files of cells and of variants.

        Args:
            files: paths of the files that a run computes; others than these are left out.
            speed: measures the seconds of this machine per second of an estimate.

        Returns:
            The line; empty if no such file is computed.
        """
        cells, programs, jobs, seconds = set[str](), set[Any](), 0, 0.0
        stages = {f"{kind}.nc": stage for kind, stage in STAGES.items()}
        for file in files:
            folder, _, name = file.removeprefix(f"{self.results}/").rpartition("/")
            if folder in self.plan.cells and name in stages:
                cost = self.cost(folder)
                seconds += getattr(cost, stages[name])
                if stages[name] == "train" and cost.program not in programs:
                    seconds += cost.compile
                    programs.add(cost.program)
                cells.add(folder)
                jobs += 1
            for group in VARIANT_SETS:
                if folder.startswith(of_group := f"variants/{group}/"):
                    experiment = folder.removeprefix(of_group)
                    seconds += self.variant_seconds(group, experiment)
                    cells |= {f"{folder}/{label}" for label in self.variants[group][experiment]}
                    jobs += 1
        if not jobs:
            return ""
        return (
            f"estimated time: {core_time(seconds * speed())} for "
            f"{counted(jobs, 'job')} of {counted(len(cells), 'cell')}, without figures"
        )


def core_time(seconds: float) -> str:
    """Core-seconds in words, with two digits, such as `12 core-minutes`."""
    units = {"core-hour": 3600, "core-minute": 60, "core-second": 1}
    unit, size = next(
        (item for item in units.items() if seconds >= 2 * item[1]), ("core-second", 1)
    )
    number = float(f"{max(seconds / size, 1):.2g}")
    return f"{number:g} {unit}s" if number > 1 else f"1 {unit}"
