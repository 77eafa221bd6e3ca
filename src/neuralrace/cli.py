"""The command line: `neuralrace --help`.

What only some commands need, such as xarray, they import themselves: to list and to plan takes none
of it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from neuralrace.answers import about_cell, about_file, layout
from neuralrace.atomic import write_text
from neuralrace.bundled import FILES, root
from neuralrace.catalogue import KINDS, experiments, meanings
from neuralrace.errors import UserError, alike
from neuralrace.plan import (
    Plan,
    configuration,
    laid_over,
    papers,
    read_file,
    read_plan,
    refuse_taken,
)
from neuralrace.profile import check
from neuralrace.profile import read as read_profile
from neuralrace.workflow.stages import unmade

FOLDER = click.Path(path_type=Path)
INTERVAL = 2.0
"""Seconds between two lines of progress."""
TEMPLATE = """\
# An experiment of one's own. Lists of what a key can name: `neuralrace list datasets`, and so on.
experiments:
  NAME:
    # linear networks learn a hierarchy of items, its broad distinctions first
    first:
      dataset: {name: hierarchy}              # or {name: file, path: my.npz}, with arrays x and y
      network: {name: layered, hidden: [16]}  # sizes of the hidden layers
      init: {name: normal}                    # the law of initial weights
      init_scales: [0.001, 0.01]              # factors on them; all are trained together
      seeds: 5                                # runs for each factor
      training: {learning_rate: 0.05, steps: 1000}
      record: {every: 10, observables: [mode_strength]}  # what is observed while they train
      solutions: [aligned_modes]              # theory from the same initial weights
      metrics: [analytic_fit, learning_times] # what is measured in both
      # one cell for each value:
      # sweep: {training.learning_rate: [0.05, 0.1]}
"""


# Arguments ---------------------------------------------------------------------------------------


@click.group(
    no_args_is_help=False, epilog="More, and completion by the shell: docs/command_line.md"
)
@click.version_option(package_name="neuralrace")
def commands() -> None:
    """Theories of learning dynamics, tried on networks."""


def command(example: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A function as a command of its name, whose help ends with an example."""

    def added(function: Callable[..., Any]) -> click.Command:
        name = function.__name__.rstrip("_")
        epilog = f"example: neuralrace {name} {example}"
        return commands.command(name, epilog=epilog)(function)

    return added


def named(*kinds: str) -> Callable[..., list[CompletionItem]]:
    """What completes a word to names of some kinds, or else to a file."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        known: list[str] = [] if kinds else list(KINDS)
        with suppress(UserError):
            known += [name for kind in kinds for name in meanings(kind)]
        found = [CompletionItem(name) for name in known if name.startswith(begun)]
        return found or [CompletionItem(begun, type="file")]

    return complete


def positive(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A number of cores, or all, or none given.

    Raises:
        UserError: it is neither.
    """
    if value not in (None, "all") and not re.fullmatch("0*[1-9][0-9]*", value):
        raise UserError(f"--cores: {value!r}: give a whole number above 0, or all")
    return value


as_json = click.option("--json", "as_json", is_flag=True, help="For programs.")
configfile = click.option(
    "--configfile",
    type=FOLDER,
    multiple=True,
    metavar="FILE",
    help="Laid over config/*/experiments.yaml; may be given again.",
)


# Commands ----------------------------------------------------------------------------------------


@command("metrics")
@click.argument("kind", required=False, shell_complete=named())
@as_json
def list_(kind: str | None, as_json: bool) -> None:
    """Tell names and what they mean.

    Without KIND, how many there are of each kind.
    """
    if kind is None:
        return click.echo(layout({each: len(meanings(each)) for each in KINDS}, as_json))
    if kind not in KINDS:
        raise UserError(f"{kind!r}: no such kind; {alike(kind, KINDS)}there are {', '.join(KINDS)}")
    return click.echo(layout(meanings(kind), as_json))


@command("deep_linear/staircase")
@click.argument(
    "what", metavar="CELL|EXPERIMENT|FILE", shell_complete=named("experiments", "papers")
)
@configfile
@as_json
def show(what: str, configfile: Sequence[Path], as_json: bool) -> None:
    """Tell what would run, or what a file holds.

    What would run: a cell, paper/experiment/label, or all those of an experiment or paper; with
    sizes, time and memory, and which theory is for it. FILE is a result file (.nc).
    """
    if Path(what).suffix == ".nc":
        return click.echo(layout(about_file(Path(what)), as_json))
    plan = _plan(_configuration([what], configfile, None))
    todo = unmade(Path(plan.results), plan.cells)
    cells = {
        name: {"to_make": todo.get(name, [])} | about_cell(cell, plan.gpus_each > 0)
        for name, cell in plan.cells.items()
    }
    return click.echo(layout(cells, as_json))


