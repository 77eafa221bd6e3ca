"""The workflow at a fraction of its size."""

import pytest
import xarray as xr
import yaml

pytestmark = pytest.mark.workflow


def test_the_smoke_run_shrinks_what_no_file_of_ones_own_sets_up(workspace):
    # 30 steps and records every 20 do not go together: neither file may see the other's numbers
    short = {"seeds": 1, "training": {"steps": 30}}
    smoke = {"experiments": {"deep_linear": {"time_to_learn": short, "step_size": short}}}
    own = {"experiments": {"deep_linear": {"time_to_learn": {"record": {"every": 20}}}}}
    (workspace.path / "config/deep_linear/smoke.yaml").write_text(yaml.safe_dump(smoke))
    (workspace.path / "own.yaml").write_text(yaml.safe_dump(own))
    cells = ("time_to_learn/main", "step_size/learning_rate-0.02")
    files = [f"results/smoke/deep_linear/{cell}/trajectory.nc" for cell in cells]
    workspace.snakemake(*files, "--configfile", "own.yaml")
    steps = [xr.load_dataset(workspace.path / file).time.values for file in files]
    assert steps[0].tolist() == list(range(0, 401, 20))
    assert steps[1].tolist() == [0, 10, 20, 30]
