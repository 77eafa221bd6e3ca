"""The front door: the same numbers as the workflow's, messages, all kinds of network, pictures."""

import json
import logging
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import neuralrace as nr
from neuralrace.errors import UserError
from neuralrace.figures.cell import plot
from neuralrace.records.results import CellResults
from neuralrace.simulation import NAME, find_reln, reduce, simulate, solve, specify
from neuralrace.spec import Cell
from neuralrace.theory import pace
from neuralrace.theory.modes import deep_half_time, shallow_half_time
from neuralrace.workflow import measure, train
from neuralrace.workflow import solve as solving
from neuralrace.workflow.job import Job
from neuralrace.workflow.stages import code, specifications

X, Y = np.eye(4), np.diag([4.0, 3.0, 2.0, 1.0])
FEW = {"init_scales": [0.05], "seeds": 2, "records": 20, "progress": False}
SENSES = {
    "name": "graph",
    "nodes": {"eye": 2, "ear": 2, "hidden": 8, "name": 2},
    "edges": [["eye", "hidden"], ["ear", "hidden"], ["hidden", "name"]],
    "gates": {"eye": [1, 0], "ear": [0, 1]},
}
SEEN_OR_HEARD = {
    "name": "table",
    "x": X,
    "y": np.array([[3.0, 0], [0, 1], [3, 0], [0, 1]]),
    "contexts": [0, 0, 1, 1],
}
ROUTING = {
    "name": "routing",
    "hidden": [8, 8],
    "gates": {"name": "always_on"},
    "pairs": {"name": "band", "partners": 2},
}
KINDS = {
    "layered": ((X, Y), {"hidden": [8]}),
    "shallow": ((X, Y), {"hidden": []}),
    "deep": ((X, Y), {"hidden": [8, 8]}),
    "relu": ((X, Y), {"hidden": [30], "activation": "relu"}),
    "tanh": ((X, Y), {"hidden": [8], "activation": "tanh", "learning_rate": 0.05, "steps": 40}),
    "gated": (("hierarchy",), {"hidden": [8], "gates": "per_example"}),
    "listed": ((X, Y), {"hidden": [8], "gates": np.array([[1.0, 1, 0, 0], [1, 0, 1, 1]])}),
    "graph": ((SEEN_OR_HEARD,), {"network": SENSES}),
    "routing": (({"name": "routing", "count": 3},), {"network": ROUTING, "theory": None}),
}


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    return simulate(
        X, Y, hidden=[8], init_scales=[0.02, 0.2], seeds=3, records=50, metrics=["half_times"],
        progress=False,
    )  # fmt: skip


def test_numbers_are_those_of_the_workflow(tree, tmp_path):
    given = CellResults(NAME, tmp_path / NAME)
    cell = Cell.model_validate_json(tree.attrs["spec"])
    compute(cell, tmp_path)
    for kind in ("theory", "trajectory", "metrics"):
        xr.testing.assert_identical(
            tree[kind].to_dataset().drop_attrs(deep=False),
            getattr(given, kind).drop_attrs(deep=False),
        )
        assert tree[kind].attrs["spec_sha256"] == getattr(given, kind).attrs["spec_sha256"]


def compute(cell, root):
    """Runs the stages of a cell as the workflow does."""
    job, parts = Job(logging.getLogger("test")), specifications(cell)
    files = {kind: str(root / NAME / f"{kind}.nc") for kind in parts}
    for kind, part in parts.items():
        stage = {"trajectory": train, "theory": solving, "metrics": measure}[kind]
        inputs = [file for file in files.values() if kind == "metrics" and file != files[kind]]
        more = {"often": 300.0} if kind == "trajectory" else {}
        stage.run(job, NAME, inputs, [files[kind]], part.canonical(), code(kind, part), **more)


def test_arguments_are_a_configuration():
    cell = specify(
        X, Y, hidden=[8], init_scales=[0.1], learning_rate=0.05, steps=400, seeds=3,
        loss={"name": "squared_error", "normalisation": "half_sum"}, metrics=["balance"],
    )  # fmt: skip
    assert json.loads(cell.canonical())["record"] == {
        "every": 2,
        "snapshots": 1,
        "observables": ["mode_strength", "imbalance", "layer_norm"],
    }
    assert cell.training.loss.normalisation == "half_sum"
    assert cell.dataset.name == "table"


def test_solutions_that_are_left_out_say_why(tree):
    left_out = json.loads(tree.attrs["left_out"])
    solved = tree["theory"]["solution"].values.tolist()
    assert "aligned_modes" in solved
    assert "flow" in solved
    assert "whitened" in left_out["exact"]  # sigma_xx = I/4
    assert "relu" in left_out["xor_race"]
    assert not set(solved) & set(left_out)
    assert tree.attrs["status"] == "0 of 6 runs diverged"


