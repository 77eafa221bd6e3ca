"""Baselines that theory is compared with, against training and against closed forms."""

import numpy as np
import pytest

from builders import build_cell
from neuralrace.results.axes import record_steps
from neuralrace.results.theory import solve_ensemble
from neuralrace.training.trainer import train

SPEC = {
    "dataset": {
        "name": "gaussian_mixture",
        "components": 2,
        "samples_per_component": 6,
        "inputs": 3,
        "outputs": 2,
        "whiten": False,
    },
    "network": {"name": "layered", "hidden": [4], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.2, 0.5],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 200},
    "record": {"every": 20},
}
GAUSSIAN = {"name": "nonlinear_gaussian", "inputs": 6, "xi": [1.0, 0.4], "samples": 60}


def make(*solutions, **changes):
    return build_cell(SPEC, solutions=solutions, **changes)


def solved(ensemble):
    return solve_ensemble(ensemble, record_steps(ensemble)[0])[1]


# The linearised network --------------------------------------------------------------------------

WIDE = 2000
XOR_PATHWAYS = {"name": "gated", "hidden": [WIDE], "gates": {"name": "per_example"}}
CONTEXTS = {
    "name": "graph",
    "nodes": {"x": 3, "h": WIDE, "l": 1, "r": 1},
    "edges": [["x", "h"], ["h", "l"], ["h", "r"], ["x", "l"]],
    "gates": {"l": [1.0, 0.0] * 6, "x->l": [0.5] * 12},
}
ROUTING = {
    "name": "routing",
    "hidden": [WIDE],
    "gates": {"name": "always_on"},
    "pairs": {"name": "band", "partners": 3},
}
WIDE_NETWORKS = {
    **{
        f"{activation}, bias {bias}": {
            "network": {"name": "layered", "hidden": [WIDE], "activation": activation, "bias": bias}
        }
        for activation in ("linear", "relu", "tanh")
        for bias in (False, True)
    },
    "fixed readout": {
        "network": {"name": "layered", "hidden": [WIDE], "activation": "erf", "readout": "fixed"}
    },
    "pathways": {"dataset": {"name": "xor"}, "network": XOR_PATHWAYS},
    "graph": {"network": CONTEXTS},
    "routing": {"dataset": {"name": "routing", "count": 4}, "network": ROUTING},
}


def narrowed(network, share):
    """The network with hidden layers of a share of their width."""
    if network["name"] == "graph":
        return network | {"nodes": network["nodes"] | {"h": WIDE // share}}
    return network | {"hidden": [units // share for units in network["hidden"]]}


@pytest.mark.parametrize("name", WIDE_NETWORKS)
def test_linearised_network_is_the_limit_of_wide_networks(name):
    """The distance from training falls at least as one over the root of the width."""

    def distance(share):
        changes = WIDE_NETWORKS[name]
        network = narrowed(changes["network"], share)
        routed, linear = name == "routing", name == "linear, bias False"
        # gated networks come so close that larger steps would be the larger part of the distance
        steps = 4000 if name in ("pathways", "graph") else 1000
        ensemble = make(
            "linearised",
            **changes | {"network": network},
            init_scales=[1.0],
            training={"learning_rate": 8 / steps * share / WIDE, "steps": steps},
            record={
                "every": steps // 10,
                "observables": ["mode_strength"] * linear + ["pair_error"] * routed,
            },
        )
        assert ensemble.unfit() is None
        theory, trained = solved(ensemble), train(ensemble).variables
        solution, loss = theory["loss"][:, :, 0], trained["loss"]
        np.testing.assert_allclose(solution[..., 0], loss[..., 0], rtol=1e-9)
        if linear:
            modes = theory["mode_strength"][:, :, 0] - trained["mode_strength"]
            scale = np.abs(trained["mode_strength"]).max()
            np.testing.assert_allclose(modes, 0, atol=0.02 * scale * np.sqrt(share))
        if routed:
            untrained = theory["untrained_error"][:, :, 0], trained["untrained_error"]
            np.testing.assert_allclose(*untrained, rtol=0.02 * np.sqrt(share))
            np.testing.assert_allclose(*(e[..., 0] for e in untrained), rtol=1e-9)
        assert (loss[..., -1] < 0.6 * loss[..., 0]).all()  # something was learned
        return np.abs((solution - loss) / loss[..., :1]).max()

    narrow, wide = distance(16), distance(1)
    assert wide < 0.002
    assert wide < 0.35 * narrow


def test_linearised_network_is_exact_for_one_layer():
    network = {"name": "layered", "hidden": []}
    theory = solved(make("linearised", "flow", network=network))
    for variable in ("loss", "mode_strength"):
        linearised, flow = np.moveaxis(theory[variable], 2, 0)
        np.testing.assert_allclose(linearised, flow, rtol=1e-9, atol=1e-10)


HALF_SPACES = {"name": "half_space", "pathways": 3}


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("frozen_gates", {"name": "gated", "hidden": [1], "gates": HALF_SPACES}),
        ("initial_gates", {"name": "layered", "hidden": [4], "activation": "relu"}),
    ],
)
def test_linearised_network_keeps_gates_with_mean_readout(name, network):
    """One unit per gate is linear in its weights, and so equals the closed form of frozen gates."""
    ensemble = make("linearised", name, dataset=GAUSSIAN, network=network | {"readout": "mean"})
    theory = solved(ensemble)
    for variable in ("loss", "receptive_fields"):
        linearised, frozen = np.moveaxis(theory[variable], 2, 0)
        np.testing.assert_allclose(linearised, frozen, rtol=1e-9, atol=1e-12)


def test_large_kernels_are_refused():
    dataset = SPEC["dataset"] | {"samples_per_component": 501}
    assert "1002 samples of 2 outputs" in str(make("linearised", dataset=dataset).unfit())
    routing = {"dataset": {"name": "routing", "count": 10}, "network": ROUTING}
    assert make("linearised", **routing).unfit() is None
    pairs = {"network": ROUTING | {"pairs": {"name": "all"}}}
    assert "400 samples of 7 outputs" in str(make("linearised", **routing | pairs).unfit())


# Gradient flow of ReLU networks ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "dataset", "rate"),
    [
        ({"hidden": [6]}, SPEC["dataset"], 0.4),
        ({"hidden": [5, 4]}, SPEC["dataset"], 0.4),
        ({"hidden": [4], "readout": "mean"}, GAUSSIAN, 4.0),
    ],
    ids=["one hidden layer", "two hidden layers", "mean readout"],
)
def test_training_of_relu_networks_approaches_their_flow_with_smaller_steps(network, dataset, rate):
    """Where gates change, the distance falls with the step, but not in strict proportion to it."""
    mean = network.get("readout") == "mean"

    def distances(refined):
        ensemble = make(
            "relu_flow",
            dataset=dataset,
            network=SPEC["network"] | network,
            training={"learning_rate": rate / refined, "steps": 20 * refined},
            record={"every": refined, "observables": ["layer_norm", "weights"]},
        )
        theory, trained = solved(ensemble), train(ensemble).variables
        assert ("receptive_fields" in theory) == mean
        pairs = [(theory[name][:, :, 0], trained[name]) for name in ("loss", "layer_norm")]
        if mean:
            fields = trained["weight_1"][:, :, -1]
            pairs.append((theory["receptive_fields"][:, :, 0], fields))
        return np.array([np.abs(one - other).max() / other.max() for one, other in pairs])

    coarse, fine = distances(16), distances(128)
    assert (fine < 5e-3).all()
    assert (fine < coarse / 2).all()
