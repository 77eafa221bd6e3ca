"""What a newcomer gets wrong in the first hour, and what the message must say.

A message names the file or argument, the key and the value, and says what to do. More mistakes are
in the tests of their modules, such as tests/config/test_load.py.
"""

import json
from pathlib import Path

import pytest

from neuralrace.cli.main import main
from warm_python import PYTHON

FIRST = """\
experiments:
  mine:
    first:
      dataset: {name: hierarchy}
      network: {name: layered, hidden: [16]}
      init: {name: normal}
      init_scales: [0.01]
      seeds: 5
      training: {learning_rate: 0.05, steps: 1000}
      record: {every: 10}
      solutions: [flow]
      metrics: [half_times]
"""
IN = "mine.yaml: experiments.mine.first."
FILES = {
    "typo in a key": (
        ("learning_rate:", "learning_rat:"),
        (f"{IN}training.learning_rat: 0.05: unknown key; did you mean learning_rate?",),
    ),
    "typo in a key of a choice": (
        ("hidden:", "hiden:"),
        (f"{IN}network.hidden: is required", f"{IN}network.hiden: [16]: ", "mean hidden?"),
    ),
    "typo in a key of an experiment": (("seeds:", "seed:"), (f"{IN}seed: 5: ", "mean seeds?")),
    "typo in a key of the workflow": (
        ("experiments:\n", "result: there\nexperiments:\n"),
        ("mine.yaml: result: 'there': unknown key; did you mean results?",),
    ),
    "American spelling": (
        ("steps: 1000", "steps: 1000, optimizer: {name: adam}"),
        (f"{IN}training.optimizer: unknown key; did you mean optimiser?",),
    ),
    "typo in a swept key": (
        ("seeds: 5", "seeds: 5\n      sweep: {training.learning_rat: [1]}"),
        (f"{IN}sweep.training.learning_rat: 1: unknown key; did you mean learning_rate?",),
    ),
    "sweep over a single value": (
        ("seeds: 5", "seeds: 5\n      sweep: {training.learning_rate: 0.1}"),
        (f"{IN}sweep.training.learning_rate: 0.1: expected a list with at least one value",),
    ),
    "text in the place of a number": (
        ("steps: 1000", "steps: many"),
        (f"{IN}training.steps: 'many': expected a whole number",),
    ),
    "number in the place of a list": (
        ("[16]", "16"),
        (f"{IN}network.hidden: 16: expected a list; put it into brackets: [16]",),
    ),
    "init scale in the place of a list": (
        ("[0.01]", "0.1"),
        (f"{IN}init_scales: 0.1: expected a list; put it into brackets: [0.1]",),
    ),
    "name in the place of a list": (
        ("[half_times]", "half_times"),
        (f"{IN}metrics: 'half_times': expected a list; put it into brackets: ['half_times']",),
    ),
    "name in the place of a mapping": (
        ("{name: hierarchy}", "hierarchy"),
        (f"{IN}dataset: 'hierarchy': expected a mapping", "such as {name: hierarchy}"),
    ),
    "unknown dataset": (
        ("hierarchy", "hierachy"),
        (f"{IN}dataset: unknown name 'hierachy'; did you mean hierarchy?",),
    ),
    "unknown metric": (
        ("half_times", "half_time"),
        (f"{IN}metrics.0: 'half_time': no such metric; did you mean half_times? `neuralrace list",),
    ),
    "unknown solution": (
        ("flow", "flwo"),
        (f"{IN}solutions.0: 'flwo': no such solution; did you mean flow? `neuralrace list",),
    ),
    "unknown activation": (
        ("[16]", "[16], activation: rellu"),
        (f"{IN}network.activation: 'rellu': expected 'linear', ", "did you mean relu?"),
    ),
    "theory that does not apply": (
        ("[16]", "[16], activation: relu"),
        (f"{IN}solutions: 'flow': does not apply", "network.activation: 'relu': use linear"),
    ),
    "negative seeds": (("seeds: 5", "seeds: -5"), (f"{IN}seeds: -5: ", "greater than 0")),
    "no steps": (("steps: 1000", "steps: 0"), (f"{IN}training.steps: 0: ", "greater than 0")),
    "number in quotes": (
        ("0.05", "'0.05'"),
        (f"{IN}training.learning_rate: '0.05': expected a number",),
    ),
    "whole number with a point": (
        ("seeds: 5", "seeds: 5.0"),
        (f"{IN}seeds: 5.0: expected a whole number; write 5",),
    ),
    "yes for true": (
        ("[16]", "[16], bias: yes"),
        (f"{IN}network.bias: 'yes': expected true or false",),
    ),
    "file of another kind": (
        ("{name: hierarchy}", "{name: file, path: my.xlsx}"),
        (f"{IN}dataset.path: 'my.xlsx': expected a path that ends in .npz or .nc or .csv or .tsv",),
    ),
    "records that do not divide the steps": (
        ("every: 10", "every: 7"),
        (f"{IN}training.steps: 1000: must be a multiple of record.every (7)",),
    ),
    "missing data file": (
        ("{name: hierarchy}", "{name: file, path: gone.npz}"),
        (f"{IN}dataset: gone.npz: ", "put the file there, or correct `path`"),
    ),
    "empty file": ((FIRST, ""), ("mine.yaml: is empty; begin with `experiments:`", "new mine")),
    "comments only": ((FIRST, "# later\n"), ("mine.yaml: is empty; begin with `experiments:`",)),
    "nothing below a key": (
        (FIRST, "experiments:\n  mine:\n"),
        ("mine.yaml: experiments.mine: is empty; write keys and values below it",),
    ),
    "typo in the first key": (
        ("experiments:", "experiment:"),
        ("mine.yaml: holds no experiments, but experiment; write them below `experiments:`",),
    ),
    "tabs": (("  mine", "\tmine"), ("mine.yaml: ", "line 2", "indent by spaces, not by tabs")),
}
"""A change of the file above, and parts of the message."""
COMMANDS = {
    "list metric": ("'metric': ", "did you mean metrics?"),
    "lst": ("'lst'", "Did you mean 'list'?"),
    "show deep_linear/stair": ("'deep_linear/stair'", "did you mean deep_linear/staircase"),
    "show first.yaml": ("first.yaml: is no name of an experiment; give files by --configfile",),
    "run --configfile gone.yaml": ("gone.yaml: there is no such file; check its name",),
    "run --configfile folder": ("folder: is a folder; name a file in it",),
    "run": ("name what to run: a paper, an experiment or a cell", "`neuralrace list experiments`"),
    "run deep_linear --cores 0": ("--cores: '0': give a whole number above 0, or all",),
    "new My-Paper": ("'My-Paper': ", "use lower-case letters"),
    "claims": ("results/claims.json: ", "snakemake --cores all claims"),
    "keys trainin": ("'trainin': ", "did you mean training", "`neuralrace keys` lists all"),
    "benchmark --only flwo": ("--only: 'flwo': no such solution; did you mean flow?",),
    "theories deep_linear/stair": ("'deep_linear/stair'", "did you mean deep_linear/staircase"),
    "verify gone": ("gone: no result files; name the folder that holds some",),
    "merge gone.zip --into new": ("gone.zip: there is no such file; check its name",),
    "export mine.zip": ("results: no results found; run `neuralrace run deep_linear/staircase`",),
}
"""A command in an empty folder, and parts of the message."""
CALLS = {
    "nr.simulate(X, Y, hidden=16)": ("hidden: 16: expected a list; put it into brackets: [16]",),
    "nr.simulate(X, Y, hidden=[8], init_scales=0.1)": ("init_scales: 0.1: ", "brackets: [0.1]"),
    "nr.simulate(X, Y, hidden=[8], lr=0.1)": ("lr: is no argument", "did you mean learning_rate?"),
    "nr.simulate(X, Y, hidden=[8], epochs=9)": ("epochs: is no argument", "did you mean steps"),
    "nr.simulate(X, Y, hidden=[8], seed=3)": ("seed: is no argument", "did you mean seeds"),
    "nr.simulate(X, Y, hidden=[8], metrics=['half_time'])": (
        "metrics.0: 'half_time': no such metric; did you mean half_times?",
    ),
    "nr.simulate(X, Y, hidden=[8], activation='rellu')": ("'rellu'", "did you mean relu?"),
    "nr.simulate(X, Y, hidden=[8], steps=0)": ("steps: 0: expected a positive whole number",),
    "nr.simulate({'name': 'modes', 'singular_value': [1]}, hidden=[8])": (
        "x.singular_value: [1]: unknown key; did you mean singular_values?",
    ),
    "nr.simulate(X, Y, hidden=[8], sweep={'hidden': [8, 16]})": ("hidden: 8: expected a list",),
    "nr.solve(X, Y, hidden=[8], theory='flwo')": ("theory.0: 'flwo': ", "did you mean flow"),
    "nr.theories(hidden=[8])": ("x: is missing; give data, or no argument to list theories",),
    "nr.theories('hierachy', hidden=[8])": ("x: ", "'hierachy'; did you mean hierarchy?"),
    "nr.benchmark('linear_widht')": ("task: 'linear_widht': ", "did you mean linear_width"),
    "nr.benchmark('linear_width', entries='flow')": ("entries: 'flow': expected a list; give a",),
    "nr.benchmark('linear_width', entries=['flwo'])": ("entries: 'flwo': ", "did you mean flow?"),
    "nr.benchmark({'dataset': 'hierarchy'})": (
        "task: experiments.benchmark.own.dataset: 'hierarchy': expected a mapping",
    ),
    "nr.combine(3)": ("cells: is of type int; give the result of open_results",),
    "nr.plot('results')": ("results: str: give what simulate or open_results gives",),
    "nr.open_results('gone')": ("gone: no results found; run `neuralrace run",),
}
"""A call, and parts of the message."""