def test_steps_follow_the_flow_until_the_slowest_mode_is_learned(tree):
    strength = tree["trajectory"]["mode_strength"]
    flow = tree["theory"]["mode_strength"].sel(solution="flow")
    target = np.array([4.0, 3.0, 2.0, 1.0])
    assert float(abs(strength - flow).max()) < 3 * pace.TOLERANCE * target[0]
    assert float((strength.isel(time=-1) / target).min()) > 1 - 3 * pace.TOLERANCE
    # and no later than needed: half way the slowest is not learned at the smallest scale
    assert float((strength.isel(time=25, init_scale=0) / target).min()) < 0.5


def test_half_times_are_those_of_the_closed_forms():
    s, d, a0 = np.array([2.0, 1, 0.3]), np.array([0.5, 1, 2]), np.array([1e-4, 0.1, 0.01])
    np.testing.assert_allclose(pace.half_time(s, d, a0, 2), deep_half_time(s, d, a0), rtol=1e-4)
    np.testing.assert_allclose(pace.half_time(s, d, a0, 1), shallow_half_time(s, d, a0), rtol=1e-4)
    assert pace.half_time(s, d, s / d, 2).tolist() == [0, 0, 0]
    assert np.isinf(pace.half_time(s, d, 0 * s, 3)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_network(kind):
    data, options = KINDS[kind]
    tree = simulate(*data, **FEW | options)
    loss = tree["trajectory"]["loss"]
    assert (loss.isel(time=-1) < loss.isel(time=0)).all()
    assert ("theory" in tree.children) == (kind not in ("relu", "tanh", "routing"))
    if kind != "tanh":
        assert float((loss.isel(time=-1) / loss.isel(time=0)).max()) < 0.05
    figure = plot(tree)
    panels = {"loss", "modes", "pairs"} & {
        ax.get_title(loc="left").split("  ")[-1].split(" ")[0].strip(",") for ax in figure.axes
    }
    linear = kind in ("layered", "shallow", "deep", "routing")
    wanted = (
        {"loss"} | ({"modes"} if linear else set()) | ({"pairs"} if kind == "routing" else set())
    )
    assert panels == wanted


def test_theory_alone_is_that_of_a_simulation(tree):
    options = {"hidden": [8], "init_scales": [0.02, 0.2], "seeds": 3, "records": 50}
    alone = solve(X, Y, **options, progress=False)
    theory = tree["theory"].to_dataset()
    xr.testing.assert_equal(alone, theory)
    one = solve(X, Y, **options, theory=["flow"], progress=False)
    np.testing.assert_array_equal(one["loss"][:, :, 0], theory["loss"].sel(solution="flow"))
    with pytest.raises(UserError, match=r"^theory: 'auto': no solution is for this ensemble\n"):
        solve(X, Y, hidden=[8], activation="relu", init_scales=[0.1], progress=False)


def test_reduction_in_plain_arguments():
    race = reduce(SEEN_OR_HEARD, network=SENSES, init_scales=[0.05])
    asked = {"network": SENSES, "init": "aligned", "seeds": 1, "init_scales": [0.05]}
    solved = solve(SEEN_OR_HEARD, **asked, theory=["reduction"], progress=False)
    np.testing.assert_allclose(race["loss"], solved["loss"].sel(solution="reduction"), rtol=1e-12)
    assert race["edge"].values.tolist() == ["eye->hidden", "ear->hidden", "hidden->name"]
    assert race.sizes["mode"] == race["s"].sizes["mode"] == 2
    assert race.attrs["violation"] < 1e-8
    with pytest.raises(UserError, match="theory: 'reduction' needs another run"):
        reduce(X, Y, hidden=[8], init_scales=[0.1])


def test_reln_in_plain_arguments():
    objects, contexts = np.tile(np.eye(2), (3, 1)), np.repeat(np.eye(3), 2, axis=0)
    x, y = np.hstack([objects, contexts]), np.hstack([objects, np.eye(6)])
    reln = find_reln(
        x, y, pathways=3, controls=False, hidden=[60], init_scales=[0.01], seeds=2,
        learning_rate=0.3, steps=400,
    )  # fmt: skip
    assert reln.gating.gates.shape == (3, 6)
    assert reln.output_error.shape == (1, 2, 21)
    with pytest.raises(UserError, match="for ReLU networks with one hidden layer"):
        find_reln(x, y, pathways=3, hidden=[8], activation="linear", init_scales=[0.01])


def test_pictures_of_trees_and_of_cells(tree, tmp_path):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    figure = plot(tree, ax)
    assert figure.axes == [ax]
    assert len(ax.lines) == 4  # of two init scales, simulation and flow
    plot(tree, theory="aligned_modes").savefig(tmp_path / "one.png")
    with pytest.raises(UserError, match="theory: 'exact': was not solved; there is aligned_modes"):
        plot(tree, theory="exact")
    datasets = {kind: tree[kind].to_dataset() for kind in tree.children}
    spec = specify(X, Y, hidden=[8], init_scales=[0.02, 0.2], seeds=3, records=50)
    cell = CellResults(NAME, tmp_path, spec, **datasets)
    assert len(plot(cell).axes) == len(plot(tree).axes) == 3


def test_only_the_strongest_of_many_modes_are_drawn():
    many = np.eye(12)
    tree = simulate(many, many, hidden=[12], steps=20, learning_rate=0.1, theory=None, **FEW)
    assert len(plot(tree).axes[1].lines) == 8


def test_progress(capsys):
    simulate(X, Y, hidden=[8], **FEW)
    assert capsys.readouterr().err == ""
    simulate(X, Y, hidden=[8], theory=["flow"], **FEW | {"progress": True})
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"chosen: learning_rate=[\d.e-]+, steps=\d+", lines[0])
    assert lines[1] == "solving flow"
    assert re.fullmatch(r"trained 2 runs of \d+ steps", lines[-1])


