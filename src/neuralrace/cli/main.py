"""Commands of the command line interface.

Whatever takes long to import is imported inside the commands that need it, so that help comes at
once, and listing and planning do not wait for xarray. That is true of the models of a configuration
too.
"""

import atexit
import gc
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from neuralrace.config.bundled import FILES, root
from neuralrace.errors import UserError, counted, did_you_mean
from neuralrace.results.atomic import write_text

if TYPE_CHECKING:
    from neuralrace.config.settings import Plan

INTERVAL = 2.0
"""Seconds between two progress lines."""
TEMPLATE = """\
# Your experiment. `neuralrace list datasets` lists the datasets that you can name here,
# `neuralrace list metrics` the metrics, and so on.
experiments:
  NAME:
    # linear networks learn a hierarchy of items, its broad distinctions first
    first:
      dataset: {name: hierarchy}              # or {name: file, path: my.npz}, with arrays x and y
      network: {name: layered, hidden: [16]}  # widths of the hidden layers
      init: {name: normal}                    # distribution of the initial weights
      init_scales: [0.001, 0.01]              # factors on the initial weights
      seeds: 5                                # training runs for each factor
      training: {learning_rate: 0.05, steps: 1000}
      record: {every: 10, observables: [mode_strength]}  # recorded during training
      solutions: [aligned_modes]              # theory from the same initial weights
      metrics: [analytic_fit, learning_times] # computed from both
      # train once for each value:
      # sweep: {training.learning_rate: [0.05, 0.1]}
"""


# Arguments ---------------------------------------------------------------------------------------


class NonEmptyPath(click.Path):
    """A path of a file or folder, in which `~` stands for the user's home folder.

    An empty text is refused, which Python reads as the current folder.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        if value == "":
            self.fail("an empty text is no name of a file or folder", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


PATH = NonEmptyPath(path_type=Path)


@click.group(
    no_args_is_help=False,
    epilog="Manual, and completion by the shell: docs/command_line.md in the repository",
)
@click.version_option(package_name="neuralrace")
def commands() -> None:
    """Train networks, and compare them with theory of their learning dynamics."""


def command(example: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Registers a function as the command of its name, with an example at the end of its help."""

    def register(function: Callable[..., Any]) -> click.Command:
        name = function.__name__.rstrip("_")
        epilog = f"example: neuralrace {name} {example}"
        return commands.command(name, epilog=epilog)(function)

    return register


