"""Recipes of containers build where the tools are; it takes too long for the ordinary suite."""

import shutil
import subprocess

import pytest

from builders import REPOSITORY


def works(*command: str) -> bool:
    """Whether a program is there, and whatever it asks answers."""
    return shutil.which(command[0]) is not None and not subprocess.call(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


BUILDS = {
    "docker": ["docker", "build", "--quiet", "--file", "container/Dockerfile", "."],
    "apptainer": ["apptainer", "build", "{image}", "container/neuralrace.def"],
}


@pytest.mark.faults
@pytest.mark.parametrize(("tool", "asked"), [("docker", "info"), ("apptainer", "version")])
def test_a_recipe_builds(tool, asked, tmp_path):
    if not works(tool, asked):
        pytest.skip(f"{tool} is not there, or its service does not answer")
    command = [word.format(image=tmp_path / "neuralrace.sif") for word in BUILDS[tool]]
    subprocess.run(command, cwd=REPOSITORY, check=True)
