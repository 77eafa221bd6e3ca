"""`nr.benchmark`: theories, networks and data of one's own on a board."""

import functools
import re

import numpy as np
import pytest

import neuralrace as nr
from builders import LINEAR
from neuralrace.errors import UserError

TASK = LINEAR | {
    "init_scales": [0.3],
    "training": {"learning_rate": 0.02, "steps": 200},
    "solutions": "applicable",
    "metrics": ["analytic_fit"],
}
BARE = {key: value for key, value in TASK.items() if key not in ("solutions", "metrics")}


def silent(task, entries, **options):
    return nr.benchmark(task, entries, progress=False, **options)


def at_rest(problem):
    scales, seeds = problem.weights[0].shape[:2]
    loss = np.full((scales, seeds, len(problem.step)), problem.data.y_power / 2)
    return {"loss": problem.as_trained(loss)}


def returning(answer, name="mine"):
    """A function that returns an answer."""

    def function(problem):
        return answer(problem) if callable(answer) else answer

    function.__name__ = name
    return function


@pytest.fixture(scope="module")
def whole():
    """The board of a mapping with a sweep."""
    swept = TASK | {"sweep": {"network.hidden": [[2], [3, 3]]}}
    return silent(swept, ["exact", "flow", at_rest])


def test_an_experiment_is_scored_with_theories_and_functions(whole):
    assert list(whole.children) == ["summary", "own"]
    own = whole["own"]
    assert own["value"].values.tolist() == ["2", "3x3"]
    assert set(own["entry"].values) == {"exact", "flow", "at_rest", "other_seeds"}
    error = own["loss_error"].mean("seed").squeeze("init_scale")
    assert (error.sel(entry="flow") < 0.1).all()
    assert (error.sel(entry="at_rest") > 0.5).all()
    # it applies to two layers only
    assert error.sel(entry="exact").isnull().values.tolist() == [False, True]


def test_a_cell_is_scored_as_the_experiment_is(whole):
    cell = nr.specify(
        dataset_of(), hidden=[2], init="normal", init_scales=[0.3], seeds=2, learning_rate=0.02,
        steps=200, observables=[],
    )  # fmt: skip
    board = silent(cell, ["flow"])
    own = board["own"]
    assert own.attrs["axis"] == ""
    assert own["entry"].values.tolist() == ["flow", "other_seeds"]
    assert (own["loss_error"].sel(entry="flow") < 0.1).all()


def dataset_of():
    return dict(LINEAR["dataset"])


def test_functions_alone_and_variables_of_several_kinds_are_scored():
    def both(problem):
        modes = np.zeros((1, 2, len(problem.step), 2))
        return at_rest(problem) | {"mode_strength": modes}

    task = BARE | {"record": {"every": 10, "observables": ["mode_strength"]}}
    own = silent(task, [both])["own"]
    assert own["entry"].values.tolist() == ["both", "other_seeds"]
    np.testing.assert_allclose(own["mode_error"].sel(entry="both"), 1)


def test_a_function_may_predict_nothing():
    own = silent(BARE, [returning({}, "nothing"), at_rest])["own"]
    assert own["loss_error"].sel(entry="nothing").isnull().all()
    assert own["loss_error"].sel(entry="at_rest").notnull().all()


def loss_of(problem, *more):
    return np.ones((1, 2, len(problem.step), *more))


@pytest.mark.parametrize(
    ("task", "entries", "message"),
    [
        ("linear_wide", ["flow"], "task: 'linear_wide': no such task; did you mean linear_width"),
        (BARE, ["flo"], "no such solution; did you mean flow? `neuralrace list solutions` lists"),
        (
            BARE,
            ["mean_field"],
            "entries: 'mean_field': does not apply to any cell of the task; `neuralrace show` says",
        ),
        (
            BARE,
            [returning({}, "exact")],
            "entries: 'exact': is the name of another entry; rename the function",
        ),
        (
            BARE,
            [returning({}, "other_seeds")],
            "entries: 'other_seeds': is the name of another entry; rename the function",
        ),
        (
            BARE,
            [returning({}, "mine"), returning({}, "mine")],
            "entries: 'mine': is the name of two functions; rename the function",
        ),
        (BARE, [returning([1.0])], "entries: mine returns no mapping of variables"),
        (
            BARE,
            [returning({"los": 1.0})],
            "entries: mine returns 'los'; did you mean loss? there is loss, mode_strength",
        ),
        (BARE, [returning({1: 1.0})], "entries: mine returns 1; there is loss"),
        (
            BARE,
            [returning({"initial_mode": np.ones((1, 2, 2))})],
            "entries: mine returns 'initial_mode'; ",
        ),
        (
            BARE,
            [returning({"loss": np.ones(21)})],
            "entries: mine returns 'loss' of shape (21,); give (init_scale, seed, time), here "
            "(1, 2, 21)",
        ),
        (
            BARE,
            [returning(lambda problem: {"loss": loss_of(problem, 3)})],
            "entries: mine returns 'loss' of shape (1, 2, 21, 3); give (init_scale, seed, time)",
        ),
        (
            BARE,
            [returning({"loss": [[1.0], [1.0, 2.0]]})],
            "entries: mine returns 'loss', which is no array of numbers; give (init_scale, seed,",
        ),
        (
            BARE,
            [returning({"loss": np.full((1, 2, 21), np.nan)})],
            "entries: mine returns 'loss' with values that are not finite; mend it, or leave the",
        ),
        (
            BARE,
            [returning({"loss": "falls"})],
            "entries: mine returns 'loss', which is no array of numbers; give (init_scale, seed,",
        ),
        (
            BARE,
            [returning(lambda problem: {"mode_strength": loss_of(problem, 5)})],
            "entries: mine returns 'mode_strength' of shape (1, 2, 21, 5); give "
            "(init_scale, seed, time, mode), here (1, 2, 21, 2)",
        ),
        (
            BARE | {"seeds": 0},
            ["flow"],
            "experiments.benchmark.own.seeds: 0: must be greater than 0",
        ),
        (
            BARE,
            [functools.partial(at_rest)],
            "is neither a name nor a function with a name; name a solution, or define a function",
        ),
    ],
)
def test_mistakes_are_named(task, entries, message):
    if isinstance(task, dict):
        task = task | {"record": {"every": 10, "observables": ["mode_strength"]}}
    with pytest.raises(UserError, match=re.escape(message)):
        silent(task, entries)


def test_a_task_of_the_board_is_found_by_its_name(monkeypatch):
    """Training it would take too long here: a theory that does not apply is refused before."""
    with pytest.raises(UserError, match="does not apply to any cell of the task"):
        silent("linear_width", ["mean_field"])


def fails(problem):
    return {"loss": problem.data.y_power / [0][problem.step.size]}


def test_function_that_raises_is_named_with_its_exception():
    with pytest.raises(UserError) as told:
        silent(BARE, [at_rest, fails])
    assert "entries: fails raises IndexError: list index out of range" in str(told.value)
    assert isinstance(told.value.__cause__, IndexError)
    assert told.traceback
