"""Jobs that share a machine of several GPUs, which are pretended."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

SECONDS = 15
"""How long a job is made to take."""
NOTED = """
import time

with open("devices.txt", "a") as file:
    file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {time.time()}\\n")
time.sleep(15)

from neuralrace.job import job
"""


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(("there_are", "used"), [("3,5", ["3", "5"]), ("3", ["3", "3"])])
def test_no_two_jobs_share_a_gpu(workspace, monkeypatch, there_are, used):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", there_are)
    cost = workspace.path / "src/neuralrace/cost.py"  # small cells, too, are worth a GPU
    edit(cost, "GPU_COMPILE = 2e12, 5e-6, 40.0", "GPU_COMPILE = 2e12, 0, 0")
    script = workspace.path / "workflow/scripts/make.py"
    edit(script, "import json\n", "import json\nimport os\n")
    edit(script, "\nfrom neuralrace.job import job\n", NOTED)
    workspace.snakemake("cells")
    told = [line.split() for line in (workspace.path / "devices.txt").read_text().splitlines()]
    assert sorted(device for device, _ in told) == used
    first, second = sorted(float(begun) for _, begun in told)
    if len(set(used)) == 1:
        assert second - first > SECONDS
