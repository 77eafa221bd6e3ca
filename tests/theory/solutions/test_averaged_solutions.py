"""Theory beside networks whose hidden units are averaged, against the training it stands for."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.results.axes import record_steps
from neuralrace.results.theory import solve
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


def make(*solutions, **parts):
    return SolvedEnsemble.model_validate_json(json.dumps(SPEC | {"solutions": solutions} | parts))


def gated(*solutions, **parts):
    record = SPEC["record"] | {"observables": ["pathway_maps"]}
    return make(*solutions, **({"network": GATED, "record": record} | parts))


def answers(ensemble):
    return solve(ensemble, record_steps(ensemble)[0])[1]


@pytest.mark.parametrize("normalisation", ["half_mean", "half_sum"])
def test_descent_with_frozen_gates_is_training(normalisation):
    """Loss, clock and readout are those of the engine, whatever the normalisation."""
    rate = RATE if normalisation == "half_mean" else RATE / 300
    training = {"learning_rate": rate, "steps": STEPS, "loss": {"normalisation": normalisation}}
    ensemble = gated("frozen_gates_descent", training=training)
    found, trained = answers(ensemble), train(ensemble).variables
    np.testing.assert_allclose(found["loss"][:, :, 0], trained["loss"], rtol=1e-11)
    fields = UNITS * trained["pathway_maps"][:, :, -1, :, 0]
    np.testing.assert_allclose(found["receptive_fields"][:, :, 0], fields, rtol=1e-9, atol=1e-12)


def test_flow_with_frozen_gates_is_training_in_small_steps():
    """Extrapolated to no step at all from two small ones."""
    ends = []
    for finer in (1, 2):
        training = {"learning_rate": RATE / 4 / finer, "steps": 4 * STEPS * finer}
        record = {"every": training["steps"], "observables": ["pathway_maps"]}
        ensemble = gated("frozen_gates", training=training, record=record)
        ends.append(train(ensemble).variables["pathway_maps"][:, :, -1, :, 0])
    found = answers(ensemble)["receptive_fields"][:, :, 0]
    np.testing.assert_allclose(found, UNITS * (2 * ends[1] - ends[0]), rtol=0, atol=1e-6)


def test_initial_gates_are_frozen_gates_of_the_runs_own_start():
    """Training a ReLU network whose gates never change, for there is nowhere to cross to."""
    # each sample is one input alone, so that gates are the signs of single weights
    x = np.repeat(np.eye(INPUTS), 2, axis=0) * np.tile([1.0, -1.0], INPUTS)[:, None]
    table = {"name": "table", "x": x.tolist(), "y": np.full((2 * INPUTS, 1), 50.0).tolist()}
    positive = {"learning_rate": 0.01, "steps": STEPS}
    ensemble = make("initial_gates", dataset=table, training=positive)
    found, trained = answers(ensemble), train(ensemble).variables
    # large targets only drive weights away from zero
    signs = np.sign(trained["weight_1"])
    assert (signs == signs[:, :, :1]).all()
    np.testing.assert_allclose(found["loss"][:, :, 0], trained["loss"], rtol=2e-3)
    fields = trained["weight_1"][:, :, -1]
    np.testing.assert_allclose(found["receptive_fields"][:, :, 0], fields, rtol=2e-3)


def test_mean_field_starts_at_the_network_and_follows_it_on_gaussian_inputs():
    dataset = SPEC["dataset"] | {"marginal": {"name": "gaussian"}, "samples": 200000}
    training = {"learning_rate": 0.1, "steps": 200}
    record = {"every": 50, "observables": ["weights"]}
    ensemble = make("mean_field", dataset=dataset, training=training, record=record)
    found, trained = answers(ensemble), train(ensemble).variables
    np.testing.assert_allclose(found["loss"][:, :, 0, 0], trained["loss"][:, :, 0], rtol=1e-12)
    # 200000 samples stand for the law, within the standard error of a loss
    np.testing.assert_allclose(found["loss"][:, :, 0], trained["loss"], rtol=0, atol=5e-4)
    fields, moved = trained["weight_1"][:, :, -1], trained["weight_1"][:, :, 0]
    error = np.linalg.norm(found["receptive_fields"][:, :, 0] - fields, axis=(-2, -1))
    assert (error < 0.05 * np.linalg.norm(fields - moved, axis=(-2, -1))).all()


@pytest.mark.parametrize(
    ("make_run", "name", "parts", "message"),
    [
        (make, "frozen_gates", {}, "network.name: 'layered': give gates"),
        (gated, "initial_gates", {}, "network.name: 'gated': use layered"),
        (gated, "mean_field", {}, "network.name: 'gated': use layered"),
        (
            gated,
            "frozen_gates",
            {"network": GATED | {"readout": "trained"}},
            "network.readout: 'trained': use mean",
        ),
        (
            gated,
            "frozen_gates",
            {"network": GATED | {"hidden": [2]}},
            r"network.hidden: \[2\]: give pathways of one unit",
        ),
        (
            gated,
            "frozen_gates",
            {"network": GATED | {"widths": [2, 1, 1]}},
            r"network.widths: \[2, 1, 1\]: leave them out",
        ),
        (gated, "gated_flow", {}, "network.readout: 'mean': use trained"),
        (
            make,
            "initial_gates",
            {"network": SPEC["network"] | {"activation": "erf"}},
            "network.activation: 'erf': use relu",
        ),
        (
            make,
            "flow",
            {"network": SPEC["network"] | {"activation": "linear"}},
            "network.readout: 'mean': use trained",
        ),
    ],
)
def test_other_networks_are_refused(make_run, name, parts, message):
    with pytest.raises(ValidationError, match=f"solutions: '{name}': needs another run: {message}"):
        make_run(name, **parts)


def test_a_unit_that_is_open_on_no_sample_stays_where_it_starts():
    table = {"name": "table", "x": [[1.0, 0.5], [0.5, 1.0]], "y": [[1.0], [2.0]]}
    ensemble = make("initial_gates", dataset=table, seeds=8)
    start = Problem(ensemble, np.arange(1)).weights[0]
    closed = (start @ np.array(table["x"]).T <= 0).all(axis=-1)
    assert 0 < closed.sum() < closed.size
    fields = answers(ensemble)["receptive_fields"][:, :, 0]
    np.testing.assert_allclose(fields[closed], start[closed], rtol=1e-12)
    assert not np.isclose(fields[~closed], start[~closed]).all()


def test_inputs_of_no_known_law_have_no_mean_field():
    with pytest.raises(ValidationError, match="'single_pulse': its inputs have no known law"):
        make("mean_field", dataset={"name": "single_pulse", "inputs": 12})


@pytest.mark.parametrize("make_run", [make, gated])
def test_several_outputs_are_refused(make_run):
    name = "initial_gates" if make_run is make else "frozen_gates"
    modes = {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2}
    assert "dataset.name: 'modes': has 2 outputs" in str(make_run(name, dataset=modes).unfit())


def test_pathways_see_all_inputs():
    task = {"name": "contextual", "contexts": 2, "objects": 2}
    network = GATED | {"gates": {"name": "contexts", "open_in": [1]}}
    with pytest.raises(ValueError, match="some pathways do not see all inputs"):
        gated("frozen_gates", dataset=task, network=network)
