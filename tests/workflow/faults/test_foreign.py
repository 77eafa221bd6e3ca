"""Results folders that hold other things: no file of the user's is touched."""

import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
GROUP = "Files of your own"
CELL = "deep_linear/time_to_learn/main"
NAMES = (
    ".draft.tmp", "home/.config.tmp", "thesis.tex.last", "data.last", "data", ".lock", "notes.md",
    f"{CELL}/.trajectory.nc.tmp", f"{CELL}/.trajectory.nc.17.tmp", f"{CELL}/notes.md",
    f"{CELL}/trajectory.nc.last", "a/b/c/data.last", "a/b/c/metrics.nc", "thesis.sha256",
    "logs/mine.log", "checkpoints/deep_linear/time_to_learn/.main.npz.17.tmp",
    "variants/blind/deep_linear/time_to_learn/notes.md", "figures/deep_linear/mine.png",
)  # fmt: skip


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and not {".snakemake", "src"} & set(path.parts)
    }


@pytest.mark.parametrize("place", [".", "mine"])
def test_a_run_touches_no_file_of_the_user_s(workspace, injecting, place):
    root = workspace.path / place
    for name in NAMES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"mine: {name}")
    before = files(workspace.path)
    command = ("--config", f"results={place}")
    targets = ["metrics", "claims"]
    if place != ".":  # Snakemake takes the first part off the name that is asked for
        targets.append(f"{place}/figures/deep_linear/time_to_learn.png")
    kind = f"results go to a folder of other things ({place})"
    with injecting(
        kind, group=GROUP, recovers="nothing to recover: it makes no difference"
    ) as fault:
        with fault.injection(len(NAMES)):
            workspace.snakemake("blind", *command)
            for _ in range(2):
                workspace.snakemake(*targets, *command)
                after = files(workspace.path)
                fault.lost += sum(after.get(name) != each for name, each in before.items())
            assert "verified" in workspace.snakemake("verify", *command)
            fault.lost += sum(files(workspace.path).get(n) != each for n, each in before.items())
        fault.message = "none"


def test_a_file_of_the_user_s_under_a_name_of_ours_is_not_replaced(workspace, injecting):
    names = ("metrics.csv", "claims.md", "claims.sha256", "findings.csv", "blind.json",
             f"{CELL}/trajectory.nc", f"{CELL}/metrics.nc.sha256",
             "figures/deep_linear/time_to_learn.png")  # fmt: skip
    kind = "a file of your own under the name of a result"
    with injecting(kind, group=GROUP, recovers="choose another folder") as fault:
        for name in names:
            with fault.injection():
                path = workspace.path / "mine" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("mine")
                before = files(workspace.path)
                printed = workspace.snakemake("cells", "--config", "results=mine", fails=True)
                fault.message = "FOLDER: FILE: not written by neuralrace ... Move it elsewhere ..."
                assert f"mine/{name}: not written by neuralrace" in printed
                after = files(workspace.path)
                fault.lost += sum(after.get(n) != each for n, each in before.items())
                path.unlink()


@pytest.mark.parametrize(
    "what", ["a link that leads nowhere", "a link to itself", "a file", "a pipe"]
)
def test_what_is_no_folder_for_results_is_told(workspace, injecting, what):
    path = workspace.path / "mine"
    if what == "a file":
        path.write_text("mine")
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere" if what.endswith("nowhere") else "mine")
    with injecting(f"results: {what}", group=GROUP, recovers="choose another folder") as fault:
        with fault.injection():
            for command in (("cells",), ("verify",), ("-n", "cells")):
                told = workspace.refusal(*command, "--config", "results=mine")
                assert "results: mine: " in told
                assert "Traceback" not in told
        fault.message = "results: mine: ... is in the way; name a folder"
