"""The command line: what it tells, what it runs, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from neuralrace.claims.judge import ClaimRow
from neuralrace.claims.setup import Setup
from neuralrace.claims.table import write_tables
from neuralrace.cli import CLASSES, KINDS, main
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.plan import read_plan
from neuralrace.records.files import write
from neuralrace.records.results import CellResults
from neuralrace.records.theory import theory_dataset
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.schedule import keys
from neuralrace.spec import Ensemble, SolvedEnsemble
from neuralrace.training.trainer import train

PROJECT = Path(__file__).parents[1]
COMMANDS = ("list", "show", "run", "new", "claims", "verify", "compare")
MINE = "mine/experiments.yaml"
ROW = ClaimRow(
    id="half-time",
    paper="mine",
    kind="equality",
    statement="It takes that long.",
    verdict="holds",
    status="reproduced",
    measured=1.0,
    interval=(0.9, 1.1),
    evidence=("results/mine/first/main/metrics.nc",),
    locator="sec. 2",
    quote="It takes that long.",
    source_setup=Setup(locator="sec. 2", printed={}),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a new configuration, and all result files of it."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["new", "mine"]) == 0
    content = yaml.safe_load((folder / MINE).read_text())
    ((name, cell),) = read_plan(content, {}).cells.items()
    ensemble = cell.only(Ensemble)
    results = CellResults(
        name,
        folder / "results" / name,
        cell,
        trajectory_dataset(name, ensemble, train(ensemble)),
        theory_dataset(name, cell.only(SolvedEnsemble)),
    )
    results.metrics = metrics_dataset(results)
    for kind in ("trajectory", "theory", "metrics"):
        write(getattr(results, kind), results.path(kind), keys(name, cell)[kind])
    write_tables([ROW], [], folder / "results")
    return folder


@pytest.fixture
def told(capsys):
    """What a command prints, as JSON."""

    def tell(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return tell


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_has_a_name_is_listed_with_its_meaning(told, monkeypatch, kind):
    monkeypatch.chdir(PROJECT)
    assert all(told("list", kind).values())


def test_lists_are_read_from_what_is_there(told, monkeypatch, capsys):
    monkeypatch.chdir(PROJECT)
    assert list(told("list", "papers")) == sorted(p.parent.name for p in Path().glob("config/*/e*"))
    said = "singular modes learned one by one from small random weights"
    assert told("list", "experiments")["deep_linear/staircase"] == said
    assert told("list", "metrics")["alignment"].endswith(".")
    assert told("list")["datasets"] == len(told("list", "datasets")) == len(CLASSES["datasets"])
    assert main(["list", "optimisers"]) == 0
    assert "sgd: Plain gradient steps.\n" in capsys.readouterr().out


def test_what_would_run_is_shown(told, monkeypatch):
    monkeypatch.chdir(PROJECT)
    shown = told("show", "deep_linear/step_size", "--configfile", "config/deep_linear/smoke.yaml")
    assert {name.rpartition("/")[0] for name in shown} == {"deep_linear/step_size"}
    cell = next(iter(shown.values()))
    spec = cell["specification"]
    assert cell["runs"] == len(spec["init_scales"]) * spec["seeds"]
    assert (cell["inputs"], cell["outputs"], cell["weights"]) == (7, 5, 60)
    assert cell["memory_mb"] > 0
    assert cell["place"] in ("cpu", "gpu")
    assert set(cell["core_seconds"]) == {"compile", "train", "solve", "measure"}
    assert "exact" in cell["theory_that_holds"]
    assert cell["theory_that_does_not"]["mean_field"] == "network.activation: 'linear': use relu"


def test_what_is_there_is_not_made_again(told, finished, monkeypatch):
    monkeypatch.chdir(finished)
    shown = told("show", "mine/first/main", "--configfile", MINE)
    assert shown["mine/first/main"]["to_make"] == []


def test_a_file_is_shown(told, finished):
    shown = told("show", str(finished / "results/mine/first/main/trajectory.nc"))
    assert shown["attributes"]["spec"]["seeds"] == 5
    loss = shown["variables"]["loss"]
    assert loss["dimensions"] == {"init_scale": 2, "seed": 5, "time": 101}
    assert loss["meaning"] == "training loss over all samples"
    assert loss["units"] == "1"


def test_files_are_verified(finished, capsys):
    assert main(["verify", str(finished / "results")]) == 0
    assert capsys.readouterr().out.startswith("3 files verified")


def test_a_damaged_file_is_told(finished, tmp_path, capsys):
    source = finished / "results/mine/first/main"
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "metrics.nc").open("ab") as file:
        file.write(b"more")
    assert main(["verify", str(tmp_path)]) == 1
    assert "metrics.nc: its content does not have the checksum" in capsys.readouterr().err


def test_claims_are_told(told, finished):
    folder = str(finished / "results")
    assert told("claims", "--results", folder) == {
        "half-time": {
            "status": "reproduced",
            "measured": 1.0,
            "interval": [0.9, 1.1],
            "statement": "It takes that long.",
        }
    }
    row = told("claims", "half-time", "--results", folder)
    assert row["evidence"] == ["results/mine/first/main/metrics.nc"]
    assert row["verdict"] == "holds"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"example: neuralrace {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND; see neuralrace --help"),
        (["lst"], "invalid choice: 'lst'"),
        (["list", "metric"], "invalid choice: 'metric'"),
        (["list", "metrics", "--yaml"], "unrecognized arguments: --yaml"),
        (["show"], "required: CELL|EXPERIMENT|FILE; see neuralrace show --help"),
        (["show", "gone.nc"], "gone.nc: result file not found"),
        (["show", "mine/first", "--configfile", "gone.yaml"], "gone.yaml: cannot be read as YAML"),
        (["show", "mine/frst", "--configfile", MINE], "'mine/frst': no such paper, experiment or"),
        (["show", "mine/first"], "go to a clone of neuralrace, or write one by `neuralrace new"),
        (["run"], "go to a clone of neuralrace, or write one by `neuralrace new NAME`"),
        (["run", "--configfile", "text.yaml"], "text.yaml: expected a mapping of keys"),
        (["run", "--configfile", "broken.yaml"], "broken.yaml: cannot be read as YAML"),
        (["run", "--configfile", "empty.yaml"], "experiments: None: expected a mapping"),
        (["run", "--configfile", "list.yaml"], "list.yaml: experiments: [1]: expected a mapping"),
        (["run", "--configfile", "key.yaml"], "key.yaml: experiments.mine.first.seed: 5: unknown"),
        (["run", "--configfile", MINE, "--results", "a*"], "command line: results: 'a*': String"),
        (["run", "other", "--configfile", MINE], "command line: only: 'other': no such paper"),
        (["new", "My Paper"], "'My Paper': use lower-case letters"),
        (["new", "../up"], "'../up': use lower-case letters"),
        (["new", "mine"], "mine: is there already; use another name"),
        (["claims", "--results", "gone"], "claims.json: is no table of judged statements"),
        (["claims", "half-tim"], "did you mean half-time? `neuralrace claims` lists them"),
        (["verify", "gone"], "gone: no result files"),
        (["compare", "results"], "required: OTHER; see neuralrace compare --help"),
        (["compare", "results", "gone"], "gone: no such folder; name two results folders"),
    ],
)
def test_mistakes_end_in_one_message(finished, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(finished)
    mine = yaml.safe_load(Path(MINE).read_text())
    mine["experiments"]["mine"]["first"]["seed"] = 5
    texts = {"text": "experiments", "broken": "a: [", "empty": "{}", "list": "experiments: [1]"}
    for name, text in (texts | {"key": yaml.safe_dump(mine)}).items():
        Path(f"{name}.yaml").write_text(text)
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert said in printed.err
    assert printed.out == ""


def test_without_the_workflow_beside_the_library_nothing_runs(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    monkeypatch.setattr("neuralrace.cli.SNAKEFILE", Path("gone/Snakefile"))
    assert main(["run", "--configfile", MINE]) == 1
    said = "error: gone/Snakefile: the workflow is not there; install neuralrace from a clone"
    assert capsys.readouterr().err.startswith(said)


def outside(folder, *arguments):
    """A command in a folder outside of any clone."""
    done = subprocess.run(
        [sys.executable, "-m", "neuralrace.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.workflow
def test_a_new_paper_runs_outside_of_any_clone_and_needs_no_claims(tmp_path):
    command = outside(tmp_path, "new", "mine").splitlines()[-1]
    assert command == f"neuralrace run --configfile {MINE}"
    printed = outside(tmp_path, *command.split()[1:], "--results", "there", "-n")
    assert "cells_mine_01" in printed
    assert list(tmp_path.glob("there/*")) == [tmp_path / "there/outdated.txt"]
    (tmp_path / "config").mkdir()
    (tmp_path / "mine").rename(tmp_path / "config/mine")
    assert "cells_mine_01" in outside(tmp_path, "run", "-n", "--cores", "1")


@pytest.mark.workflow
def test_only_what_a_configuration_names_is_planned_beside_all_others():
    smoke = "config/deep_linear/smoke.yaml"
    named = yaml.safe_load((PROJECT / smoke).read_text())["experiments"]["deep_linear"]
    assert "staircase" in named
    printed = outside(PROJECT, "run", "deep_linear/staircase", "--configfile", smoke, "-n")
    assert "cells_deep_linear_01" in printed
    assert "cells_deep_linear_02" not in printed
    assert "make_haste_" not in printed


def test_lists_and_plans_load_no_heavy_package():
    heavy = ("jax", "xarray", "pandas", "netCDF4", "matplotlib", "scipy", "snakemake")
    code = f"import sys, neuralrace.cli; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
