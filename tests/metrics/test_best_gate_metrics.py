"""Metrics of searched and shared gates, against least squares and descent by other routes."""

import re

import numpy as np
import pytest

from builders import assert_close, cell_with_requirements, for_all_runs, metrics_of, random_for_runs
from neuralrace.metrics.gates.best_gates import SOURCES
from neuralrace.metrics.gates.gating_loss import sampled

RING = {
    "dataset": {"name": "nonlinear_gaussian", "inputs": 6, "xi": [1.0, 0.4], "samples": 1000},
    "network": {"name": "layered", "hidden": [3], "activation": "relu", "readout": "mean"},
    "init": {"name": "normal"},
    "init_scales": [0.5],
    "seeds": 2,
    "training": {"learning_rate": 0.6, "steps": 60},
    "record": {"every": 30, "snapshots": 2, "observables": ["weights"]},
}
SPINS = RING | {
    "dataset": RING["dataset"] | {"inputs": 3, "marginal": {"name": "ising"}},
    "network": {
        "name": "gated",
        "hidden": [1],
        "readout": "mean",
        "gates": {"name": "half_space", "pathways": 2},
    },
    "record": {"every": 30},
}


@pytest.fixture(scope="module")
def relu():
    cell = cell_with_requirements(["gate_descent", "shared_gates"], base=RING)
    weights = random_for_runs(cell, 3, 3, 6) / 5
    return (
        cell,
        weights,
        metrics_of(cell, weight_1=weights, weight_2=for_all_runs(cell, np.ones((3, 1, 3)) / 3)),
    )


def residual(x, y, gates, fresh_x, fresh_y, fresh_gates):
    """Half the squared error on fresh samples of least squares on gated inputs."""
    gated, fresh = (
        np.concatenate([gate[:, None] * inputs for gate in all_gates], axis=1)
        for all_gates, inputs in ((gates, x), (fresh_gates, fresh_x))
    )
    weights = np.linalg.lstsq(gated, y)[0]
    return np.mean((fresh_y - fresh @ weights) ** 2) / 2


def test_losses_of_tables_are_those_of_their_best_gates():
    cell = cell_with_requirements(["gate_tables"], base=SPINS)
    metrics = metrics_of(cell, loss=np.ones((1, 2, 3)))
    excess = metrics["table_excess"]
    assert (excess.sel(gates_from="any") < 0.9 * excess.sel(gates_from="tilings")).all()
    assert (excess.sel(gates_from="any") <= excess.sel(gates_from="half-spaces")).all()
    for seed in range(2):
        data = sampled(cell, seed)
        y = data.y[:, 0]
        mean = np.array([y[(data.x == row).all(axis=1)].mean() for row in data.x])
        # the tilings of half-spaces are those by one normal, and so is the best tiling here
        losses = []
        for normal in np.random.default_rng(0).normal(size=(200, 3)):
            side = data.x @ normal > 0
            gates = np.stack([side, ~side])
            losses.append(residual(data.x, mean, gates, data.x, mean, gates))
        best = float(excess.sel(gates_from="half-spaces")[seed])
        assert best <= min(losses) + 1e-12
        tiling = metrics["table_diagonality"].sel(gates_from="tilings")
        assert_close(tiling, np.zeros(2), atol=1e-12)
        if best == pytest.approx(float(excess.sel(gates_from="tilings")[seed])):
            assert best == pytest.approx(min(losses))


def test_too_many_tables_are_refused():
    wide = SPINS | {"dataset": SPINS["dataset"] | {"inputs": 4}}
    cell = cell_with_requirements(["gate_tables"], base=wide)
    assert re.search(r"16 distinct inputs.* have 2\^32 tables", str(cell.unfit()))


def test_descended_gates_lose_less_than_their_starts(relu):
    cell, trained, metrics = relu
    loss = metrics["descended_loss"].isel(init_scale=0)
    random, descended = (
        loss.sel(gates_from=[f"{state} {kind}" for kind in ("half-spaces", "tiling")])
        for state in ("random", "descended")
    )
    assert (descended.mean("seed").values < random.mean("seed").values).all()
    tilings = metrics["descended_diagonality"].sel(gates_from=["random tiling", "descended tiling"])
    assert_close(tilings, np.zeros((1, 2, 2)), atol=1e-12)
    factor = cell.training.loss.factor(1000)
    for seed in range(2):
        weights = trained[0, seed, -1]
        data, fresh = sampled(cell, seed), sampled(cell, seed + 2)
        parts = [(each.x, each.y[:, 0], weights @ each.x.T > 0) for each in (data, fresh)]
        expected = factor * residual(*parts[0], *parts[1])
        assert float(loss.sel(gates_from=SOURCES[-1])[seed]) == pytest.approx(expected)


def test_shared_gates_are_solved_and_relu_networks_break_the_symmetry(relu):
    metrics = relu[-1]
    error = metrics["shared_gates_error"].isel(init_scale=0)
    assert (error.sel(refreshes=10) < 1e-12).all()
    assert (error.sel(refreshes=1) > 1e-3).all()
    assert (metrics["shifted_relu_error"] < 1e-12).all()
    assert (metrics["shared_gates_uneven"] < 1).all()
    assert (metrics["relu_uneven"] > metrics["shared_gates_uneven"]).all()


def test_units_that_do_not_divide_the_ring_are_refused():
    network = RING["network"] | {"hidden": [4]}
    with pytest.raises(ValueError, match="divides the 6 inputs"):
        cell_with_requirements(["shared_gates"], base=RING, network=network)
