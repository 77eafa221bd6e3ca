"""Training of gated networks, against gradient descent by hand on all samples."""

import numpy as np
import pytest

from neuralrace.networks.gates.wiring import routing
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.training.trainer import train

# Two orders of summation in double precision, over a few steps.
ROUNDING = {"rtol": 1e-11, "atol": 1e-12}
STEPS = 5
RUNS = [(0, 0), (0, 1), (1, 0), (1, 1)]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).tolist()


def training_of(**parts):
    return {"steps": STEPS} | parts


PARTS = {
    # several inputs and outputs, a shortcut, graded gates; a loss without effective datasets
    "graph": {
        "dataset": {
            "name": "table",
            "x": X,
            "y": np.eye(3)[[0, 1, 2, 1, 0, 2]].tolist(),
            "contexts": [0, 1, 2, 0, 1, 2],
        },
        "network": {
            "name": "graph",
            "nodes": {"a": 2, "b": 1, "h": 3, "y": 2, "z": 1},
            "edges": [["a", "h"], ["b", "h"], ["h", "y"], ["h", "z"], ["a", "z"]],
            "gates": {"a": [1, 1, 0], "b": [1, 0, 0.5], "h->z": [0.25, 0, 1]},
        },
        "training": training_of(
            learning_rate=0.3,
            optimiser={"name": "momentum", "momentum": 0.5},
            loss={"name": "cross_entropy", "normalisation": "mean"},
        ),
    },
    "gated": {
        "dataset": {"name": "table", "x": X, "y": RNG.normal(size=(6, 2)).tolist()},
        "network": {
            "name": "gated",
            "hidden": [3],
            "gates": {"name": "half_space", "pathways": 3, "seed": 2},
        },
        "training": training_of(learning_rate=0.1),
    },
    # trained pairs differ between seeds
    "routing": {
        "dataset": {"name": "routing", "count": 4},
        "network": {
            "name": "routing",
            "hidden": [3, 2],
            "gates": {"name": "parallel", "dedicated": 2},
            "pairs": {"name": "random_regular", "partners": 2},
        },
        "training": training_of(learning_rate=0.001, loss={"normalisation": "sum"}),
    },
}
OBSERVED = {
    "graph": ["outputs"],
    "gated": ["outputs", "imbalance"],
    "routing": ["pair_outputs", "imbalance"],
}


def recorded(*observables):
    return {"record": {"every": 1, "snapshots": STEPS, "observables": observables}}


@pytest.fixture(scope="module")
def trained(make_run):
    """The ensemble and trajectory of each kind of network."""
    runs = {kind: make_run(**PARTS[kind], **recorded(*OBSERVED[kind])) for kind in PARTS}
    return {kind: (ensemble, train(ensemble)) for kind, ensemble in runs.items()}


# By hand ---------------------------------------------------------------------------------------


def wiring_of(ensemble, seed):
    if ensemble.network.name == "routing":
        return ensemble.network.wiring(ensemble.dataset.domains(), seed)
    return ensemble.network.wiring(ensemble.dataset.load())


def forward(wiring, weights):
    """Signals by node; nodes are listed such that edges point onwards."""
    graph, gates, signals = wiring.architecture, wiring.gates, {}
    for name in graph.nodes:
        total = 0.0
        if name in graph.inputs:
            total = wiring.data.x[:, graph.columns(name)]
        for (source, target), w in zip(graph.edges, weights, strict=True):
            if target == name:
                gate = gates.get(f"{source}->{target}", np.ones(len(wiring.data.x)))
                total = total + gate[:, None] * (signals[source] @ w.T)
        signals[name] = gates.get(name, np.ones(len(wiring.data.x)))[:, None] * total
    return signals


def outputs(wiring, weights):
    signals = forward(wiring, weights)
    return np.hstack([signals[name] for name in wiring.architecture.outputs])


