"""The Python functions: same numbers as the workflow, every kind of network, messages."""

import inspect
import json
import logging
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import neuralrace as nr
from neuralrace import find_reln, reduce_race, simulate, solve, specify
from neuralrace.api import simulation, specification
from neuralrace.api.arguments import by_argument
from neuralrace.api.specification import CELL_NAME as NAME
from neuralrace.config.cell import Cell
from neuralrace.config.requirements import OF_NETWORK, OF_TRAINING, REQUIREMENTS
from neuralrace.errors import UserError
from neuralrace.figures.plot import plot
from neuralrace.figures.style import GUIDE
from neuralrace.results.cells import CellResults, Results, cells_of
from neuralrace.theory import integration, pace
from neuralrace.theory.solutions.problem import Problem
from neuralrace.workflow import measure, train
from neuralrace.workflow import solve as solving
from neuralrace.workflow.job import Job
from neuralrace.workflow.stages import code, specifications
from warm_python import PYTHON

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
    cell = Cell.model_validate_json(tree.attrs["spec"])
    compute(cell, tmp_path)
    results = CellResults(NAME, tmp_path / NAME)
    for kind in ("theory", "trajectory", "metrics"):
        dataset = getattr(results, kind)
        xr.testing.assert_identical(
            tree[kind].to_dataset().drop_attrs(deep=False), dataset.drop_attrs(deep=False)
        )
        (in_memory,) = cells_of(tree)
        assert in_memory.attributes(kind)["spec"] == dataset.attrs["spec"]
        versions = set(dataset.attrs["versions"].split(", "))
        assert versions <= set(tree.attrs["versions"].split(", "))


def compute(cell, root):
    """Runs the stages of a cell as the workflow does."""
    parts = specifications(cell)
    files = {kind: str(root / NAME / f"{kind}.nc") for kind in parts}
    for kind, part in parts.items():
        stage = {"trajectory": train, "theory": solving, "metrics": measure}[kind]
        inputs = [file for file in files.values() if kind == "metrics" and file != files[kind]]
        more = {"often": 300.0} if kind == "trajectory" else {}
        job = Job(logging.getLogger("test"), NAME, inputs, [files[kind]])
        stage.run(job, part.canonical(), code(kind, part), **more)


def test_specification_is_that_of_a_configuration():
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


def test_left_out_lists_solutions_by_the_reason_why_they_do_not_apply(tree):
    reasons = dict(line.split(": ", 1)[::-1] for line in tree.attrs["left_out"].splitlines())
    aligned = next(why for why in reasons if "use aligned" in why)
    assert reasons[aligned] == "layered_modes"
    names = {name for each in reasons.values() for name in each.split(", ")}
    assert not names & {"shallow_modes", "xor_race", "gated_flow"}, "those are of other networks"
    assert not names & set(tree["theory"]["solution"].values)
    solved = {"aligned_modes", "exact", "flow", "symmetric_start", "tied", "untied_modes"}
    assert solved == set(tree["theory"]["solution"].values), "sigma_xx = I/4"
    assert len(reasons) <= 4
    assert tree.attrs["status"].startswith("0 of 6 runs diverged; ")


