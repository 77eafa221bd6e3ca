"""What reruns after a change, and what does not."""

import json

import pytest
import xarray as xr

pytestmark = pytest.mark.workflow
ALL = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
CELL = "results/deep_linear/step_size/learning_rate-0.02"


def test_everything_is_made_and_a_second_run_does_nothing(finished):
    for name in ("trajectory.nc", "theory.nc", "metrics.nc"):
        assert (finished.path / CELL / name).is_file()
    for name in (
        "figures/deep_linear/time_to_learn.png",
        "figures/deep_linear/time_to_learn.pdf",
        "results/metrics.csv",
        "results/claims.md",
        "results/findings.md",
        "results/logs/deep_linear/step_size/learning_rate-0.02/train.log",
        "results/benchmarks/deep_linear/step_size/learning_rate-0.02/train.tsv",
    ):
        assert (finished.path / name).stat().st_size > 0
    log = finished.path / "results/logs/deep_linear/step_size/learning_rate-0.02/train.log"
    assert "step 400/400" in log.read_text()
    assert finished.planned(*ALL) == {}


def test_plain_xarray_shows_what_a_file_is(finished):
    with xr.open_dataset(finished.path / CELL / "trajectory.nc") as trajectory:
        assert json.loads(trajectory.attrs["spec"])["training"]["learning_rate"] == 0.02
        assert trajectory["time"].attrs["units"] == "epochs"
        assert trajectory["loss"].attrs["long_name"]


def test_one_number_reruns_its_cells_only(finished):
    changed = finished.deep
    changed["step_size"]["sweep"]["training.learning_rate"] = [0.02, 0.008]
    finished.configure("deep_linear", changed)
    planned = finished.planned("metrics")
    finished.configure("deep_linear", finished.deep)
    assert planned == {"train": 1, "solve": 1, "measure": 1, "tabulate": 1}


def test_a_metric_retrains_nothing(finished):
    changed = finished.deep
    changed["time_to_learn"]["metrics"] = ["learning_times"]
    finished.configure("deep_linear", changed)
    planned = finished.planned("metrics")
    finished.configure("deep_linear", finished.deep)
    assert planned == {"measure": 1, "tabulate": 1}


def test_swapped_values_rerun(finished):
    changed = finished.layers
    changed["glorot_moments"]["seeds"] = 4
    changed["glorot_moments"]["network"]["hidden"] = [3]
    finished.configure("layer_dynamics", changed)
    planned = finished.planned("metrics")
    finished.configure("layer_dynamics", finished.layers)
    assert planned == {"train": 1, "measure": 1, "tabulate": 1}


DRAW = "draw_deep_linear_time_to_learn"
JUDGED = {"tabulate": 1, "judge": 1, "accept_claims": 1, DRAW: 1}


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("figures/deep_linear/time_to_learn.py", {DRAW: 1}),
        ("figures/deep_linear/staircase.py", {}),
        ("figures/style.py", {DRAW: 1}),
        ("claims/judge.py", {"judge": 1, "accept_claims": 1}),
        ("theory/modes.py", {"solve": 3, "measure": 4} | JUDGED),
        ("metrics/learning_times.py", {"measure": 4} | JUDGED),
        ("training/ensemble.py", {"train": 4, "measure": 4} | JUDGED),
    ],
)
def test_an_edited_library_file_reruns_what_rests_on_it(finished, edited, expected):
    try:
        assert finished.edit(edited).planned(*ALL) == expected
    finally:
        finished.restore(edited)


def test_parts_read_like_the_whole(finished, workspace):
    workspace.configure("deep_linear", {})
    workspace.claims("deep_linear")
    (workspace.path / "config/alone.yaml").write_text("batch: [init_scale]\n")
    target = "results/layer_dynamics/glorot_moments/main/trajectory.nc"
    workspace.snakemake(target, "--configfile", "config/alone.yaml")
    parts = workspace.path / "results/layer_dynamics/glorot_moments/main/parts"
    assert {p.name for p in parts.glob("*.nc")} == {f"seed-{n}.nc" for n in range(3)}
    with (
        xr.open_dataset(workspace.path / target) as gathered,
        xr.open_dataset(finished.path / target) as whole,
    ):
        xr.testing.assert_allclose(gathered, whole, rtol=1e-12)
        assert gathered.attrs == whole.attrs