def loss_and_slope(ensemble, out, y):
    """Loss, and its derivative by the outputs of every sample."""
    kind, samples = ensemble.training.loss, len(y)
    if kind.name == "cross_entropy":
        share = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
        return -np.sum(y * np.log(share)) / samples, (share - y) / samples
    factor = {"half_mean": 0.5 / samples, "sum": 1.0}[kind.normalisation]
    return factor * np.sum((out - y) ** 2), 2 * factor * (out - y)


def gradients(ensemble, wiring, weights):
    graph, gates, one = wiring.architecture, wiring.gates, np.ones(len(wiring.data.x))
    signals = forward(wiring, weights)
    out = np.hstack([signals[name] for name in graph.outputs])
    loss, slope = loss_and_slope(ensemble, out, wiring.data.y)
    back = {name: np.zeros_like(signal) for name, signal in signals.items()}
    for name in graph.outputs:
        back[name] = slope[:, graph.columns(name)]
    slopes = [np.zeros_like(w) for w in weights]
    for name in reversed(list(graph.nodes)):
        arriving = gates.get(name, one)[:, None] * back[name]
        for number, (source, target) in enumerate(graph.edges):
            if target == name:
                through = gates.get(f"{source}->{target}", one)[:, None] * arriving
                slopes[number] = through.T @ signals[source]
                back[source] = back[source] + through @ weights[number]
    return loss, slopes


def descended(ensemble, member):
    """Weights and loss at every step of one run."""
    scale, seed = member
    wiring = wiring_of(ensemble, seed)
    start = initial_edges(
        ensemble.init, wiring.architecture, dict, ensemble.init_scales, range(ensemble.seeds)
    )
    weights = [w[scale, seed] for w in start]
    speed = [0 * w for w in weights]
    kept = getattr(ensemble.training.optimiser, "momentum", 0)
    history, losses = [], []
    for _ in range(STEPS + 1):
        loss, slopes = gradients(ensemble, wiring, weights)
        history.append(weights)
        losses.append(loss)
        speed = [kept * v + g for v, g in zip(speed, slopes, strict=True)]
        weights = [
            w - ensemble.training.learning_rate * v for w, v in zip(weights, speed, strict=True)
        ]
    return history, losses


@pytest.mark.parametrize("kind", ["graph", "gated"])
@pytest.mark.parametrize("member", RUNS)
def test_samples_are_learned_as_by_hand(trained, kind, member):
    ensemble, trajectory = trained[kind]
    history, losses = descended(ensemble, member)
    np.testing.assert_allclose(trajectory.variables["loss"][member], losses, **ROUNDING)
    assert losses[-1] < losses[0] - 1e-3
    recorded_outputs = trajectory.variables["outputs"][member]
    wiring = wiring_of(ensemble, member[1])
    for step, weights in enumerate(history):
        np.testing.assert_allclose(recorded_outputs[step], outputs(wiring, weights), **ROUNDING)


@pytest.mark.parametrize("member", RUNS)
def test_pairs_are_learned_as_by_hand(trained, member):
    """Outputs of trained and untrained pairs."""
    ensemble, trajectory = trained["routing"]
    history, losses = descended(ensemble, member)
    np.testing.assert_allclose(trajectory.variables["loss"][member], losses, **ROUNDING)
    assert losses[-1] < losses[0] - 1e-3
    domains = ensemble.dataset.domains()
    count, items, _ = domains.inputs.shape
    everything = routing(
        domains, ensemble.network.families(domains.count), np.ones((count, count), bool)
    )
    for step, weights in enumerate(history):
        answers = outputs(everything, weights).reshape(count, count, items, count, -1)
        for i in range(count):
            for j in range(count):
                pair = trajectory.variables["pair_outputs"][member][step, i, j]
                np.testing.assert_allclose(pair, answers[i, j, :, j], **ROUNDING)


def test_trained_pairs_depend_on_the_seed_alone(trained):
    ensemble, trajectory = trained["routing"]
    recorded = trajectory.variables["trained_pair"]
    for scale, seed in RUNS:
        mask = ensemble.network.mask(ensemble.dataset.count, seed)
        for snapshot in recorded[scale, seed]:
            np.testing.assert_array_equal(snapshot, mask)
    assert not np.array_equal(recorded[0, 0], recorded[0, 1])


