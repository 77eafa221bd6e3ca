"""Commands of Snakemake's manual, in a finished folder: they do what is said there."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from builders import REPOSITORY

pytestmark = pytest.mark.workflow
ALL = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
CELL = "results/deep_linear/time_to_learn/main"
FIGURE = "figures/deep_linear/time_to_learn.png"
STAGES = {"train": 4, "solve": 3, "measure": 4}
"""Jobs of the four cells, of which one has no theory."""


def test_forcerun_of_a_rule_runs_it_and_what_rests_on_it(finished):
    expected = {"train": 4, "measure": 4, "tabulate": 1}
    assert finished.planned("metrics", "--forcerun", "train") == expected
    assert finished.planned("metrics", "-R", "train") == expected


def test_force_of_a_file_runs_its_job_alone(finished):
    assert finished.planned("--force", f"{CELL}/metrics.nc") == {"measure": 1}


def test_forceall_runs_everything(finished):
    drawn = {"tabulate": 1, "judge": 1, "accept_claims": 1, "draw": 1}
    assert finished.planned(*ALL, "--forceall") == STAGES | drawn


def test_until_and_omit_from_name_rules(finished):
    upstream = {"train": 4, "solve": 3}
    forced = (*ALL, "--forceall")
    assert finished.planned(*forced, "--until", "train") == {"train": 4}
    assert finished.planned(*forced, "--omit-from", "measure") == upstream
    assert "draw" not in finished.planned(*forced, "--omit-from", "draw")


def test_summary_has_a_line_for_each_file(finished):
    printed = finished.snakemake("--summary", "cells")
    lines = [line.split("\t") for line in printed.splitlines() if line.startswith("results/")]
    assert len(lines) == sum(STAGES.values())
    assert {rule for _, _, rule, *_ in lines} == set(STAGES)
    assert {(status, plan) for *_, status, plan in lines} == {("ok", "no update")}


def test_delete_all_output_lists_result_files(finished):
    printed = finished.snakemake("--delete-all-output", "--dry-run", *ALL)
    listed = set(re.findall(r"Would delete (\S+)", printed))
    assert {f"{CELL}/{kind}.nc" for kind in ("trajectory", "theory", "metrics")} <= listed
    assert FIGURE in listed


def graph_of(workspace, monkeypatch, *targets):
    """The graph of rules, and how the docs draw it."""
    monkeypatch.syspath_prepend(REPOSITORY / "docs" / "_ext")
    from rulegraph import drawn, read_dot

    graph = read_dot(workspace.snakemake("--rulegraph", "dot", *targets))
    return set(graph.edges), drawn(graph)


def test_the_graph_of_rules_has_every_stage(finished, monkeypatch):
    edges, picture = graph_of(finished, monkeypatch, *ALL)
    assert edges >= {
        ("train", "measure"), ("solve", "measure"), ("measure", "draw"), ("measure", "judge"),
        ("measure", "tabulate"), ("judge", "accept_claims"),
    }  # fmt: skip
    assert set(re.findall(r"<title>(\w+) before (\w+)</title>", picture)) == edges


def test_the_picture_in_the_docs_is_that_of_the_rules(workspace, monkeypatch):
    shutil.copytree(REPOSITORY / "config", workspace.path / "config", dirs_exist_ok=True)
    targets = ("figures", "metrics", "claims", "robustness")
    _, picture = graph_of(workspace, monkeypatch, *targets)
    shown = (REPOSITORY / "docs" / "rules.svg").read_text(encoding="utf-8")
    assert shown == picture, "docs/rules.svg is that of other rules; run `make manual`"


def test_mtime_alone_as_a_trigger_lets_an_edit_be(finished):
    edited = "metrics/learning_times.py"
    try:
        finished.edit(edited)
        assert finished.planned(*ALL, "--rerun-triggers", "mtime") == {}
        assert finished.planned(*ALL)["measure"] == 3
    finally:
        finished.restore(edited)


def state(workspace) -> dict[str, tuple[int, int, int]]:
    """All files of a folder, but what Snakemake notes for itself."""
    found = {}
    for folder, _, names in os.walk(workspace.path):
        if ".snakemake" not in folder and "__pycache__" not in folder:
            for path in (os.path.join(folder, name) for name in names):
                stat = os.stat(path)
                found[path] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
    return found


@pytest.mark.parametrize(
    "command", [("-n", *ALL), ("--lint",), ("--summary", *ALL), ("--dag", "dot", *ALL)]
)
def test_a_question_touches_nothing(finished, command):
    edited = "metrics/learning_times.py"
    try:
        finished.edit(edited)
        before = state(finished)
        finished.snakemake(*command)
        assert state(finished) == before
    finally:
        finished.restore(edited)


def test_a_question_beside_a_run_is_answered_and_another_run_is_refused(finished):
    code = (
        "import sys; from pathlib import Path; from neuralrace.results.lock import locked\n"
        "with locked(Path('results')): print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=finished.path, env=finished.environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        assert run.stdout.readline() == "locked\n"
        assert finished.planned(*ALL) == {}
        told = finished.snakemake(f"{CELL}/metrics.nc", "--force", fails=True)
        assert "error: results: another run is at work in this folder" in told
        assert run.poll() is None
        run.stdin.close()
    finished.snakemake("cells")


def test_touch_says_that_an_edit_changes_no_result(finished):
    edited = "metrics/learning_times.py"
    try:
        finished.edit(edited)
        assert finished.planned(*ALL)["measure"] == 3
        finished.snakemake("--touch", *ALL)
        assert finished.planned(*ALL) == {}
    finally:
        finished.restore(edited)
    finished.snakemake("--touch", *ALL)
    assert finished.planned(*ALL) == {}


def test_a_report_has_figures_and_claims(finished):
    finished.snakemake("--report", "report.zip", *ALL)
    report = finished.path / "report.zip"
    with zipfile.ZipFile(report) as packed:
        names = " ".join(packed.namelist())
    report.unlink()
    assert "time_to_learn.png" in names
    assert "claims.md" in names


def test_one_file_of_one_cell_on_one_core(finished):
    """Nothing else is computed, wherever results go; a value of the command line is strongest."""
    file = "deep_linear/time_to_learn/main/trajectory.nc"
    (finished.path / "own.yaml").write_text("{results: nowhere, checkpoint_seconds: 9}")
    options = ("--config", "settings=own.yaml", "results=elsewhere", "--cores", "1")
    finished.snakemake(f"elsewhere/{file}", *options)
    (finished.path / "own.yaml").unlink()
    made = list((finished.path / "elsewhere").rglob("*.nc"))
    assert made == [finished.path / "elsewhere" / file]
    assert made[0].read_bytes() == (finished.path / "results" / file).read_bytes()
    assert not (finished.path / "nowhere").exists()


def test_a_file_of_the_flag_of_snakemake_is_weaker_and_read_the_same(finished):
    """As its manual says; a number is what YAML 1.2 takes it for, whichever way it is given."""
    write = {"flag": "{results: flag, checkpoint_seconds: 1e1}", "own": "results: own"}
    for name, text in write.items():
        (finished.path / f"{name}.yaml").write_text(text)
    flag = ("--configfile", "flag.yaml", "--config")
    for options, folder in (
        (("--configfile", "flag.yaml"), "flag"),
        ((*flag, "settings=own.yaml"), "own"),
        ((*flag, "settings=own.yaml", "results=said"), "said"),
    ):
        files = finished.planned_files("cells", *options)
        assert files
        assert {name.split("/")[0] for name in files} == {folder}
    (finished.path / "own.yaml").write_text("checkpoint_seconds: 1:30")
    for options in (("--config", "settings=own.yaml"), ("--configfile", "own.yaml")):
        told = finished.refusal("-n", "cells", *options)
        assert told.endswith("own.yaml: checkpoint_seconds: '1:30': Input should be a valid number")
    for name in write:
        (finished.path / f"{name}.yaml").unlink()


def test_a_value_of_the_command_line_is_told_as_one(finished):
    told = finished.refusal("-n", "cells", "--config", "seeds=3")
    assert told == "--config: seeds: 3: unknown key; config/README.md lists the known ones"


def test_a_label_of_many_equal_parts_is_a_wildcard_like_others(finished):
    """Snakemake takes a name that repeats its end for a rule that feeds itself."""
    changed = finished.layers
    changed["glorot_moments"]["sweep"] = {"network.hidden": [[8] * 12, [8] * 40]}
    finished.configure("layer_dynamics", changed)
    try:
        assert finished.planned("cells")["measure"] == 2
    finally:
        finished.configure("layer_dynamics", finished.layers)
