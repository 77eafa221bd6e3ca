"""Variants, from the commands to the table of claims."""

import json
import re
import shutil
from collections import Counter

import pytest
import xarray as xr

from neuralrace.config.variants import OFFSET

pytestmark = pytest.mark.workflow
TARGETS = ("claims", "blind", "ranges")
FOLDER = "results/variants/{}/deep_linear/time_to_learn"
COARSE = {
    "tolerance": {"value": 9.0, "why": "a coarse step"},
    "alternatives": [{"name": "ten times as long", "value": 11.0, "source": "made up"}],
}


CLAIMED = {"judge": 1, "accept_claims": 1}
JOB = re.compile(r"^[\d:]{8} (?:\S+: )?(\w+) done, \d+ of \d+$", re.MULTILINE)


def jobs(printed):
    """Number of jobs that Snakemake ran, by rule."""
    counts = Counter(JOB.findall(printed))
    return {rule: number for rule, number in counts.items() if rule not in TARGETS}


def claim_row(workspace):
    (row,) = json.loads((workspace.path / "results/claims.json").read_text())
    return row


def test_the_table_shows_variants(workspace):
    changed = workspace.deep
    changed["time_to_learn"]["training"] = {"learning_rate": 0.47, "steps": 400}
    workspace.configure("deep_linear", changed)
    workspace.claim(**COARSE)
    assert jobs(workspace.snakemake("claims")) == CLAIMED | {"train": 1, "solve": 1, "measure": 1}
    assert claim_row(workspace)["blind"] is None
    groups = ("blind", "ranges")
    assert jobs(workspace.snakemake(*groups)) == {"variants": 2, "judge_variants": 2}
    blind, ranges = (workspace.path / FOLDER.format(group) for group in groups)
    with xr.open_dataset(blind / "fresh/main/metrics.nc") as fresh:
        assert fresh["seed"].values.tolist() == [OFFSET, OFFSET + 1]
    made = {path.parent.parent.name for path in ranges.glob("*/main/*.nc")}
    failed = json.loads((ranges / "failed.json").read_text())
    assert "deep_linear/time_to_learn/step_size_x2/main" in failed, "its runs diverge"
    assert {"widths_x0.5", "widths_x2", "steps_x2", "step_size_x0.5"} <= made
    assert not any(f"deep_linear/time_to_learn/{name}/main" in failed for name in made)
    assert (
        "neuralrace"
        in json.loads((workspace.path / "results/blind.json").read_text())["made_by"]["versions"]
    )

    workspace.snakemake("claims")
    row = claim_row(workspace)
    assert (row["blind"]["verdict"], row["blind"]["seeds"]) == ("holds", [OFFSET, OFFSET + 1])
    tried = {each["setting"]: each["points"] for each in row["ranges"]}
    assert {"width", "steps", "step size"} <= set(tried)
    assert "every run diverged" in tried["step size"][-1]["told"]
    assert [point["own"] for point in tried["step size"]] == [False, True, False]

    # Verdicts with fresh seeds are kept although the claims change, and what the repository carries
    # counts where there are none of one's own.
    workspace.claim(**COARSE, depends="the step size")
    released = workspace.path / "config/blind.json"
    (workspace.path / "results/blind.json").rename(released)
    workspace.snakemake("claims")
    assert claim_row(workspace)["blind"] == row["blind"]
    assert claim_row(workspace)["surprise"] is None

    workspace.claim(**COARSE | {"tolerance": {"value": 8.0, "why": "another"}})
    assert jobs(workspace.snakemake("claims")) == CLAIMED
    assert claim_row(workspace)["blind"] is None, "another tolerance was not judged there"

    # runs of an earlier version, in a renamed folder that Snakemake has no record of, are kept
    moved = workspace.path / "results/moved"
    (workspace.path / "results/variants").rename(moved)
    shutil.rmtree(workspace.path / ".snakemake")
    moved.rename(workspace.path / "results/variants")
    assert jobs(workspace.snakemake("blind")) == {"judge_variants": 1}