# Stages ----------------------------------------------------------------------------------------

STAGED = {
    "squared error": {
        "dataset": PARTS["gated"]["dataset"],
        "training": training_of(learning_rate=0.1),
    },
    "cross-entropy": {
        "dataset": {"name": "table", "x": X, "y": np.eye(3)[[0, 1, 2, 1, 0, 2]].tolist()},
        "training": training_of(
            learning_rate=0.3,
            optimiser={"name": "momentum", "momentum": 0.5},
            loss={"name": "cross_entropy", "normalisation": "mean"},
        ),
    },
}


def in_stages(make_run, loss, stages):
    """A network of four pathways of unequal width, and its trajectory."""
    network = {
        "name": "gated",
        "hidden": [3, 2],
        "widths": [2, 1, 1, 3],
        "gates": {"name": "half_space", "pathways": 4, "seed": 2},
        "stages": stages,
    }
    ensemble = make_run(network=network, **STAGED[loss], **recorded("outputs"))
    return ensemble, train(ensemble).variables


def descended_in_stages(ensemble, member):
    """Outputs and joint loss at every step of one run; a pathway never sees those of later stages.

    Written out pathway by pathway: nothing is a derivative of a sum over pathways.
    """
    scale, seed = member
    wiring, training = wiring_of(ensemble, seed), ensemble.training
    graph, y = wiring.architecture, wiring.data.y
    start = initial_edges(ensemble.init, graph, dict, ensemble.init_scales, range(ensemble.seeds))
    chains = [[start[edge][scale, seed] for edge in path.edges] for path in graph.pathways]
    inputs = np.split(wiring.gated_inputs, len(chains), axis=1)
    stage_of = [n for n, size in enumerate(ensemble.network.stages) for _ in range(size)]
    speeds = [[0 * w for w in chain] for chain in chains]
    kept = getattr(training.optimiser, "momentum", 0)
    outputs, losses = [], []
    for _ in range(STEPS + 1):
        answers = [x @ (c @ b @ a).T for x, (a, b, c) in zip(inputs, chains, strict=True)]
        outputs.append(sum(answers))
        losses.append(loss_and_slope(ensemble, outputs[-1], y)[0])
        for number, (x, (a, b, c)) in enumerate(zip(inputs, chains, strict=True)):
            seen = [
                answer
                for answer, stage in zip(answers, stage_of, strict=True)
                if stage <= stage_of[number]
            ]
            _, slope = loss_and_slope(ensemble, sum(seen), y)
            error = slope.T @ x  # (output, input)
            slopes = [(c @ b).T @ error, c.T @ error @ a.T, error @ (b @ a).T]
            speeds[number] = [kept * v + g for v, g in zip(speeds[number], slopes, strict=True)]
        chains = [
            [w - training.learning_rate * v for w, v in zip(chain, speed, strict=True)]
            for chain, speed in zip(chains, speeds, strict=True)
        ]
    return outputs, losses


@pytest.mark.parametrize("loss", STAGED)
@pytest.mark.parametrize("stages", [[1, 3], [1, 1, 1, 1], [3, 1]], ids=str)
def test_stages_descend_as_by_hand_and_record_the_joint_loss(make_run, loss, stages):
    ensemble, trajectory = in_stages(make_run, loss, stages)
    for member in RUNS:
        answers, losses = descended_in_stages(ensemble, member)
        np.testing.assert_allclose(trajectory["outputs"][member], answers, **ROUNDING)
        np.testing.assert_allclose(trajectory["loss"][member], losses, **ROUNDING)
    _, joint = in_stages(make_run, loss, None)
    np.testing.assert_allclose(trajectory["loss"][:, :, 0], joint["loss"][:, :, 0], **ROUNDING)
    assert np.abs(trajectory["loss"] - joint["loss"])[:, :, -1].min() > 1e-6


