"""Jobs that share a machine of several GPUs, which are pretended."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

NOTED = """
import time

with open("devices.txt", "a") as file:
    file.write(os.environ["CUDA_VISIBLE_DEVICES"] + "\\n")
time.sleep(15)

from neuralrace.job import job
"""


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_jobs_have_a_gpu_each_and_no_more_run_than_there_are(workspace, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    cost = workspace.path / "src/neuralrace/cost.py"  # small cells, too, are worth a GPU
    edit(cost, "GPU_COMPILE = 2e12, 5e-6, 40.0", "GPU_COMPILE = 2e12, 0, 0")
    script = workspace.path / "workflow/scripts/make.py"
    edit(script, "import json\n", "import json\nimport os\n")
    edit(script, "\nfrom neuralrace.job import job\n", NOTED)
    printed = workspace.snakemake("cells")
    assert "Provided resources: gpu=2" in printed
    assert sorted((workspace.path / "devices.txt").read_text().split()) == ["3", "5"]