PROCESS = """
import json, sys
before = {*sys.modules}
import neuralrace as nr
new = {name.partition(".")[0] for name in {*sys.modules} - before}
told = {"at first": sorted(new - {*sys.stdlib_module_names})}

X, Y = [[1, 0], [0, 1]], [[2, 0], [0, 1]]
FEW = {"hidden": [4], "init_scales": [0.1], "learning_rate": 0.1, "steps": 10, "progress": False}
nr.simulate(X, Y, activation="relu", theory=None, **FEW)
told["without theory"] = [*sys.modules]
nr.simulate(X, Y, **FEW)
told["with theory"] = [*sys.modules]

import numpy as np, pandas as pd, xarray as xr
class Tensor:
    def __array__(self, dtype=None, copy=None):
        return np.eye(4, dtype=np.float32)
Y = np.diag([4, 3, 2, 1])
frame = pd.DataFrame(Y, columns=list("abcd"))
numbers = {"steps": np.int64(40), "records": np.int32(20), "init_scales": np.array([0.1])}
told["cells"] = [
    cell.canonical()
    for cell in (
        nr.specify(Tensor(), frame, hidden=np.array([8]), **numbers),
        nr.specify(np.eye(4).tolist(), xr.DataArray(Y), hidden=[8], steps=40, records=20,
                   init_scales=[0.1]),
    )
]
told["names"] = [nr.theory.__name__, nr.figures.deep_linear.__name__]
import gc
told["collects"] = gc.isenabled()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def process() -> dict[str, Any]:
    """What a process has loaded after each of its steps, and what it has made."""
    command = [sys.executable, "-c", PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("step", "unused"),
    [("without theory", {"scipy.integrate", "scipy.special"}), ("with theory", set())],
)
def test_simulate_loads_no_package_that_it_does_not_need(process, step, unused):
    """They took longer to load than a small network to train, and a third of the memory."""
    unused |= {"scipy.stats", "sklearn", "netCDF4", "networkx", "matplotlib", "seaborn"}
    assert "jax" in process[step]
    assert not unused.intersection(process[step])


def test_requirements_of_the_network_exist():
    assert set(REQUIREMENTS) >= OF_NETWORK | OF_TRAINING


def test_left_out_names_an_optimiser_without_theory():
    options = FEW | {"hidden": [8], "optimiser": "adam", "learning_rate": 0.01, "steps": 20}
    (nothing, why) = simulate(X, Y, **options).attrs["left_out"].splitlines()
    assert nothing == "theory: none is solved for this network; see left_out for each"
    assert re.search(r"aligned_modes.*flow.*optimiser: 'adam': use one that follows", why)


def test_left_out_recommends_find_reln_and_balance_for_relu_networks(capsys):
    options = FEW | {"hidden": [8], "activation": "relu", "steps": 20}
    line = simulate(X, Y, **options | {"progress": True}).attrs["left_out"].splitlines()[0]
    assert line in capsys.readouterr().err
    assert re.match(r"theory: none is solved for ReLU .* nr\.find_reln\(x, y, pathways=", line)
    # the recommendation works
    assert find_reln(X, Y, pathways=4, controls=False, hidden=[40], seeds=2).gating.gates.any()
    measured = simulate(X, Y, **options | {"metrics": ["balance"], "steps": None})["metrics"]
    assert float(measured["neuron_drift"].max()) < 0.05 < float(measured["offdiagonal_drift"].max())
    with pytest.raises(UserError, match=r"(?s)^theory: 'auto': .*find_reln"):
        solve(X, Y, **options)


def test_steps_follow_the_flow_until_the_slowest_mode_is_learned(tree):
    strength = tree["trajectory"]["mode_strength"]
    flow = tree["theory"]["mode_strength"].sel(solution="flow")
    target = np.array([4.0, 3.0, 2.0, 1.0])
    assert float(abs(strength - flow).max()) < 3 * pace.TOLERANCE * target[0]
    assert float((strength.isel(time=-1) / target).min()) > 1 - 3 * pace.TOLERANCE
    # and no later than needed: half way the slowest is not learned at the smallest scale
    assert float((strength.isel(time=25, init_scale=0) / target).min()) < 0.5


def test_absent_init_scale_is_small():
    """The strongest start is 1% of the final strength, up to a factor of 3."""
    for options in ({"hidden": []}, {"hidden": [8]}, {"hidden": [8, 8, 8]}):
        (scale,) = specify(X, 100 * Y, **options).init_scales
        tree = simulate(
            X, 100 * Y, **FEW | options | {"init_scales": [scale], "seeds": 5}, theory=()
        )
        strength = abs(tree["trajectory"]["mode_strength"].isel(time=0)) / (100 * np.diag(Y))
        # of two layers only a part of the strength counts: that which grows
        assert float(strength.max()) < 3 * pace.TOLERANCE
        assert float(strength.max()) > pace.TOLERANCE / 3
    scales = [specify(X, size * Y, hidden=[8]).init_scales[0] for size in (1, 100)]
    assert scales[1] / scales[0] == pytest.approx(10, rel=0.05)  # the root, of two layers
    assert specify(X, Y, hidden=[8], activation="relu").init_scales[0] < 1
    assert specify(SEEN_OR_HEARD, network=SENSES).init_scales[0] < 1


@pytest.mark.parametrize(
    ("records", "snapshots", "steps", "fitting"),
    [
        (200, 1, 500, 125),
        (200, 20, 500, 100),
        (200, 1, 400, 200),
        (200, 1, 7, 7),
        (200, 3, 600, 150),
    ],
)
def test_most_records_that_fit_are_taken(records, snapshots, steps, fitting):
    cell = specify(X, Y, hidden=[8], records=records, snapshots=snapshots, steps=steps)
    assert cell.training.steps == steps
    assert cell.training.steps // cell.record.every == fitting


def test_chosen_records_are_printed(capsys):
    simulate(X, Y, hidden=[8], theory=None, **FEW | {"steps": 30, "progress": True})
    assert re.match(r"chosen: learning_rate=[\d.e-]+, records=15\n", capsys.readouterr().err)


@pytest.mark.parametrize("function", [specify, simulate, solve, find_reln, reduce_race])
def test_docstrings_describe_every_argument(function):
    arguments = list(inspect.signature(function).parameters)
    described = re.findall(r"^    (\w+): \S", inspect.getdoc(function), re.MULTILINE)
    assert [name for name in described if name in arguments] == arguments
    with pytest.raises(UserError, match=rf"^hiden: is no argument of {function.__name__}; did you"):
        function(X, Y, hiden=[8])


def test_arrays_and_numbers_of_other_libraries_are_accepted(process):
    one, other = process["cells"]
    assert one == other


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_network_is_simulated_and_plotted(kind):
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
    expected = {"loss", *["modes"] * linear, *["pairs"] * (kind == "routing")}
    assert panels == expected


def test_solve_gives_the_theory_of_simulate(tree):
    options = {"hidden": [8], "init_scales": [0.02, 0.2], "seeds": 3, "records": 50}
    alone = solve(X, Y, **options, progress=False)
    theory = tree["theory"].to_dataset()
    xr.testing.assert_equal(alone, theory)
    one = solve(X, Y, **options, theory=["flow"], progress=False)
    np.testing.assert_array_equal(one["loss"][:, :, 0], theory["loss"].sel(solution="flow"))
    with pytest.raises(UserError, match=r"^theory: 'auto': no solution is for this ensemble\n"):
        solve(X, Y, hidden=[8], activation="relu", init_scales=[0.1], progress=False)


def test_reduce_race_solves_the_reduction():
    race = reduce_race(SEEN_OR_HEARD, network=SENSES, init_scales=[0.05])
    assert race["time"].attrs["units"] == "tau"
    options = {"network": SENSES, "init": "aligned", "seeds": 1, "init_scales": [0.05]}
    solved = solve(SEEN_OR_HEARD, **options, theory=["reduction"], progress=False)
    np.testing.assert_allclose(race["loss"], solved["loss"].sel(solution="reduction"), rtol=1e-12)
    assert race["edge"].values.tolist() == ["eye->hidden", "ear->hidden", "hidden->name"]
    assert race.sizes["mode"] == race["s"].sizes["mode"] == 2
    assert race.attrs["violation"] < 1e-8
    with pytest.raises(UserError, match=r"'reduction'.* does not apply to this experiment"):
        reduce_race(X, Y, hidden=[8], init_scales=[0.1])


def test_find_reln_finds_a_gate_pattern_for_each_pathway():
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


def test_trees_and_cells_are_plotted(tree, tmp_path):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    figure = plot(tree, ax)
    assert figure.axes == [ax]
    assert len(ax.lines) == 4  # of two init scales, simulation and flow
    plot(tree, theory="aligned_modes").savefig(tmp_path / "one.png")
    with pytest.raises(
        UserError, match="theory: 'layered_modes': was not solved; there is aligned_mod"
    ):
        plot(tree, theory="layered_modes")
    datasets = {kind: tree[kind].to_dataset() for kind in tree.children}
    spec = specify(X, Y, hidden=[8], init_scales=[0.02, 0.2], seeds=3, records=50)
    cell = CellResults(NAME, tmp_path, spec, **datasets)
    assert len(plot(cell).axes) == len(plot(tree).axes) == 3


# Sweeps ------------------------------------------------------------------------------------------

SWEEP = {"hidden": [[16], [8]], "learning_rate": np.array([0.05, 0.1])}
LABELS = [f"hidden-{width}_learning_rate-{rate}" for width in (16, 8) for rate in (0.05, 0.1)]


@pytest.fixture(scope="module")
def swept() -> xr.DataTree:
    options = {"init_scales": [0.05], "seeds": 2, "steps": 200, "progress": False}
    return simulate(X, Y, sweep=SWEEP, metrics=["half_times"], theory=["flow"], **options)


def test_sweep_is_a_tree_of_simulations(swept):
    assert [*swept.children] == LABELS
    assert swept.attrs["status"] == "0 of 8 runs diverged"
    options = {"init_scales": [0.05], "seeds": 2, "steps": 200, "progress": False}
    alone = simulate(
        X, Y, hidden=[8], learning_rate=0.05, metrics=["half_times"], theory=["flow"], **options
    )  # fmt: skip
    part = swept[LABELS[2]]
    for kind in alone.children:
        xr.testing.assert_identical(part[kind].to_dataset(), alone[kind].to_dataset())
    assert part.attrs["spec"] == alone.attrs["spec"]
    assert part.attrs["cell"] == LABELS[2]


def test_sweep_is_combined_tabulated_and_plotted(swept):
    combined = nr.combine(swept, "trajectory")
    assert combined["loss"].dims[:2] == ("network.hidden", "training.learning_rate")
    assert combined["network.hidden"].values.tolist() == ["16", "8"], "in the order of the sweep"
    at = {"network.hidden": "8", "training.learning_rate": 0.1}
    np.testing.assert_array_equal(combined["loss"].sel(at), swept[LABELS[3]]["trajectory"]["loss"])
    assert set(nr.to_frame(swept)["cell"]) == {*LABELS}
    assert len(plot(swept).axes) == 8
    assert len(plot(swept[LABELS[0]]).axes) == 2
    more = simulate(X, Y, hidden=[32], learning_rate=0.05, steps=200, **FEW)
    assert nr.combine([swept, more], "trajectory").sizes["network.hidden"] == 3


def test_saved_tree_is_the_same_after_reopening(tree, swept, tmp_path):
    for number, each in enumerate((tree, swept)):
        each.to_netcdf(tmp_path / f"{number}.nc")
        with xr.open_datatree(tmp_path / f"{number}.nc") as again:
            assert again.attrs == each.attrs
            for kind in ("trajectory", "theory", "metrics"):
                xr.testing.assert_identical(nr.combine(again, kind), nr.combine(each, kind))
            assert nr.to_frame(again).equals(nr.to_frame(each))
            assert len(plot(again).axes) == len(plot(each).axes)


def test_sweep_is_checked_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr("neuralrace.api.simulation.train", None)
    with pytest.raises(UserError, match=r"^learning_rate: -1.0: must be greater than 0"):
        simulate(X, Y, hidden=[8], sweep={"learning_rate": [0.1, -1.0]}, steps=20, **FEW)


def test_both_spellings_of_optimiser_are_accepted():
    options = {"hidden": [8], "init_scales": [0.1]}
    momentum = {"name": "momentum", "momentum": 0.5}
    one = specify(X, Y, optimiser=momentum, **options)
    assert one == specify(X, Y, optimizer=momentum, **options)


# Figure ------------------------------------------------------------------------------------------


def test_modes_are_labelled_by_their_final_strength():
    """For inputs that are not white it differs from the singular value of the correlation."""
    rng = np.random.default_rng(1)
    white = rng.normal(size=(200, 3))
    x = white @ np.array([[2.0, 1, 0], [0, 1, 0.5], [0, 0, 0.7]])
    y = white * [0.7, 0.9, 1.0]
    tree = simulate(x, y, hidden=[8], seeds=2, init_scales=[0.05], records=50, progress=False)
    figure = plot(tree)
    panel = figure.axes[1]
    labels = sorted(text.get_text() for text in panel.texts)
    ends = [float(label.rpartition(": ")[2]) for label in labels]
    reached = tree["trajectory"]["mode_strength"].isel(init_scale=0, time=-1).mean("seed")
    np.testing.assert_allclose(ends, reached, rtol=2 * pace.TOLERANCE)
    singular = np.linalg.svd(y.T @ x / 200, compute_uv=False)
    assert (abs(singular / ends - 1) > 0.1).any()
    guides = [line.get_ydata()[0] for line in panel.lines if line.get_color() == GUIDE["color"]]
    np.testing.assert_allclose(guides, ends, rtol=5e-3)
    assert "input-output correlation" in figure.get_supxlabel()


def test_modes_without_a_final_strength_by_theory_have_no_guide():
    options = FEW | {"hidden": [8], "learning_rate": 0.1, "steps": 20, "theory": None}
    onehot = {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
    for tree in (simulate(X, X, **options | onehot), simulate(X, X, **options | {"hidden": [2]})):
        figure = plot(tree)
        assert ":" not in "".join(text.get_text() for text in figure.axes[1].texts)
        assert not [line for line in figure.axes[1].lines if line.get_color() == GUIDE["color"]]


def test_only_the_strongest_of_many_modes_are_drawn():
    many = np.eye(12)
    tree = simulate(many, many, hidden=[12], steps=20, learning_rate=0.1, theory=None, **FEW)
    lines = [line.get_color() for line in plot(tree).axes[1].lines]
    assert len([color for color in lines if color != GUIDE["color"]]) == 8


def test_selected_results_are_drawn_together():
    options = FEW | {"steps": 20, "learning_rate": 0.1, "theory": None}
    cells = cells_of(simulate(X, Y, sweep={"hidden": [[4], [8]]}, **options))
    titles = [ax.get_title("left") for ax in plot(Results(cells)).axes]
    assert [title for title in titles if "hidden-" in title] == titles[::2]
    cells[1].name = "another/experiment/hidden-4"
    first, _, second, _ = plot(Results(cells)).axes
    assert "another/experiment/hidden-4" in second.get_title("left")
    assert cells[0].name in first.get_title("left")
    many = Results(CellResults(f"a/b/{n}", cells[0].folder) for n in range(9))
    with pytest.raises(UserError, match=r"results: holds 9 cells.*results\['a/b/0'\]"):
        plot(many)


def test_each_task_of_a_sequence_has_a_line_and_no_final_strength():
    modes = {"name": "modes", "singular_values": [3, 1], "inputs": 4, "outputs": 3}
    negated = {"name": "changed_targets", "of": modes, "change": "negated"}
    tasks = {"name": "sequence", "tasks": [modes, negated], "switches": [20]}
    tree = simulate(
        tasks, hidden=[2], learning_rate=0.01, steps=40, theory=None,
        observables=["task_loss", "mode_strength"], **FEW,
    )  # fmt: skip
    _, losses, modes_panel = plot(tree).axes
    assert [text.get_text() for text in losses.texts] == ["task 1", "task 2"]
    assert sorted(text.get_text() for text in modes_panel.texts) == ["mode 1", "mode 2"]
    assert [line.get_xdata()[0] for line in losses.lines if line.get_color() == "0.6"] == [20]


def test_caption_says_that_the_axis_ends_before_training():
    options = FEW | {"learning_rate": 0.1, "hidden": [8]}
    cut = plot(simulate(X, Y, steps=4000, **options))
    end = cut.axes[0].get_xlim()[1]
    assert end < 4000
    assert f"Shown until {end:,.0f} of 4,000 epochs: later, no curve" in cut.get_supxlabel()
    whole = plot(simulate(X, Y, steps=40, **options))
    assert whole.axes[0].get_xlim()[1] == 40
    assert "Shown until" not in whole.get_supxlabel()


def test_default_observables_that_are_not_recorded_are_named(capsys):
    options = FEW | {"learning_rate": 0.1, "hidden": [8], "steps": 20, "progress": True}
    simulate(X, Y, observables=["layer_norm"], theory=None, **options)
    assert "not recorded, as observables is given: mode_strength" in capsys.readouterr().err
    simulate(X, Y, observables=["layer_norm", "mode_strength"], theory=None, **options)
    assert "not recorded" not in capsys.readouterr().err


def test_layer_norms_and_weights_of_units_have_panels():
    options = FEW | {"hidden": [8], "learning_rate": 0.1, "steps": 20, "theory": None}
    figure = plot(simulate(X, Y, observables=["layer_norm"], **options))
    assert [ax.get_ylabel() for ax in figure.axes] == ["training loss", "layer norm"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["layer 1", "layer 2"]
    figure = plot(simulate(X, Y, activation="relu", observables=["weights"], **options))
    assert figure.axes[1].images[0].get_array().shape == (8, 4)


def test_baselines_are_drawn_only_by_name(monkeypatch):
    solutions = ["aligned_modes", "symmetric_start"]
    tree = simulate(X, Y, hidden=[8], learning_rate=0.1, steps=20, theory=solutions, **FEW)
    assert len(plot(tree).axes[0].lines) == 3
    declared = {
        name: SimpleNamespace(declaration=SimpleNamespace(baseline=name == "aligned_modes"))
        for name in solutions
    }
    monkeypatch.setattr("neuralrace.figures.plot.SOLUTIONS", declared)
    assert len(plot(tree).axes[0].lines) == 2
    assert len(plot(tree, theory="aligned_modes").axes[0].lines) == 2


def test_printed_tree_fits_on_a_page(tree):
    assert len(str(tree).splitlines()) <= 60
    assert json.loads(tree.attrs["spec"])["dataset"]["x"] == X.tolist()
    assert next(iter(tree.attrs)) == "status"


def test_notebook_shows_the_specification_once_and_folded(tree):
    html = tree._repr_html_()
    assert html.count("&quot;metrics&quot;:[&quot;half_times&quot;]") == 1
    attributes = re.findall(r"<input [^>]*>\s*<label [^>]*>\s*Attributes: <span>\((\d+)\)", html)
    shown = re.findall(r"<input [^>]*checked[^>]*>\s*<label [^>]*>\s*Attributes:", html)
    assert attributes.count("10") == 1
    assert not shown


def test_progress_is_printed_to_stderr(capsys):
    simulate(X, Y, hidden=[8], **FEW)
    assert capsys.readouterr().err == ""
    simulate(X, Y, hidden=[8], theory=["flow"], **FEW | {"progress": True})
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"chosen: learning_rate=[\d.e-]+, steps=\d+", lines[0])
    assert [line.split(",")[0] for line in lines[1:-3] if not line.startswith("step ")] == []
    assert re.fullmatch(r"trained 2 runs of \d+ steps", lines[-3])
    assert lines[-2] == "solving flow"
    assert lines[-1].startswith("0 of 2 runs diverged; ")


def test_diverged_runs_are_refused_before_theory_is_solved(monkeypatch):
    monkeypatch.setattr(Problem, "time", property(lambda _: pytest.fail("theory was solved")))
    with pytest.raises(UserError, match="every run diverged") as error:
        simulate(1e4 * X, Y, hidden=[8], learning_rate=0.5, **FEW)
    assert (error.value.key, error.value.value) == ("learning_rate", "0.5")


@pytest.mark.parametrize("theory", [["flow"], "auto"])
def test_flow_that_would_not_end_is_given_up(theory):
    arguments = {"hidden": [8], "learning_rate": 0.01, "theory": theory} | FEW
    reason = r"after 2000 evaluations .* lower the learning rate, or scale inputs down"
    if theory == "auto":
        solved = solve(1e20 * X, Y, **arguments)
        assert "flow" not in solved["solution"]
        assert re.search(f"^flow: gradient flow not solved.*{reason}$", solved.left_out, re.M)
    else:
        with pytest.raises(UserError, match=f"^theory: 'flow': .*{reason}; or leave it out"):
            solve(1e20 * X, Y, **arguments)


def test_flow_that_exceeds_the_memory_is_refused_before_training(monkeypatch):
    monkeypatch.setattr(simulation, "train", lambda *_, **__: pytest.fail("trained first"))
    monkeypatch.setattr(integration, "available_memory", lambda: 10**8)
    options = {"hidden": [8], "learning_rate": 0.1, "steps": 10**5} | FEW | {"records": 10**5}
    with pytest.raises(UserError, match=r"theory: 'flow': .*100001 times takes 0.307 GB of memory"):
        simulate(X, Y, theory=["flow"], **options)


def test_cost_of_long_training_is_printed_before_it_begins(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "train", stop)
    options = FEW | {"hidden": [8], "learning_rate": 0.1, "theory": None, "progress": True}
    with pytest.raises(KeyboardInterrupt):
        simulate(X, Y, steps=10**9, **options)
    assert re.search(r"^training: about \d+(\.\d)? hours on one core, 0\.\d GB of memory$",
                     capsys.readouterr().err.strip())  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        simulate(X, Y, sweep={"steps": [5 * 10**8, 10**9]}, **options)
    assert "training of 2 cells: about " in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        simulate(X, Y, steps=20, **options)
    assert capsys.readouterr().err == ""


SHARE = r"\d[\d.e-]*"


def test_steps_that_cannot_be_afforded_are_announced_before_training(monkeypatch, capsys):
    x, y = np.diag([1, 0.02, 0.02]), np.ones((3, 1))
    monkeypatch.setattr(specification, "MOST_SECONDS", 0.5)
    options = FEW | {"hidden": [4], "theory": None, "progress": True}
    tree = simulate(x, y, **options)
    lines = capsys.readouterr().err.splitlines()
    steps = int(re.search(r"steps=(\d+)", lines[0])[1])
    needed = re.match(r"learning this task takes about (\S+) steps, about .* on one core", lines[1])
    assert float(needed[1]) > 2 * steps
    assert lines[2] == "the condition number of the inputs is 2.5e+03: standardise or whiten x"
    assert lines[3] == (
        f"training stops after {steps} steps; for more, give steps or a larger learning_rate"
    )
    trained = next(n for n, line in enumerate(lines) if line.startswith("trained "))
    assert trained > 3
    assert lines[-1] == tree.attrs["status"]
    assert re.fullmatch(
        rf"0 of 2 runs diverged; final loss / initial loss: {SHARE} or less "
        r"\(best linear map: 0\); training stopped early, "
        rf"learning takes about {re.escape(needed[1])} steps",
        lines[-1],
    )
    # not where the steps were given, nor where they suffice
    monkeypatch.undo()
    for given in ({"steps": 100}, {"learning_rate": 0.02}):
        status = simulate(x, y, **options | given).attrs["status"]
        assert status.endswith("(best linear map: 0)")
        assert "learning this task" not in capsys.readouterr().err


def test_ill_conditioned_inputs_are_learned_to_the_end():
    rng = np.random.default_rng(0)
    white = np.linalg.qr(rng.normal(size=(40, 2)))[0] * np.sqrt(40)
    mixed = {
        "correlated": white @ np.array([[1, 0.99], [0, 0.14]]),
        "unscaled": white * [1, 0.1],
        "not centred": np.hstack([white + 3, np.ones((40, 1))]),
    }
    for name, x in mixed.items():
        tree = simulate(x, white.sum(1, keepdims=True), hidden=[4], theory=None, **FEW)
        loss = tree["trajectory"]["loss"]
        end = float((loss.isel(time=-1) / loss.isel(time=0)).max())
        assert end < 2 * pace.TOLERANCE, name
        printed = re.search(rf": ({SHARE}) or less \(best linear map: 0\)$", tree.attrs["status"])
        assert float(printed[1]) == pytest.approx(end, rel=0.1), name


def test_status_tells_the_best_that_the_network_could_reach():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    y = x @ np.diag([3.0, 2, 1]) + noise
    gates = (rng.random((2, 40)) < 0.7) | (np.arange(40) % 2 == [[0], [1]])
    both = np.hstack([x * gate[:, None] for gate in gates])
    u, s, vt = np.linalg.svd(x @ np.linalg.lstsq(x, y)[0], full_matrices=False)
    best = {
        "best linear map": ({"hidden": [8]}, x @ np.linalg.lstsq(x, y)[0]),
        "best linear map of rank 2": ({"hidden": [2]}, (u[:, :2] * s[:2]) @ vt[:2]),
        "best gated linear map": (
            {"hidden": [8], "gates": gates.astype(float)},
            both @ np.linalg.lstsq(both, y)[0],
        ),
    }
    few = FEW | {"steps": 20, "learning_rate": 0.01, "seeds": 1, "theory": None}
    for name, (options, outputs) in best.items():
        tree = simulate(x, y, **few | options)
        start = float(tree["trajectory"]["loss"].isel(time=0).squeeze())
        expected = ((y - outputs) ** 2).sum() / 80 / start
        printed = re.fullmatch(
            rf"0 of 1 runs diverged; final loss / initial loss: {SHARE} \({name}: ({SHARE})\)",
            tree.attrs["status"],
        )
        assert float(printed[1]) == pytest.approx(expected, rel=0.05)
    onehot = {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
    for tree in (
        simulate(x, y, hidden=[8], activation="relu", **few),
        simulate(x, y, hidden=[2], gates=gates.astype(float), **few),
        simulate(X, X, hidden=[8], **few | onehot),
    ):
        status = tree.attrs["status"]
        assert re.fullmatch(rf"0 of 1 runs diverged; final loss / initial loss: {SHARE}", status)


def test_status_tells_that_learning_takes_longer_than_estimated(monkeypatch):
    monkeypatch.setattr(pace, "learning_time", lambda _: 0.1)
    status = simulate(X, Y, hidden=[8], theory=None, **FEW).attrs["status"]
    assert status.endswith("; give more steps or a smaller learning_rate")


def test_time_to_draw_many_seeds_is_printed_first(monkeypatch, capsys):
    monkeypatch.setattr(simulation, "MANY_SEEDS", 2)
    specify(X, Y, hidden=[8], seeds=3)  # nothing is printed without progress
    solve(X, Y, hidden=[8], seeds=3, records=20, theory=["aligned_modes"])
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "drawing the initial weights of 3 seeds: about 0.0012 seconds"
    assert second.startswith("chosen: ")


@pytest.mark.parametrize(
    ("options", "key", "remedy"),
    [
        ({}, "steps", "use larger init_scales"),
        ({"init_scales": [1.0]}, "learning_rate", "use smaller init_scales"),
    ],
)
def test_networks_too_deep_to_choose_for_are_refused(options, key, remedy):
    with pytest.raises(UserError, match=rf"^{key}: is missing, and by theory .*{remedy}"):
        specify(X, Y, hidden=[16] * 300, **options)


def test_numbers_in_progress_lines_have_the_right_plural(capsys):
    options = FEW | {"seeds": 1, "progress": True, "theory": None}
    simulate(X, Y, hidden=[8], learning_rate=0.1, steps=20, **options)
    assert "trained 1 run of 20 steps" in capsys.readouterr().err


def test_package_lists_and_loads_its_public_names():
    assert {"simulate", "plot", "open_results"} <= set(dir(nr))
    assert all(callable(getattr(nr, name)) for name in nr.__all__ if name != "__version__")
    assert re.match(r"\d+\.\d+", nr.__version__)
    with pytest.raises(AttributeError, match="no attribute 'similate'"):
        _ = nr.similate


def test_package_loads_nothing_before_it_is_used(process):
    """A subpackage is there without an import of its own, and comes at its first use."""
    assert process["at first"] == ["neuralrace"]
    assert process["names"] == ["neuralrace.theory", "neuralrace.figures.deep_linear"]
    assert process["collects"]
    described = re.search(r"about one concept: (.*?)\.", nr.__doc__, re.DOTALL)
    assert {*re.split(r",\s+", described[1])} <= {*dir(nr)}


WRONG = {
    "(X,)": r"y: is missing; give targets",
    "()": r"simulate: missing a required argument: 'x'; give x and y first",
    "(X, Y, [16])": r"simulate: too many positional arguments; give .*hidden=\[16\]",
    "(X, Y[:3])": r"y: has 3 rows, and x has 4; y looks transposed",
    "(X[0], Y)": r"x: has shape \(4,\); give an array with two axes \(sample, input\), such as np",
    "(X, Y[0, 0])": r"y: has shape \(\); give an array with two axes \(sample, output\)",
    "(X[None], Y)": r"x: has shape \(1, 4, 4\); give an array with two axes",
    "(X[:0], Y[:0])": r"x: has shape \(0, 4\); give an array with two axes",
    "([[1, 2], [3]], Y)": r"x: has rows of unequal length: row 1 has 1 number, row 0 has 2 num",
    "([['1', '2']] * 4, Y)": r"x: holds numbers as text, such as '1'; convert them by np\.as",
    "(X * 1j, Y)": r"x: holds complex numbers; give real and imaginary parts as columns",
    "(pd.DataFrame({'a': list('abcd')}), Y)": r"x: the column 'a' holds text, such as 'a'; leave",
    "(Unwilling(), Y)": r"x: cannot convert Unwilling to an array \(Can't call numpy\(\) on T",
    "(np.ma.masked_less(X, 1), Y)": r"x: has masked entries; fill them in, or leave those samples",
    "(None, Y)": r"x: is None; give an array of numbers",
    "(object(), Y)": r"x: is of type object; give an array of numbers",
    "(X + np.inf, Y)": r"x: has 16 NaN or infinite values, first in row 0; check how",
    "(X, np.where(Y > 3, np.nan, Y))": r"y: has 1 NaN or infinite value, first in row 0; fill",
    "(X, 0 * Y)": r"y: all numbers are 0.*; give others",
    "(1e200 * X, Y)": r"x: the largest number is 1.0e\+200, .*; scale it to between 1e-50 and 1e\+",
    "(X, 1e-200 * Y)": r"y: the largest number is 4.0e-200, .*; scale it to between",
    "('hierachy',)": r"x: unknown name 'hierachy'; did you mean hierarchy\?",
    "('hierarchy', Y)": r"y: must be absent, .* 'hierarchy' has targets; leave it out",
    "({}, Y)": r"x: is a dict without the key 'name' of a dataset; give x and y as two ar",
    "({},)": r"x: is a dict without the key 'name' of a dataset",
    "({'name': 'table', 'x': X, 'y': Y, 'z': 1},)": r"x\.z: 1: unknown key; `neuralrace keys`",
    "(X, Y, {'hidden': None})": r"hidden: is missing; give the units .* such as \[16\]",
    "(X, Y, {'hidden': 16})": r"hidden: 16: expected a list",
    "(X, Y, {'hidden': [0]})": r"hidden\.0: 0: must be greater than 0",
    "(X, Y, {'hidden': [1.5]})": r"hidden\.0: 1.5: expected a whole number",
    "(X, Y, {'hidden': ['a'] * 99})": r"(?s)hidden\.0: 'a': .*whole number.*and 16 more lines lik",
    "(X, Y, {'hiden': [8]})": r"hiden: is no argument of simulate; did you mean hidden\?",
    "(X, Y, {'activation': 'rel'})": r"activation: 'rel': expected 'linear', 'relu'",
    "(X, Y, {'activation': 'tanh'})": r"learning_rate, steps: .* give both, or .*activation",
    "(X, Y, {'activation': 'tanh', 'init_scales': None})": r"init_scales, learning_rate, steps: "
    r"theory cannot choose them here; give all, or .*activation: 'tanh': use",
    "(X, Y, {'gates': [[1, 1]]})": r"gates: has shape \(1, 2\), and there are 4 samples; "
    r"give an array \(pathway, sample\), here \(\.\.\., 4\)$",
    "(X, Y, {'gates': np.ones((4, 3))})": r"gates: has shape \(4, 3\), .* did you mean gates\.T\?$",
    "({'name': 'table', 'x': X, 'y': Y[:3]},)": r"y: has 3 entries, and x has 4 rows",
    "(X, Y, {'gates': [1, 1, 0, 0]})": r"gates: has shape \(4,\); give .*\(pathway, sample\)[^\n]*",
    "(X, Y, {'gates': [[2, 1, 0, -1]]})": r"gates: 2 values are not between 0, closed, and 1, open",
    "(X, Y, {'gates': [['a'] * 4]})": r"gates: holds text, such as 'a'; give numbers",
    "(X, Y, {'gates': 5})": r"gates: has shape \(\); give an array with two axes \(pathway, sample",
    "(X, Y, {'gates': 'half-space'})": r"gates: unknown name 'half-space'; did you mean half_s",
    "(X, Y, {'network': {'name': 'graph'}})": r"network: replaces hidden, activation and g",
    "(X, Y, {'network': {('a', 'b'): 1}, 'hidden': None})": r"network: keys must be str.*; give na",
    "(X, Y, {'network': 3, 'hidden': None})": r"network: 3: expected a mapping",
    "(X, Y, {'init': 'norm'})": r"init: unknown name 'norm'; did you mean normal",
    "(X, Y, {'init_scales': 0.1})": r"init_scales: 0.1: expected a list",
    "(X, Y, {'init_scales': []})": r"init_scales: \[\]: expected at least 1 item",
    "(X, Y, {'init_scales': [-1]})": r"init_scales\.0: -1: must be greater than 0",
    "(X, Y, {'init_scales': [np.nan]})": r"init_scales\.0: nan: expected a finite number",
    "(X, Y, {'init_scales': [0.1, 0.1]})": r"init_scales:? \[0.1, 0.1\]:? repeats a value",
    "(X, Y, {'seeds': [0, 1]})": r"seeds: \[0, 1\]: expected a whole number$",
    "(X, Y, {'optimiser': 'adam'})": r"learning_rate, steps: .* give both, or .*optimiser",
    "(X, Y, {'optimiser': None})": r"optimiser: None: expected a mapping",
    "(X, Y, {'loss': 'mae'})": r"loss: 'mae': expected 'squared_error', 'mse' or",
    "(X, Y, {'learning_rate': -1})": r"learning_rate: -1: must be greater than 0",
    "(X, Y, {'learning_rate': '0.1'})": r"learning_rate: '0.1': expected a number",
    "(X, Y, {'learning_rate': 99.0, 'steps': 200})": r"learning_rate: 99.0: .*; use a smaller",
    "(X, Y, {'steps': 502})": r"steps: 502: no number of records from 50 to 200 divides it .*use 6",
    "(X, Y, {'steps': 0})": r"steps: 0: expected a positive whole number",
    "(X, Y, {'steps': 1e3})": r"steps: 1000.0: expected a positive whole number",
    "(X, Y, {'snapshots': 300})": r"snapshots: 300: give at most one for each record, 200",
    "(X, Y, {'records': 0})": r"records: 0: expected a positive whole number",
    "(X, Y, {'records': True})": r"records: True: expected a positive whole number",
    "(X, Y, {'metrics': 'half_time'})": r"metrics\.0: 'half_time': .* did you mean half_times",
    "(X, Y, {'metrics': ['half_time']})": r"metrics\.0: 'half_time': .* did you mean half_times",
    "(X, Y, {'metrics': [['a']]})": r"metrics\.0: \['a'\]: expected a text",
    "(X, Y, {'observables': ['bias']})": r"observables\.0: 'bias': .* did you mean bias_norm",
    "(X, Y, {'observables': 'loss'})": r"observables\.0: 'loss': no such",
    "(X, Y, {'theory': ['flwo']})": r"theory\.0: 'flwo': .* did you mean flow",
    "(X, Y, {'theory': 'flwo'})": r"theory\.0: 'flwo': .* did you mean flow",
    "(X, Y, {'theory': 3})": r"theory: 3: expected a list",
    "(X + Y, Y, {'theory': ['exact']})": r"theory: 'exact':? does not apply to this experiment: "
    r"x: its inputs are not white: <x x\^T> differs from 3.38 I by 58%; .*these apply: aligned_mod",
    "(X, Y, {'progress': 'no'})": r"progress: 'no': give True or False",
    "(X, Y, {'network': np.ones(2), 'hidden': None})": r"network: \[1.0, 1.0\]: expected a mapping",
    "(X, Y, {'metrics': np.array(3)})": r"metrics: 3: expected a list",
    "(X, Y, {'precision': 'float16'})": r"precision: 'float16': expected 'float32' or 'floa",
    "(X, Y, {'hidden': [10**9]})": r"hidden\.0: 1000000000: needs .* GB.*; use less",
    "(X, Y, {'optimiser': 'adam', 'optimizer': 'sgd'})": r"optimiser: is there twice; leave out o",
    "(X, Y, {'sweep': [8]})": r"sweep: \[8\]: expected a mapping of keys to values",
    "(X, Y, {'sweep': {'hidden': 8}})": r"sweep\.hidden: 8: expected a list with at least one",
    "(X, Y, {'sweep': {'hidden': []}})": r"sweep\.hidden: \[\]: expected a list with at least one",
    "(X, Y, {'sweep': {'hiden': [[8]]}})": r"sweep\.hiden: is no argument .*did you mean hidden\?",
    "(X, Y, {'sweep': {'hidden': [[8], [8]]}})": r"sweep: 'hidden-8': expected values with dist",
    "(X, Y, {'sweep': {'seeds': [2, -1]}})": r"seeds: -1: must be greater than 0",
    "('xor',)": r"steps: is missing, and no linear mode",
    "('xor', None, {'init_scales': None})": r"init_scales: is missing, and no linear mode .*; give",
}
"""Arguments of `simulate`, and a pattern for the message: argument, value, problem; remedy."""
CALLS = {
    "nr.solve(X, Y, hidden=[8], theory=['xor_race'], progress=False)": r"theory: 'xor_race':? do",
    "nr.solve(X, Y, hidden=[8], theory=None, progress=False)": r"theory: None: no solution",
    "nr.specify(X, Y, hidden=[8], theory=['flow', 'flwo'])": r"theory\.1: 'flwo': .*did you mean f",
    "nr.specify(X, Y, widths=[8])": r"widths: is no argument of specify; did you mean hidden\?",
    "nr.find_reln(X, Y, hidden=[8])": r"find_reln: missing a required argument: 'pathways'",
    "nr.find_reln(X, Y, hidden=[8], pathways=0)": r"pathways: 0: expected a positive whole number",
    "nr.find_reln(X, Y, hidden=[8], pathways=99, **FAST)": r"pathways: 99: .*; use at most that",
    "nr.find_reln(X, Y, hidden=[8, 8], pathways=3, **FAST)": r"network: find_reln is for ReLU netw",
    "nr.find_reln(X, Y, hidden=[8], pathways=3, init_scales=[1., 2.])": r"init_scales: .1.0, 2.0.: "
    r"gates are identified at one init scale; give one",
    "nr.reduce_race(X, Y, hidden=[8])": r"theory: 'reduction':? does not apply .*give gates",
    "nr.plot('tree')": r"results: str: give what simulate or open_results gives",
    "nr.plot(tree['trajectory'])": r"the tree 'trajectory' holds no cell; give a tree of simulate",
    "nr.plot(tree['trajectory'].to_dataset())": r"results: Dataset: give what simulate or open",
    "nr.plot([tree, tree])": r"results: list: give what simulate or open_results gives",
    "nr.plot(nr.results.cells.Results([]))": r"results: holds no cell; select others",
    "nr.plot(xr.DataTree())": r"the tree '/' holds no cell; give a tree of simulate or open_tree",
    "nr.plot(tree, ax='left')": r"ax: str: give axes of matplotlib, as plt\.subplots\(\) does",
    "nr.plot(tree, theory='flwo')": r"theory: 'flwo': was not solved; there is flow",
    "nr.plot(tree, theory=np.array([1, 2]))": r"theory: array.*: was not solved; there is",
    "nr.plot(tree, theory=['flow'])": r"theory: \['flow'\]: was not solved; there is flow",
    "nr.combine([])": r"cells: there are none; give some of open_results\(\.\.\.\) or of simulate",
    "nr.combine(3)": r"cells: is of type int; give the result of",
    "nr.combine('nowhere')": r"nowhere: no results found; run",
    "nr.combine({'a': tree})": r"cells: is of type dict; give the result of",
    "nr.combine([tree, 'b'])": r"cells: holds a str; give the result of",
    "nr.combine([tree['trajectory'].to_dataset()])": r"cells: holds a Dataset; give the result of",
    "nr.combine(tree, 'metric')": r"kind: 'metric': give one of trajectory, theory, metrics",
    "nr.combine(tree, ['metrics'])": r"kind: \['metrics'\]: give one of trajectory, theory, metric",
    "nr.combine([bare, bare], 'theory')": r"kind: 'theory': the cell .* has none; it has",
    "nr.to_frame([])": r"cells: there are none; give some of open_results",
    "nr.to_frame(5)": r"cells: is of type int; give the result of",
    "nr.to_frame(pd.DataFrame({'a': [1]}))": r"cells: holds a str; give the result of",
    "nr.to_frame(tree, 'network.hiden')": r"keys: 'network.hiden': is no key .*did you mean netw",
    "nr.to_frame(tree, [3])": r"keys: 3: is no key of these specifications; .neuralrace keys",
    "nr.to_frame(tree, 5)": r"keys: is of type int; give a list of names",
    "nr.to_frame(tree, [np.ones(2)])": r"keys: array.*: is no key of these specifications",
    "nr.to_frame('nowhere')": r"nowhere: no results found; run",
    "nr.open_results('nowhere')": r"nowhere: no results found; run",
    "nr.open_results(None)": r"folder: None: give the path of a results folder",
    "nr.open_results('nowhere', ['main'])": r"cell_ids: 'main': give identifiers paper/experiment/",
    "nr.open_results('nowhere', [3])": r"cell_ids: 3: give identifiers paper/experiment/label",
    "nr.open_results('nowhere', 5)": r"cell_ids: 5: give identifiers paper/experiment/label",
    "nr.open_tree('nowhere')": r"nowhere: no results found; run",
}
"""Other calls, and a pattern for the message."""


def test_several_mistakes_name_their_arguments():
    keys = [f"experiments.python.simulate.network.hidden.{n}" for n in range(9)]
    errors = [UserError("wrong", file="configuration", key=key, value="a") for key in keys]
    error = UserError("many")
    error.__cause__ = ExceptionGroup("mistakes", errors)
    lines = str(by_argument(error, "experiments.python.simulate", None)).splitlines()
    assert lines == [*(f"hidden.{n}: 'a': wrong" for n in range(5)), "and 4 more lines like these"]


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """Messages of a process without type checks of annotations, as users have."""
    code = f"""
