"""Solutions of "Make Haste Slowly", against training and closed forms."""

import numpy as np
import pytest
from pydantic import ValidationError

from builders import build_cell
from neuralrace.datasets.xor import Xor
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.initialisers.normal import Normal
from neuralrace.results.axes import record_steps
from neuralrace.results.theory import solve_ensemble
from neuralrace.theory import xor_margin
from neuralrace.theory.contextual import common_modes, staged_loss
from neuralrace.training.trainer import train

SUM = {"normalisation": "half_sum"}
TASK = {"name": "contextual", "contexts": 3, "objects": 4}
MARGIN = ("margin_linear", "margin_linear_split", "margin_race", "margin_xor", "margin_xor_split")
SPEC = {
    "dataset": TASK,
    "init": {"name": "normal"},
    "init_scales": [0.0001, 0.001],
    "seeds": 2,
    "training": {"learning_rate": 0.005, "steps": 1600, "loss": SUM},
    "record": {"every": 40},
}


def contexts(*open_in, **more):
    return {"name": "contexts", "open_in": open_in, **more}


def gated(hidden, *open_in, **more):
    return {"name": "gated", "hidden": [hidden], "gates": contexts(*open_in, **more)}


def make(network, *solutions, **changes):
    return build_cell(SPEC, network=network, solutions=solutions, **changes)


def solved(ensemble):
    return solve_ensemble(ensemble, record_steps(ensemble)[0])[1]


def relative(loss):
    return loss / loss[..., :1]


# XoR with a margin -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def relu_on_xor():
    ensemble = make(
        {"name": "layered", "hidden": [16], "activation": "relu"},
        *MARGIN,
        dataset={"name": "xor", "margin": 1.2},
        training={"learning_rate": 0.05, "steps": 400},
    )
    return ensemble, solved(ensemble)["loss"]


def test_margin_solutions_start_from_the_weights_of_the_run(relu_on_xor):
    ensemble, loss = relu_on_xor
    data = Xor(name="xor", margin=1.2).load()
    weights = initial_weights(Normal(name="normal"), (3, 16, 1), data.modes, (1e-4, 1e-3), (0, 1))
    start = xor_margin.neuron_start(weights[0], weights[1][..., 0, :], 1.2)
    time = np.arange(0, 401, 40) * 0.05
    by_name = dict(zip(ensemble.solutions, np.moveaxis(loss, 2, 0), strict=True))
    expected = xor_margin.race_loss(time, 1.2, start.linear, start.xor)
    np.testing.assert_array_equal(by_name["margin_race"], expected)
    np.testing.assert_array_equal(
        by_name["margin_linear"], xor_margin.linear_loss(time, 1.2, start.linear)
    )
    np.testing.assert_array_equal(by_name["margin_xor"], xor_margin.xor_loss(time, 1.2, start.xor))


def test_split_starts_follow_width_and_variance(relu_on_xor):
    ensemble, loss = relu_on_xor
    time = np.arange(0, 401, 40) * 0.05
    weights = initial_weights(
        Normal(name="normal"), (3, 16, 1), Xor(name="xor", margin=1.2).load().modes, (1e-3,), (0, 1)
    )[0]
    deviation = np.sqrt(np.mean(weights**2))
    linear, xor = xor_margin.split_start(16, float(deviation))
    for name, expected in (
        ("margin_linear_split", xor_margin.linear_loss(time, 1.2, np.full(2, linear))),
        ("margin_xor_split", xor_margin.xor_loss(time, 1.2, np.full(4, xor))),
    ):
        split = loss[1, :, ensemble.solutions.index(name)]
        np.testing.assert_allclose(split, np.stack([expected] * 2), rtol=1e-12)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"name": "xor"}, "dataset.margin: is missing; give it"),
        (TASK, "dataset.name: 'contextual': use xor and give its margin"),
    ],
)
def test_margin_solutions_need_a_margin(dataset, message):
    network = {"name": "layered", "hidden": [4], "activation": "relu"}
    with pytest.raises(ValidationError, match=message):
        make(network, "margin_race", dataset=dataset)


def test_xor_race_is_refused_for_xor_with_a_margin():
    network = {"name": "layered", "hidden": [4], "activation": "relu"}
    with pytest.raises(ValidationError, match=r"dataset\.margin: 0\.5: leave it out"):
        make(network, "xor_race", dataset={"name": "xor", "margin": 0.5})


