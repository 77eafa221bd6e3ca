"""The loss on test samples, against gradient descent in NumPy."""

import json

import numpy as np
import pytest
import xarray as xr

from neuralrace import combine, simulate, specify
from neuralrace.config.load import read_plan
from neuralrace.datasets import file
from neuralrace.errors import UserError
from neuralrace.figures.plot import plot

RNG = np.random.default_rng(2)
X, T = RNG.normal(size=(12, 3)), RNG.normal(size=(7, 3))
MAP = RNG.normal(size=(2, 3))
Y, U = X @ MAP.T, T @ MAP.T + 0.1 * RNG.normal(size=(7, 2))
FEW = {"learning_rate": 0.1, "steps": 12, "records": 4, "seeds": 2, "init_scales": [0.3]}
SOLVED = {"theory": None, "progress": False}
CONTEXTS, OF_TEST = RNG.integers(2, size=12), RNG.integers(2, size=7)
TABLE = {
    "name": "table", "x": X, "y": Y, "contexts": CONTEXTS,
    "x_test": T, "y_test": U, "contexts_test": OF_TEST,
}  # fmt: skip
GATES = np.array([[1.0, 0.0], [0.2, 1.0]])
GRAPH = {
    "name": "graph",
    "nodes": {"in": 3, "a": 4, "b": 4, "out": 2},
    "edges": [["in", "a"], ["in", "b"], ["a", "out"], ["b", "out"]],
    "gates": {"a": GATES[0].tolist(), "b": GATES[1].tolist()},
}


def descend(weights, hidden, losses):
    """Gradient descent on `hidden(W1, x)` of two layers, with numerical gradients of the loss."""
    recorded = [[loss(*weights) for loss in losses]]
    for step in range(1, 13):
        slopes = []
        for number, w in enumerate(weights):
            slope = np.zeros_like(w)
            for at in np.ndindex(w.shape):
                shifted = [m.copy() for m in weights], [m.copy() for m in weights]
                shifted[0][number][at] += 1e-5
                shifted[1][number][at] -= 1e-5
                slope[at] = (losses[0](*shifted[0]) - losses[0](*shifted[1])) / 2e-5
            slopes.append(slope)
        weights = [w - 0.1 * slope for w, slope in zip(weights, slopes, strict=True)]
        if step % 3 == 0:
            recorded.append([loss(*weights) for loss in losses])
    return np.array(recorded).T


def squared(outputs, targets):
    return ((outputs - targets) ** 2).sum(axis=1).mean() / 2


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_layered_networks_follow_gradient_descent(activation):
    hidden = (lambda a: a) if activation == "linear" else (lambda a: np.maximum(a, 0))
    weights = [RNG.normal(size=(4, 3)) / 2, RNG.normal(size=(2, 4)) / 2]
    options = {**FEW, "seeds": 1, "init_scales": [1.0]}
    tree = simulate(
        X, Y, x_test=T, y_test=U, init=weights, activation=activation, **options, **SOLVED
    )
    losses = [
        lambda first, second, x=x, y=y: squared(hidden(x @ first.T) @ second.T, y)
        for x, y in ((X, Y), (T, U))
    ]
    expected = descend(weights, hidden, losses)
    recorded = tree["trajectory"].to_dataset().isel(init_scale=0, seed=0)
    np.testing.assert_allclose(recorded["loss"], expected[0], rtol=1e-6)
    np.testing.assert_allclose(recorded["test_loss"], expected[1], rtol=1e-6)
    share = f"{expected[1, -1] / expected[1, 0]:.2g}"
    assert tree.attrs["status"].endswith(f"; final test loss / initial test loss: {share}")
    figure = plot(tree)
    assert "test loss" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_graphs_follow_gradient_descent_with_gates_of_test_contexts():
    names = ["in->a", "in->b", "a->out", "b->out"]
    shapes = [(4, 3), (4, 3), (2, 4), (2, 4)]
    weights = [RNG.normal(size=shape) / 2 for shape in shapes]
    tree = simulate(
        TABLE, network=GRAPH, init=dict(zip(names, weights, strict=True)),
        **{**FEW, "seeds": 1, "init_scales": [1.0]}, **SOLVED,
    )  # fmt: skip

    def loss_on(x, y, contexts):
        g, h = GATES[:, contexts][..., None]
        return lambda a, b, c, d: squared(g * (x @ a.T) @ c.T + h * (x @ b.T) @ d.T, y)

    expected = descend(weights, None, [loss_on(X, Y, CONTEXTS), loss_on(T, U, OF_TEST)])
    recorded = tree["trajectory"].to_dataset().isel(init_scale=0, seed=0)
    np.testing.assert_allclose(recorded["test_loss"], expected[1], rtol=1e-6)


