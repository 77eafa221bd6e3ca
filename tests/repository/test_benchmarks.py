"""The scripts of benchmarks/: what they import exists, and both sides of a comparison agree."""

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from builders import REPOSITORY
from compiling import QUICK
from warm_python import PYTHON

BENCHMARKS = REPOSITORY / "benchmarks"
COSTS = {"ours": [{"cold_cpu": 3.0}], "plain": [{"cold_cpu": 2.0}]}


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_from_the_library_exists(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralrace"):
            module = import_module(str(node.module))
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                assert hasattr(module, alias.name) or find_spec(name), name


@pytest.mark.parametrize(("work", "steps"), [("race", 100), ("relu", 2000)])
def test_plain_jax_trains_as_the_package_does(work, steps, tmp_path):
    code = f"""
import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
from pathlib import Path
import numpy as np, peers
folder = Path({str(tmp_path)!r})
peers.SPECIFICATIONS[{work!r}] |= {{"steps": {steps}, "records": 20}}
peers.save_start({work!r}, folder)
found, expected = (
    np.stack([side(warm) for warm in (False, True)])
    for side in (peers.ours({work!r}), peers.plain({work!r}, folder))
)
assert (expected[0, :, -1] < 0.9 * expected[0, :, 0]).all(), "nothing is learned"
assert not np.array_equal(expected[0], expected[1]), "the warm work has other numbers"
peers.report({work!r}, {COSTS}, found, expected)
"""
    run = PYTHON.run(["-c", code], tmp_path, os.environ | QUICK)
    assert run.returncode == 0, run.stderr
    assert "1.50" in run.stdout


def test_no_ratio_of_works_that_differ(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    losses = np.ones((2, 3, 4))
    with pytest.raises(SystemExit, match="not the same work"):
        import_module("peers").report("race", COSTS, losses, losses + 1e-6)
    assert "ratio" not in capsys.readouterr().out


def test_scaling_measures_few_points_and_trains_what_exceeds_memory(tmp_path):
    script = str(REPOSITORY / "benchmarks/scaling.py")
    command = [sys.executable, script, "--quick", "--output", str(tmp_path)]
    command += ["--axes", "domains"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    blocks, whole, *rest = done.stdout.splitlines()
    assert "in blocks: trained" in blocks
    assert "all at once: refused: training needs" in whole
    assert rest[-1].startswith("| domains | ")
    points = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))["domains"]
    assert len(points) == 2
    assert all(point["core_seconds"] > 0 and point["mib"] > 100 for point in points)
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


# The first hours -------------------------------------------------------------------------------


@pytest.fixture
def first_steps(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("first_steps")


def test_steps_of_the_first_hours_are_sections_that_show_something(first_steps, tmp_path):
    for hour, pages in first_steps.HOURS.items():
        listed = {title for titles in pages.values() for title in titles}
        titles = [title for title, _ in first_steps.steps([hour], tmp_path)]
        assert len(titles) > 4
        assert listed <= set(titles)


@pytest.mark.parametrize(
    ("commands", "below", "ends"),
    [
        ("$ echo one\n$ echo two", "```text\ntwo\n```", 0),
        ("$ echo one\n$ echo two", "```text\nthree\n```", 1),
        ("$ false\n$ echo two", "", 1),
        ("$ false\n$ echo two", "```text\ntwo\n```", 1),
        ("$ echo 'Error: no' && false", "```text\nError: no\n```", 0),
        ("$ echo 'Error: no'", "```text\nError: no\n```", 1),
        ("$ echo 'Error: yes' && false", "```text\nError: no\n```", 1),
        ("$ timeout 0.1 sleep 9", "", 0),
        ("$ touch made.csv", "It writes `made.csv`, and reads [`gone.csv`](gone.csv).", 0),
        ("$ touch made.csv", "It writes `made.csv` and `results/gone`.", 2),
    ],
)
def test_a_step_fails_where_its_section_is_wrong(first_steps, tmp_path, commands, below, ends):
    section = f"```console\n{commands}\n```\n\n{below}\n"
    script = "set -euo pipefail\n" + first_steps.program(section, tmp_path / "shown")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == ends, done.stderr