# The contextual task ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def family():
    """A gated network with all solutions for it, and its training."""
    names = ("pathway_modes", "pathway_modes_descent", "pathway_modes_mean", "head_start")
    ensemble = make(gated(60, 2), *names, record={"every": 40, "observables": ["pathway_values"]})
    return ensemble, solved(ensemble), train(ensemble).variables


def test_pathway_modes_under_descent_follow_training(family):
    ensemble, theory, trained = family
    index = ensemble.solutions.index("pathway_modes_descent")
    loss = theory["loss"][:, :, index]
    gap = np.abs(loss - trained["loss"]).max(-1) / trained["loss"][..., 0]
    assert gap[0].max() < 1e-4  # of the second order in the init scale
    assert gap[1].max() < 2e-3
    values = theory["pathway_values"][:, :, index]
    off = np.abs(values - trained["pathway_values"]).max() / trained["pathway_values"].max()
    assert off < 0.01


def test_pathway_modes_of_the_flow_follow_training_up_to_step_size_and_draw(family):
    ensemble, theory, trained = family
    for name, allowed in (("pathway_modes", 0.04), ("pathway_modes_mean", 0.08)):
        loss = theory["loss"][:, :, ensemble.solutions.index(name)]
        assert np.abs(relative(loss) - relative(trained["loss"])).max() < allowed


def test_stages_of_pathways_are_solved_as_they_are_trained():
    network = gated(60, 2) | {"stages": [1, 3]}
    names = ("pathway_modes_descent", "head_start")
    ensemble = make(network, *names, record={"every": 40, "observables": ["pathway_values"]})
    theory, trained = solved(ensemble), train(ensemble).variables
    loss, closed = np.moveaxis(relative(theory["loss"]), 2, 0)
    assert np.abs(loss - relative(trained["loss"]))[0].max() < 1e-4
    assert np.abs(closed - relative(trained["loss"]))[0].max() < 0.05
    values = theory["pathway_values"][:, :, 0]
    off = np.abs(values - trained["pathway_values"]).max() / trained["pathway_values"].max()
    assert off < 0.01
    joint = relative(solved(make(gated(60, 2), *names))["loss"][:, :, 0])
    assert np.abs(joint - loss)[0].max() > 0.002


def test_head_start_is_the_limit_of_the_joint_modes():
    """The closed form approaches the integrated flow as the start gets smaller."""
    ensemble = make(
        gated(50, 2),
        "pathway_modes_mean",
        "head_start",
        "staged_modes",
        dataset=TASK | {"objects": 8},
        init_scales=[0.01, 0.0001],
        training={"learning_rate": 0.001, "steps": 8000, "loss": SUM},
        record={"every": 80},
        seeds=1,
    )
    joint, head, staged = np.moveaxis(relative(solved(ensemble)["loss"])[:, 0], 1, 0)
    gaps = np.abs(head - joint).max(-1)
    assert gaps[1] < 0.002 < gaps[0] < 0.05
    assert (np.abs(staged - joint).max(-1) > 5 * gaps).all()


def test_staged_modes_start_from_width_and_variance():
    ensemble = make(gated(60, 2), "staged_modes")
    loss = solved(ensemble)["loss"][1, 1, 0]
    s, _ = common_modes(3, 4)
    start = 60 * 1e-6 / 2
    time = np.arange(0, 1601, 40) * 0.005 * 12
    expected = staged_loss(time, 3, 4, 2, np.full(len(s), start), np.full(3, start))
    np.testing.assert_allclose(loss, 12 * expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("network", "part"), [(gated(60), "common"), (gated(60, 2, common=False), "residual")]
)
def test_singular_values_of_each_stage_follow_training_on_it(network, part):
    ensemble = make(
        network,
        "staged_modes",
        dataset=TASK | {"part": part},
        record={"every": 40, "observables": ["pathway_values"]},
    )
    theory = solved(ensemble)["pathway_values"][0, :, 0]
    trained = train(ensemble).variables["pathway_values"][0]
    assert theory.shape == trained.shape
    # a random start differs from the mean start, and modes of equal strength interfere
    assert np.abs(theory - trained).max() < 0.15 * trained.max()
    np.testing.assert_allclose(theory[:, -1, :, 0], trained[:, -1, :, 0], atol=0.02)
    later = np.abs(theory[:, :-4] - trained[:, 4:]).max()
    assert later > 2 * np.abs(theory - trained).max()


