"""Jobs that a change runs again, and those that it does not."""

import json
import os
import re
import shutil
from dataclasses import replace

import pytest
import xarray as xr

pytestmark = pytest.mark.workflow
ALL = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
CELL = "results/deep_linear/step_size/learning_rate-0.02"
LOG = CELL.replace("results", "results/logs") + "/train.log"
NEW = {
    "metrics/nothing.py": '''"""Nothing."""

from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.extensions.registry import Metric


@Metric(variables={"final_loss": ("", "loss at the end")})
def nothing(cell: CellResults) -> Values:
    """The loss at the end."""
    return {"final_loss": cell.trajectory["loss"].isel(time=-1, drop=True)}
''',
    "training/observables/nothing.py": '''"""Nothing."""

from collections.abc import Mapping

from jax import Array

from neuralrace.training.observables.view import View
from neuralrace.extensions.registry import Observable


@Observable(variables={"nothing": ("time", "zero")})
def nothing(view: View) -> Mapping[str, Array]:
    """Zero."""
    return {"nothing": 0 * view.network.weights[0][0, 0]}
''',
    "datasets/nothing.py": '''"""Nothing."""

from typing import Literal

import numpy as np

from neuralrace.datasets.base import Data, Dataset


class Nothing(Dataset):
    """Zeros."""

    name: Literal["nothing"]

    def load(self) -> Data:
        """Zeros."""
        return Data(x=np.zeros((2, 2)), y=np.zeros((2, 1)))
''',
    "figures/deep_linear/nothing.py": '''"""Nothing."""

from neuralrace.extensions.registry import Figure


@Figure(layout="a", height=1.0, reads={"time_to_learn": {"metrics": "half_time"}})
def legend(results):
    """Nothing."""


def panel_a(results, ax):
    """Nothing."""
''',
}
"""Extensions of four kinds, a file each."""


def test_a_second_run_does_nothing(finished):
    for name in ("trajectory.nc", "theory.nc", "metrics.nc"):
        assert (finished.path / CELL / name).is_file()
    for name in (
        "figures/deep_linear/time_to_learn.png",
        "figures/deep_linear/time_to_learn.pdf",
        "figures/deep_linear/time_to_learn.svg",
        "figures/slim/deep_linear/time_to_learn.png",
        "results/metrics.csv",
        "results/claims.md",
        "results/findings.md",
        LOG,
        LOG.replace(".log", ".json"),
    ):
        assert (finished.path / name).stat().st_size > 0
    log = (finished.path / LOG).read_text()
    assert "deep_linear/step_size/learning_rate-0.02: step 400/400" in log
    cost = json.loads((finished.path / LOG).with_suffix(".json").read_text())
    assert {"start", "train"} <= {each["stage"] for each in cost["stages"]}
    assert cost["seconds"] > 0
    assert cost["peak_mb"] > 50
    assert finished.planned(*ALL) == {}


def test_plain_xarray_shows_what_a_file_is(finished):
    with xr.open_dataset(finished.path / CELL / "trajectory.nc") as trajectory:
        assert json.loads(trajectory.attrs["spec"])["training"]["learning_rate"] == 0.02
        assert trajectory["time"].attrs["units"] == "epochs"
        assert trajectory["loss"].attrs["long_name"]


def test_a_changed_value_computes_the_files_of_its_cell_only(finished):
    changed = finished.deep
    changed["step_size"]["sweep"]["training.learning_rate"] = [0.02, 0.008]
    finished.configure("deep_linear", changed)
    planned, files = finished.plan("metrics")
    finished.configure("deep_linear", finished.deep)
    assert planned == {"train": 1, "solve": 1, "measure": 1, "tabulate": 1}
    folder = CELL.replace("0.02", "0.008")
    made = {f"{folder}/{kind}.nc" for kind in ("trajectory", "theory", "metrics")}
    assert files == made | {"results/metrics.csv"}


def test_a_metric_retrains_nothing(finished):
    changed = finished.deep
    changed["time_to_learn"]["metrics"] = ["learning_times"]
    finished.configure("deep_linear", changed)
    files = finished.planned_files("metrics")
    finished.configure("deep_linear", finished.deep)
    assert files == {"results/deep_linear/time_to_learn/main/metrics.nc", "results/metrics.csv"}


def test_new_extensions_run_nothing_again(finished):
    library = finished.path / "src/neuralrace"
    try:
        for name, text in NEW.items():
            (library / name).write_text(text)
        assert finished.planned(*ALL) == {}
        changed = finished.deep
        changed["time_to_learn"]["metrics"] = [*changed["time_to_learn"]["metrics"], "nothing"]
        finished.configure("deep_linear", changed)
        cell = "results/deep_linear/time_to_learn/main"
        files = finished.planned_files("metrics")
        assert f"{cell}/metrics.nc" in files
        assert f"{cell}/trajectory.nc" not in files
    finally:
        finished.configure("deep_linear", finished.deep)
        for name in NEW:
            (library / name).unlink()


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (["figures/deep_linear/time_to_learn.py"], {"draw"}),
        # the figure of the first is not among the targets
        (["figures/deep_linear/staircase.py", "claims/judge.py"], {"judge", "accept_claims"}),
        (
            ["metrics/linear/learning_times.py"],
            {"measure", "tabulate", "judge", "accept_claims", "draw"},
        ),
    ],
)
def test_edited_files_rerun_dependent_rules(finished, edited, expected):
    try:
        for name in edited:
            finished.edit(name)
        assert set(finished.planned(*ALL)) == expected
    finally:
        for name in edited:
            finished.restore(name)


COMMENTED = (
    "src/neuralrace/metrics/linear/learning_times.py", "src/neuralrace/claims/judge.py",
    "config/deep_linear/claims.yaml", "config/deep_linear/experiments.yaml",
    "workflow/rules/cells.smk", "Snakefile",
)  # fmt: skip


def test_a_comment_runs_nothing_again(finished):
    texts = {finished.path / name: (finished.path / name).read_text() for name in COMMENTED}
    try:
        for path, text in texts.items():
            path.write_text(f"# a comment\n\n{text}\n# and another\n")
        assert finished.planned(*ALL) == {}
        finished.claim(quote="It takes this long.")
        assert set(finished.planned(*ALL)) == {"judge", "accept_claims"}
    finally:
        for path, text in texts.items():
            path.write_text(text)


def test_results_need_no_memory_of_snakemake(finished, tmp_path):
    """Copied results are used without change, and `verify` says whether they fit."""
    for name in ("src", "workflow", "profiles", "config", "results", "figures"):
        shutil.copytree(finished.path / name, tmp_path / name)
    shutil.copy2(finished.path / "Snakefile", tmp_path / "Snakefile")
    copied = replace(finished, path=tmp_path)
    assert copied.planned("metrics") == {}
    copied.edit("metrics/linear/learning_times.py")
    printed = copied.snakemake("verify", fails=True)
    stale = sorted(re.findall(r"^(results/.*): was computed from .* other code", printed, re.M))
    metrics = sorted(map(str, (tmp_path / "results").glob("deep_linear/*/*/metrics.nc")))
    assert stale == [os.path.relpath(path, tmp_path) for path in metrics]
    remedy, *_ = re.findall("To compute them again: snakemake --cores all (.*)", printed)
    copied.snakemake(*remedy.split())
    copied.snakemake(*ALL)  # dependent files
    assert "files of cells and 3 of figures and tables verified" in copied.snakemake("verify")
