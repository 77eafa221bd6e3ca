"""Solutions for networks with mean readout, against training."""

import numpy as np
import pytest
from pydantic import ValidationError

from builders import build_cell
from neuralrace.results.axes import record_steps
from neuralrace.results.theory import solve_ensemble
from neuralrace.theory.solutions.problem import Problem
from neuralrace.training.trainer import train

INPUTS, UNITS, STEPS, RATE = 8, 3, 40, 0.2
HALF_SPACES = {"name": "half_space", "pathways": UNITS}
GATED = {"name": "gated", "hidden": [1], "readout": "mean", "gates": HALF_SPACES}
SPEC = {
    "dataset": {"name": "nonlinear_gaussian", "inputs": INPUTS, "xi": [1.0, 0.4], "samples": 300},
    "network": {"name": "layered", "hidden": [UNITS], "activation": "relu", "readout": "mean"},
    "init": {"name": "normal"},
    "init_scales": [0.05, 0.5],
    "seeds": 2,
    "training": {"learning_rate": RATE, "steps": STEPS},
    "record": {"every": 10, "observables": ["weights"]},
}


def relu_cell(*solutions, **changes):
    return build_cell(SPEC, solutions=solutions, **changes)


def gated_cell(*solutions, **changes):
    record = SPEC["record"] | {"observables": ["pathway_maps"]}
    return relu_cell(*solutions, **({"network": GATED, "record": record} | changes))


def solved(ensemble):
    return solve_ensemble(ensemble, record_steps(ensemble)[0])[1]


@pytest.mark.parametrize("normalisation", ["half_mean", "half_sum"])
def test_descent_with_frozen_gates_equals_training(normalisation):
    """Loss, time and readout have the units of training, for any normalisation of the loss."""
    rate = RATE if normalisation == "half_mean" else RATE / 300
    training = {"learning_rate": rate, "steps": STEPS, "loss": {"normalisation": normalisation}}
    ensemble = gated_cell("frozen_gates_descent", training=training)
    theory, trained = solved(ensemble), train(ensemble).variables
    np.testing.assert_allclose(theory["loss"][:, :, 0], trained["loss"], rtol=1e-11)
    fields = UNITS * trained["pathway_maps"][:, :, -1, :, 0]
    np.testing.assert_allclose(theory["receptive_fields"][:, :, 0], fields, rtol=1e-9, atol=1e-12)


def test_flow_with_frozen_gates_is_the_limit_of_training_in_small_steps():
    """Training with two small steps is extrapolated to a step size of zero."""
    ends = []
    for finer in (1, 2):
        training = {"learning_rate": RATE / 4 / finer, "steps": 4 * STEPS * finer}
        record = {"every": training["steps"], "observables": ["pathway_maps"]}
        ensemble = gated_cell("frozen_gates", training=training, record=record)
        ends.append(train(ensemble).variables["pathway_maps"][:, :, -1, :, 0])
    theory = solved(ensemble)["receptive_fields"][:, :, 0]
    np.testing.assert_allclose(theory, UNITS * (2 * ends[1] - ends[0]), rtol=0, atol=1e-6)


def test_initial_gates_equal_training_of_a_relu_network_whose_gates_never_change():
    # each sample has one nonzero input, so that gates are the signs of single weights
    x = np.repeat(np.eye(INPUTS), 2, axis=0) * np.tile([1.0, -1.0], INPUTS)[:, None]
    table = {"name": "table", "x": x.tolist(), "y": np.full((2 * INPUTS, 1), 50.0).tolist()}
    positive = {"learning_rate": 0.01, "steps": STEPS}
    ensemble = relu_cell("initial_gates", dataset=table, training=positive)
    theory, trained = solved(ensemble), train(ensemble).variables
    # large targets drive all weights away from zero
    signs = np.sign(trained["weight_1"])
    assert (signs == signs[:, :, :1]).all()
    np.testing.assert_allclose(theory["loss"][:, :, 0], trained["loss"], rtol=2e-3)
    fields = trained["weight_1"][:, :, -1]
    np.testing.assert_allclose(theory["receptive_fields"][:, :, 0], fields, rtol=2e-3)