@command("deep_linear/staircase --cores 2")
@click.argument(
    "what",
    nargs=-1,
    metavar="[PAPER|EXPERIMENT|CELL]...",
    shell_complete=named("experiments", "papers"),
)
@configfile
@click.option("--results", metavar="FOLDER", help="Where results go.")
@click.option("--cores", metavar="N", callback=positive, help="How many; all when absent.")
@click.option(
    "--profile",
    type=FOLDER,
    metavar="FOLDER",
    help="Of Snakemake, such as profiles/slurm: jobs go where it says.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only tell what would run.")
def run(
    what: Sequence[str],
    configfile: Sequence[Path],
    results: str | None,
    cores: str | None,
    profile: Path | None,
    dry_run: bool,
) -> int:
    """Train, solve and measure.

    Without names, all that FILE names, or all that is configured in this folder. What is there and
    up to date is not made again.
    """
    files = _configuration(what, configfile, results)
    # also the one that Snakemake would find by itself, which may have come with somebody's files
    own = Path("profiles", "default")
    found = profile or (own if own.exists() else root() / own)
    chosen = read_profile(found)
    check(chosen)
    said = files.pop("command line")
    _plan(chosen.files | files | {"command line": said})  # mistakes are told before it starts
    order = [sys.executable, "-m", "snakemake", "--snakefile", str(root() / "Snakefile")]
    order += ["--workflow-profile", str(found), *(["--dry-run"] if dry_run else [])]
    order += ["--cores", cores or "all"] if cores or profile is None else []
    values = {"settings": list(map(str, configfile))} | said
    # as JSON, since Snakemake takes text for YAML; in blanks, since it cuts quotes at the ends off
    told = (f"{key}= {json.dumps(value, ensure_ascii=False)} " for key, value in values.items())
    order += ["--config", *told]
    with subprocess.Popen([*order, "--", "cells"], env=os.environ | _home()) as process:  # noqa: S603
        with suppress(KeyboardInterrupt):  # it is told too, and stops its jobs first
            return process.wait()
        return process.wait()


@command("mine")
@click.argument("name")
def new(name: str) -> None:
    """Begin an experiment of your own.

    Writes a configuration to change, of the paper NAME into a folder NAME.
    """
    path = Path(name, "experiments.yaml")
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{name!r}: is no name of a paper; begin with a lower-case letter, and go on with "
            "such letters, digits and underscores"
        )
    refuse_taken(name)
    if Path(name).exists() or Path("config", name).exists():
        raise UserError(f"{name}: is there already; use another name")
    write_text(TEMPLATE.replace("NAME", name), path)
    click.echo(f"{path} is written. Change it as you like, then:")
    click.echo(f"neuralrace show {name} --configfile {path}")
    click.echo(f"neuralrace run --configfile {path}")


