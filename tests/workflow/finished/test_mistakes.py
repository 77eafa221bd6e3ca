"""Mistakes and damage in a finished folder: a message, and nothing lost."""

import os
import re
import shutil

import pytest

pytestmark = pytest.mark.workflow
ALL = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
CELL = "deep_linear/step_size/learning_rate-0.02"
TRAJECTORY = f"results/{CELL}/trajectory.nc"


def files(workspace) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in (workspace.path / "results").rglob("*.nc")}


@pytest.mark.parametrize(
    "mistakes",
    [
        {
            "colour": ("red", "unknown key"),
            "init_scales": (["small"], "expected a number"),
            "seeds": ("2", "expected a whole number"),
            "first_seed": (-1, "must be at least 0"),
        },
        {"seeds": (10**9, "needs .* GB of memory, and the machine has .*; use less")},
    ],
)
def test_mistakes_in_the_configuration_change_no_file(finished, mistakes):
    before = files(finished)
    changed = finished.deep
    changed["time_to_learn"] |= {key: value for key, (value, _) in mistakes.items()}
    finished.configure("deep_linear", changed)
    message = finished.refusal("metrics")
    finished.configure("deep_linear", finished.deep)
    where = "config/deep_linear/experiments.yaml: experiments.deep_linear.time_to_learn"
    lines = message.splitlines()
    assert len(lines) == len(mistakes), message
    for key, (_, problem) in mistakes.items():
        assert any(re.match(rf"{re.escape(where)}\.{key}\b.*{problem}", line) for line in lines)
    assert files(finished) == before


def test_a_claim_about_an_unknown_metric_is_refused(finished):
    finished.claim(measure={"cells": "deep_linear/*", "metric": "half_tim"})
    messages = {finished.refusal("claims", *options) for options in ((), ("--dry-run",))}
    assert finished.planned("metrics") == {}, "other targets do not read the claims"
    finished.claim()
    (message,) = messages
    assert message.startswith("config/deep_linear/claims.yaml: half-time.metric: 'half_tim': ")


def test_a_figure_of_an_experiment_that_is_not_configured_is_refused(finished):
    message = finished.refusal("figures/deep_linear/semantic.png")
    assert message.startswith(
        "figure deep_linear/semantic (neuralrace.figures.deep_linear.semantic): experiments."
        "deep_linear.semantic_deep: is not configured, and the figure shows it; "
    )


def test_verify_passes_and_reports_damage(finished):
    assert "11 files of cells and 3 of figures and tables verified" in finished.snakemake("verify")
    flipped, cut = (finished.path / TRAJECTORY.replace("0.02", rate) for rate in ("0.02", "0.01"))
    whole = {path: path.read_bytes() for path in (flipped, cut)}
    status = {path: path.stat() for path in whole}

    def write(contents):
        for path, content in contents.items():
            path.write_bytes(content)
            os.utime(path, ns=(status[path].st_atime_ns, status[path].st_mtime_ns))

    middle = len(whole[flipped]) // 2
    damaged = {
        flipped: whole[flipped][:middle]
        + bytes([whole[flipped][middle] ^ 1])
        + whole[flipped][middle + 1 :],
        cut: whole[cut][:1000],
    }
    write(damaged)
    printed = finished.snakemake("verify", fails=True)
    for path in damaged:
        name = path.relative_to(finished.path)
        assert f"{name}: is damaged: its content does not have the checksum" in printed
    assert "Traceback" not in printed
    assert {path: path.read_bytes() for path in damaged} == damaged
    write(whole)


def test_a_file_in_place_of_another_is_reported_and_recomputed(finished):
    one = finished.path / TRAJECTORY
    other = finished.path / TRAJECTORY.replace("0.02", "0.01")
    before = files(finished)
    for name in ("trajectory.nc", "trajectory.nc.sha256"):
        shutil.copy2(other.with_name(name), one.with_name(name))
    printed = finished.snakemake(f"results/{CELL}/metrics.nc", "--force", fails=True)
    assert f"{TRAJECTORY}: is the trajectory of deep_linear/step_size/learning_rate-0.01" in printed
    printed = finished.snakemake("verify", fails=True)
    assert f"{TRAJECTORY}: was computed from another configuration" in printed
    remedy, *_ = re.findall("To compute them again: snakemake --cores all (.*)", printed)
    finished.snakemake(*remedy.split())
    assert files(finished) == before
    assert finished.planned(*ALL) == {}
    finished.snakemake("--touch", "--forceall", *ALL)  # as before this test


def test_a_surprising_claim_fails_and_leaves_its_table(finished):
    finished.claim(expect="not reproduced", reason="a mistake of this test")
    printed = finished.snakemake("claims", fails=True)
    table = (finished.path / "results/claims.md").read_text()
    finished.claim()
    surprise = "known as not reproduced, came out reproduced"
    assert surprise in printed
    assert surprise in table
    assert "Traceback" not in printed
    finished.snakemake("claims")
