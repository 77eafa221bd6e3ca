"""Robustness runs, from the command to the table of claims."""

import json
import shutil

import pytest
import xarray as xr

from neuralrace.config.robustness import OFFSET

pytestmark = pytest.mark.workflow
FOLDER = "results/robustness/deep_linear/time_to_learn"
COARSE = {
    "tolerance": {"value": 9.0, "why": "a coarse step"},
    "alternatives": [{"name": "ten times as long", "value": 11.0, "source": "made up"}],
}


def claim_row(workspace):
    (row,) = json.loads((workspace.path / "results/claims.json").read_text())
    return row


def test_the_table_shows_robustness_runs(workspace):
    changed = workspace.deep
    changed["time_to_learn"]["training"] = {"learning_rate": 0.47, "steps": 400}
    workspace.configure("deep_linear", changed)
    workspace.claim(**COARSE)
    assert "robustness_runs" not in workspace.planned("claims")
    assert workspace.planned("robustness") == {"robustness_runs": 1, "judge_robustness": 1}
    workspace.snakemake("robustness")
    with xr.open_dataset(workspace.path / FOLDER / "fresh/main/metrics.nc") as fresh:
        assert fresh["seed"].values.tolist() == [OFFSET, OFFSET + 1]
    variants = {path.parent.parent.name for path in (workspace.path / FOLDER).glob("*/main/*.nc")}
    assert variants == {"fresh", "widths", "steps"}
    failed = json.loads((workspace.path / FOLDER / "failed.json").read_text())
    assert list(failed) == ["deep_linear/time_to_learn/step_size/main"], "its runs diverge"

    printed = workspace.snakemake("claims", fails=True)
    assert "the verdict changes with twice the step size; say on what it depends" in printed
    robustness = claim_row(workspace)["robustness"]
    assert robustness["seeds"] == f"{OFFSET} to {OFFSET + 1}"
    assert (robustness["verdict"], robustness["survives"]) == ("holds", False)
    assert robustness["lost"] == ["twice the step size"]
    assert [each["variant"] for each in robustness["doubled"]] == ["widths", "steps", "step_size"]
    assert "every run diverged" in json.dumps(robustness)

    workspace.claim(**COARSE, depends="the step size")
    workspace.snakemake("claims")  # starts no robustness runs, although the claims changed
    assert claim_row(workspace)["robustness"] == robustness
    assert claim_row(workspace)["surprise"] is None

    workspace.claim(**COARSE | {"tolerance": {"value": 8.0, "why": "another"}})
    assert workspace.planned("claims") == {"judge": 1, "accept_claims": 1}
    workspace.snakemake("claims")
    assert claim_row(workspace)["robustness"] is None, "another tolerance was not judged there"

    # runs of an earlier version, in a renamed folder that Snakemake has no record of, are kept
    moved = workspace.path / "results/moved"
    (workspace.path / "results/robustness").rename(moved)
    (workspace.path / "results/robustness.json").unlink()
    shutil.rmtree(workspace.path / ".snakemake")
    moved.rename(workspace.path / "results/robustness")
    workspace.edit("training/trainer.py")
    assert workspace.planned("robustness") == {"judge_robustness": 1}
    workspace.snakemake("robustness")
