"""The tutorial of docs/benchmark.md: a wrong theory, its mend, and what the board shows of both."""

import re

import numpy as np
import pytest

from builders import REPOSITORY
from neuralrace.extensions.source import decorated

GUIDE = (REPOSITORY / "docs/benchmark.md").read_text(encoding="utf-8")
PROGRAM, SOLUTION = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(scope="module")
def program():
    """Everything that the program of the tutorial defines."""
    names: dict = {}
    exec(compile(PROGRAM, "tutorial", "exec"), names)
    return names


def test_the_table_has_the_scores_of_the_board(program):
    heading, *rows = re.findall(r"^\| (.*) \|$", GUIDE, re.MULTILINE)[:4]
    entries = [name.strip("`") for name in heading.split(" | ")[1:]]
    names = ("loss_error", "loss_shape_error", "halfway_time_log_ratio")
    for row, name in zip(rows, names, strict=True):
        values = program["scores"][name].sel(entry=entries).values
        values = np.exp(values) if name == "halfway_time_log_ratio" else values
        shown = [float(text) for text in row.split(" | ")[1:]]
        np.testing.assert_allclose(shown, values, rtol=0, atol=0.0051)


def test_the_text_says_what_the_board_shows(program):
    loss, shape = (program["scores"][n] for n in ("loss_error", "loss_shape_error"))
    assert float((shape / loss).sel(entry="from_scale")) < 0.5
    assert float((shape / loss).sel(entry="from_weights")) > 0.9
    holds = program["board"]["linear_width"]["holds"].sel(init_scale=1.0)
    assert (holds.sel(entry=["from_scale", "from_weights"]) == 0).all()
    assert (holds.sel(entry="exact") == 1).all()


def test_the_solution_of_the_package_is_the_theory_of_the_program(program, tmp_path):
    path = tmp_path / "from_weights.py"
    path.write_text(SOLUTION, encoding="utf-8")
    assert list(decorated(path, "Solution")) == ["from_weights"]
    names: dict = {}
    exec(compile(SOLUTION, "package", "exec"), names)
    from neuralrace.config.load import read_file, read_plan
    from neuralrace.results.axes import record_steps
    from neuralrace.theory.solutions.problem import Problem

    tasks = read_file(REPOSITORY / "config/benchmark/tasks.yaml") | {
        "only": ["benchmark/linear_width"]
    }
    for cell in read_plan(tasks, {}).cells.values():
        problem = Problem(cell, record_steps(cell)[0])
        expected, found = program["from_weights"](problem), names["from_weights"](problem)
        np.testing.assert_array_equal(found["loss"], expected["loss"])
