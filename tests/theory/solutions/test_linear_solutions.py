"""Solutions for linear networks: initial weights, units of time and loss, and exactness."""

import re

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from builders import CELL_NAME, build_cell
from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.axes import record_steps
from neuralrace.results.files import read_result, write_result
from neuralrace.results.schema import theory_variables
from neuralrace.results.theory import solve_ensemble, theory_dataset
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.solutions.problem import Problem
from neuralrace.training.trainer import train

MODES = {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 3, "outputs": 2}
LAYERED = {"name": "layered", "hidden": [4]}
SPEC = {
    "dataset": MODES | {"basis": "random"},
    "network": LAYERED,
    "init": {"name": "normal"},
    "init_scales": [0.1, 0.3],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 100},
    "record": {"every": 4},
}
ALIGNED = {"init": {"name": "aligned"}}
FLOWS = {  # changes for which a solution equals the gradient flow
    "aligned_modes": ALIGNED,
    "exact": {"init": {"name": "zero_balanced"}},
    "lambda_balanced": {
        "network": {"name": "layered", "hidden": [2]},
        "init": {"name": "lambda_balanced", "lambda_": 8.0},
    },
    "layered_modes": {
        "network": {"name": "layered", "hidden": [4, 3]},
        "init": {"name": "aligned", "layer_strengths": [1.0, 2.0, 0.5]},
    },
    "shallow_modes": {"network": {"name": "layered", "hidden": []}},
    "symmetric_start": {"init": {"name": "tied"}},
    "tied": {"init": {"name": "tied"}},
    "untied_modes": {"init": {"name": "decoupled"}},
}
LINEAR = {name for name, entry in SOLUTIONS.items() if entry.module.endswith(".linear")}


def make(*solutions, **changes):
    return build_cell(SPEC, solutions=solutions, **changes)


def solved(ensemble):
    """Problem and arrays at the recorded steps."""
    step, _ = record_steps(ensemble)
    samples, arrays = solve_ensemble(ensemble, step)
    problem = Problem(ensemble, step)
    assert samples == len(problem.data.x)
    return problem, arrays


def test_every_solution_is_compared_with_the_flow():
    assert set(FLOWS) == LINEAR - {"flow"}


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_arrays_fit_the_schema_and_start_from_the_weights_of_the_run(name):
    ensemble = make(name, **FLOWS.get(name, {}))
    problem, arrays = solved(ensemble)
    layers = len(ensemble.network.hidden) + 1
    sizes = {"solution": 1, "time": 26, "mode": 2, "layer": layers, "pair": layers - 1}
    sizes |= {"vector": 4, "other_vector": 4}
    assert set(arrays) >= {"loss", "mode_strength"}
    for variable, values in arrays.items():
        dims = theory_variables()[variable].dims
        assert values.shape == (2, 2, *(sizes[dim] for dim in dims)), variable
        assert np.isfinite(values).all(), variable
    # at time 0, every solution has the linear map and the loss of the initial weights
    total = np.eye(3)
    for layer in problem.weights:
        total = layer @ total
    data = ensemble.dataset.load()
    start = np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v)
    np.testing.assert_allclose(arrays["mode_strength"][:, :, 0, 0], start, atol=1e-12)
    error = data.y - np.einsum("...oi,ni->...no", total, data.x)
    loss = np.mean(np.sum(error**2, axis=-1), axis=-1) / 2
    if name == "shallow_modes":  # its loss leaves out columns of the map outside the modes
        assert (arrays["loss"][:, :, 0, 0] <= loss).all()
    else:
        np.testing.assert_allclose(arrays["loss"][:, :, 0, 0], loss, rtol=1e-10)


@pytest.mark.parametrize(
    "name", ["aligned_modes", "layered_modes", "shallow_modes", "untied_modes"]
)
def test_loss_equals_the_loss_of_a_diagonal_map(name):
    ensemble = make(name, **FLOWS[name])
    problem, arrays = solved(ensemble)
    data, (u, v) = problem.data, (problem.data.modes.u, problem.data.modes.v)
    total = np.einsum("ok,...k,ik->...oi", u, arrays["mode_strength"], v)
    error = data.y - np.einsum("...oi,ni->...no", total, data.x)
    loss = np.mean(np.sum(error**2, axis=-1), axis=-1) / 2
    np.testing.assert_allclose(arrays["loss"], loss, atol=1e-12)


def scaled(factor):
    """The task with inputs of variance `factor` squared."""
    data = make().dataset.load()
    return {"name": "table", "x": (factor * data.x).tolist(), "y": data.y.tolist()}


