"""Seeds that nobody looked at, from the command to the table."""

import json

import pytest
import xarray as xr

from neuralrace.config.robustness import OFFSET

pytestmark = pytest.mark.workflow
FOLDER = "results/robustness/deep_linear/time_to_learn"
COARSE = {
    "tolerance": {"value": 9.0, "why": "a coarse step"},
    "alternatives": [{"name": "ten times as long", "value": 11.0, "source": "made up"}],
}


def row(workspace):
    (found,) = json.loads((workspace.path / "results/claims.json").read_text())
    return found


def test_the_table_shows_what_fresh_seeds_and_doubled_sizes_say(workspace):
    changed = workspace.deep
    changed["time_to_learn"]["training"] = {"learning_rate": 0.47, "steps": 400}
    workspace.configure("deep_linear", changed)
    workspace.claim(**COARSE)
    assert "robustness_runs" not in workspace.planned("claims")
    assert workspace.planned("robustness") == {"robustness_runs": 1, "judge_robustness": 1}
    workspace.snakemake("robustness")
    with xr.open_dataset(workspace.path / FOLDER / "fresh/main/metrics.nc") as fresh:
        assert fresh["seed"].values.tolist() == [OFFSET, OFFSET + 1]
    places = {path.parent.parent.name for path in (workspace.path / FOLDER).glob("*/main/*.nc")}
    assert places == {"fresh", "widths", "steps"}
    failed = json.loads((workspace.path / FOLDER / "failed.json").read_text())
    assert list(failed) == ["deep_linear/time_to_learn/step_size/main"], "runs diverge: an outcome"

    printed = workspace.snakemake("claims", fails=True)
    assert "does not survive twice the step size; say on what it depends" in printed
    blind = row(workspace)["robustness"]
    assert blind["seeds"] == f"{OFFSET} to {OFFSET + 1}"
    assert (blind["verdict"], blind["survives"]) == ("holds", False)
    assert blind["lost"] == ["twice the step size"]
    assert [trial["variant"] for trial in blind["doubled"]] == ["widths", "steps", "step_size"]
    assert "every run diverged" in json.dumps(blind)

    workspace.claim(**COARSE, depends="the step size")
    workspace.snakemake("claims")  # the trials are no input: asking for claims asks for no trials
    assert row(workspace)["robustness"] == blind
    assert row(workspace)["surprise"] is None

    workspace.claim(**COARSE | {"tolerance": {"value": 8.0, "why": "another"}})
    assert workspace.planned("claims") == {"judge": 1, "accept_claims": 1}
    workspace.snakemake("claims")
    assert row(workspace)["robustness"] is None, "another tolerance was not judged blindly"