def test_first_stage_learns_as_if_it_were_alone(make_run):
    """A pathway that is open everywhere learns as the network of that pathway alone."""
    gates = {"name": "listed", "rows": [[1] * 6, [1, 0] * 3, [0, 1] * 3]}
    network = {"name": "gated", "hidden": [4], "gates": gates, "stages": [1, 2]}
    ensemble = make_run(network=network, **STAGED["squared error"], **recorded("pathway_maps"))
    maps = train(ensemble).variables["pathway_maps"]
    first = network | {"gates": gates | {"rows": [[1] * 6]}, "stages": None}
    alone = make_run(network=first, **STAGED["squared error"], **recorded("pathway_maps"))
    expected = train(alone).variables["pathway_maps"]
    np.testing.assert_allclose(maps[..., :1, :, :], expected, **ROUNDING)


# Parts, precision and step size ----------------------------------------------------------------


def test_seeds_trained_alone_agree_with_the_whole(trained, make_run):
    _, whole = trained["routing"]
    ensemble = make_run(**PARTS["routing"], **recorded("imbalance"))
    alone = {"init_scales": ensemble.init_scales[1:], "first_seed": 1, "seeds": 1}
    part = train(ensemble.model_copy(update=alone))
    assert part.samples == whole.samples == 4 * 2 * 4  # domains, partners, items
    for name, values in part.variables.items():
        np.testing.assert_allclose(values, whole.variables[name][1:, 1:], **ROUNDING)


def test_single_precision_agrees_to_its_rounding(trained, make_run):
    _, double = trained["gated"]
    single = train(make_run(**PARTS["gated"], **recorded("imbalance"), precision="float32"))
    for name, values in single.variables.items():
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, double.variables[name], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["gated", "routing"])
@pytest.mark.parametrize("member", RUNS)
def test_imbalance_drifts_with_the_square_of_the_step(trained, kind, member):
    """The flow conserves C = sum W^T W - sum W W^T; a step moves it by its square alone.

    One step W - eta G leaves no term of first order, so that C moves by eta^2 times the same
    expression in G.
    """
    ensemble, trajectory = trained[kind]
    history, _ = descended(ensemble, member)
    _, slopes = gradients(ensemble, wiring_of(ensemble, member[1]), history[0])
    graph = wiring_of(ensemble, member[1]).architecture
    junctions = [  # of a routing network, the first block is observed
        name for name in graph.hidden if kind == "gated" or "of family 1, block 1, 1" in name
    ]
    expected = [np.linalg.norm(imbalance(graph, slopes, name)) for name in junctions]
    moved = trajectory.variables["imbalance_drift"][member][1]
    square = ensemble.training.learning_rate**2
    assert min(expected) > 1e-3
    np.testing.assert_allclose(moved, square * np.array(expected), rtol=1e-6)
    norm = trajectory.variables["imbalance_norm"][member]
    for step, weights in enumerate(history):
        now = [np.linalg.norm(imbalance(graph, weights, name)) for name in junctions]
        np.testing.assert_allclose(norm[step], now, **ROUNDING)


def imbalance(graph, weights, name):
    outgoing = sum(w.T @ w for w, (a, _) in zip(weights, graph.edges, strict=True) if a == name)
    incoming = sum(w @ w.T for w, (_, b) in zip(weights, graph.edges, strict=True) if b == name)
    return outgoing - incoming


# Learned gates ---------------------------------------------------------------------------------


def test_learned_gates_are_the_relu_network_bit_by_bit(make_run):
    training = {"learning_rate": 0.1, "steps": STEPS}
    relu, learned = (
        train(make_run(network=network, training=training, **recorded("layer_norm")))
        for network in (
            {"name": "layered", "hidden": [4, 3], "activation": "relu"},
            {"name": "gated", "hidden": [4, 3], "gates": {"name": "learned"}},
        )
    )
    assert set(relu.variables) == set(learned.variables)
    for name, values in relu.variables.items():
        np.testing.assert_array_equal(learned.variables[name], values)
    assert np.ptp(relu.variables["loss"], axis=2).min() > 1e-3