def message(capsys, *arguments: str) -> str:
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert not {"Traceback", "pydantic", "NoneType", "Input"} & set(printed.err.split())
    return printed.err


@pytest.mark.parametrize("case", FILES)
def test_mistake_in_a_file(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (old, new), parts = FILES[case]
    Path("mine.yaml").write_text(FIRST.replace(old, new, 1))
    assert FIRST.replace(old, new, 1) != FIRST
    command = ["run", "-n"] if "first key" in case else ["show", "mine/first"]
    text = message(capsys, *command, "--configfile", "mine.yaml")
    assert [part for part in parts if part not in text] == [], text


def test_file_without_a_mistake_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(FIRST)
    assert main(["show", "mine/first", "--configfile", "mine.yaml"]) == 0
    assert "to_make: [trajectory, theory, metrics]" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_mistake_in_a_command(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    text = message(capsys, *command.split())
    assert [part for part in COMMANDS[command] if part not in text] == [], text


@pytest.fixture(scope="module")
def messages(tmp_path_factory) -> dict[str, str]:
    """Messages of a process without type checks of annotations, as users have."""
    code = f"""
import json
import numpy as np
import neuralrace as nr
from neuralrace.errors import UserError

X, Y = np.eye(4), np.diag([4.0, 3.0, 2.0, 1.0])
messages = {{}}
for call in {list(CALLS)!r}:
    try:
        eval(call)
        messages[call] = "no error"
    except UserError as error:
        messages[call] = str(error)
print(json.dumps(messages))
"""
    done = PYTHON.run(["-c", code], tmp_path_factory.mktemp("empty"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", CALLS)
def test_mistake_in_a_call(call, messages):
    assert [part for part in CALLS[call] if part not in messages[call]] == [], messages[call]