@pytest.mark.parametrize("factor", [1.0, 0.7])
@pytest.mark.parametrize("name", sorted(FLOWS))
def test_exact_where_its_assumptions_hold(name, factor):
    """Also for white inputs of another variance."""
    ensemble = make(name, "flow", dataset=scaled(factor), **FLOWS[name])
    assert ensemble.unfit() is None
    _, arrays = solved(ensemble)
    solution, flow = np.moveaxis(arrays["mode_strength"], 2, 0)
    np.testing.assert_allclose(solution, flow, atol=1e-9)
    solution, flow = np.moveaxis(arrays["loss"], 2, 0)
    if name == "shallow_modes":  # weights of inputs outside the modes decay as exp(-t)
        outside = (flow - solution) * np.exp(2 * factor**2 * np.linspace(0, 2, 26))
        np.testing.assert_allclose(outside, np.broadcast_to(outside[..., :1], outside.shape))
        assert (outside > 0).all()
    else:
        np.testing.assert_allclose(solution, flow, atol=1e-9)


@pytest.mark.parametrize("name", ["aligned_modes", "symmetric_start"])
def test_error_of_small_starts_falls_with_the_init_scale(name):
    def error(scale, steps):
        training = {"learning_rate": 0.02, "steps": steps}
        ensemble = make(name, "flow", init_scales=[scale], training=training, seeds=1)
        theory, flow = np.moveaxis(solved(ensemble)[1]["mode_strength"], 2, 0)
        return abs(theory - flow).max()

    assert error(1e-4, 800) < error(1e-2, 600) / 3 < 0.1


def test_layer_strengths_norms_initial_modes_and_gram_matrices():
    ensemble = make("layered_modes", "flow", **FLOWS["layered_modes"])
    _, arrays = solved(ensemble)
    np.testing.assert_allclose(
        arrays["layer_strength"].prod(axis=-2), arrays["mode_strength"][:, :, 0], atol=1e-12
    )
    norms = np.sqrt(np.sum(arrays["layer_strength"] ** 2, axis=-1))
    by_modes, by_flow = np.moveaxis(arrays["layer_norm"], 2, 0)
    np.testing.assert_allclose(by_modes, norms, rtol=1e-14)
    np.testing.assert_allclose(by_flow, norms, atol=1e-9)
    for name in ("aligned_modes", "shallow_modes", "untied_modes"):
        _, arrays = solved(make(name, **FLOWS[name]))
        first = arrays["mode_strength"][:, :, 0, 0]
        np.testing.assert_allclose(arrays["initial_mode"], first, atol=1e-14)
    problem, arrays = solved(make("tied", **FLOWS["tied"]))
    encoder, decoder = problem.weights
    modes = problem.data.modes
    vectors = np.concatenate([encoder @ modes.v, decoder.mT @ modes.u], axis=-1)
    np.testing.assert_allclose(arrays["gram"][:, :, 0], vectors.mT @ vectors, atol=1e-12)


def test_simulation_approaches_theory_in_proportion_to_the_learning_rate():
    def error(refined):
        training = {
            # the sum is 6 times the half-mean of 3 samples, and momentum 0.5 doubles the flow time
            "learning_rate": 0.02 / refined / 12,
            "steps": 100 * refined,
            "optimiser": {"name": "momentum", "momentum": 0.5},
            "loss": {"normalisation": "sum"},
        }
        record = {"every": 10 * refined, "observables": ["mode_strength"]}
        ensemble = make("flow", training=training, record=record)
        _, arrays = solved(ensemble)
        simulated = train(ensemble).variables
        start = simulated["loss"][..., 0]  # theory has the normalisation of training
        np.testing.assert_allclose(arrays["loss"][:, :, 0, 0], start, rtol=1e-10)
        return abs(simulated["mode_strength"] - arrays["mode_strength"][:, :, 0]).max()

    np.testing.assert_allclose(error(4) / error(8), 2, rtol=0.1)


# Refusals --------------------------------------------------------------------------------------

