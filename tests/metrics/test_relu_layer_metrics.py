"""Metrics of layers and gate patterns of ReLU networks, against sums over units and samples."""

import re
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from networks_in_memory import constant_networks, random_networks
from weight_paths import arbitrary_path, frobenius, linear_cell, observe

from builders import (
    RELU,
    assert_close,
    cell_with_requirements,
    metrics_of,
    trained_trajectory,
)

CONTEXTUAL = RELU | {"dataset": {"name": "contextual", "contexts": 2, "objects": 2}}
relu_cell = partial(cell_with_requirements, base=CONTEXTUAL)


# Linear layers -----------------------------------------------------------------------------------

DEEP = {"network": {"name": "layered", "hidden": [5, 4, 3], "activation": "relu"}}
SHAPES = [(5, 4), (4, 5), (3, 4), (9, 3)]


def forward(weights, x, linear=None):
    """Outputs of one network for one sample."""
    for layer, weight in enumerate(weights, start=1):
        x = weight @ x
        if layer not in (linear, len(weights)):
            x = np.where(x > 0, x, 0)
    return x


def summed_error(cell, weights, linear=None):
    """Summed error of one network over all samples."""
    data = cell.dataset.load()
    total = 0.0
    for x, y in zip(data.x, data.y, strict=True):
        out = forward(weights, x, linear)
        if cell.training.loss.name == "squared_error":
            total += np.sum((y - out) ** 2)
        else:
            total -= np.sum(y * np.log(np.exp(out) / np.exp(out).sum()))
    return total


CLASSES = {
    "dataset": {
        "name": "table",
        "x": np.random.default_rng(1).normal(size=(5, 4)).tolist(),
        "y": np.eye(9)[[0, 1, 2, 1, 0]].tolist(),
    },
    "training": CONTEXTUAL["training"]
    | {"loss": {"name": "cross_entropy", "normalisation": "mean"}},
}


@pytest.mark.parametrize("parts", [{}, CLASSES], ids=["squared error", "cross-entropy"])
def test_losses_without_the_nonlinearity_of_a_layer(parts):
    cell = relu_cell(["layer_linearity"], **DEEP | parts)
    outputs = cell.dataset.load().y.shape[1]
    weights = random_networks(cell, *SHAPES[:-1], (outputs, 3))
    metrics = metrics_of(cell, **weights)
    assert metrics["linearised_loss"].dims == ("init_scale", "seed", "hidden_layer")
    np.testing.assert_array_equal(metrics["hidden_layer"], [1, 2, 3])
    for ensemble in np.ndindex(2, 3):
        start, end = ([w[ensemble][at] for w in weights.values()] for at in (0, -1))
        initial = summed_error(cell, start)
        share = summed_error(cell, end) / initial
        assert_close(metrics["final_loss_share"][ensemble], share, rtol=1e-12)
        for layer in (1, 2, 3):
            expected = summed_error(cell, end, layer) / initial
            linearised = metrics["linearised_loss"].sel(hidden_layer=layer)[ensemble]
            assert_close(linearised, expected, rtol=1e-12)


def test_layer_that_is_always_open_is_linear():
    """One-hot inputs under positive weights open every unit; the next layer has closed ones."""
    cell = relu_cell(["layer_linearity"], **DEEP)
    weights = random_networks(cell, *SHAPES)
    weights["weight_1"] = np.abs(weights["weight_1"])
    metrics = metrics_of(cell, **weights)
    linearised, final = metrics["linearised_loss"], metrics["final_loss_share"]
    np.testing.assert_array_equal(linearised.sel(hidden_layer=1), final)
    assert (abs(linearised.sel(hidden_layer=[2, 3]) / final - 1) > 1e-3).any("hidden_layer").all()


def test_final_loss_share_agrees_with_training():
    cell = relu_cell(
        ["layer_linearity"],
        **DEEP | {"network": DEEP["network"] | {"hidden": [20, 20, 20]}},
        init={"name": "glorot"},
        init_scales=[1.0],
        seeds=2,
        training={"learning_rate": 0.01, "steps": 100, "loss": {"normalisation": "half_sum"}},
    )
    trajectory = trained_trajectory(cell)
    loss = trajectory["loss"]
    assert (loss[..., -1] < 0.9 * loss[..., 0]).all()
    metrics = metrics_of(cell, trajectory)
    assert_close(metrics["final_loss_share"], (loss[..., -1] / loss[..., 0]).values, rtol=1e-10)


# Linearisation -----------------------------------------------------------------------------------


