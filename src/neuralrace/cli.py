"""The command line: `neuralrace --help`.

Answers are YAML, for people, or JSON for programs (`--json`). What only some commands need, such as
xarray, they import themselves: to list and to plan takes none of it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn, get_args

import yaml

from neuralrace.atomic import write_text
from neuralrace.base import Strict
from neuralrace.claims.spec import read_claims
from neuralrace.cost import cost_of
from neuralrace.descent import OPTIMISERS
from neuralrace.errors import UserError, alike
from neuralrace.needs import unmet
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.plan import Plan, laid_over, papers, read_file, read_plan
from neuralrace.provenance import ROOT
from neuralrace.registry import FIGURES, METRICS, OBSERVABLES, SOLUTIONS, Entry
from neuralrace.schedule import outdated
from neuralrace.spec import DATASETS, LAWS, NETWORKS, Cell

SNAKEFILE = ROOT.parents[1] / "Snakefile"
"""The workflow, which stands beside the library and is not installed with it."""
DECLARED: dict[str, Mapping[str, Entry[Any]]] = {
    "figures": FIGURES,
    "metrics": METRICS,
    "solutions": SOLUTIONS,
    "observables": OBSERVABLES,
}
CLASSES: dict[str, Sequence[type[Strict]]] = {
    "datasets": DATASETS,
    "networks": NETWORKS,
    "gates": (*SAMPLE_SCHEMES, *DOMAIN_SCHEMES, *PAIRS),
    "initialisations": LAWS,
    "optimisers": OPTIMISERS,
}
KINDS = ("papers", "experiments", "claims", *DECLARED, *CLASSES)
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


# Configuration -----------------------------------------------------------------------------------


def _configuration(names: Sequence[str], extra: Sequence[Path], results: str | None) -> dict:
    """What is configured by file, weakest first; what the command line says is the last of them."""
    files = {str(path): read_file(path) for path in (*papers(), *extra)}
    if not files:
        raise UserError(
            "config/*/experiments.yaml: there is no configuration in this folder; go to a clone of "
            "neuralrace, or write one by `neuralrace new NAME` and give it by --configfile"
        )
    names = names or [name for path in extra for name in _experiments(files[str(path)])]
    said = {"only": list(dict.fromkeys(names)), "results": results}
    return files | {"command line": {key: value for key, value in said.items() if value}}


def _plan(files: Mapping[str, Mapping]) -> Plan:
    return read_plan(reduce(laid_over, files.values(), {}), files)


def _experiments(content: Mapping) -> list[str]:
    """Experiments in the content of a file, `paper/experiment`; what is none is refused later."""
    return [
        f"{paper}/{name}"
        for paper, inside in _items(content.get("experiments"))
        for name, _ in _items(inside)
    ]


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


# Commands ----------------------------------------------------------------------------------------


def list_(given: argparse.Namespace) -> None:
    """Names and what they mean; how many there are of each kind, where none is named."""
    if given.kind:
        return _tell(_meanings(given.kind), given.json)
    return _tell({kind: len(_meanings(kind)) for kind in KINDS}, given.json)


def _meanings(kind: str) -> dict[str, str]:
    if kind in DECLARED:
        return {name: _first(entry.text) for name, entry in DECLARED[kind].items()}
    if kind in CLASSES:
        texts = [(_name(cls), _first(cls.__doc__ or "")) for cls in CLASSES[kind]]
        return {n: " / ".join(text for other, text in texts if other == n) for n, _ in texts}
    if kind == "claims":
        written = read_claims(sorted(Path("config").glob("*/claims.yaml"))).values()
        return {each.id: each.statement for claims in written for each in claims.statements}
    return _commented(kind)


def _commented(kind: str) -> dict[str, str]:
    """Papers by the comment that their file begins with, experiments by the last one above."""
    found: dict[str, str] = {}
    for path in papers():
        text = path.read_text(encoding="utf-8")
        for name in _experiments(read_file(path)):
            paper, experiment = name.split("/", 1)
            if kind == "papers":
                found[paper] = _comment(text, "")
            else:
                above = next(reversed(found), "")
                same = found[above] if above.startswith(f"{paper}/") else ""
                found[name] = _comment(text, f"{experiment}:") or same
    return found


def _comment(text: str, above: str) -> str:
    lines = re.search(rf"(?m)((?:^ *#.*\n)+) *{re.escape(above)}", text)
    return _first(re.sub(r"(?m)^ *# ?", "", lines[1])) if lines else ""


def _first(text: str) -> str:
    """The first sentence of a text; what follows a point and begins small goes on with it."""
    told = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", told)[0]


def _name(cls: type[Strict]) -> str:
    return get_args(cls.model_fields["name"].annotation)[0]


def show(given: argparse.Namespace) -> None:
    """What a result file holds, or what would run."""
    if Path(given.what).suffix == ".nc":
        return _tell(_file(Path(given.what)), given.json)
    plan = _plan(_configuration([given.what], given.configfile, None))
    todo = outdated(Path(plan.results), plan)
    cells = {
        name: {"to_make": list(todo[name].keys) if name in todo else []} | _cell(cell, plan.on_gpu)
        for name, cell in plan.cells.items()
    }
    return _tell(cells, given.json)


def _cell(cell: Cell, gpu: bool) -> dict[str, Any]:
    cost, sizes = cost_of(cell, gpu), cell.dataset.sizes
    holds = {name: unmet(cell, entry.declaration.needs) for name, entry in SOLUTIONS.items()}
    return {
        "specification": cell.model_dump(mode="json"),
        "runs": len(cell.init_scales) * cell.seeds,
        **sizes._asdict(),
        "weights": int(cell.resolved.arithmetic(cell.dataset, sizes, cell.training).weights),
        "core_seconds": {
            stage: round(getattr(cost, stage), 2)
            for stage in ("compile", "train", "solve", "measure")
        },
        "memory_mb": cost.memory_mb,
        "place": cost.place,
        "theory_that_holds": [name for name, reason in holds.items() if not reason],
        "theory_that_does_not": {name: reason for name, reason in holds.items() if reason},
    }


def _file(path: Path) -> dict[str, Any]:
    from neuralrace.records.files import read

    dataset = read(path)
    return {
        "attributes": dataset.attrs | {"spec": json.loads(dataset.attrs["spec"])},
        "variables": {
            str(name): {
                "dimensions": {str(dim): size for dim, size in variable.sizes.items()},
                "meaning": variable.attrs.get("long_name", ""),
                "units": variable.attrs.get("units", "1"),
            }
            for name, variable in dataset.variables.items()
        },
    }


def run(given: argparse.Namespace) -> int:
    """Runs the workflow; returns its exit status."""
    files = _configuration(given.what, given.configfile, given.results)
    _plan(files)  # mistakes are told before Snakemake starts
    if not SNAKEFILE.is_file():
        raise UserError(
            f"{SNAKEFILE}: the workflow is not there; install neuralrace from a clone of its "
            "repository: pip install --editable FOLDER"
        )
    with TemporaryDirectory() as folder:
        said = Path(folder, "command_line.yaml")
        said.write_text(yaml.safe_dump(files["command line"]), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
        command += ["--cores", given.cores, *(["--dry-run"] if given.dry_run else [])]
        command += ["--configfile", *map(str, given.configfile), str(said), "--", "cells"]
        with subprocess.Popen(command) as process:  # noqa: S603
            with suppress(KeyboardInterrupt):  # it is told too, and stops its jobs first
                return process.wait()
            return process.wait()


def new(given: argparse.Namespace) -> None:
    """Writes a configuration to begin with."""
    name, path = given.name, Path(given.name, "experiments.yaml")
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(f"{name!r}: use lower-case letters, digits and underscores")
    if Path(name).exists() or Path("config", name).exists():
        raise UserError(f"{name}: is there already; use another name")
    write_text(TEMPLATE.replace("NAME", name), path)
    print(f"{path} is written. Change it as you like, then:")
    print(f"neuralrace show {name} --configfile {path}")
    print(f"neuralrace run --configfile {path}")


def claims(given: argparse.Namespace) -> None:
    """What came out of claims and findings."""
    from neuralrace.claims.table import read_tables

    claimed, found = read_tables(Path(given.results))
    rows = {row.id: row.model_dump(mode="json", exclude_none=True) for row in (*claimed, *found)}
    if given.id is None:
        keys = ("status", "measured", "interval", "statement")
        told = {name: {k: row[k] for k in keys if k in row} for name, row in rows.items()}
        return _tell(told, given.json)
    if given.id not in rows:
        raise UserError(
            f"{given.id!r}: no such claim or finding in {given.results}; {alike(given.id, rows)}"
            "`neuralrace claims` lists them"
        )
    return _tell(rows[given.id], given.json)


def verify(given: argparse.Namespace) -> None:
    """Whether files are as they were written."""
    from neuralrace.given import SOURCES
    from neuralrace.records.verify import verify as verified

    files = [str(p) for p in sorted(Path(given.folder).rglob("*.nc")) if p.stem in SOURCES]
    if not files:
        raise UserError(f"{given.folder}: no result files; name the folder that holds some")
    verified(dict.fromkeys(files), print)


def compare(given: argparse.Namespace) -> None:
    """What differs between two results folders."""
    from neuralrace.compare import report

    for folder in (given.one, given.other):
        if not Path(folder).is_dir():
            raise UserError(f"{folder}: no such folder; name two results folders")
    for line in report(Path(given.one), Path(given.other)):
        print(line)


def _tell(content: Mapping[str, Any], as_json: bool) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
    if not as_json:  # from JSON: plain values, none of which stands twice
        layout = {"default_flow_style": False, "sort_keys": False, "width": 100}
        text = yaml.dump(json.loads(text), Dumper=Plain, allow_unicode=True, **layout).rstrip()
    print(text)


class Plain(yaml.SafeDumper):
    """Mappings line by line, lists on a line."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        """See `yaml.SafeDumper`."""
        return super().represent_sequence(tag, sequence, flow_style=True)


# Arguments ---------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Arguments that cannot be understood are the user's to mend, like anything else."""

    def error(self, message: str) -> NoReturn:
        """Ends with the message.

        Raises:
            UserError: always.
        """
        raise UserError(f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """All commands with their arguments."""
    top = Parser(prog="neuralrace", description="Theories of learning dynamics, tried on networks.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Any, help: str, example: str, as_json: bool = False) -> Parser:
        name = function.__name__.rstrip("_")
        added = commands.add_parser(
            name, help=help, description=help, epilog=f"example: neuralrace {name} {example}"
        )
        added.set_defaults(function=function)
        if as_json:
            added.add_argument("--json", action="store_true", help="for programs")
        return added

    def configured(added: Parser) -> None:
        added.add_argument(
            "--configfile",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="laid over config/*/experiments.yaml; may be given again",
        )

    added = command(list_, "names and what they mean", "metrics", as_json=True)
    added.add_argument("kind", nargs="?", choices=KINDS)
    added = command(
        show, "what would run, or what a file holds", "deep_linear/staircase", as_json=True
    )
    added.add_argument(
        "what", metavar="CELL|EXPERIMENT|FILE", help="paper/experiment/label, or less of it; *.nc"
    )
    configured(added)
    added = command(run, "train, solve and measure", "deep_linear/staircase --cores 2")
    added.add_argument(
        "what",
        nargs="*",
        metavar="PAPER|EXPERIMENT|CELL",
        help="when absent, all that FILE names, or everything",
    )
    configured(added)
    added.add_argument("--results", metavar="FOLDER", help="where results go")
    added.add_argument("--cores", default="all", metavar="N", help="how many; all when absent")
    added.add_argument("-n", "--dry-run", action="store_true", help="only tell what would run")
    added = command(new, "write a configuration to begin with", "mine")
    added.add_argument("name", metavar="NAME", help="of the folder, and of the paper in it")
    added = command(claims, "what came out of claims and findings", "half-times", as_json=True)
    added.add_argument("id", nargs="?", metavar="ID", help="one of them, with all that is known")
    added.add_argument("--results", default="results", metavar="FOLDER", help="where they are")
    added = command(verify, "check files against checksum and schema", "results")
    added.add_argument("folder", nargs="?", default="results", metavar="FOLDER", help="of files")
    added = command(compare, "two results folders, metric by metric", "results other/results")
    added.add_argument("one", metavar="FOLDER", help="results")
    added.add_argument("other", metavar="OTHER", help="results of another machine or version")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status, 1 where something is the user's to mend."""
    try:
        given = parser().parse_args(arguments)
        status = given.function(given) or 0
        sys.stdout.flush()
        return status
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    except BrokenPipeError:  # who reads has seen enough, as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
