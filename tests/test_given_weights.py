"""Initial weights given in Python, as PyTorch, Flax and Keras keep them."""

import numpy as np
import pytest
import xarray as xr

from neuralrace import simulate, specify
from neuralrace.errors import UserError
from neuralrace.results.cells import cells_of
from neuralrace.theory.solutions.problem import Problem

RNG = np.random.default_rng(1)
X = RNG.normal(size=(20, 5))
Y = X @ RNG.normal(size=(5, 3))
W = [RNG.normal(size=(4, 5)) / 5, RNG.normal(size=(4, 4)) / 4, RNG.normal(size=(3, 4)) / 4]
ZEROS = [np.zeros(4), np.zeros(4), np.zeros(3)]
FEW = {"learning_rate": 0.05, "steps": 8, "records": 4}
KERAS = [array for w, b in zip(W, ZEROS, strict=True) for array in (w.T, b)]
FLAX = {
    f"Dense_{n}": {"kernel": w.T, "bias": b} for n, (w, b) in enumerate(zip(W, ZEROS, strict=True))
}
TORCH = {
    f"{2 * n}.{kind}": array
    for n, pair in enumerate(zip(W, ZEROS, strict=True))
    for kind, array in zip(("weight", "bias"), pair, strict=True)
}


def test_training_follows_gradient_descent_from_these_weights(tmp_path):
    tree = simulate(
        X, Y, init=W, observables=["weights"], snapshots=4, theory=None, progress=False, **FEW
    )
    weights = [w.copy() for w in W]
    for snapshot in range(5):
        for number, w in enumerate(weights, start=1):
            recorded = tree["trajectory"][f"weight_{number}"].isel(
                init_scale=0, seed=0, snapshot=snapshot
            )
            np.testing.assert_allclose(recorded, w, rtol=1e-10)
        for _ in range(2):
            first, second, third = weights
            slope = (third @ second @ first @ X.T - Y.T) @ X / len(X)
            slopes = [
                second.T @ third.T @ slope,
                third.T @ slope @ first.T,
                slope @ (second @ first).T,
            ]
            weights = [w - 0.05 * s for w, s in zip(weights, slopes, strict=True)]
    assert tree["trajectory"].sizes["seed"] == 1
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        np.testing.assert_array_equal(again["data"]["weight_2"].values, W[1])
        assert cells_of(again)[0].spec.network.hidden == (4, 4)


@pytest.mark.parametrize("init", [TORCH, FLAX, {"params": FLAX}, KERAS, [w.T for w in W]])
def test_other_libraries_give_the_same_weights(init):
    expected, cell = specify(X, Y, init=W, **FEW), specify(X, Y, init=init, **FEW)
    assert cell.init == expected.init
    assert cell.init_scales == (1.0,)
    assert cell.network.hidden == (4, 4)


def test_layers_that_jax_sorts_as_text_are_sorted_by_number():
    layers = [n * np.eye(2) for n in range(1, 12)]
    tree = {f"Dense_{n}": {"kernel": w} for n, w in enumerate(layers)}
    x = np.eye(2)
    cell = specify(x, x, init=dict(sorted(tree.items())), **FEW)
    assert cell.init == specify(x, x, init=layers, **FEW).init


def test_edges_of_a_gated_network_are_named():
    gates = RNG.integers(2, size=(2, 20)) | [[1], [0]]
    drawn = specify(X, Y, hidden=[4], gates=gates, init_scales=[1.0], **FEW)
    graph = drawn.network.wiring(drawn.dataset.load()).architecture
    arrays = {
        graph.edge_name(number): RNG.normal(size=(graph.nodes[end], graph.nodes[start]))
        for number, (start, end) in enumerate(graph.edges)
    }
    cell = specify(X, Y, hidden=[4], gates=gates, init=arrays, **FEW)
    for given, weights in zip(arrays.values(), Problem(cell, np.arange(1)).weights, strict=True):
        np.testing.assert_array_equal(weights[0, 0], given)


EYE = np.eye(3)
REFUSED = {
    "three axes": (
        {"init": [np.stack([w, w]) for w in W]},
        r"init.0: has three axes, \(2, 4, 5\); .*W\[-1\]",
    ),
    "a bias": (
        {"init": {**TORCH, "2.bias": np.ones(4)}},
        "init.2.bias: is a bias that is not zero",
    ),
    "no layers": (
        {"init": [W[0], W[2][:, :3]]},
        r"init: has the shapes 0 \(4, 5\), 1 \(3, 3\), .* from 5 inputs to 3 outputs; ",
    ),
    "one array": ({"init": W[0]}, r"init: is one array of shape \(4, 5\)"),
    "not finite": ({"init": [W[0], W[1], np.inf * W[2]]}, "init.2: has numbers that are not"),
    "seeds": ({"init": W, "seeds": 3}, "seeds: 3: init gives the weights of one run"),
    "hidden": ({"init": W, "hidden": [8]}, r"hidden: \[8\]: init has .* layers of 4, 4 units"),
    "text": ({"init": ["normal", "normal"]}, "init.0: holds text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_weights_are_refused_by_name(case):
    options, message = REFUSED[case]
    with pytest.raises(UserError, match=f"^{message}"):
        specify(X, Y, **options, **FEW)


@pytest.mark.parametrize("init", [[EYE, np.zeros(3)] * 2, {"w1": EYE, "w2": EYE}])
def test_square_arrays_of_unknown_order_are_refused(init):
    with pytest.raises(UserError, match=r"^init: has square arrays, which may be \(out, in\) or"):
        specify(EYE, EYE, init=init, **FEW)
    assert specify(EYE, EYE, init={"a.weight": EYE, "b.weight": EYE}, **FEW).init.path