def test_mean_field_starts_at_the_network_and_follows_it_on_gaussian_inputs():
    dataset = SPEC["dataset"] | {"marginal": {"name": "gaussian"}, "samples": 200000}
    training = {"learning_rate": 0.1, "steps": 200}
    record = {"every": 50, "observables": ["weights"]}
    ensemble = relu_cell("mean_field", dataset=dataset, training=training, record=record)
    theory, trained = solved(ensemble), train(ensemble).variables
    np.testing.assert_allclose(theory["loss"][:, :, 0, 0], trained["loss"][:, :, 0], rtol=1e-12)
    # 200000 samples represent the distribution within the standard error of a loss
    np.testing.assert_allclose(theory["loss"][:, :, 0], trained["loss"], rtol=0, atol=5e-4)
    fields, start = trained["weight_1"][:, :, -1], trained["weight_1"][:, :, 0]
    error = np.linalg.norm(theory["receptive_fields"][:, :, 0] - fields, axis=(-2, -1))
    assert (error < 0.05 * np.linalg.norm(fields - start, axis=(-2, -1))).all()


@pytest.mark.parametrize(
    ("make_cell", "name", "parts", "message"),
    [
        (relu_cell, "frozen_gates", {}, "network.name: 'layered': give gates"),
        (gated_cell, "initial_gates", {}, "network.name: 'gated': use layered"),
        (gated_cell, "mean_field", {}, "network.name: 'gated': use layered"),
        (
            gated_cell,
            "frozen_gates",
            {"network": GATED | {"readout": "trained"}},
            "network.readout: 'trained': use mean",
        ),
        (
            gated_cell,
            "frozen_gates",
            {"network": GATED | {"hidden": [2]}},
            r"network.hidden: \[2\]: give pathways of one unit",
        ),
        (
            gated_cell,
            "frozen_gates",
            {"network": GATED | {"widths": [2, 1, 1]}},
            r"network.widths: \[2, 1, 1\]: leave them out",
        ),
        (gated_cell, "gated_flow", {}, "network.readout: 'mean': use trained"),
        (
            relu_cell,
            "initial_gates",
            {"network": SPEC["network"] | {"activation": "erf"}},
            "network.activation: 'erf': use relu",
        ),
        (
            relu_cell,
            "flow",
            {"network": SPEC["network"] | {"activation": "linear"}},
            "network.readout: 'mean': use trained",
        ),
    ],
)
def test_other_networks_are_refused(make_cell, name, parts, message):
    with pytest.raises(ValidationError, match=f"'{name}'.*{message}"):
        make_cell(name, **parts)


def test_a_unit_that_is_open_on_no_sample_keeps_its_initial_weights():
    table = {"name": "table", "x": [[1.0, 0.5], [0.5, 1.0]], "y": [[1.0], [2.0]]}
    ensemble = relu_cell("initial_gates", dataset=table, seeds=8)
    start = Problem(ensemble, np.arange(1)).weights[0]
    closed = (start @ np.array(table["x"]).T <= 0).all(axis=-1)
    assert 0 < closed.sum() < closed.size
    fields = solved(ensemble)["receptive_fields"][:, :, 0]
    np.testing.assert_allclose(fields[closed], start[closed], rtol=1e-12)
    assert not np.isclose(fields[~closed], start[~closed]).all()


def test_mean_field_is_refused_for_inputs_of_unknown_distribution():
    with pytest.raises(ValidationError, match="the distribution of its inputs is unknown"):
        relu_cell("mean_field", dataset={"name": "single_pulse", "inputs": 12})


@pytest.mark.parametrize(
    ("make_cell", "name"), [(relu_cell, "initial_gates"), (gated_cell, "frozen_gates")]
)
def test_several_outputs_are_refused(make_cell, name):
    modes = {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2}
    assert "dataset.name: 'modes': has 2 outputs" in str(make_cell(name, dataset=modes).unfit())


def test_pathways_that_do_not_see_all_inputs_are_refused():
    task = {"name": "contextual", "contexts": 2, "objects": 2}
    network = GATED | {"gates": {"name": "contexts", "open_in": [1]}}
    with pytest.raises(ValueError, match="some pathways do not see all inputs"):
        gated_cell("frozen_gates", dataset=task, network=network)