import json
import numpy as np
import pandas as pd
import xarray as xr
import neuralrace as nr
from neuralrace.errors import UserError

class Unwilling:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

X, Y = np.eye(4), np.diag([4.0, 3.0, 2.0, 1.0])
FAST = {{"learning_rate": 0.1, "steps": 20, "seeds": 1, "init_scales": [0.1]}}
tree = nr.simulate(X, Y, hidden=[8], theory=["flow"], progress=False, **FAST)
bare = nr.simulate(X, Y, hidden=[8], theory=None, progress=False, **FAST)
small = {{"hidden": [8], "init_scales": [0.01], "seeds": 2, "progress": False}}
messages = {{}}

def record(case, call):
    try:
        call()
        messages[case] = "no error"
    except UserError as error:
        messages[case] = str(error)
    except Exception as error:
        messages[case] = f"Traceback: {{type(error).__name__}}: {{error}}"

for case in {list(WRONG)!r}:
    arguments = eval(case)
    options = arguments[-1] if len(arguments) == 3 and isinstance(arguments[-1], dict) else {{}}
    data = arguments[:-1] if options else arguments
    record(case, lambda: nr.simulate(*data, **small | options))
for case in {list(CALLS)!r}:
    record(case, lambda: eval(case))
print(json.dumps(messages))
"""
    done = PYTHON.run(["-c", code])
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", [*WRONG, *CALLS])
def test_message_about_a_wrong_argument_names_it(case, messages):
    message = messages[case]
    assert re.match((WRONG | CALLS)[case], message), message
    for internal in ("Traceback", "pydantic", "configuration:", "experiments.", "solutions"):
        assert internal not in message.replace("`neuralrace list solutions`", "")
