"""Solutions for gated linear networks, against training from the same weights."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

from builders import CELL_NAME, build_cell
from neuralrace.config.cell import SolvedEnsemble
from neuralrace.results.axes import record_steps
from neuralrace.results.theory import solve_ensemble, theory_dataset
from neuralrace.training.trainer import train

XOR = {
    "dataset": {"name": "xor"},
    "network": {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}},
    "training": {"learning_rate": 0.4, "steps": 60},
}
CONTEXTS = {
    "dataset": {
        "name": "table",
        "x": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]],
        "y": [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 1], [3, 0, 2, 0], [0, 2, 0, 1]],
        "contexts": [0, 0, 1, 1, 2, 2],
    },
    "network": {
        "name": "graph",
        "nodes": {"a": 2, "b": 2, "h": 5, "l": 2, "r": 2},
        "edges": [["a", "h"], ["b", "h"], ["h", "l"], ["h", "r"], ["a", "l"]],
        "gates": {"a": [1, 0, 1], "b": [0, 1, 1], "l": [1, 0, 1], "r": [0, 1, 1]},
    },
    "training": {"learning_rate": 0.05, "steps": 60, "loss": {"normalisation": "mean"}},
}
ROUTING = {
    "dataset": {"name": "routing", "count": 4},
    "network": {
        "name": "routing",
        "hidden": [24, 24],
        "gates": {"name": "always_on"},
        "pairs": {"name": "band", "partners": 3},
    },
    "training": {"learning_rate": 5e-4, "steps": 300, "loss": {"normalisation": "sum"}},
}
CASES = {"xor": XOR, "contexts": CONTEXTS, "routing": ROUTING}


ALIGNED = {
    "init": {"name": "aligned"},
    "init_scales": [0.2, 0.4],
    "seeds": 2,
    "record": {"every": 10},
}


def make(case, *solutions, network=None, **changes):
    """A cell of a case; `network` replaces keys of its network, `changes` those at the top."""
    spec = CASES[case] | ALIGNED
    network = spec["network"] | (network or {})
    return build_cell(spec, network=network, solutions=solutions, **changes)


def solved(ensemble):
    return solve_ensemble(ensemble, record_steps(ensemble)[0])


@pytest.mark.parametrize("case", sorted(CASES))
def test_training_from_an_aligned_start_equals_the_reduction_step_by_step(case):
    ensemble = make(case, "reduction_descent")
    samples, arrays = solved(ensemble)
    trained = train(ensemble)
    assert samples == trained.samples
    loss = trained.variables["loss"]
    np.testing.assert_allclose(arrays["loss"][:, :, 0], loss, atol=1e-12 * loss.max())
    assert (loss[..., -1] < loss[..., 0] / 2).all()  # something was learned


@pytest.mark.parametrize("case", sorted(CASES))
def test_reduced_flow_equals_the_flow_of_all_weights(case):
    network = {"hidden": [5, 5]} if case == "routing" else None
    _, arrays = solved(make(case, "reduction", "gated_flow", network=network))
    reduced, full = np.moveaxis(arrays["loss"], 2, 0)
    np.testing.assert_allclose(reduced, full, atol=1e-8 * full.max())
    assert ("untrained_error" in arrays) == (case == "routing")
    if case == "routing":
        reduced, full = np.moveaxis(arrays["untrained_error"], 2, 0)
        np.testing.assert_allclose(reduced, full, atol=1e-8)
        assert (full[..., -1] < full[..., 0] / 2).all()


def test_descent_approaches_the_flow_in_proportion_to_the_step():
    def error(refined):
        finer = {"learning_rate": 0.05 / refined, "steps": 60 * refined}
        training, record = CONTEXTS["training"] | finer, {"every": 10 * refined}
        ensemble = make("contexts", "reduction", training=training, record=record)
        return abs(train(ensemble).variables["loss"] - solved(ensemble)[1]["loss"][:, :, 0]).max()

    np.testing.assert_allclose(error(4) / error(8), 2, rtol=0.1)


def test_singular_values_equal_those_of_the_trained_weights():
    record = {"every": 10, "observables": ["singular_values", "mode_strength", "pair_error"]}
    ensemble = make("routing", "reduction_descent", network={"hidden": [5, 5]}, record=record)
    _, arrays = solved(ensemble)
    trained = train(ensemble).variables
    np.testing.assert_allclose(
        arrays["singular_values"][:, :, 0], trained["singular_values"][..., :4], atol=1e-10
    )
    np.testing.assert_allclose(
        arrays["mode_strength"][:, :, 0], trained["mode_strength"], atol=1e-10
    )
    np.testing.assert_allclose(
        arrays["untrained_error"][:, :, 0], trained["untrained_error"], atol=1e-10
    )


@pytest.mark.parametrize("size", [1, 2, 4])
def test_race_from_random_starts_has_the_half_times_of_training(size):
    ensemble = make(
        "routing",
        "routing_race",
        network={"gates": {"name": "groups", "size": size}, "pairs": {"name": "all"}},
        init={"name": "orthogonal"},
        init_scales=[0.2],
        training=ROUTING["training"] | {"learning_rate": 2e-4, "steps": 4000},
        record={"every": 4, "observables": ["mode_strength"]},
    )
    _, arrays = solved(ensemble)
    trained = train(ensemble).variables

    def half_time(curve):
        return np.argmax(curve > np.sqrt(185) / 2, axis=-1)

    theory = half_time(arrays["mode_strength"][:, :, 0, :, 0])
    measured = half_time(trained["mode_strength"][..., 0])
    assert (measured > 20).all()
    np.testing.assert_allclose(theory / measured, 1, atol=0.05)
    np.testing.assert_allclose(arrays["loss"][:, :, 0, 0], trained["loss"][..., 0], rtol=0.01)


def test_solutions_without_a_variable_hold_nan_in_it():
    ensemble = make("routing", "gated_flow", "reduction", network={"hidden": [5, 5]})
    _, arrays = solved(ensemble)
    assert np.isfinite(arrays["loss"]).all()
    assert np.isnan(arrays["mode_strength"][:, :, 0]).all()
    assert np.isfinite(arrays["mode_strength"][:, :, 1]).all()
    dataset = theory_dataset(CELL_NAME, ensemble.only(SolvedEnsemble))
    assert dataset["singular_values"].dims[2:] == ("solution", "time", "layer", "singular_mode")


DOMAINS = {"name": "random_regular", "partners": 3}


@pytest.mark.parametrize("size", [2, 4])
def test_untrained_error_of_several_blocks_equals_that_of_training(size):
    """Pairs that are never trained lie in blocks, or in several families of them."""
    gates = {"name": "groups", "size": size} if size < 4 else {"name": "parallel", "dedicated": 4}
    ensemble = make(
        "routing",
        "reduction_descent",
        "gated_flow",
        network={"hidden": [5, 5], "gates": gates},
        training=ROUTING["training"] | {"learning_rate": 1e-4, "steps": 1500},
        record={"every": 100, "observables": ["pair_error"]},
    )
    assert ensemble.unfit() is None
    reduced, flow = np.moveaxis(solved(ensemble)[1]["untrained_error"], 2, 0)
    trained = train(ensemble).variables["untrained_error"]
    np.testing.assert_allclose(reduced, trained, atol=1e-10)
    np.testing.assert_allclose(flow, trained, atol=0.05)


@pytest.mark.parametrize("pairs", [{"name": "band", "partners": 3}, DOMAINS])
def test_untrained_error_of_the_race_and_of_ridge_regression(pairs):
    ensemble = make(
        "routing",
        "routing_race",
        "ridge",
        network={"hidden": [300, 300], "pairs": pairs},
        init={"name": "orthogonal"},
        init_scales=[0.2],
        training=ROUTING["training"] | {"learning_rate": 1e-4, "steps": 4000},
        record={"every": 40, "observables": ["pair_error"]},
    )
    assert ensemble.unfit() is None
    _, arrays = solved(ensemble)
    race, ridge = np.moveaxis(arrays["untrained_error"], 2, 0)
    assert np.isfinite(arrays["loss"][:, :, 0]).all()
    assert np.isnan(arrays["loss"][:, :, 1]).all()  # a regression has none
    np.testing.assert_allclose(ridge, 1, atol=1e-12)
    trained = train(ensemble).variables["untrained_error"]
    np.testing.assert_allclose(race, trained, atol=0.05)
    assert (race[..., -1] < 0.1).all()


def test_untrained_error_is_undefined_where_all_pairs_are_trained():
    pairs = {"pairs": {"name": "all"}, "hidden": [5, 5]}
    ensemble = make("routing", "gated_flow", "reduction", "ridge", "linearised", network=pairs)
    arrays = solved(ensemble)[1]
    assert np.isnan(arrays["untrained_error"]).all()
    assert np.isfinite(arrays["loss"][:, :, [0, 1, 3]]).all()
    orthogonal = {"init": {"name": "orthogonal"}}
    arrays = solved(make("routing", "routing_race", network=pairs, **orthogonal))[1]
    assert np.isnan(arrays["untrained_error"]).all()


REFUSED = [  # from the specification, without data
    ("xor", "routing_race", {}, "network.name: 'gated': use routing"),
    ("xor", "flow", {}, "network.name: 'gated': use layered"),
    ("routing", "routing_race", {"hidden": [24]}, r"network.hidden: \[24\]: give exactly two"),
    ("xor", "reduction", {"gates": {"name": "learned"}}, "network.gates.name: 'learned': give the"),
    ("routing", "reduction", {"pairs": DOMAINS}, "network.pairs.name: 'random_regular': trains"),
    ("xor", "reduction", {"init": {"name": "normal"}}, "init.name: 'normal': use aligned"),
    ("contexts", "reduction", {"init": {"name": "orthogonal"}}, "init.name: 'orthogonal': use"),
    (
        "routing",
        "routing_race",
        {"init": {"name": "normal"}},
        "init.name: 'normal': use orthogonal",
    ),
]
DEDICATED = {"name": "parallel", "dedicated": 4}
HALVES = {"name": "half_space", "pathways": 3}
ORTHOGONAL = {"init": {"name": "orthogonal"}}
UNSOLVED = [
    ("xor", "reduction", {"gates": HALVES}, "not diagonal in common bases"),
    ("contexts", "pathway_modes", {}, "some pathways share edges"),
    ("routing", "routing_race", ORTHOGONAL | {"gates": DEDICATED}, "use blocks of one size"),
    ("routing", "routing_race", ORTHOGONAL | {"gates": {"name": "groups", "size": 2}}, "need all"),
    ("routing", "routing_race", ORTHOGONAL | {"hidden": [24, 8]}, "use one width"),
    ("routing", "routing_race", ORTHOGONAL | {"hidden": [3, 3]}, "a unit for each of 4 modes"),
    ("routing", "reduction", {"gates": {"name": "groups", "size": 3}}, "divide"),
    ("routing", "reduction", {"pairs": {"name": "band", "partners": 9}}, "partners: 9"),
    ("contexts", "reduction", {"gates": {"a": [1, 0]}}, "2 values, and the dataset has 3 contexts"),
    ("xor", "gated_flow", {"init": {"name": "tied"}}, "init.name: 'tied': use one for graphs"),
]


def changed(case, name, parts):
    """A cell of a case with another initialiser (`init`) or other keys of its network."""
    init = {"name": "aligned"} | parts.get("init", {})
    network = {key: value for key, value in parts.items() if key != "init"}
    return make(case, name, network=network, init=init)


@pytest.mark.parametrize(("case", "name", "parts", "message"), REFUSED)
def test_other_runs_are_refused_before_anything_is_loaded(case, name, parts, message):
    with pytest.raises(ValidationError, match=f"'{name}'.*{message}"):
        changed(case, name, parts)


@pytest.mark.parametrize(("case", "name", "parts", "message"), UNSOLVED)
def test_other_gates_and_starts_are_refused_by_planning(case, name, parts, message):
    assert re.search(message, str(changed(case, name, parts).unfit()))