def test_front_door_lists_and_loads_its_names():
    assert {"simulate", "plot", "open_results"} <= set(dir(nr))
    assert all(callable(getattr(nr, name)) for name in nr.__all__ if name != "__version__")
    assert re.match(r"\d+\.\d+", nr.__version__)
    with pytest.raises(AttributeError, match="no attribute 'similate'"):
        _ = nr.similate


WRONG = {
    "(X,)": r"y: is missing: give the target",
    "(X, Y[:3])": r"x: x has 4 rows, y has 3",
    "(X[0], Y)": r"x: has shape \(4,\); give two axes",
    "([[1, 2], [3]], Y)": r"x: list with rows of unequal length.*; give a row",
    "(X + np.inf, Y)": r"x: 16 numbers are not finite; leave those samples out",
    "(X, 0 * Y)": r"y: all numbers are 0.*; give others",
    "('hierachy',)": r"x: has no choice of the name 'hierachy'; did you mean hierarchy\?",
    "('hierarchy', Y)": r"y: is given beside the dataset 'hierarchy'; leave it out",
    "(X, Y, {'hidden': None})": r"hidden: is missing: give the units",
    "(X, Y, {'hidden': [0]})": r"hidden\.0: 0: Input should be greater than 0",
    "(X, Y, {'activation': 'rel'})": r"activation: 'rel': Input should be 'linear', 'relu'",
    "(X, Y, {'activation': 'tanh'})": r"learning_rate, steps: .* give both, or activation: 'tanh'",
    "(X, Y, {'gates': [[1, 1]]})": r"gates.rows: row 0 has 2 values; the dataset wants 4",
    "(X, Y, {'network': {'name': 'graph'}})": r"network: says all; leave hidden",
    "(X, Y, {'init': 'norm'})": r"init: has no choice of the name 'norm'; did you mean normal",
    "(X, Y, {'init_scales': [-1]})": r"init_scales\.0: -1: Input should be greater than 0",
    "(X, Y, {'seeds': '3'})": r"seeds: '3': Input should be a valid integer$",
    "(X, Y, {'optimiser': 'adam'})": r"learning_rate, steps: .* give both, or optimiser",
    "(X, Y, {'learning_rate': -1})": r"learning_rate: -1: Input should be greater than 0",
    "(X, Y, {'learning_rate': 99.0, 'steps': 200})": r"learning_rate: 99.0: .*; use a smaller",
    "(X, Y, {'steps': 1001})": r"steps: 1001: has to be a multiple of records, 200; change one",
    "(X, Y, {'snapshots': 3})": r"snapshots: 3: has to divide records, 200",
    "(X, Y, {'records': 0})": r"records: 0: expected a positive whole number",
    "(X, Y, {'metrics': ['half_time']})": r"metrics\.0: 'half_time': .* did you mean half_times",
    "(X, Y, {'observables': ['bias']})": r"observables\.0: 'bias': .* did you mean bias_norm",
    "(X, Y, {'theory': ['flwo']})": r"theory\.0: 'flwo': .* did you mean flow",
    "(X, Y, {'theory': 'flow'})": r"theory: 'flow': give 'auto', a list of names or None",
    "(X, Y, {'theory': ['exact']})": "theory: 'exact' needs another run: .* are not whitened",
    "(X, Y, {'hidden': [10**9]})": r"hidden\.0: 1000000000: needs .* GB; use less$",
    "('xor',)": r"steps: is missing, and no linear mode",
}
"""What is passed, and how the message begins."""


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """Told by a process that does not check annotations, as a user's does not."""
    code = f"""
import json
import numpy as np
import neuralrace as nr
X, Y = np.eye(4), np.diag([4.0, 3.0, 2.0, 1.0])
found, asked = {{}}, {{"hidden": [8], "init_scales": [0.01], "seeds": 2, "progress": False}}
for case in {list(WRONG)!r}:
    *data, options = [*eval(case), {{}}][: 3 if "{{" in case else None]
    try:
        nr.simulate(*data, **asked | options)
    except nr.simulate.__globals__["UserError"] as error:
        found[case] = str(error)
print(json.dumps(found))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},  # remarks of XLA on some processors
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_told_by_name(case, messages):
    assert re.match(WRONG[case], messages[case]), messages[case]
    for internal in ("Traceback", "pydantic", "configuration:", "experiments.", "solutions"):
        assert internal not in messages[case]
