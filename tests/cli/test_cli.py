"""The command line: output of every command, and messages about mistakes."""

import errno
import json
import os
import re
import subprocess
import sys
from functools import reduce
from importlib.metadata import version
from pathlib import Path

import pytest
import xarray as xr
import yaml

from builders import REPOSITORY
from neuralrace.claims.judge import ClaimRow, FindingRow
from neuralrace.claims.setup import Setup
from neuralrace.claims.table import write_tables
from neuralrace.cli.listing import KINDS, classes
from neuralrace.cli.main import main
from neuralrace.config import bundled
from neuralrace.config.cell import Ensemble, SolvedEnsemble
from neuralrace.config.load import merge_configs, read_plan
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.cells import CellResults
from neuralrace.results.checksums import Checksums, file_sha256, recorded_checksums
from neuralrace.results.files import write_result
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.training.trainer import train
from neuralrace.workflow.stages import fingerprints
from warm_python import PYTHON

COMMANDS = (
    "keys",
    "list",
    "show",
    "run",
    "benchmark",
    "theories",
    "new",
    "deploy",
    "claims",
    "verify",
    "compare",
    "export",
    "merge",
)
MINE = "mine/experiments.yaml"
ROW = ClaimRow(
    id="half-time",
    paper="mine",
    title="Mine",
    authors="M. Myself",
    sentence=1,
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
    """A folder with a new configuration and all its result files."""
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
        names = [f"{name}/trajectory.nc", f"{name}/theory.nc"] if kind == "metrics" else []
        inputs = recorded_checksums(folder / "results", names)
        write_result(
            getattr(results, kind), results.path(kind), fingerprints(name, cell)[kind], inputs
        )
    write_tables([ROW], [], folder / "results")
    tables = sorted((folder / "results").glob("[cf]*s.*"))
    digests = {path.name: file_sha256(path) for path in tables}
    Checksums("", digests).write(folder / "results/claims.sha256")
    return folder


@pytest.fixture
def output(capsys):
    """A function that runs a command and returns its JSON."""

    def run(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_every_listed_name_has_a_description(output, monkeypatch, kind):
    monkeypatch.chdir(REPOSITORY)
    assert all(output("list", kind).values())


def test_lists_are_read_from_configuration_and_docstrings(output, monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    assert list(output("list", "papers")) == sorted(
        p.parent.name for p in Path().glob("config/*/e*")
    )
    description = "singular modes learned one by one from small random weights"
    assert output("list", "experiments")["deep_linear/staircase"] == description
    assert output("list", "metrics")["alignment"].endswith(".")
    assert output("list")["datasets"] == len(output("list", "datasets")) == len(classes("datasets"))
    assert main(["list"]) == 0
    assert capsys.readouterr().out.endswith("# names and meaning: neuralrace list metrics\n")
    assert main(["list", "optimisers"]) == 0
    assert "sgd: 'Plain gradient descent: " in capsys.readouterr().out


def test_show_describes_cells_before_they_run(output, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    shown = output("show", "deep_linear/step_size", "--configfile", "config/deep_linear/smoke.yaml")
    assert {name.rpartition("/")[0] for name in shown} == {"deep_linear/step_size"}
    cell = next(iter(shown.values()))
    spec = cell["specification"]
    assert cell["runs"] == len(spec["init_scales"]) * spec["seeds"]
    assert (cell["inputs"], cell["outputs"], cell["weights"]) == (7, 5, 60)
    assert cell["memory_mb"] > 0
    assert cell["device"] in ("cpu", "gpu")
    assert set(cell["core_seconds"]) == {"compile", "train", "solve", "measure"}
    assert "exact" in cell["theories_that_apply"]
    assert cell["theories_that_do_not"]["mean_field"] == "network.activation: 'linear': use relu"


def test_finished_cells_have_nothing_to_make(output, finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    command = ("show", "mine/first/main", "--configfile", MINE)
    assert output(*command)["mine/first/main"]["to_make"] == []
    assert main(command) == 0
    assert "to_make: nothing (up to date)" in capsys.readouterr().out


def test_show_describes_a_result_file(output, finished):
    shown = output("show", str(finished / "results/mine/first/main/trajectory.nc"))
    assert shown["attributes"]["spec"]["seeds"] == 5
    loss = shown["variables"]["loss"]
    assert loss["dimensions"] == {"init_scale": 2, "seed": 5, "time": 101}
    assert loss["meaning"] == "training loss over all samples"
    assert loss["units"] == "1"


def test_verify_counts_sound_files(finished, capsys):
    assert main(["verify", str(finished / "results")]) == 0
    assert capsys.readouterr().out.startswith(
        "3 files of cells and 1 of figures and tables verified"
    )


def test_verify_reports_a_damaged_file(finished, tmp_path, capsys):
    source = finished / "results/mine/first/main"
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "metrics.nc").open("ab") as file:
        file.write(b"more")
    assert main(["verify", str(tmp_path)]) == 1
    assert (
        "metrics.nc: is damaged: its content does not have the checksum" in capsys.readouterr().err
    )


def test_claims_are_shown_in_short_and_in_full(output, finished, capsys):
    folder = str(finished / "results")
    assert output("claims", "--results", folder) == {
        "half-time": {
            "type": "claim",
            "status": "reproduced",
            "measured": 1.0,
            "interval": [0.9, 1.1],
            "statement": "It takes that long.",
        }
    }
    assert main(["claims", "--results", folder]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("# reproduced: The interval")
    row = output("claims", "half-time", "--results", folder)
    assert row["evidence"] == ["results/mine/first/main/metrics.nc"]
    assert row["verdict"] == "holds"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"example: neuralrace {command} " in capsys.readouterr().out


def test_help_describes_every_command_in_a_sentence(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


def test_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"neuralrace, version {version('neuralrace')}\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("neuralrace ex", {"export"}),
        ("neuralrace list exp", {"experiments"}),
        ("neuralrace show layer_dynamics/gl", {"layer_dynamics/glorot_moments"}),
        ("neuralrace run local", {"localization", "localization/"}),
        ("neuralrace claims half-time-as", {"half-time-as-written"}),
        ("neuralrace show my.n", {"my.n"}),
    ],
)
def test_shell_completes_names(monkeypatch, capsys, words, completed):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("_NEURALRACE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit, match="0"):
        main([])
    kinds, names = zip(*(line.split(",") for line in capsys.readouterr().out.split()), strict=True)
    assert set(kinds) == {"file" if words.endswith(".n") else "plain"}
    assert all(any(name.startswith(each) for name in names) for each in completed)
    assert all(name.startswith(words.split()[-1]) for name in names)


FILES = {
    "text.yaml": b"experiments",
    "broken.yaml": b"a: [",
    "braces.yaml": b"{}",
    "empty.yaml": b"",
    "list.yaml": b"experiments: [1]",
    "sequence.yaml": b"- experiments",
    "tabs.yaml": b"experiments:\n\tmine: 1\n",
    "twice.yaml": b"experiments: {}\nresults: a\nexperiments: {}\n",
    "binary.yaml": b"\xff\xfe\x00",
    "deep.yaml": b"[" * 3000 + b"]" * 3000,
    "loop.yaml": b"experiments: &all [*all]",
    "laughs.yaml": b"a0: &a0 [1]\n"
    + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n + 1, n + 1, n, n) for n in range(60)),
    "expression.yaml": b"__use_yte__: true\nresults: \"?open('run', 'w').name\"\n",
    "none.yaml": b"experiments:\n",
    "smoke.yaml": b"experiments: {smoke: {}}",
    "two.yaml": b"a: 1\n---\nb: 2\n",
    "code.yaml": b"!!python/object/apply:os.getcwd []",
    "text.nc": b"no NetCDF",
    "there.zip": b"",
    "file": b"",
}
MISTAKES = [
    ([], "Missing command. See neuralrace --help"),
    (["lst"], "No such command 'lst'. Did you mean 'list'? See neuralrace --help"),
    (["--cores", "2"], "No such option '--cores'. See neuralrace --help"),
    (["list", "metric"], "'metric': is no kind of name; did you mean metrics? choose one of pap"),
    (["list", "metrics", "solutions"], "unexpected extra argument (solutions). See neuralrace l"),
    (["list", "--yaml"], "No such option '--yaml'. See neuralrace list --help"),
    (["show"], "Missing argument 'CELL|EXPERIMENT|FILE'. See neuralrace show --help"),
    (["show", "gone.nc"], "gone.nc: result file not found"),
    (["show", "folder.nc"], "folder.nc: is a folder; name a file in it"),
    (["show", "text.nc"], "text.nc: cannot be read"),
    (["show", "foreign.nc"], "foreign.nc: is no result file (its kind is None)"),
    (["show", "mine/frst", "--configfile", MINE], "did you mean mine/first"),
    (["show", "mine/first"], "only: 'mine/first': no such paper, experiment or cell"),
    (["show", "deep_linear/stairs"], "did you mean deep_linear/staircase"),
    (["show", "", "--configfile", MINE], "only: '': no such paper, experiment or cell"),
    (["show", "mine", "--configfile"], "Option '--configfile' requires an argument. See neural"),
    (["run"], "no config/*/experiments.yaml in this folder; name what to run: a paper"),
    (["run", "--configfile", "gone.yaml"], "gone.yaml: there is no such file; check its name"),
    (["run", "--configfile", "folder.nc"], "folder.nc: is a folder; name a file in it"),
    (["run", "--configfile", "text.yaml"], "text.yaml: expected a mapping of keys"),
    (["run", "--configfile", "sequence.yaml"], "sequence.yaml: expected a mapping of keys"),
    (["run", "--configfile", "empty.yaml"], "empty.yaml: is empty; begin with `experiments:`"),
    (["run", "--configfile", "braces.yaml"], "holds no experiments, but nothing; write"),
    (["run", "--configfile", "broken.yaml"], "broken.yaml: cannot be read as YAML: line 2, col"),
    (["run", "--configfile", "tabs.yaml"], "line 2, column 1: found character that cannot "
     "start any token; indent by spaces, not by tabs"),
    (["run", "--configfile", "twice.yaml"], "twice.yaml: line 3: 'experiments': is there twic"),
    (["run", "mine", "--configfile", "none.yaml"], "none.yaml: experiments: is empty; write keys "),
    (["run", "--configfile", "binary.yaml"], "invalid start byte in byte 0; save it as UTF-8"),
    (["run", "--configfile", "deep.yaml"], "deep.yaml: line 1: nested too deeply"),
    (["run", "--configfile", "loop.yaml"], "an alias (*name) inside its own anchor"),
    (["run", "--configfile", "laughs.yaml"], "laughs.yaml: line 17: more than 200000 values"),
    (["run", "--configfile", "expression.yaml"], "expression.yaml: __use_yte__: a configuration is "
     "data and runs no code"),
    (["run", "smoke", "--configfile", "smoke.yaml"], "experiments.smoke: 'smoke': is no name fo"),
    (["new", "logs"], "'logs': is no name for a paper, as the workflow has a folder of that name"),
    (["run", "--configfile", "two.yaml"], "but found another document"),
    (["run", "--configfile", "code.yaml"], "could not determine a constructor for the tag"),
    (["run", "mine", "--configfile", "list.yaml"], "list.yaml: experiments: [1]: expected a map"),
    (["run", "--configfile", "key.yaml"], "key.yaml: experiments.mine.first.seed: 5: unknown"),
    (["run", "--configfile", MINE, "--results", "a*"], "command line: results: 'a*': name a f"),
    (["run", "other", "--configfile", MINE], "command line: only: 'other': no such paper"),
    (["run", "deep linear"], "only: 'deep linear': no such paper, experiment or cell; did you"),
    (["run", "deep_linear/σ"], "only: 'deep_linear/σ': no such paper, experiment or cell"),
    *((["run", "mine", "--cores", n], f"--cores: '{n}': give a whole number above 0, or all")
      for n in ("0", "-1", "abc", "1.5", "")),
    (["run", "mine", "--dry-run=no"], "Option '--dry-run' does not take a value. See neuralrace"),
    (["new", "My Paper"], "'My Paper': is no valid name; use lower-case letters, digits and un"),
    (["new", "../up"], "'../up': is no valid name"),
    (["new", "größe"], "'größe': is no valid name"),
    (["new", ""], "'': is no valid name"),
    (["new", "mine"], "mine: exists already; use another name"),
    (["deploy", "mine"], "mine: exists already and is not empty; name a new folder"),
    (["deploy", "file"], "file: exists already and is not empty; name a new folder"),
    (["deploy", "file/inside"], "file/inside: cannot be written"),
    (["claims", "--results", "gone"], "gone/claims.json: cannot be read (No such file or"),
    (["claims", "half-tim"], "did you mean half-time? `neuralrace claims` lists them"),
    (["verify", "gone"], "gone: no result files; name the folder that holds some"),
    (["verify", "file"], "file: no result files; name the folder that holds some"),
    (["compare", "results", "gone"], "gone: is no folder; name two results folders"),
    (["compare", "results", "mine"], "mine: no results found; run"),
    (["export", "results"], "results: is no name of an archive; end it in .zip"),
    (["export", "there.zip"], "there.zip: exists already; use another name, or --force"),
    (["export", "folder.zip", "--force"], "folder.zip: is a folder; name a file to write"),
    (["export", "mine", "new.zip"], "mine: no results found"),
    (["export", "gone", "new.zip"], "gone: no results found"),
    (["export", "results", "mine", "new.zip"], "mine: is one folder too many"),
    (["export", "new.zip", "--only", "mine/frst"], "'mine/frst': results has nothing of that name"
     "; did you mean mine/first"),
    (["export", "file/new.zip"], "file/new.zip: cannot be written"),
    ([""], "No such command ''. See neuralrace --help"),
    (["list", ""], "'': is no kind of name; choose one of papers, experiments, claims, figures"),
    (["show", "."], "only: '.': no such paper, experiment or cell; `neuralrace list experiments`"),
    (["show", "mine/first/main/more", "--configfile", MINE], "did you mean mine/first/main"),
    (["show", "deep_linear/*"], "only: 'deep_linear/*': no such paper, experiment or cell"),
    (["show", "Deep_Linear/staircase"], "did you mean deep_linear/staircase"),
    (["show", "a\nb"], r"only: 'a\nb': no such paper, experiment or cell"),
    (["show", MINE], f"{MINE}: is no name of an experiment; give files by --configfile"),
    (["show", "mine", "--configfile", ""], "'--configfile': an empty text is no name of a file or"),
    (["show", "mine", "--configfile", "mine"], "mine: is a folder; name a file in it"),
    (["run", MINE], f"{MINE}: is no name of an experiment; give files by --configfile"),
    (["run", "mine", "--configfile", MINE, "--results", ""], "an empty text is no name of a file"),
    (["run", "mine", "--configfile", MINE, "--results", "a\nb"], r"results: 'a\nb': name a folder"),
    (["run", "mine", "--cores", "ALL"], "--cores: 'ALL': give a whole number above 0, or all"),
    (["run", "--configfile", MINE, "--", "-n"], "only: '-n': no such paper, experiment or cell"),
    (["run", "deep_linear/staircase", "--profile", "gone"], "gone: is no profile, as it has no c"),
    (["run", "deep_linear/staircase", "--profile", ""], "'--profile': an empty text is no name of"),
    (["run", "--configfile", MINE, "--configfile", "gone.yaml"], "gone.yaml: there is no such fi"),
    (["new", "deep_linear"], "deep_linear: exists already; use another name"),
    (["new", "a" * 300], "aaa': is no valid name; use lower-case letters, digits and underscores, "
     "at most 100, and begin with a letter"),
    (["new", "--", "-n"], "'-n': is no valid name"),
    (["deploy", ""], "'FOLDER': an empty text is no name of a file or folder. See neuralrace depl"),
    (["claims", "--results", "file"], "file/claims.json: cannot be read (Not a directory); judge "),
    (["claims", "--results", "damaged"], "damaged/claims.json: is damaged, or no table of judged "),
    (["verify", ""], "'[FOLDER]': an empty text is no name of a file or folder. See neuralrace"),
    (["verify", "file/inside"], "file/inside: no result files; name the folder that holds some"),
    (["compare", "results", "file"], "file: is no folder; name two results folders"),
    (["export", ""], "'FILE.zip': an empty text is no name of a file or folder. See neuralrace"),
    (["export", "new.tar.gz"], "new.tar.gz: is no name of an archive; end it in .zip"),
    (["export", "new.zip", "--only", ""], "has nothing of that name; name a paper, experiment or"),
    (["merge", "results", "--into", ""], "'--into': an empty text is no name of a file or folder"),
    (["merge", "results", "--into", "new", "--prefer", "a.zip"], "--prefer a.zip: is none of"),
    (["merge", "results"], "Missing option '--into'. See neuralrace merge --help"),
    (["merge", "gone.zip", "--into", "new"], "gone.zip: there is no such file; check its name"),
    (["merge", "mine", "--into", "new"], "mine: no results found"),
    (["merge", "there.zip", "--into", "new"], "there.zip: cannot be read (File is not a zip file"),
    (["merge", "results", "--into", "file"], "file: cannot be written (File exists); check"),
    (["merge", "results", "--into", "new", "--prefer", "mine"], "--prefer mine: is none of the s"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mistaken(finished):
    """The folder, with unreadable and unexpected files and folders."""
    mine = yaml.safe_load((finished / MINE).read_text())
    mine["experiments"]["mine"]["first"]["seed"] = 5
    for name, content in (FILES | {"key.yaml": yaml.safe_dump(mine).encode()}).items():
        (finished / name).write_bytes(content)
    for name in ("folder.nc", "folder.zip", "damaged"):
        (finished / name).mkdir()
    (finished / "damaged/claims.json").write_text('{"a": 1}')
    xr.Dataset({"x": 1.0}).to_netcdf(finished / "foreign.nc")
    return finished


@pytest.mark.parametrize(("arguments", "text"), MISTAKES, ids=lambda each: str(each)[:50])
def test_mistake_ends_in_one_message(mistaken, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(mistaken)
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert text in printed.err
    assert not re.search("Traceback|pydantic|neuralrace/[a-z_]*.py|NoneType|<unicode", printed.err)
    assert printed.out == ""
    assert not Path("new.zip").exists()


def test_full_disk_for_the_output_ends_in_one_message(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "write", full)
        assert main(["list", "metrics"]) == 1
    message = "error: the output cannot be written (No space left on device)\n"
    assert capsys.readouterr().err == message


def test_deleted_current_folder_ends_in_one_message(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["verify"]) == 1
    message = "error: the current folder was deleted; change to another one\n"
    assert capsys.readouterr().err == message


def test_help_of_list_has_every_kind(capsys):
    assert main(["list", "--help"]) == 0
    assert set(KINDS) <= set(re.findall(r"\w+", capsys.readouterr().out))


def test_run_needs_the_workflow(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    for name in ("FOLDER", "CLONE"):
        monkeypatch.setattr(bundled, name, Path("gone"))
    assert main(["run", "--configfile", MINE]) == 1
    message = "error: gone/Snakefile: the workflow is not there; install neuralrace from its wheel"
    assert capsys.readouterr().err.startswith(message)


def test_folder_without_configuration_has_the_installed_papers(output, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    listed, shown = output("list", "experiments"), output("show", "deep_linear/staircase")
    monkeypatch.chdir(tmp_path)
    assert output("list", "experiments") == listed
    # except for the stale files: the repository may have results
    (here,), (there,) = output("show", "deep_linear/staircase").values(), shown.values()
    assert here | {"to_make": None} == there | {"to_make": None}
    (tmp_path / "config/mine").mkdir(parents=True)
    (tmp_path / "config/mine/experiments.yaml").write_text("experiments: {mine: {}}")
    assert output("list", "experiments") == output("list", "claims") == {}


def test_finding_is_shown_as_one(output, finished, capsys):
    folder = str(finished / "found")
    shared = {key: value for key, value in dict(ROW).items() if key in FindingRow.model_fields}
    found = FindingRow(**shared | {"id": "found", "status": "holds"})
    write_tables([ROW], [found], Path(folder))
    assert output("claims", "half-time", "--results", folder)["type"] == "claim"
    assert output("claims", "found", "--results", folder)["type"] == "finding"
    listed = output("claims", "--results", folder)
    assert {name: row["type"] for name, row in listed.items()} == {
        "half-time": "claim", "found": "finding",
    }  # fmt: skip
    for arguments, told in (([], True), (["found"], True), (["half-time"], False)):
        assert main(["claims", *arguments, "--results", folder]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith("# finding: A result that no paper states.") == told


def test_numbers_are_rounded_except_in_json(finished, capsys):
    folder = finished / "exact"
    write_tables([ROW.model_copy(update={"measured": 1 / 3})], [], folder)
    assert main(["claims", "half-time", "--results", str(folder)]) == 0
    assert "measured: 0.333333\n" in capsys.readouterr().out
    assert main(["claims", "half-time", "--results", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] == 1 / 3


ONE_TRAINING = re.compile(r"^train +1$", re.MULTILINE)
"""In Snakemake's table of jobs."""


def outside(folder, *arguments, module="neuralrace.cli.main", status=0):
    """Output of a command in a folder outside of any clone."""
    path = os.pathsep.join(filter(None, sys.path))
    done = PYTHON.run(["-m", module, *arguments], folder, os.environ | {"PYTHONPATH": path})
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.workflow
def test_new_paper_runs_outside_of_any_clone_and_without_claims(tmp_path):
    command = outside(tmp_path, "new", "mine").splitlines()[-1]
    assert command == f"neuralrace run --configfile {MINE}"
    for folder in ("1", "true # a: b"):  # YAML would read numbers and booleans
        printed = outside(tmp_path, *command.split()[1:], "--results", folder, "-n")
        assert ONE_TRAINING.search(printed)
        assert not (tmp_path / folder).exists()
    (tmp_path / "config").mkdir()
    (tmp_path / "mine").rename(tmp_path / "config/mine")
    printed = outside(tmp_path, "run", "-n", "--cores", "1")
    assert ONE_TRAINING.search(printed)
    assert printed.count("Job stats:") == 1
    assert "    reason: Missing output files: results/mine/first/main/trajectory.nc\n" in printed


@pytest.mark.workflow
def test_only_the_named_experiment_of_a_configuration_is_planned(tmp_path):
    smoke = "config/deep_linear/smoke.yaml"
    named = yaml.safe_load((REPOSITORY / smoke).read_text())["experiments"]["deep_linear"]
    assert "staircase" in named
    command = ("run", "deep_linear/staircase", "--configfile", smoke, "-n")
    printed = outside(REPOSITORY, *command, "--results", str(tmp_path / "there"))
    assert ONE_TRAINING.search(printed)


@pytest.mark.workflow
def test_deployed_workflow_runs(tmp_path):
    lines = outside(tmp_path, "deploy", "papers").splitlines()
    assert lines[1:3] == ["cd papers", "neuralrace run deep_linear/staircase   # one experiment"]
    only = tmp_path / "papers/only.yaml"
    only.write_text("only: [deep_linear/staircase]")
    arguments = ("-n", "cells", "-c", "1", "--config", f"settings={only}")
    planned = outside(only.parent, *arguments, module="snakemake")
    assert ONE_TRAINING.search(planned)
    assert all((only.parent / name).exists() for name in bundled.FILES)


@pytest.mark.workflow
def test_unwritable_results_folder_ends_in_one_message(tmp_path):
    (tmp_path / "file").touch()
    printed = outside(
        tmp_path, "run", "layer_dynamics/glorot_moments", "--results", "file", status=1
    )
    assert "error: results: file: a file is in the way; name a folder" in printed
    assert "Traceback" not in printed


HEAVY = ("jax", "xarray", "pandas", "netCDF4", "matplotlib", "scipy", "snakemake")


@pytest.mark.parametrize(
    ("commands", "absent"),
    [
        (
            [["--help"], ["run", "--help"]],
            (*HEAVY, "numpy", "pydantic", "yaml", "neuralrace.config.cell"),
        ),
        ([["list", "metrics"]], (*HEAVY, "neuralrace.config.cell")),
        ([["list"], ["keys"], ["show", "deep_linear/staircase"]], HEAVY),
    ],
    ids=["help", "list of one kind", "configuration"],
)
def test_commands_load_no_package_that_they_do_not_need(commands, absent):
    """Help is shown before models of the configuration are built, and a plan without xarray."""
    code = (
        "import sys; from neuralrace.cli.main import main\n"
        "absent = sys.argv[1:]\n"
        f"for arguments in {commands}:\n"
        "    assert main(arguments) == 0\n"
        "    loaded = [name for name in absent if name in sys.modules]\n"
        "    assert not loaded, (arguments, loaded)"
    )
    command = [sys.executable, "-c", code, *absent]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("given", ["option", "configuration"])
def test_home_folder_may_be_abbreviated(tmp_path, monkeypatch, given):
    """Shells expand it at the beginning of a word only, and not in quotes."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    assert main(["new", "mine"]) == 0
    Path(MINE).rename(tmp_path / "home/mine.yaml")
    planned = []

    def planned_by(targets, files, *_):
        planned.append(read_plan(reduce(merge_configs, files.values(), {}), files).results)
        return 0

    monkeypatch.setattr("neuralrace.cli.main._snakemake", planned_by)
    if given == "option":
        assert main(["run", "--configfile=~/mine.yaml", "--results", "~/mine"]) == 0
    else:
        with (tmp_path / "home/mine.yaml").open("a") as file:
            file.write("results: ~/mine\n")
        assert main(["run", "--configfile=~/mine.yaml"]) == 0
    assert planned == [str(tmp_path / "home/mine")]
    assert not Path("~").exists()
