"""An entry predicts: it does not see the simulation that it is compared with.

By construction, an entry is a function of a `Problem`, which is the specification, the data, the
initial weights and the recorded steps. The rule that calls it has no input, so that it runs before
or after the simulation, and its file is the same. No recorded number after the start is reachable
from a problem, nor a path to one. The problem and the seeds of a held-out task do not exist until
the board is made.

What is not excluded: an entry is Python code and could open files that lie around; then its file
would change with them, which the test below would show. A theory that trains the network itself
does not cheat, as it uses nothing but the problem. It shows its cost instead, in the core-seconds
of each entry that `neuralrace benchmark` prints.
"""

import logging
import re
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import yaml
from jaxtyping import TypeCheckError
from small_tasks import TASKS

from builders import REPOSITORY
from neuralrace.board.held_out import drawn_tasks
from neuralrace.config.cell import SolvedEnsemble
from neuralrace.errors import UserError
from neuralrace.results.axes import record_steps
from neuralrace.results.checksums import checksum_path
from neuralrace.results.provenance import code_sha256
from neuralrace.theory.solutions.problem import Problem
from neuralrace.workflow import solve
from neuralrace.workflow.job import Job

WIDTH = "benchmark/linear_width/hidden-10"
COMPUTED = (property, cached_property)


def test_the_rule_that_solves_theory_has_no_input():
    rules = (REPOSITORY / "workflow/rules/cells.smk").read_text(encoding="utf-8")
    rule = rules[rules.index("rule solve:") :].split("\n\n\n")[0]
    assert re.findall(r"^    (\w+):", rule, re.MULTILINE)[0] == "output"
    assert "input:" not in rule


def test_theory_is_the_same_whatever_lies_in_the_folder_of_results(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = cells[WIDTH].spec.only(SolvedEnsemble)
    digest = code_sha256("solve", spec.modules)
    path = Path("results", WIDTH, "theory.nc")
    written = []
    for other in (None, "relu_fields/main", "linear_width/hidden-10"):
        if path.parent.exists():
            shutil.rmtree(path.parent)
        path.parent.mkdir(parents=True)
        if other:
            cells[f"benchmark/{other}"].trajectory.to_netcdf(path.with_name("trajectory.nc"))
        job = Job(logging.getLogger("test"), WIDTH, outputs=[str(path)])
        solve.run(job, spec.canonical(), digest)
        written.append((path.read_bytes(), checksum_path(path).read_bytes()))
    assert written[0] == written[1] == written[2]


def reachable(root):
    """Every array, text and path that attributes, properties and containers lead to."""
    seen, found, queue = set(), [], [root]
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, (type, int, float, bytes)) or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, (np.ndarray, str, Path)):
            found.append(value)
        elif isinstance(value, Mapping):
            queue += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset, range)):
            queue += list(value)
        elif type(value).__module__.startswith(("neuralrace", "networkx")):
            queue += vars(value).values() if hasattr(value, "__dict__") else []
            slots = getattr(type(value), "__slots__", ())
            names = [slots] if isinstance(slots, str) else list(slots)
            for cls in type(value).__mro__:
                if cls.__module__.startswith("neuralrace"):
                    names += [n for n, each in vars(cls).items() if isinstance(each, COMPUTED)]
            for name in names:
                try:
                    queue.append(getattr(value, name))
                except (AttributeError, UserError, TypeCheckError):  # of other networks
                    continue
    # the garbage collector could give the id of one to another one while this runs
    return found


@pytest.mark.parametrize("task", TASKS)
def test_no_record_after_the_first_is_reachable_from_a_problem(cells, task):
    for name, cell in cells.items():
        if name.split("/")[1] != task:
            continue
        spec = cell.spec.only(SolvedEnsemble)
        problem = Problem(spec, record_steps(spec)[0])
        found = reachable(problem)
        arrays = [each for each in found if isinstance(each, np.ndarray)]
        assert any(each is problem.weights[0] for each in arrays)
        assert any(each is problem.data.y for each in arrays)
        known = np.concatenate([each.ravel() for each in arrays if each.dtype.kind == "f"])
        recorded = 0
        for variable in cell.trajectory.data_vars.values():
            if clock := {"time", "snapshot"}.intersection(variable.dims):
                first, later = (
                    variable.isel({str(dim): at for dim in clock}).values
                    for at in (0, slice(1, None))
                )
                later = np.setdiff1d(later, [*np.unique(first), 0, 1])
                # a strength that has converged may equal a singular value of the data
                assert np.isin(later, known).sum() <= 0.01 * later.size, variable.name
                recorded += later.size
        assert recorded > 100
        texts = [str(each) for each in found if isinstance(each, (str, Path))]
        assert not [each for each in texts if re.search(r"results|trajectory|\.nc\b|/", each)]


def test_a_held_out_task_is_not_known_from_the_shown_tasks(monkeypatch):
    """Its seeds are none of a shown task; few draws have its problem."""
    monkeypatch.chdir(REPOSITORY)
    shown = yaml.safe_load((REPOSITORY / "config/benchmark/tasks.yaml").read_text(encoding="utf-8"))
    tasks = shown["experiments"]["benchmark"].values()
    seeds = {
        seed
        for task in tasks
        for first in [task.get("first_seed", 0)]
        for seed in range(first, first + task["seeds"])
    }
    problems: dict[str, list] = {}
    for number in range(40):
        for name, task in drawn_tasks(number)["experiments"]["benchmark"].items():
            drawn = range(task["first_seed"], task["first_seed"] + task["seeds"])
            assert seeds.isdisjoint(drawn)
            bare = {key: value for key, value in task.items() if key != "first_seed"}
            known = bare in [{k: v for k, v in t.items() if k != "first_seed"} for t in tasks]
            problems.setdefault(name.split("_")[0], []).append((known, bare, drawn))
    for family, drawn in problems.items():
        assert sum(known for known, _, _ in drawn) <= len(drawn) / 5, family
        assert all(sum(each[1:] == other[1:] for each in drawn) == 1 for other in drawn), family