def test_linearisation_sample_by_sample():
    cell = linear_cell(
        ["linearisation"],
        dataset={
            "name": "gaussian_mixture",
            "components": 2,
            "samples_per_component": 6,
            "inputs": 3,
            "outputs": 2,
        },
        network={"name": "layered", "hidden": [4, 3], "activation": "relu"},
        init_scales=[1.0],
        record={"every": 100, "snapshots": 2},
    )
    path = arbitrary_path(cell)
    metrics = metrics_of(cell, observe(cell, path)).isel(init_scale=0)
    data = cell.dataset.load()
    for seed in range(2):
        worst, means = np.zeros(2), np.zeros((3, 3))
        for snapshot in range(3):
            weights = [w[0, seed, snapshot] for w in path]
            left, right, closed = [[], []], [[], []], [[], []]
            for x, y in zip(data.x, data.y, strict=True):
                hidden, slopes = [x], []
                for w in weights[:-1]:
                    slopes.append((w @ hidden[-1] > 0).astype(float))
                    hidden.append(slopes[-1] * (w @ hidden[-1]))
                error = y - weights[-1] @ hidden[-1]
                rates = [np.outer(error, hidden[-1])]
                for layer in (1, 0):
                    error = slopes[layer] * (weights[layer + 1].T @ error)
                    rates.insert(0, np.outer(error, hidden[layer]))
                gates = [*slopes, np.ones(2)]
                for k in range(2):
                    grown = weights[k + 1].T @ np.diag(gates[k + 1]) @ rates[k + 1]
                    below = rates[k] @ weights[k].T
                    gate = np.diag(gates[k])
                    left[k].append(grown + grown.T)
                    right[k].append(gate @ (below + below.T) @ gate)
                    closed[k].append(gates[k])
            for k in range(2):
                off = frobenius([np.array(left[k]) - np.array(right[k])])[:, 0]
                scale = frobenius([np.array(left[k])])[:, 0] + frobenius([np.array(right[k])])[:, 0]
                worst[k] = max(worst[k], off.max() / scale.max())
                lost = (np.mean(closed[k], axis=0) - 1)[:, None] * weights[k]
                means[snapshot, k] = np.linalg.norm(lost) / np.linalg.norm(weights[k])
        ensemble = metrics.isel(seed=seed)
        assert_close(ensemble["sample_residual_as_written"], worst)
        assert_close(ensemble["averaging_residual"], means.mean(axis=0), atol=1e-12)
        assert (worst > 0.01).all()
    for name in ("sample_residual_sandwiched", "sample_residual_trace"):
        assert (metrics[name] < 1e-12).all()


@pytest.mark.parametrize("bias", [False, True])
def test_gate_sharing_pair_by_pair(bias):
    labels = np.arange(9) % 3
    x = np.random.default_rng(5).normal(size=(9, 4))
    cell = linear_cell(
        ["gate_sharing"],
        dataset={"name": "table", "x": x.tolist(), "y": np.eye(3)[labels].tolist()},
        network={"name": "layered", "hidden": [3, 2], "activation": "relu", "bias": bias},
        init_scales=[1.0],
    )
    path = arbitrary_path(cell)
    trajectory = observe(cell, path)
    offsets = [np.zeros(n) for n in (3, 2, 3)]
    if bias:
        rng = np.random.default_rng(6)
        offsets = [rng.normal(size=n) for n in (3, 2, 3)]
        for number, b in enumerate(offsets, start=1):
            like = trajectory[f"weight_{number}"].isel({f"unit_{number - 1}": 0}, drop=True)
            trajectory[f"bias_{number}"] = like.copy(data=np.broadcast_to(b, like.shape))
    metrics = metrics_of(cell, trajectory).isel(init_scale=0)
    trajectory["diverged_at"][0, 1] = 7
    assert metrics_of(cell, trajectory)["final_same_label_gate_identity"].isnull().any("seed").all()
    for seed in range(2):
        for when, at in (("initial", 0), ("final", -1)):
            hidden = x
            for layer in range(2):
                before = hidden @ path[layer][0, seed, at].T + offsets[layer]
                hidden = np.maximum(before, 0)
                same, other = [], []
                for i, j in combinations(range(9), 2):
                    equal = (before[i] > 0) == (before[j] > 0)
                    (same if labels[i] == labels[j] else other).append(equal)
                ensemble = metrics.isel(seed=seed, hidden_layer=layer)
                assert_close(
                    ensemble[f"{when}_same_label_gate_difference"], 1 - np.mean(same), atol=1e-12
                )
                assert_close(ensemble[f"{when}_other_label_gate_difference"], 1 - np.mean(other))
                assert_close(
                    ensemble[f"{when}_same_label_gate_identity"], np.mean(np.all(same, axis=1))
                )


# Gate patterns -----------------------------------------------------------------------------------


