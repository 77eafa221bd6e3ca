"""Theory beside a run: every solution starts from the run's own weights and keeps its clock."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.files import read_result, write_result
from neuralrace.results.schema import theory_variables
from neuralrace.results.theory import solve, theory_dataset
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
FLOWS = {  # starts from which a solution is the gradient flow itself
    "aligned_modes": ALIGNED,
    "exact": {"init": {"name": "zero_balanced"}},
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


def make(*solutions, **parts):
    return SolvedEnsemble.model_validate_json(json.dumps(SPEC | {"solutions": solutions} | parts))


def answers(ensemble):
    """Problem and arrays at the recorded steps."""
    step = np.arange(0, ensemble.training.steps + 1, ensemble.record.every)
    samples, arrays = solve(ensemble, step)
    problem = Problem(ensemble, step)
    assert samples == len(problem.data.x)
    return problem, arrays


def test_all_are_compared_with_the_flow():
    assert set(FLOWS) == LINEAR - {"flow"}


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_arrays_are_those_of_the_schema(name):
    ensemble = make(name, **FLOWS.get(name, {}))
    problem, arrays = answers(ensemble)
    layers = len(ensemble.network.hidden) + 1
    sizes = {"solution": 1, "time": 26, "mode": 2, "layer": layers, "pair": layers - 1}
    sizes |= {"vector": 4, "other_vector": 4}
    assert set(arrays) >= {"loss", "mode_strength"}
    for variable, values in arrays.items():
        dims = theory_variables()[variable].dims
        assert values.shape == (2, 2, *(sizes[dim] for dim in dims)), variable
        assert np.isfinite(values).all(), variable
    # at the start, every solution has the run's own map and loss
    total = np.eye(3)
    for layer in problem.weights:
        total = layer @ total
    data = ensemble.dataset.load()
    start = np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v)
    np.testing.assert_allclose(arrays["mode_strength"][:, :, 0, 0], start, atol=1e-12)
    error = data.y - np.einsum("...oi,ni->...no", total, data.x)
    loss = np.mean(np.sum(error**2, axis=-1), axis=-1) / 2
    if name == "shallow_modes":  # columns of the map outside the modes are left out of its loss
        assert (arrays["loss"][:, :, 0, 0] <= loss).all()
    else:
        np.testing.assert_allclose(arrays["loss"][:, :, 0, 0], loss, rtol=1e-10)


@pytest.mark.parametrize(
    "name", ["aligned_modes", "layered_modes", "shallow_modes", "untied_modes"]
)
def test_loss_is_that_of_a_diagonal_map(name):
    ensemble = make(name, **FLOWS[name])
    problem, arrays = answers(ensemble)
    data, (u, v) = problem.data, (problem.data.modes.u, problem.data.modes.v)
    total = np.einsum("ok,...k,ik->...oi", u, arrays["mode_strength"], v)
    error = data.y - np.einsum("...oi,ni->...no", total, data.x)
    loss = np.mean(np.sum(error**2, axis=-1), axis=-1) / 2
    np.testing.assert_allclose(arrays["loss"], loss, atol=1e-12)


@pytest.mark.parametrize("name", sorted(FLOWS))
def test_exact_where_its_assumptions_hold(name):
    ensemble = make(name, "flow", **FLOWS[name])
    _, arrays = answers(ensemble)
    solution, flow = np.moveaxis(arrays["mode_strength"], 2, 0)
    np.testing.assert_allclose(solution, flow, atol=1e-9)
    solution, flow = np.moveaxis(arrays["loss"], 2, 0)
    if name == "shallow_modes":  # the inputs outside the modes are forgotten at their own rate
        outside = (flow - solution) * np.exp(2 * np.linspace(0, 2, 26))
        np.testing.assert_allclose(outside, np.broadcast_to(outside[..., :1], outside.shape))
        assert (outside > 0).all()
    else:
        np.testing.assert_allclose(solution, flow, atol=1e-9)


@pytest.mark.parametrize("name", ["aligned_modes", "symmetric_start"])
def test_small_starts_are_approximated_to_the_order_of_their_scale(name):
    def error(scale, steps):
        training = {"learning_rate": 0.02, "steps": steps}
        ensemble = make(name, "flow", init_scales=[scale], training=training, seeds=1)
        theory, flow = np.moveaxis(answers(ensemble)[1]["mode_strength"], 2, 0)
        return abs(theory - flow).max()

    assert error(1e-4, 800) < error(1e-2, 600) / 3 < 0.1


def test_answers_beside_the_modes():
    ensemble = make("layered_modes", "flow", **FLOWS["layered_modes"])
    _, arrays = answers(ensemble)
    np.testing.assert_allclose(
        arrays["layer_strength"].prod(axis=-2), arrays["mode_strength"][:, :, 0], atol=1e-12
    )
    norms = np.sqrt(np.sum(arrays["layer_strength"] ** 2, axis=-1))
    np.testing.assert_allclose(norms, arrays["layer_norm"], atol=1e-9)
    for name in ("aligned_modes", "shallow_modes", "untied_modes"):
        _, arrays = answers(make(name, **FLOWS[name]))
        first = arrays["mode_strength"][:, :, 0, 0]
        np.testing.assert_allclose(arrays["initial_mode"], first, atol=1e-14)
    problem, arrays = answers(make("tied", **FLOWS["tied"]))
    encoder, decoder = problem.weights
    modes = problem.data.modes
    vectors = np.concatenate([encoder @ modes.v, decoder.mT @ modes.u], axis=-1)
    np.testing.assert_allclose(arrays["gram"][:, :, 0], vectors.mT @ vectors, atol=1e-12)


def test_simulation_approaches_theory_in_proportion_to_the_learning_rate():
    def error(refined):
        training = {
            "learning_rate": 0.02 / refined / 12,  # 3 samples; twice their half-mean; momentum
            "steps": 100 * refined,
            "optimiser": {"name": "momentum", "momentum": 0.5},
            "loss": {"normalisation": "sum"},
        }
        record = {"every": 10 * refined, "observables": ["mode_strength"]}
        ensemble = make("flow", training=training, record=record)
        _, arrays = answers(ensemble)
        simulated = train(ensemble).variables
        start = simulated["loss"][..., 0]  # losses are in the units of training
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
CROSS_ENTROPY = SPEC["training"] | {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
TWO_HIDDEN = {"network": {"name": "layered", "hidden": [4, 4]}}
SMALL = {"name": "layered", "hidden": [4]}
RELU = {"network": SMALL | {"activation": "relu"}}
REFUSED = [  # by the specification alone
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
        r"network.hidden: \[\]: give exactly one",
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
    ("exact", {"dataset": MIXTURE}, "whitened"),
    ("layered_modes", {"dataset": MIXTURE} | ALIGNED, "whitened"),
    (
        "layered_modes",
        {"dataset": MODES | {"singular_values": [3.0, -1.0]}} | ALIGNED,
        "1.0: is ne",
    ),
    ("tied", {"dataset": MIXTURE, "init": {"name": "tied"}}, "whitened"),
    ("untied_modes", {"dataset": MIXTURE}, "whitened"),
    ("flow", {"init": {"name": "tied"}} | TWO_HIDDEN, "^init: law tied needs one hidden layer"),
    ("flow", {"init": {"name": "decoupled"}, "network": LAYERED | {"hidden": [1]}}, "^init: law d"),
    ("flow", {"init": {"name": "aligned", "layer_strengths": [1.0]}}, "^init: layer_strengths has"),
]


@pytest.mark.parametrize(("name", "parts", "message"), REFUSED)
def test_other_runs_are_refused_before_anything_is_loaded(name, parts, message):
    with pytest.raises(ValidationError, match=f"solutions: '{name}': needs another run: {message}"):
        make(name, **parts)


@pytest.mark.parametrize(("name", "parts", "message"), UNSOLVED)
def test_other_data_and_starts_are_refused_by_planning(name, parts, message):
    assert re.search(message, str(make(name, **parts).unfit()))


def test_equal_variances_other_than_one_only_scale_the_clock():
    data = make("flow").dataset.load()
    table = {"name": "table", "x": (2 * data.x).tolist(), "y": data.y.tolist()}
    ensemble = make("symmetric_start", "flow", init={"name": "tied"}, dataset=table)
    theory, flow = np.moveaxis(answers(ensemble)[1]["mode_strength"], 2, 0)
    np.testing.assert_allclose(theory[:, :, 0], flow[:, :, 0], atol=1e-12)
    np.testing.assert_allclose(abs(theory[:, :, -1]), flow[:, :, -1], atol=0.02)


# Files -----------------------------------------------------------------------------------------


def test_dataset_round_trip(tmp_path):
    ensemble = make("aligned_modes", "flow", **ALIGNED)
    dataset = theory_dataset("paper/experiment/main", ensemble)
    _, arrays = answers(ensemble)
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
    cell = SolvedEnsemble.model_validate_json(
        """{
          "dataset": {"name": "modes", "singular_values": [2, 1], "inputs": 3, "outputs": 2},
          "network": {"name": "layered", "hidden": [1]},
          "init": {"name": "aligned"}, "init_scales": [0.1],
          "seeds": 1, "training": {"learning_rate": 0.01, "steps": 400},
          "record": {"every": 100}, "solutions": ["layered_modes", "exact"]}"""
    )
    _, arrays = solve(cell, np.arange(0, 401, 100))
    layered, exact = np.moveaxis(arrays["mode_strength"], 2, 0)
    np.testing.assert_allclose(layered, exact, atol=1e-9)
    assert (layered[..., 1] == 0).all()
