"""What `make` prints, with programs that install and run nothing."""

import shutil
import subprocess

import pytest

from builders import REPOSITORY
from mentions import wrong_command

PROGRAM = """#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv ;;
  *" -q"* | *" --quiet"*) ;;
  *" install "*) echo "one line for each package" ;;
esac
"""
"""In place of Python and of uv."""
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def make(tmp_path):
    """Runs a target in a folder with the files that `make install` reads."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(REPOSITORY / name, tmp_path)
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)

    def run(target: str) -> subprocess.CompletedProcess[str]:
        # below `make test`, it would also say which folder it enters
        command = ["make", "--no-print-directory", "PYTHON=./program", target]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_an_installation_prints_a_line_for_each_step_and_what_to_do_next(make):
    done = make("install")
    assert done.returncode == 0, done.stderr
    *steps, first, everything = done.stdout.splitlines()
    assert len(steps) == 3
    assert "one line for each package" not in steps
    assert wrong_command(first.partition("Next: ")[2]) == ""
    assert wrong_command(everything.rpartition(": ")[2]) == ""
    assert make("install").stdout.splitlines() == [first, everything]


def test_a_report_without_results_is_refused_in_a_sentence(make):
    done = make("report")
    assert done.returncode != 0
    told = "report.zip packs finished results, and there are none. Compute them first: make figures"
    assert told in done.stderr.splitlines()
