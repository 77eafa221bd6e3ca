"""The package's names, its signatures, and how the objects that it returns represent themselves."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

import neuralrace as nr
from neuralrace.extensions.representation import short_repr, shown
from neuralrace.results.axes import record_steps
from neuralrace.theory.solutions.problem import Problem

TRAINING: dict[str, Any] = {"init_scales": [0.1], "learning_rate": 0.1, "steps": 40, "records": 4}


def test_dir_has_public_names_only():
    modules = {"claims", "datasets", "figures", "metrics"}
    modules |= {"networks", "results", "theory", "training"}
    assert set(dir(nr)) == {*nr.__all__} | modules


def test_signatures_show_the_defaults_in_use():
    defaults = {
        function: {n: p.default for n, p in inspect.signature(function).parameters.items()}
        for function in (nr.find_reln, nr.reduce_race)
    }
    assert defaults[nr.find_reln]["activation"] == "relu"
    assert defaults[nr.find_reln]["snapshots"] == 20
    assert defaults[nr.reduce_race]["init"] == "aligned"
    assert defaults[nr.reduce_race]["seeds"] == 1


def test_specifications_of_large_data_are_short():
    x, y = np.random.default_rng(0).normal(size=(2, 300, 10))
    cases: list[dict[str, Any]] = [{}, {"gates": np.ones((4, 300))}]
    for options in cases:
        cell = nr.specify(x, y, hidden=[8], **TRAINING, **options)
        assert "x=<tuple (300, 10)>" in repr(cell)
        assert len(repr(cell)) < 1000
        problem = repr(Problem(cell, record_steps(cell)[0]))
        assert "step=<int64 (5,)>" in problem
        assert len(problem) < 1200


def test_results_of_find_reln_are_short():
    x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
    reln = nr.find_reln(x, y, hidden=[40], pathways=4, seeds=1, snapshots=4, **TRAINING)
    lines = repr(reln).splitlines()
    assert (lines[0], lines[-1]) == ("Reln(", ")")
    assert "  output_error=<float64 (1, 1, 5)>," in lines
    assert len(lines) < 20
    for part in (reln.gating, reln.relu, reln.controls["end"]):
        assert "<float64 (" in repr(part)
        assert len(repr(part)) < 1500


def test_short_values_are_shown_in_full():
    assert shown({"a": (1, "b"), "c": [None]}) == "{'a': (1, 'b'), 'c': [None]}"
    assert shown((1,)) == "(1,)"
    assert shown(np.float64(0.5)) == repr(np.float64(0.5))
    assert shown([[0.5] * 3] * 40) == "<list (40, 3)>"


def test_every_dataclass_with_arrays_is_shown_by_shapes():
    offenders = []
    for path in Path(nr.__file__).parent.rglob("*.py"):
        if "figures" in path.parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                continue
            body = ast.unparse(node)
            fields = [ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign)]
            arrays = any(re.search(r"np\.ndarray|jax\.Array", each) for each in fields)
            if arrays and f"__repr__ = {short_repr.__name__}" not in body:
                offenders.append(f"{path.name}: {node.name}")
    assert offenders == []