def test_starts_follow_the_widths_of_the_pathways():
    ensemble = make(gated(20, 2) | {"widths": [3, 1, 1, 1]}, "staged_modes")
    loss = solved(ensemble)["loss"][1, 0, 0]
    time = np.arange(0, 1601, 40) * 0.005 * 12
    common, context = np.full(6, 60 * 1e-6 / 2), np.full(3, 20 * 1e-6 / 2)
    np.testing.assert_allclose(loss, 12 * staged_loss(time, 3, 4, 2, common, context), rtol=1e-12)


def test_common_pathway_and_family_on_its_residual_add_up_to_the_staged_loss():
    whole = solved(make(gated(60, 2), "staged_modes"))["loss"]
    common = solved(make(gated(60), "staged_modes"))["loss"]
    residual = make(gated(60, 2, common=False), "staged_modes", dataset=TASK | {"part": "residual"})
    family = solved(residual)["loss"] - 12 * residual.dataset.load().y_power / 2
    np.testing.assert_allclose(common + family, whole, atol=1e-10)


@pytest.mark.parametrize(
    ("network", "dataset", "solution", "message"),
    [
        (gated(6, 2), {"name": "xor"}, "staged_modes", "dataset.name: 'xor': use contextual"),
        (gated(6, 2), TASK | {"structures": ["ring"]}, "staged_modes", "use hierarchy alone"),
        (gated(6, 1, 2), TASK, "staged_modes", r"open_in: \[1, 2\]: give one number"),
        (gated(6, 2, shown="everything"), TASK, "staged_modes", "shown: 'everything': use first"),
        (gated(6, 2) | {"hidden": [6, 6]}, TASK, "staged_modes", "give exactly one hidden layer"),
        (gated(6, 2), TASK | {"part": "residual"}, "head_start", "part: 'residual': use whole"),
        (gated(6, 3), TASK, "staged_modes", r"open_in: \[3\]: give less than the 3 contexts"),
        (gated(6, 2, common=False), TASK, "head_start", "gates.common: False: use true"),
        (
            gated(6, 2) | {"stages": [2, 2]},
            TASK,
            "staged_modes",
            r"stages: \[2, 2\]: leave them out, or let the common pathway be the first of two",
        ),
        (
            {"name": "gated", "hidden": [6], "gates": {"name": "per_example"}},
            TASK,
            "staged_modes",
            "gates of name contexts",
        ),
    ],
)
def test_closed_forms_are_refused_for_other_tasks(network, dataset, solution, message):
    with pytest.raises(ValidationError, match=f"'{solution}'.*{message}"):
        make(network, solution, dataset=dataset)


def test_starts_from_the_variance_need_normal_weights():
    with pytest.raises(ValidationError, match=r"init\.name: 'orthogonal': use normal"):
        make(gated(6, 2), "pathway_modes_mean", init={"name": "orthogonal"})


# Candidates ------------------------------------------------------------------------------------

RELU = {"name": "layered", "hidden": [24], "activation": "relu"}


def test_candidates_have_the_predicted_loss_of_gated_runs():
    networks = {"one": gated(6, 1), "two": gated(6, 2, common=True) | {"stages": [1, 3]}}
    ensemble = make(RELU, "candidate_modes", candidates=networks)
    samples, arrays = solve_ensemble(ensemble, record_steps(ensemble)[0])
    assert samples == 12
    for index, network in enumerate(networks.values()):
        alone = solved(make(network, "pathway_modes_mean"))["loss"][:, :, 0]
        np.testing.assert_array_equal(arrays["candidate_loss"][:, :, index], alone)


def test_messages_about_candidates_have_their_key():
    ensemble = make(RELU, "candidate_modes", candidates={"four": gated(6, 4)})
    assert ": candidates.four.gates.open_in: 4: the dataset has 3" in str(ensemble.unfit())
    with pytest.raises(ValidationError, match=r"candidates: \{\}: give gated networks"):
        make(RELU, "candidate_modes")
    averaged = gated(1, 2) | {"readout": "mean"}
    with pytest.raises(ValidationError, match=r"candidates\.one\.readout: 'mean': use trained"):
        make(RELU, "candidate_modes", candidates={"one": averaged})