def test_patterns_of_two_objects_in_two_contexts():
    """Compared with random units, and with the lemma for each pattern.

    Samples are objects 1 and 2 in context 1, then in context 2.
    """
    cell = relu_cell(["realisable_patterns"])
    trajectory = constant_networks(cell, np.zeros((6, 4)), np.zeros((9, 6)))
    patterns = metrics_of(cell, trajectory)["patterns"]
    assert patterns.dims == ("pattern_kind",)
    x = cell.dataset.load().x
    normals = np.random.default_rng(0).normal(size=(5000, 4))
    observed = {tuple(row) for row in (normals @ x.T > 0)}
    allowed = {(0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 0, 0), (0, 0, 1, 1)}
    allowed |= {tuple(row) for row in np.eye(4, dtype=int)}
    allowed |= {(1, 0, 1, 0), (0, 1, 0, 1)}  # by the object alone
    never = {(1, 0, 0, 1), (0, 1, 1, 0)}  # the sums over both diagonals are the same
    assert {p for p in product((0, 1), repeat=4) if p not in observed} == never
    assert (1, 0, 1, 1) in observed
    assert_close(patterns, [16, len(observed), len(observed - allowed)])
    assert patterns.sel(pattern_kind="beyond the lemma") == 4


def metrics_of_units(units):
    """Metrics of one network, (outgoing, incoming) weights unit by unit."""
    cell = relu_cell(["realisable_patterns"])
    readout, encoder = zip(*units, strict=True)
    weights = np.array(encoder, dtype=float), np.outer(np.ones(9), readout)
    return metrics_of(cell, constant_networks(cell, *weights)).isel(init_scale=0, seed=0)


def test_patterns_of_hand_made_units():
    metrics = metrics_of_units(
        [
            (1.0, [1, 1, 0, 0]),  # open everywhere
            (2.0, [1, 2, 0, 0]),  # the same pattern
            (1.0, [0, 0, 1, -1]),  # by context
            (1.0, [1, -1, 0.5, -1]),  # on object 1 in context 1; exactly 0 in context 2
            (1.0, [1, -1, 0, 0]),  # on object 1
            (1.0, [0.5, -0.5, 1, 0]),  # on all but object 2 in context 2: beyond
            (9.0, [-1, -1, -1, -1]),  # closed
        ]
    )
    assert_close(metrics["shown_patterns"], 5.0)
    assert_close(metrics["shown_beyond_lemma"], 1.0)
    # the targets of every sample add up to 4
    carried = 4 * np.array([4, 2 * 6, 2, 1.5, 2, 1.5 + 0.5 + 0.5])
    assert_close(metrics["share_beyond_lemma"], carried[-1] / carried.sum())


def test_patterns_run_by_run():
    cell = relu_cell(["realisable_patterns"])
    weights = random_networks(cell, (6, 4), (9, 6))
    metrics = metrics_of(cell, **weights)
    data = cell.dataset.load()
    for ensemble in np.ndindex(2, 3):
        patterns, carried = [], []
        for w, v in zip(
            weights["weight_1"][ensemble][-1], weights["weight_2"][ensemble][-1].T, strict=True
        ):
            h = np.maximum(data.x @ w, 0)
            patterns.append(tuple(h > 0))
            carried.append(sum(h[n] * v @ data.y[n] for n in range(4)))
        beyond = [
            not (p[0] == p[1] and p[2] == p[3])
            and not (p[0] == p[2] and p[1] == p[3])
            and sum(p) > 1
            for p in patterns
        ]
        assert metrics["shown_patterns"][ensemble] == len({p for p in patterns if any(p)})
        assert metrics["shown_beyond_lemma"][ensemble] == len(
            {p for p, out in zip(patterns, beyond, strict=True) if out}
        )
        expected = np.sum(np.array(carried)[beyond]) / np.sum(carried)
        assert_close(metrics["share_beyond_lemma"][ensemble], expected)


def test_patterns_of_a_diverged_run_are_undefined():
    cell = relu_cell(["realisable_patterns"])
    weights = random_networks(cell, (6, 4), (9, 6))
    weights["weight_2"][1, 2, -1] = np.nan
    metrics = metrics_of(cell, **weights)
    for name in ("shown_patterns", "shown_beyond_lemma", "share_beyond_lemma"):
        undefined = metrics[name].isnull()
        assert undefined.sum() == 1
        assert undefined[1, 2]
    assert metrics["patterns"].notnull().all()


def test_patterns_need_few_samples_with_two_input_groups():
    many = {"name": "contextual", "contexts": 4, "objects": 4}
    cell = relu_cell(["realisable_patterns"], dataset=many)
    assert re.search(r"has 16 samples, and at most 12 .*; use fewer objects", str(cell.unfit()))
    table = {"name": "table", "x": [[1, 0], [0, 1]], "y": [[1], [0]], "contexts": [0, 1]}
    cell = relu_cell(["realisable_patterns"], dataset=table)
    assert "its inputs come in no two groups" in str(cell.unfit())