@pytest.mark.parametrize(
    "gates", ["always_on", {"name": "contexts", "open_in": [1], "shown": "everything"}]
)
def test_training_samples_as_test_samples_have_the_training_loss(gates):
    same = {**TABLE, "x_test": X, "y_test": Y, "contexts_test": CONTEXTS}
    options = {**FEW, "loss": {"name": "squared_error", "normalisation": "sum"}}
    options |= {"learning_rate": 1e-3}
    trajectory = simulate(same, hidden=[4], gates=gates, **options, **SOLVED)["trajectory"]
    np.testing.assert_allclose(trajectory["test_loss"], trajectory["loss"], rtol=1e-10)
    network = {"name": "layered", "hidden": [4], "activation": "tanh", "bias": True}
    trajectory = simulate(same, network=network, **options, **SOLVED)["trajectory"]
    np.testing.assert_allclose(trajectory["test_loss"], trajectory["loss"], rtol=1e-10)


def test_share_is_drawn_once_and_leaves_all_samples(tmp_path, monkeypatch):
    data = specify(X, Y, test=0.3, hidden=[4], **FEW).dataset.load()
    again = specify(X, Y, test=0.3, hidden=[5], **FEW).dataset.load()
    assert data.test is not None
    assert again.test is not None
    assert (len(data.x), len(data.test.x)) == (8, 4)
    np.testing.assert_array_equal(data.test.x, again.test.x)
    both = np.vstack([np.hstack([part.x, part.y]) for part in (data, data.test)])
    np.testing.assert_array_equal(np.unique(both, axis=0), np.unique(np.hstack([X, Y]), axis=0))
    np.savez(tmp_path / "my.npz", x=X, y=Y, held=T, answers=U)
    path = {"name": "file", "path": str(tmp_path / "my.npz")}
    drawn = load(path | {"test": 0.3}).test
    named = load(path | {"x_test": "held", "y_test": "answers"})
    assert drawn is not None
    assert named.test is not None
    np.testing.assert_array_equal(drawn.x, data.test.x)
    np.testing.assert_array_equal(named.test.y, U)
    np.testing.assert_array_equal(named.x, X)
    monkeypatch.setattr("neuralrace.api.specification.MOST_WRITTEN", 10)
    for options in ({"test": 0.3}, {"x_test": T, "y_test": U}):
        tree = simulate(X, Y, sweep={"hidden": [[3], [4]]}, **options, **FEW, **SOLVED)
        tree.to_netcdf(tmp_path / "tree.nc")
        file._data.cache_clear()
        with xr.open_datatree(tmp_path / "tree.nc") as saved:
            assert "test_loss" in combine(saved, "trajectory")
            assert plot(saved).axes


def load(dataset):
    return file.File.model_validate_json(json.dumps(dataset)).load()


def test_configurations_record_the_test_loss_by_name():
    raw = json.loads(specify(X, Y, x_test=T, y_test=U, hidden=[4], **FEW).canonical())
    assert raw["record"]["observables"] == ["test_loss", "mode_strength"]
    cells = read_plan({"experiments": {"mine": {"first": raw}}}, {}).cells
    assert cells["mine/first/main"].dataset.has_test
    del raw["dataset"]["x_test"], raw["dataset"]["y_test"]
    with pytest.raises(UserError, match=r"observables: 'test_loss': .*: has no test samples"):
        read_plan({"experiments": {"mine": {"first": raw}}}, {})
    assert "test" not in specify(X, Y, hidden=[4], **FEW).dataset.canonical(), "as before"


REFUSED = {
    "share": ((X, Y), {"test": 1.5}, "test: 1.5: must be less than 1"),
    "empty": ((X, Y), {"test": 0.01}, "test: 0.01: makes 0 of 12 samples test samples"),
    "alone": ((X, Y), {"x_test": T}, "y_test: is missing"),
    "both": ((X, Y), {"x_test": T, "y_test": U, "test": 0.5}, "test: 0.5: is a share of"),
    "columns": ((X, Y), {"x_test": T[:, :2], "y_test": U}, "x_test: has 2 columns, and x has 3"),
    "rows": ((X, Y), {"x_test": T, "y_test": U[:3]}, "y_test: has 3 entries, and x_test has 7"),
    "labels": ((X, Y), {"x_test": T, "y_test": list("abcabca")}, "y_test: has 3 class labels"),
    "dataset": (("hierarchy",), {"test": 0.5}, "test: is for arrays, and x is the dataset"),
    "gates": ((X, Y), {"test": 0.5, "gates": np.ones((1, 12))}, "gates: are those of single"),
    "scheme": (
        ({**TABLE, "contexts": None, "contexts_test": None},), {"gates": "per_example"},
        "gates: has no gates on test samples",
    ),
    "contexts": (
        ({**TABLE, "contexts_test": None},),
        {"gates": {"name": "contexts", "open_in": [1], "shown": "everything"}},
        "gates: has no gates on test samples: the dataset has no contexts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_test_samples_that_do_not_fit_are_refused(case):
    data, options, message = REFUSED[case]
    with pytest.raises(UserError, match=f"^{message}"):
        specify(*data, hidden=[4], **options, **FEW)