@command("mypapers")
@click.argument("folder", type=FOLDER)
def deploy(folder: Path) -> None:
    """Write workflow and configuration into FOLDER.

    To change the papers' experiments, or to draw their figures, without a clone.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is there already and not empty; name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in (root() / name for name in FILES):
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / source.name, ignore=ignored)
            else:
                shutil.copy(source, folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error}); name another folder") from error
    click.echo(f"{folder} is written: {', '.join(FILES)}. Then:")
    click.echo(f"cd {folder}")
    click.echo("neuralrace run deep_linear/staircase   # one experiment")
    click.echo("snakemake --cores all figures          # everything")


@command("half-times")
@click.argument("id", required=False, shell_complete=named("claims"))
@click.option("--results", default="results", type=FOLDER, metavar="FOLDER", help="Where they are.")
@as_json
def claims(id: str | None, results: Path, as_json: bool) -> None:
    """Tell what came out of claims and findings.

    With ID, all that is known of one of them.
    """
    from neuralrace.claims.table import read_tables

    claimed, found = read_tables(results)
    rows = {row.id: row.model_dump(mode="json", exclude_none=True) for row in (*claimed, *found)}
    if id is None:
        keys = ("status", "measured", "interval", "statement")
        told = {name: {k: row[k] for k in keys if k in row} for name, row in rows.items()}
        return click.echo(layout(told, as_json, digits=6))
    if id not in rows:
        raise UserError(
            f"{id!r}: no such claim or finding in {results}; {alike(id, rows)}"
            "`neuralrace claims` lists them"
        )
    first = {key: rows[id][key] for key in ("id", "paper", "status")}
    return click.echo(layout(first | rows[id], as_json, digits=6))


@command("results")
@click.argument("folder", default="results", type=FOLDER)
def verify(folder: Path) -> None:
    """Check result files and figures.

    All in FOLDER, results when absent: against their checksums and the schema, and from what they
    were made.
    """
    from neuralrace.records.verify import verify as verified

    own = folder.resolve() == Path("results").resolve()
    verified(folder, Path("figures") if own else folder / "figures", click.echo)


@command("results other/results")
@click.argument("folder", type=FOLDER)
@click.argument("other", type=FOLDER)
def compare(folder: Path, other: Path) -> None:
    """Compare two results folders.

    Figures that look otherwise in OTHER, of another machine or version, claims that come out
    otherwise, and for each metric the largest difference beside what rounding explains. Of two
    folders of figures, the figures alone.
    """
    from neuralrace.compare import report

    for each in (folder, other):
        if not each.is_dir():
            raise UserError(f"{each}: no such folder; name two results folders")
    for line in report(folder, other):
        click.echo(line)


@command("results.zip --only deep_linear")
@click.argument("folder", nargs=-1, type=FOLDER, metavar="[FOLDER]")
@click.argument("file", type=FOLDER, metavar="FILE.zip")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=named("experiments", "papers"),
    help="A paper, experiment or cell; may be given again.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def export(folder: Sequence[Path], file: Path, only: Sequence[str], force: bool) -> None:
    """Pack results to pass on.

    All that is finished in FOLDER, results when absent, goes into one archive: cells, and the
    figures and tables that rest on these alone.
    """
    from neuralrace.export import export as packed

    if len(folder) > 1:
        raise UserError(f"{folder[1]}: is one folder too many; give one, and then a file to write")
    report = partial(_progress(), "packed")
    cells, figures = packed(folder[0] if folder else Path("results"), file, only, force, report)
    counts = [(len(cells), "cell"), (len(figures), "figure")]
    held = ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
    click.echo(f"{file} holds {held}, {file.stat().st_size / 1e6:.1f} MB")


@command("anna.zip ben/results --into results")
@click.argument("source", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--into",
    required=True,
    type=FOLDER,
    metavar="FOLDER",
    help="Where they go. What is there stays, and counts as a source.",
)
@click.option(
    "--prefer",
    multiple=True,
    type=FOLDER,
    metavar="SOURCE",
    help="Whose cells count where values alone differ; may be given again.",
)
def merge(source: Sequence[Path], into: Path, prefer: Sequence[Path]) -> None:
    """Put results of several people or machines together.

    SOURCE is a results folder, or an archive of `neuralrace export`. A cell is taken whole from
    one of them. If sources have the same cell with another specification, code or values, all of
    that is listed and nothing is written.
    """
    from neuralrace.merge import merge as merged

    counts = merged(source, into, prefer, _progress())
    there = counts.pop(into)
    told = [f"{count} from {path}" for path, count in counts.items()] + [f"{there} were there"]
    click.echo(f"{into} holds {sum(counts.values(), there)} cells: {', '.join(told)}")
    click.echo("Claims and metrics.csv follow from them: snakemake --cores all claims metrics")


def _home() -> dict[str, str]:
    """Where Snakemake may keep what it reads, if not in the home of who runs it."""
    if os.access(os.path.expanduser("~"), os.W_OK):
        return {}
    return {"XDG_CACHE_HOME": str(Path(".snakemake/cache").absolute())}


# Configuration -----------------------------------------------------------------------------------


def _configuration(names: Sequence[str], extra: Sequence[Path], results: str | None) -> dict:
    """What is configured by file, weakest first; what the command line says is the last of them."""
    files = {str(path): read_file(path) for path in (*papers(), *extra)}
    names = names or [name for path in extra for name in experiments(files[str(path)])]
    if not names and configuration() != Path("config"):
        raise UserError(
            "there is no config/*/experiments.yaml in this folder, so name what to run: a paper, "
            "an experiment or a cell of `neuralrace list experiments`, or a file by --configfile"
        )
    said = {"only": list(dict.fromkeys(names)), "results": results}
    return files | {"command line": {key: value for key, value in said.items() if value}}


def _progress() -> Callable[[str, int, int], None]:
    """Tells what is done, of how many bytes, every now and then."""
    shown = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > INTERVAL:
            shown = time.monotonic()
            click.echo(f"{what} {done / 1e6:.0f} of {total / 1e6:.0f} MB", err=True)

    return report


def _plan(files: Mapping[str, Mapping]) -> Plan:
    return read_plan(reduce(laid_over, files.values(), {}), files)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status, 1 where something is the user's to mend."""
    try:
        return commands.main(arguments, prog_name="neuralrace", standalone_mode=False) or 0
    except UserError as error:
        told = str(error)
    except click.UsageError as error:
        told = error.format_message()
        told += "" if told.endswith((".", "?", "?)")) else "."
        told += f" See {error.ctx.command_path if error.ctx else 'neuralrace'} --help"
    except click.Abort:
        told = "stopped"
    click.echo(f"error: {told}", err=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
