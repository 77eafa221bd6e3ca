"""`neuralrace run` plots each cell that no figure of a paper shows."""

import re
from pathlib import Path

import pytest
import yaml
from PIL import Image

pytestmark = pytest.mark.workflow
LABELS = ("learning_rate-0.01", "learning_rate-0.02")
PLOTS = [f"figures/mine/first/{label}.png" for label in LABELS]
CONFIGURATION = ("--configfile", "mine.yaml")


def test_an_experiment_of_ones_own_is_plotted(workspace):
    experiment = workspace.deep["step_size"]
    content = {"only": ["mine"], "experiments": {"mine": {"first": experiment}}}
    (workspace.path / "mine.yaml").write_text(yaml.safe_dump(content))
    printed = workspace.neuralrace("run", "--cores", "1", *CONFIGURATION)
    places = dict(re.findall(r"^(\w+): (/.*)$", printed, re.MULTILINE))
    assert set(places) == {"results", "figures"}
    assert all(Path(place).is_dir() for place in places.values())
    assert sorted(
        path.relative_to(workspace.path).as_posix() for path in workspace.path.rglob("*.png")
    ) == PLOTS  # fmt: skip
    with Image.open(workspace.path / PLOTS[0]) as picture:
        assert picture.info["Title"] == f"mine/first/{LABELS[0]}"
        assert "training loss" in picture.info["Description"]

    assert workspace.planned("cells", "plots", *CONFIGURATION) == {}
    edited = workspace.edit("figures/plot.py")
    assert edited.planned("cells", "plots", *CONFIGURATION) == {"plot": 2}
    workspace.restore("figures/plot.py")

    whole = (workspace.path / PLOTS[1]).read_bytes()
    (workspace.path / PLOTS[1]).write_bytes(whole[:1000])
    told = workspace.snakemake("verify", *CONFIGURATION, fails=True)
    assert f"{PLOTS[1]}: is not what was written" in told
    command, *_ = re.findall("To compute them again: snakemake --cores all (.*)", told)
    workspace.snakemake(*command.split(), *CONFIGURATION)
    assert (workspace.path / PLOTS[1]).read_bytes() == whole
