"""Another configuration into another folder, as the workflow at a fraction of its size."""

import re

import pytest
import xarray as xr
import yaml

pytestmark = pytest.mark.workflow


def test_a_configuration_says_where_its_results_go(workspace):
    short = {"time_to_learn": {"seeds": 1, "training": {"steps": 30}}}
    smoke = {"results": "results/small", "experiments": {"deep_linear": short}}
    own = {"experiments": {"deep_linear": {"time_to_learn": {"record": {"every": 15}}}}}
    (workspace.path / "smoke.yaml").write_text(yaml.safe_dump(smoke))
    (workspace.path / "own.yaml").write_text(yaml.safe_dump(own))
    file = "results/small/deep_linear/time_to_learn/main/trajectory.nc"
    printed = workspace.snakemake(file, "--config", "settings=smoke.yaml,own.yaml")
    assert re.search("\nestimated time: .* for 1 job of 1 cell, without", printed)
    assert re.search(
        r"^[\d:]{8} deep_linear/time_to_learn/main: train done, 1 of 1$", printed, re.M
    )
    assert "jobid" not in printed
    trajectory = xr.load_dataset(workspace.path / file)
    assert trajectory.time.values.tolist() == [0, 15, 30]
    assert trajectory.sizes["seed"] == 1
    made = [path.relative_to(workspace.path) for path in workspace.path.glob("results/**/*.nc")]
    assert {path.parts[1] for path in made} == {"small"}


@pytest.mark.parametrize(
    "settings", ["own/one *.yaml,own/it's.yaml", '["own/one two.yaml", "own/&$HOME.yaml"]']
)
def test_a_job_in_a_process_of_its_own_reads_the_same(workspace, settings):
    """As on a cluster: Snakemake hands it what stands behind --config."""
    (workspace.path / "own").mkdir()
    short = {"time_to_learn": {"seeds": 1, "training": {"steps": 30}}}
    one = {"results": "there", "experiments": {"deep_linear": short}}
    (workspace.path / "own/one two.yaml").write_text(yaml.safe_dump(one))
    for name in ("it's", "&$HOME"):
        (workspace.path / f"own/{name}.yaml").write_text("checkpoint_seconds: 1e2")
    file = "there/deep_linear/time_to_learn/main/trajectory.nc"
    options = ("--workflow-profile", "none", "--config", f"settings={settings}")
    workspace.snakemake(file, *options)
    assert xr.load_dataset(workspace.path / file).sizes["seed"] == 1


def test_figures_of_another_folder_leave_the_gallery_alone(workspace):
    figure = "figures/deep_linear/time_to_learn.png"
    planned = workspace.planned_files(f"elsewhere/{figure}", "--config", "results=elsewhere")
    assert f"elsewhere/{figure}" in planned
    assert not {name for name in planned if not name.startswith("elsewhere/")}
    (workspace.path / "own.yaml").write_text("results: a*b\n")
    told = workspace.refusal("-n", figure, "--config", "settings=own.yaml")
    assert told.startswith("own.yaml: results: 'a*b': name a folder, without")


def test_a_picture_is_drawn_where_another_kind_of_file_of_it_is_missing(workspace):
    figure = "figures/deep_linear/time_to_learn.png"
    slim = workspace.path / "figures/slim/deep_linear/time_to_learn.png"
    slim.parent.mkdir(parents=True)
    slim.write_bytes(b"as a clone has it")
    assert figure in workspace.planned_files(figure)
