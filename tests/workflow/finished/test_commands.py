"""Commands of Snakemake's manual do in a finished folder what the manual says."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import pytest

from builders import REPOSITORY

pytestmark = pytest.mark.workflow
ALL = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
CELL = "results/deep_linear/time_to_learn/main"
FIGURE = "figures/deep_linear/time_to_learn.png"
STAGES = {"train": 4, "solve": 3, "measure": 4}
"""Jobs of the four cells, of which one has no theory."""


def test_forcerun_of_a_rule_runs_it_and_dependent_rules(finished):
    expected = {"train": 4, "measure": 4, "tabulate": 1}
    assert finished.planned("metrics", "--forcerun", "train") == expected


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


def state(workspace) -> dict[str, tuple[int, int, int]]:
    """State of all files of a folder, except those of Snakemake itself."""
    states = {}
    for folder, _, names in os.walk(workspace.path):
        if ".snakemake" not in folder and "__pycache__" not in folder:
            for path in (os.path.join(folder, name) for name in names):
                stat = os.stat(path)
                states[path] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
    return states


@contextmanager
def unchanged(workspace):
    """What runs inside must be a query, which changes no file."""
    before = state(workspace)
    yield
    assert state(workspace) == before


def test_summary_has_a_line_for_each_file(finished):
    with unchanged(finished):
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


def test_the_graph_of_rules_is_that_in_the_docs(workspace, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs" / "_ext")
    from rulegraph import drawn, read_dot

    shutil.copytree(REPOSITORY / "config", workspace.path / "config", dirs_exist_ok=True)
    targets = ("figures", "metrics", "claims", "blind", "ranges")
    graph = read_dot(workspace.snakemake("--rulegraph", "dot", *targets))
    edges, picture = set(graph.edges), drawn(graph)
    assert edges >= {
        ("train", "measure"), ("solve", "measure"), ("measure", "draw"), ("measure", "judge"),
        ("measure", "tabulate"), ("judge", "accept_claims"),
    }  # fmt: skip
    assert set(re.findall(r"<title>(\w+) before (\w+)</title>", picture)) == edges
    shown = (REPOSITORY / "docs" / "rules.svg").read_text(encoding="utf-8")
    assert shown == picture, "docs/rules.svg shows other rules; run `make rulegraph`"


@pytest.mark.parametrize(
    ("command", "shown"),
    [(("--lint",), "Congratulations"), (("--dag", "dot", *ALL), "digraph snakemake_dag")],
)
def test_a_query_changes_no_file(finished, command, shown):
    edited = "metrics/linear/learning_times.py"
    try:
        finished.edit(edited)
        with unchanged(finished):
            assert shown in finished.snakemake(*command)
    finally:
        finished.restore(edited)


def test_during_a_run_queries_are_answered_and_another_run_is_refused(finished):
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
        printed = finished.snakemake(f"{CELL}/metrics.nc", "--force", fails=True)
        assert "error: results: another run is at work in this folder" in printed
        assert run.poll() is None
        run.stdin.close()
    finished.snakemake("cells")


def test_an_edit_is_ignored_with_mtime_as_the_only_trigger_and_accepted_by_touch(finished):
    edited = "metrics/linear/learning_times.py"
    try:
        finished.edit(edited)
        with unchanged(finished):
            assert finished.planned(*ALL, "--rerun-triggers", "mtime") == {}
            assert finished.planned(*ALL)["measure"] == 3
        finished.snakemake("--touch", *ALL)
        assert finished.planned(*ALL) == {}
    finally:
        finished.restore(edited)
    finished.snakemake("--touch", *ALL)


def test_a_report_has_figures_and_claims(finished):
    finished.snakemake("--report", "report.zip", *ALL)
    report = finished.path / "report.zip"
    with zipfile.ZipFile(report) as packed:
        names = " ".join(packed.namelist())
    report.unlink()
    assert "time_to_learn.png" in names
    assert "claims.md" in names


def test_one_file_of_one_cell_on_one_core(finished):
    """Nothing else is computed; a value of the command line overrides files."""
    file = "deep_linear/time_to_learn/main/trajectory.nc"
    (finished.path / "own.yaml").write_text("{results: nowhere, checkpoint_seconds: 9}")
    options = ("--config", "settings=own.yaml", "results=elsewhere")
    finished.snakemake(f"elsewhere/{file}", *options)
    (finished.path / "own.yaml").unlink()
    made = list((finished.path / "elsewhere").rglob("*.nc"))
    assert made == [finished.path / "elsewhere" / file]
    assert made[0].read_bytes() == (finished.path / "results" / file).read_bytes()
    assert not (finished.path / "nowhere").exists()


def test_configfile_is_overridden_by_settings_and_read_as_yaml_1_2(finished):
    write = {"flag": "{results: flag, checkpoint_seconds: 1e1}", "own": "results: own"}
    for name, text in write.items():
        (finished.path / f"{name}.yaml").write_text(text)
    flag = ("--configfile", "flag.yaml", "--config")
    for options, folder in (
        (("--configfile", "flag.yaml"), "flag"),
        ((*flag, "settings=own.yaml"), "own"),
    ):
        files = finished.planned_files("cells", *options)
        assert files
        assert {name.split("/")[0] for name in files} == {folder}
    (finished.path / "own.yaml").write_text("checkpoint_seconds: 1:30")
    for options in (("--config", "settings=own.yaml"), ("--configfile", "own.yaml")):
        error = finished.refusal("-n", "cells", *options)
        assert error.endswith("own.yaml: checkpoint_seconds: '1:30': expected a number")
    for name in write:
        (finished.path / f"{name}.yaml").unlink()


def test_messages_name_the_command_line(finished):
    message = finished.refusal("-n", "cells", "--config", "seeds=3")
    assert message == "--config: seeds: 3: unknown key; `neuralrace keys` lists all"


def test_a_label_that_repeats_its_end_is_a_valid_wildcard(finished):
    """Snakemake suspects a rule that feeds itself in such a name."""
    changed = finished.layers
    changed["glorot_moments"]["sweep"] = {"network.hidden": [[8] * 12, [8] * 40]}
    finished.configure("layer_dynamics", changed)
    try:
        assert finished.planned("cells")["measure"] == 2
    finally:
        finished.configure("layer_dynamics", finished.layers)
