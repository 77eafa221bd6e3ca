"""Seeds that nobody looked at, from the command to the table."""

import json

import pytest
import xarray as xr

from neuralrace.variants import OFFSET

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]
FOLDER = "results/blind/deep_linear/time_to_learn"


def row(workspace):
    (found,) = json.loads((workspace.path / "results/claims.json").read_text())
    return found


def test_the_table_shows_what_fresh_seeds_and_doubled_sizes_say(workspace):
    workspace.snakemake("claims")
    assert row(workspace)["blind"] is None
    assert workspace.planned("blind") == {"blind_runs": 1, "judge_blind": 1}
    workspace.snakemake("blind")
    with xr.open_dataset(workspace.path / FOLDER / "fresh/main/metrics.nc") as fresh:
        assert fresh["seed"].values.tolist() == [OFFSET, OFFSET + 1]
    places = {path.parent.parent.name for path in (workspace.path / FOLDER).glob("*/main/*.nc")}
    assert places == {"fresh", "widths", "steps", "step_size"}

    workspace.snakemake("claims")  # the trials are no input: asking for claims asks for no trials
    blind = row(workspace)["blind"]
    assert blind["seeds"] == f"{OFFSET} to {OFFSET + 1}"
    assert (blind["verdict"], blind["survives"], blind["lost"]) == ("holds", True, [])
    assert [trial["variant"] for trial in blind["doubled"]] == ["widths", "steps", "step_size"]

    workspace.claim(tolerance={"value": 0.06, "why": "another"})
    assert workspace.planned("claims") == {"judge": 1, "accept_claims": 1}
    workspace.snakemake("claims")
    assert row(workspace)["blind"] is None, "another tolerance was not judged blindly"


def test_runs_that_diverge_are_an_outcome(workspace):
    changed = workspace.deep
    changed["time_to_learn"]["training"] = {"learning_rate": 0.47, "steps": 400}
    workspace.configure("deep_linear", changed)
    workspace.claim(tolerance={"value": 9.0, "why": "a coarse step"}, alternatives=[
        {"name": "ten times as long", "value": 11.0, "source": "made up"}
    ])  # fmt: skip
    workspace.snakemake("blind")
    failed = json.loads((workspace.path / FOLDER / "failed.json").read_text())
    assert list(failed) == ["deep_linear/time_to_learn/step_size/main"]
    printed = workspace.snakemake("claims", fails=True)
    assert "does not survive twice the step size; say on what it depends" in printed
    assert "every run diverged" in json.dumps(row(workspace)["blind"])
    workspace.claim(
        tolerance={"value": 9.0, "why": "a coarse step"},
        alternatives=[{"name": "ten times as long", "value": 11.0, "source": "made up"}],
        depends="the step size",
    )
    workspace.snakemake("claims")
    assert row(workspace)["surprise"] is None