MIXTURE = {
    "name": "gaussian_mixture",
    "components": 2,
    "samples_per_component": 10,
    "inputs": 3,
    "outputs": 2,
    "whiten": False,
}
UNEQUAL = {"name": "table", "x": [[1.0, 0.0], [0.0, 2.0]], "y": [[1.0], [2.0]]}
FEW = {"name": "table", "x": [[1.0, 0, 0], [0, 1.0, 0]], "y": [[1.0], [2.0]]}
CROSS_ENTROPY = SPEC["training"] | {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
TWO_HIDDEN = {"network": {"name": "layered", "hidden": [4, 4]}}
SMALL = {"name": "layered", "hidden": [4]}
RELU = {"network": SMALL | {"activation": "relu"}}
REFUSED = [  # from the specification, without data
    ("flow", RELU, "network.activation: 'relu': use linear"),
    ("flow", {"network": SMALL | {"bias": True}}, "network.bias: True: leave biases out"),
    ("flow", {"network": SMALL | {"readout": "fixed"}}, "network.readout: 'fixed': use trained"),
    ("flow", {"training": CROSS_ENTROPY}, "training.loss.name: 'cross_entropy': use squared_error"),
    ("aligned_modes", TWO_HIDDEN, r"network.hidden: \[4, 4\]: give exactly one hidden layer"),
    ("exact", TWO_HIDDEN, r".* give exactly one hidden layer"),
    ("symmetric_start", TWO_HIDDEN, r".* give exactly one hidden layer"),
    (
        "untied_modes",
        {"network": SMALL | {"hidden": []}},
        r"network.hidden: \[\]: give exactly one .*; these may apply: flow, shallow_modes",
    ),
    ("tied", TWO_HIDDEN, r".* give exactly one hidden layer"),
    ("shallow_modes", {}, r"network.hidden: \[4\]: leave hidden layers out"),
    ("xor_race", {}, "network.activation: 'linear': use relu"),
    ("xor_race", RELU, "dataset.name: 'modes': use xor"),
    ("layered_modes", {}, "init.name: 'normal': use aligned"),
    ("reduction", {}, "network.name: 'layered': give gates"),
    ("routing_race", {}, "network.name: 'layered': use routing"),
]
UNSOLVED = [
    ("symmetric_start", {"dataset": MIXTURE}, "alike in all directions"),
    ("exact", {"dataset": UNEQUAL}, r"not white: <x x\^T> differs from 1.25 I by 60%; whiten t"),
    ("exact", {"dataset": FEW}, "differs from .* as 2 samples span 2 of 3 dimensions; use another"),
    ("exact", {"dataset": MIXTURE}, "; these apply: aligned_modes, flow$"),
    ("layered_modes", {"dataset": MIXTURE} | ALIGNED, "not white"),
    (
        "layered_modes",
        {"dataset": MODES | {"singular_values": [3.0, -1.0]}} | ALIGNED,
        "1.0: is ne",
    ),
    ("tied", {"dataset": MIXTURE, "init": {"name": "tied"}}, "not white"),
    ("untied_modes", {"dataset": MIXTURE}, "not white"),
    ("flow", {"init": {"name": "tied"}} | TWO_HIDDEN, "^init.name: 'tied': needs one hidden layer"),
    (
        "flow",
        {"init": {"name": "decoupled"}, "network": LAYERED | {"hidden": [1]}},
        "^init.name: 'd",
    ),
    ("flow", {"init": {"name": "aligned", "layer_strengths": [1.0]}}, "^init.layer_strengths: has"),
]


@pytest.mark.parametrize(("name", "parts", "message"), REFUSED)
def test_other_runs_are_refused_before_anything_is_loaded(name, parts, message):
    with pytest.raises(ValidationError, match=f"'{name}'.*{message}"):
        make(name, **parts)


@pytest.mark.parametrize(("name", "parts", "message"), UNSOLVED)
def test_other_data_and_starts_are_refused_by_planning(name, parts, message):
    assert re.search(message, str(make(name, **parts).unfit()))


def test_equal_variances_of_inputs_only_scale_time():
    ensemble = make("symmetric_start", "flow", init={"name": "tied"}, dataset=scaled(2.0))
    theory, flow = np.moveaxis(solved(ensemble)[1]["mode_strength"], 2, 0)
    np.testing.assert_allclose(theory[:, :, 0], flow[:, :, 0], atol=1e-12)
    np.testing.assert_allclose(abs(theory[:, :, -1]), flow[:, :, -1], atol=0.02)


# Sequences of tasks ----------------------------------------------------------------------------

REVERSAL = {
    "name": "sequence",
    "tasks": [
        SPEC["dataset"],
        {"name": "changed_targets", "of": SPEC["dataset"]},
        SPEC["dataset"] | {"seed": 1},
    ],
    "switches": [40, 80],
}


@pytest.mark.parametrize("lambda_", [0.0, 8.0, -8.0])
def test_lambda_balanced_solution_is_the_limit_of_training_on_a_sequence(lambda_):
    """The error of a step is of first order: half of the step size leaves half of the error."""

    def errors(parts):
        ensemble = make(
            "lambda_balanced",
            dataset=REVERSAL | {"switches": [parts * step for step in REVERSAL["switches"]]},
            network={"name": "layered", "hidden": [2]},
            init={"name": "lambda_balanced", "lambda_": lambda_},
            training={"learning_rate": 0.02 / parts, "steps": 120 * parts},
            record={"every": 4 * parts, "observables": ["mode_strength", "imbalance"]},
        )
        assert ensemble.unfit() is None
        _, theory = solved(ensemble)
        trained = train(ensemble).variables
        scales = np.array(ensemble.init_scales)[:, None, None]
        # the trace of lambda I of two hidden units; steps move it by their square
        np.testing.assert_allclose(
            trained["imbalance_trace"][..., 0],
            np.broadcast_to(2 * lambda_ * scales**2, trained["loss"].shape),
            atol=0.4 / parts,
        )
        return {name: trained[name] - theory[name][:, :, 0] for name in ("loss", "mode_strength")}

    coarse, fine = errors(8), errors(16)
    for name, error in coarse.items():
        largest = np.abs(error).max()
        assert 1e-4 < largest < 0.3, name
        np.testing.assert_allclose(2 * fine[name], error, rtol=0, atol=0.1 * largest)


def test_lambda_balanced_solution_of_tasks_of_other_variance_is_the_flow():
    """The clock of whitened inputs changes with the task."""
    ensemble = make(
        "lambda_balanced",
        dataset=REVERSAL | {"tasks": [scaled(0.7), scaled(1.5), scaled(1.0)]},
        **FLOWS["lambda_balanced"],
    )
    problem, arrays = solved(ensemble)
    weights, parts = problem.weights, []
    for task, times in zip(problem.phases, np.split(problem.time, [10, 20]), strict=True):
        start, data = problem.flow_step * task[0], task[1]
        path = linear_flow(np.append(times, times[0] + 0.8) - start, weights, *moments(data))
        total = path[1] @ path[0]
        parts.append(np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v)[..., :-1, :])
        weights = [layer[..., -1, :, :] for layer in path]
    expected = np.concatenate(parts, axis=2)
    np.testing.assert_allclose(arrays["mode_strength"][:, :, 0], expected, atol=1e-9)


