"""What the documentation tells people to type works."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from neuralrace.plan import read_plan

REPOSITORY = Path(__file__).parents[1]
DOCS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(language: str) -> list:
    """Code blocks of the README and of docs/ in a language, with where they stand."""
    found = []
    for path in DOCS:
        text = path.read_text(encoding="utf-8")
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", text, re.S)):
            found.append(pytest.param(block, id=f"{path.stem}-{number}"))
    return found


def whole(block) -> bool:
    """Whether a block is a program, not a fragment or an analysis of results that are elsewhere."""
    return not {"claim_files", "open_results"} & set(re.findall(r"\w+", block.values[0]))


@pytest.mark.parametrize("block", list(filter(whole, blocks("python"))))
def test_programs_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {})
    assert capsys.readouterr().out or list(tmp_path.iterdir())


@pytest.mark.parametrize("block", blocks("yaml"))
def test_configurations_are_valid(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("my.npz", x=np.eye(2), y=np.eye(2))
    content = yaml.safe_load(block)
    if "experiments" in content:
        assert read_plan(content, {"docs": content}).cells
