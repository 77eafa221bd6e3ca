"""Benchmarks run, and show what they are there to show."""

import json
import subprocess
import sys

from builders import REPOSITORY


def test_scaling_measures_few_points_and_trains_what_exceeds_memory(tmp_path):
    script = str(REPOSITORY / "benchmarks/scaling.py")
    command = [sys.executable, script, "--quick", "--output", str(tmp_path)]
    command += ["--axes", "samples", "domains"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    blocks, whole, *rest = done.stdout.splitlines()
    assert "in blocks: trained" in blocks
    assert "all at once: refused: training needs" in whole
    assert [line.split(" | ")[0] for line in rest[-2:]] == ["| samples", "| domains"]
    axes = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))
    for points in axes.values():
        assert len(points) == 2
        assert all(point["core_seconds"] > 0 and point["mib"] > 100 for point in points)
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