def moments(data):
    return data.sigma_yx, data.sigma_xx


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": {"name": "normal"}}, "init.name: 'normal': use lambda_balanced"),
        ({"init": {"name": "zero_balanced", "imbalance": 1.0}}, "without imbalance"),
        ({"dataset": MIXTURE}, "are not white"),
        ({"dataset": REVERSAL | {"tasks": [MIXTURE] * 3}}, "are not white"),
    ],
)
def test_lambda_balanced_solution_refuses_other_starts_and_inputs(changes, message):
    spec = {"init": {"name": "zero_balanced"}} | changes
    assert re.search(message, str(make("lambda_balanced", **spec).unfit()))


# Files -----------------------------------------------------------------------------------------


def test_theory_dataset_survives_writing_and_reading(tmp_path):
    ensemble = make("aligned_modes", "flow", **ALIGNED).only(SolvedEnsemble)
    dataset = theory_dataset(CELL_NAME, ensemble)
    _, arrays = solved(ensemble)
    assert set(dataset.data_vars) == set(arrays)
    for name, values in arrays.items():
        assert dataset[name].dims == ("init_scale", "seed", *theory_variables()[name].dims)
        np.testing.assert_array_equal(dataset[name], values)
    assert dataset["solution"].values.tolist() == ["aligned_modes", "flow"]
    assert dataset["time"].values.tolist() == list(range(0, 101, 4))
    np.testing.assert_allclose(dataset["flow_time"], 0.02 * np.arange(0, 101, 4))
    assert dataset.attrs["spec"] == ensemble.canonical()
    write_result(dataset, tmp_path / "theory.nc")
    back = read_result(tmp_path / "theory.nc", "theory")
    xr.testing.assert_identical(back.drop_attrs(), dataset.drop_attrs())


def test_layered_modes_of_a_narrow_layer_leave_the_rest_unlearned():
    cell = build_cell(
        network={"name": "layered", "hidden": [1]},
        init={"name": "aligned"},
        init_scales=[0.1],
        seeds=1,
        training={"learning_rate": 0.01, "steps": 400},
        record={"every": 100},
        solutions=["layered_modes", "exact"],
    )
    _, arrays = solved(cell)
    layered, exact = np.moveaxis(arrays["mode_strength"], 2, 0)
    np.testing.assert_allclose(layered, exact, atol=1e-9)
    assert (layered[..., 1] == 0).all()