def completion(*kinds: str) -> Callable[..., list[CompletionItem]]:
    """Shell completion with the names of some kinds, or with files if no name fits."""

    def complete(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
        from neuralrace.cli.listing import KINDS, descriptions

        names: list[str] = [] if kinds else list(KINDS)
        with suppress(UserError):
            names += [name for kind in kinds for name in descriptions(kind)]
        items = [CompletionItem(name) for name in names if name.startswith(prefix)]
        return items or [CompletionItem(prefix, type="file")]

    return complete


def core_count(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """The value of --cores, with a number in place of `all`; None without the option.

    Snakemake's own `all` does not know what a container may use.

    Raises:
        UserError: another value.
    """
    if value not in (None, "all") and not re.fullmatch("0*[1-9][0-9]*", value):
        raise UserError("give a whole number above 0, or all", key="--cores", value=value)
    return all_cores() if value == "all" else value


def all_cores() -> str:
    """Value of --cores for all processors that this process may use."""
    from neuralrace.training.processors import usable_cores

    return str(usable_cores())


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
configfile = click.option(
    "--configfile",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="Configuration laid over config/*/experiments.yaml; may be repeated.",
)
results = click.option(
    "--results",
    type=NonEmptyPath(),
    metavar="FOLDER",
    help="Folder for the results; default: results.",
)
cores = click.option(
    "--cores", metavar="N", callback=core_count, help="Processors to use; default: all."
)
profile = click.option(
    "--profile",
    type=PATH,
    metavar="FOLDER",
    help="Snakemake profile that says where jobs run, such as profiles/slurm.",
)


# Commands ----------------------------------------------------------------------------------------


@command("metrics")
@click.argument("kind", required=False, shell_complete=completion())
@as_json
def list_(kind: str | None, as_json: bool) -> None:
    """List metrics, datasets, experiments and other names.

    KIND is one of papers, experiments, claims, figures, metrics, solutions, observables, datasets,
    networks, gates, initialisers, optimisers and requirements (what theories and metrics assume).
    Each name comes with a one-line description. Without KIND, the number of names of each kind is
    printed.
    """
    from neuralrace.cli.listing import KINDS, descriptions
    from neuralrace.cli.show import layout

    if kind is None:
        click.echo(layout({each: len(descriptions(each)) for each in KINDS}, as_json))
        return None if as_json else click.echo("# names and meaning: neuralrace list metrics")
    if kind not in KINDS:
        remedy = f"{did_you_mean(kind, KINDS)}choose one of {', '.join(KINDS)}"
        raise UserError("is no kind of name", value=kind, remedy=remedy)
    return click.echo(layout(descriptions(kind), as_json))


@command("training")
@click.argument("prefix", default="")
def keys(prefix: str) -> None:
    """List the keys of a configuration.

    Each key comes with its meaning, type and default. With PREFIX, only the keys inside it are
    listed.
    """
    from neuralrace.config.manual import key_lines, sections

    lines = key_lines(prefix)
    if not lines:
        known = {key.path for section in sections() for key in section.keys}
        remedy = f"{did_you_mean(prefix, sorted(known))}`neuralrace keys` lists all"
        raise UserError("no key begins with it", value=prefix, remedy=remedy)
    click.echo("\n".join(lines))


@command("deep_linear/staircase")
@click.argument(
    "what", metavar="CELL|EXPERIMENT|FILE", shell_complete=completion("experiments", "papers")
)
@configfile
@as_json
def show(what: str, configfile: Sequence[Path], as_json: bool) -> None:
    """Show what would run, or the contents of a result file.

    For a CELL (paper/experiment/label), or for every cell of an EXPERIMENT (paper/experiment) or
    a paper: its sizes, estimated time and memory, and which theory applies. For a result FILE
    (.nc): its attributes and variables.
    """
    from neuralrace.cli.show import about_cell, about_file, layout
    from neuralrace.workflow.stages import stale_files

    if Path(what).suffix == ".nc":
        return click.echo(layout(about_file(Path(what)), as_json))
    plan = _plan(_configuration([what], configfile, None))
    stale = stale_files(Path(plan.results), plan.cells)
    cells = {
        name: {"to_make": stale.get(name, [] if as_json else "nothing (up to date)")}
        | about_cell(cell, plan.gpus_each > 0)
        for name, cell in plan.cells.items()
    }
    return click.echo(layout(cells, as_json))


@command("deep_linear/staircase")
@click.argument(
    "what",
    metavar="[CELL|EXPERIMENT]",
    required=False,
    shell_complete=completion("experiments", "papers"),
)
@configfile
@as_json
def theories(what: str | None, configfile: Sequence[Path], as_json: bool) -> None:
    """List theories, what each assumes, and where it holds.

    With a CELL (paper/experiment/label) or an EXPERIMENT (paper/experiment), first those that apply
    to it, and for all others the reason why not. Where a theory holds is told by the benchmark:
    the init scales at which it misses the loss by less than a tenth, for each task. The words for
    what a theory assumes are explained by `neuralrace list requirements`.
    """
    from neuralrace.board.held_out import configured
    from neuralrace.board.pages import held_tasks
    from neuralrace.board.stored import stored_board
    from neuralrace.board.theories import theories
    from neuralrace.cli.show import layout

    cells = _plan(_configuration([what], configfile, None)).cells if what else {"": None}
    board = stored_board(configured("board.json"))
    shown = {}
    for name, cell in cells.items():
        found = theories(cell)
        applying = {
            theory.solution: {
                **{k: v for k, v in theory._asdict().items() if v and k != "solution"},
                "holds": held_tasks(board, theory.solution),
            }
            for theory in found
            if not theory.unmet
        }
        others = {theory.solution: theory.unmet for theory in found if theory.unmet}
        shown[name] = {"theories_that_apply": applying, "theories_that_do_not": others}
        shown[name] = shown[name] if what else applying
    click.echo(layout(shown if what else shown[""], as_json))


@command("deep_linear/staircase --cores 2")
@click.argument(
    "what",
    nargs=-1,
    metavar="[PAPER|EXPERIMENT|CELL]...",
    shell_complete=completion("experiments", "papers"),
)
@configfile
@results
@cores
@profile
@click.option("-n", "--dry-run", is_flag=True, help="Print the jobs that would run, and stop.")
def run(
    what: Sequence[str],
    configfile: Sequence[Path],
    results: str | None,
    cores: str | None,
    profile: Path | None,
    dry_run: bool,
) -> int:
    """Run experiments: train, solve theory, compute metrics.

    Without names, every experiment in FILE runs, or every experiment that is configured in this
    folder. Results that are up to date stay. An experiment of your own also gets a plot of each
    cell, in the folder of figures.
    """
    files = _configuration(what, configfile, results)
    return _snakemake(["cells", "plots"], files, configfile, cores, profile, dry_run)


@command("--only aligned_modes")
@click.option(
    "--only",
    multiple=True,
    metavar="ENTRY",
    shell_complete=completion("solutions"),
    help="Print the scores of this theory, beside the best of all others; may be repeated.",
)
@click.option(
    "--draw",
    type=click.IntRange(0, 10**6),
    metavar="N",
    help="Number of the draw of held-out tasks; default: the last one, or else a new one.",
)
@configfile
@results
@cores
@profile
def benchmark(
    only: Sequence[str],
    draw: int | None,
    configfile: Sequence[Path],
    results: str | None,
    cores: str | None,
    profile: Path | None,
) -> int:
    """Score every theory against simulations of the same runs.

    Every solution that applies to a task is scored, those of installed packages too, and so are
    baselines such as the tangent kernel. Tasks of your own come from --configfile, as experiments
    of `benchmark`. The board is kept in `<results>/benchmark.md`, `.csv` and `.nc`. A second call
    computes only what is new.
    """
    from neuralrace.board.held_out import configured, write_drawn_tasks
    from neuralrace.config.load import read_file
    from neuralrace.extensions.registry import SOLUTIONS
    from neuralrace.metrics.benchmark import OTHER_SEEDS

    for entry in set(only) - {OTHER_SEEDS}:
        SOLUTIONS.known(entry, "--only")
    chosen = [results, *(read_file(path).get("results") for path in reversed(configfile))]
    folder = Path(os.path.expanduser(next((str(name) for name in chosen if name), "results")))
    drawn = write_drawn_tasks(folder / "benchmark" / "held_out.yaml", draw)
    settings = [configured("tasks.yaml"), drawn, *configfile]
    files = _configuration(["benchmark"], settings, results)
    if status := _snakemake(["benchmark"], files, settings, cores, profile):
        return status
    import xarray as xr

    from neuralrace.board.build import tasks_of
    from neuralrace.board.cost import core_seconds
    from neuralrace.board.pages import lines

    board = xr.load_datatree(folder / "benchmark.nc")
    click.echo("\n".join(lines(board, only)))
    cells = [path for task in tasks_of(board) for path in folder.glob(f"benchmark/{task}/*")]
    spent = core_seconds(folder, (path.relative_to(folder).as_posix() for path in cells))
    shown = (f"{name} {seconds:.1f}" for name, seconds in spent.items())
    click.echo(f"Core-seconds over all tasks: {', '.join(shown)}")
    click.echo(f"The whole board: {folder / 'benchmark.md'}")
    return 0


@command("mine")
@click.argument("name")
def new(name: str) -> None:
    """Write a configuration for an experiment of your own.

    The file NAME/experiments.yaml holds the experiment NAME/first, which runs without changes.
    Edit it.
    """
    from neuralrace.config.load import config_folder
    from neuralrace.config.settings import refuse_reserved
    from neuralrace.config.sweep import NAME

    path = Path(name, "experiments.yaml")
    if not re.fullmatch(NAME, name):
        raise UserError(
            "is no valid name",
            value=name,
            remedy="use lower-case letters, digits and underscores, at most 100, and begin with a "
            "letter",
        )
    refuse_reserved(name)
    if Path(name).exists() or (config_folder() / name).exists():
        raise UserError("exists already", file=name, remedy="use another name")
    write_text(TEMPLATE.replace("NAME", name), path)
    click.echo(f"Wrote {path}. Edit it, then:")
    click.echo(f"neuralrace show {name} --configfile {path}")
    click.echo(f"neuralrace run --configfile {path}")


@command("mypapers")
@click.argument("folder", type=PATH)
def deploy(folder: Path) -> None:
    """Copy the workflow and its configuration into FOLDER.

    There you can edit the papers' experiments and draw their figures, without a clone of the
    repository.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        problem = "exists already and is not empty"
        raise UserError(problem, file=folder, remedy="name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in (root() / name for name in FILES):
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / source.name, ignore=ignored)
            else:
                shutil.copy(source, folder)
    except OSError as error:
        problem = f"cannot be written ({error})"
        raise UserError(problem, file=folder, remedy="name another folder") from error
    click.echo(f"Wrote {', '.join(FILES)} into {folder}. Then:")
    click.echo(f"cd {folder}")
    click.echo("neuralrace run deep_linear/staircase   # one experiment")
    click.echo("snakemake --cores all figures          # everything")


@command("half-time")
@click.argument("id", required=False, shell_complete=completion("claims"))
@click.option(
    "--results", default="results", type=PATH, metavar="FOLDER", help="Folder of results."
)
@as_json
def claims(id: str | None, results: Path, as_json: bool) -> None:
    """Show the status of claims and findings.

    A claim is a statement of a paper; a finding is a result that no paper states. With ID, every
    detail of one of them. The claims have to be judged first: `snakemake --cores all claims`.
    """
    from neuralrace.claims.pages import FINDING, HEADINGS
    from neuralrace.claims.table import read_tables
    from neuralrace.cli.show import layout

    claims, findings = read_tables(results)
    rows = {
        row.id: {"type": name} | row.model_dump(mode="json", exclude_none=True)
        for name, table in (("claim", claims), ("finding", findings))
        for row in table
    }
    if id is None:
        keys = ("type", "status", "measured", "interval", "statement")
        shown = {name: {k: row[k] for k in keys if k in row} for name, row in rows.items()}
        click.echo(layout(shown, as_json, digits=6))
        used = {claim.status for claim in claims} if not as_json else set()
        for status, (_, meaning) in HEADINGS.items():
            if status in used:
                click.echo(f"# {status}: {meaning}")
        if findings and not as_json:
            click.echo(f"# finding: {FINDING}")
        return
    if id not in rows:
        raise UserError(
            f"is no claim or finding of {results}",
            value=id,
            remedy=f"{did_you_mean(id, rows)}`neuralrace claims` lists them",
        )
    first = {key: rows[id][key] for key in ("id", "type", "paper", "status")}
    click.echo(layout(first | rows[id], as_json, digits=6))
    if rows[id]["type"] == "finding" and not as_json:
        click.echo(f"# finding: {FINDING}")


@command("results")
@click.argument("folder", default="results", type=PATH)
def verify(folder: Path) -> None:
    """Check result files, figures and tables for damage.

    Every file in FOLDER (default: results) is compared with its checksum, with the schema of
    result files, and with the files that it was computed from.
    """
    from neuralrace.results.verify import verify as verify_results

    default = folder.resolve() == Path("results").resolve()
    verify_results(folder, Path("figures") if default else folder / "figures", click.echo)


@command("results other/results")
@click.argument("folder", type=PATH)
@click.argument("other", type=PATH)
def compare(folder: Path, other: Path) -> None:
    """Compare two results folders.

    Lists figures that look different, claims with different outcomes, and for each metric the
    largest difference together with the difference that rounding explains. Cells that only one
    folder has, or that have different specifications, are counted and not compared. For two folders
    of figures, only the figures.

    The exit status is 0 if the folders could be compared, whatever the differences, and 1 if not.
    """
    from neuralrace.cli.compare import report

    for each in (folder, other):
        if not each.is_dir():
            raise UserError("is no folder", file=each, remedy="name two results folders")
    for line in report(folder, other):
        click.echo(line)


@command("results.zip --only deep_linear")
@click.argument("folder", nargs=-1, type=PATH, metavar="[FOLDER]")
@click.argument("file", type=PATH, metavar="FILE.zip")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=completion("experiments", "papers"),
    help="Pack this paper, experiment or cell only; may be repeated.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def export(folder: Sequence[Path], file: Path, only: Sequence[str], force: bool) -> None:
    """Pack results into one archive, to share them.

    The archive holds the finished cells of FOLDER (default: results), and the figures and tables
    that were made from these cells only.
    """
    from neuralrace.cli.export import export as export_results

    if len(folder) > 1:
        remedy = "name one folder, then the archive"
        raise UserError("is one folder too many", file=folder[1], remedy=remedy)
    source, report = folder[0] if folder else Path("results"), partial(_progress(), "packed")
    cells, figures = export_results(source, file, only, force, report)
    content = f"{counted(len(cells), 'cell')}, {counted(len(figures), 'figure')}"
    click.echo(f"{file} holds {content}, {file.stat().st_size / 1e6:.1f} MB")


@command("anna.zip ben/results --into results")
@click.argument("source", nargs=-1, required=True, type=PATH)
@click.option(
    "--into",
    required=True,
    type=PATH,
    metavar="FOLDER",
    help="Folder for the merged results. Cells in it stay, and count as a source.",
)
@click.option(
    "--prefer",
    multiple=True,
    type=PATH,
    metavar="SOURCE",
    help="Source to take a cell from where only values differ; may be repeated.",
)
def merge(source: Sequence[Path], into: Path, prefer: Sequence[Path]) -> None:
    """Merge results of several people or machines.

    SOURCE is a results folder, or an archive of `neuralrace export`. Each cell is copied whole
    from one source. If two sources hold the same cell with different specifications, code or
    values, every such conflict is listed and nothing is written.
    """
    from neuralrace.cli.merge import merge as merge_results

    counts = merge_results(source, into, prefer, _progress())
    old = counts.pop(into)
    parts = [f"{count} from {path}" for path, count in counts.items()] + [f"{old} already there"]
    click.echo(f"{into} holds {counted(sum(counts.values(), old), 'cell')}: {', '.join(parts)}")
    click.echo("To update claims and metrics.csv: snakemake --cores all claims metrics")


def _home() -> dict[str, str]:
    """Environment variables that give Snakemake a cache if the home folder is read-only."""
    if os.access(os.path.expanduser("~"), os.W_OK):
        return {}
    return {"XDG_CACHE_HOME": str(Path(".snakemake/cache").absolute())}


# Configuration -----------------------------------------------------------------------------------


def _configuration(
    names: Sequence[str], extra: Sequence[Path], results: str | None
) -> dict[str, Mapping[str, Any]]:
    """Content of each configuration file, weakest first; the last is the command line."""
    from neuralrace.cli.listing import experiments
    from neuralrace.config.load import config_folder, paper_files, read_file

    files = {str(path): read_file(path) for path in (*paper_files(), *extra)}
    for name in names:
        if Path(name).suffix in (".yaml", ".yml"):
            remedy = "give files by --configfile"
            raise UserError("is no name of an experiment", file=name, remedy=remedy)
    names = names or [name for path in extra for name in experiments(files[str(path)])]
    if not names and config_folder() != Path("config"):
        if extra:
            raise UserError(
                f"holds no experiments, but {', '.join(files[str(extra[-1])]) or 'nothing'}",
                file=extra[-1],
                remedy="write them below `experiments:`, or name what to run",
            )
        raise UserError(
            "there is no config/*/experiments.yaml in this folder",
            remedy="name what to run: a paper, an experiment or a cell of `neuralrace list "
            "experiments`, or a file by --configfile",
        )
    only = {"only": list(dict.fromkeys(names))} if names else {}
    return files | {"command line": only | ({} if results is None else {"results": results})}


def _snakemake(
    targets: Sequence[str],
    files: dict[str, Mapping[str, Any]],
    settings: Sequence[Path],
    cores: str | None,
    profile: Path | None,
    dry_run: bool = False,
) -> int:
    """Runs the workflow; returns its exit status.

    Args:
        targets: rules to make.
        files: result of `_configuration`.
        settings: those of its files that come on top of the papers' experiments.
        cores: value of --cores.
        profile: folder of a profile of Snakemake; the default one when absent.
        dry_run: whether to print the jobs only.

    Raises:
        UserError: a mistake in the configuration or the profile.
    """
    from neuralrace.workflow.profile import check
    from neuralrace.workflow.profile import read as read_profile

    # the default profile is checked too: Snakemake would use it, and a download may contain one
    default = Path("profiles", "default")
    folder = profile or (default if default.exists() else root() / default)
    own = read_profile(folder)
    check(own)
    options = files.pop("command line")
    # validates the configuration before Snakemake starts
    _plan({**own.files, **files, "command line": options})
    arguments = ["--snakefile", str(root() / "Snakefile"), "--workflow-profile", str(folder)]
    arguments += ["--dry-run"] if dry_run else []
    arguments += ["--cores", cores or all_cores()] if cores or profile is None else []
    values = {"settings": list(map(str, settings)), **options}
    # JSON, as Snakemake parses values as YAML; with blanks around, as it strips outer quotes
    pairs = (f"{key}= {json.dumps(value, ensure_ascii=False)} " for key, value in values.items())
    arguments += ["--config", *pairs, "--", *targets]
    if dry_run:
        command = [sys.executable, "-m", "snakemake", *arguments]
        done = subprocess.run(  # noqa: S603
            command, env=os.environ | _home(), stdout=subprocess.PIPE, text=True, check=False
        )
        # Snakemake counts the jobs before and after their list, which the profile leaves out
        counts = re.search(r"Job stats:\n(?:.+\n)+\n", done.stdout)
        click.echo(done.stdout.replace(counts[0], "", 1) if counts else done.stdout, nl=False)
        return done.returncode
    # in this process, so that signals to it reach Snakemake, however they come
    from neuralrace.workflow.interrupts import interrupts

    interrupts()
    os.environ.update(_home())
    sys.argv = ["snakemake", *arguments]
    try:
        runpy.run_module("snakemake", run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _progress() -> Callable[[str, int, int], None]:
    """A function that prints progress in bytes, at most one line every `INTERVAL` seconds."""
    shown = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > INTERVAL:
            shown = time.monotonic()
            click.echo(f"{what} {done / 1e6:.0f} of {total / 1e6:.0f} MB", err=True)

    return report


def _plan(files: Mapping[str, Mapping]) -> "Plan":
    from neuralrace.config.load import merge_configs, read_plan

    return read_plan(reduce(merge_configs, files.values(), {}), files)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit status: 1 after an error message, 130 after Ctrl-C."""
    atexit.register(gc.freeze)  # Python collects garbage as it ends, which would take .2 s
    try:
        os.getcwd()
    except FileNotFoundError:
        click.echo("error: the current folder was deleted; change to another one", err=True)
        return 1
    try:
        return commands.main(arguments, prog_name="neuralrace", standalone_mode=False) or 0
    except OSError as error:
        if error.filename is not None:
            raise
        message = f"the output cannot be written ({error.strerror})"
    except UserError as error:
        message = str(error)
    except click.UsageError as error:
        message = error.format_message()
        message += "" if message.endswith((".", "?", "?)")) else "."
        message += f" See {error.ctx.command_path if error.ctx else 'neuralrace'} --help"
    except click.Abort:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # further ones would interrupt this message
        click.echo("stopped by SIGINT", err=True)
        return 128 + signal.SIGINT
    click.echo(f"error: {message}", err=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
