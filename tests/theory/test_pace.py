"""Learning times and rates against gradient descent, and against flows that are solved apart."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy

from neuralrace.datasets import Data
from neuralrace.theory import pace
from neuralrace.theory.modes import deep_half_time, shallow_half_time


def draw(columns, targets, samples=60, seed=0):
    """Inputs with these columns, mixed, and targets that are exactly linear in them."""
    rng = np.random.default_rng(seed)
    white = np.linalg.qr(rng.normal(size=(samples, len(columns))))[0] * np.sqrt(samples)
    x = white * np.array(columns)
    return x, white @ rng.normal(size=(len(columns), targets))


def weights_of(widths, scale=0.03, runs=2, seed=1):
    rng = np.random.default_rng(seed)
    shapes = zip(widths[1:], widths, strict=False)
    return [scale * rng.normal(size=(runs, *shape)) for shape in shapes]


def predicted_time(x, y, weights):
    data = Data(x, y)
    pathways = [(data.sigma_yx, data.sigma_xx, weights)]
    return pace.learning_time(pace.relevant_modes(pace.learned_maps(data, pathways), pathways))


def best_outputs(x, y, rank):
    """Outputs of the best map of this rank: their strongest singular vectors."""
    u, s, vt = np.linalg.svd(x @ np.linalg.lstsq(x, y)[0], full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vt[:rank], u[:, :rank], s[:rank]


def descend(x, y, weights, step):
    """Flow times of plain gradient descent, for the slowest run.

    Returns:
        When all but 2% of the explained power is learned: 1% of it may be in ignored modes, and 1%
        may be missing. And when every mode but these is learned to 99%.
    """
    rank = min([w.shape[1] for w in weights[:-1]] or [y.shape[1]])
    best, u, s = best_outputs(x, y, rank)
    power = s**2 / len(x)
    weakest = np.cumsum(power[::-1])[::-1]
    relevant = weakest > pace.TOLERANCE * power.sum()
    vectors = best.T @ u / s  # output directions of modes
    ends = np.zeros(2)
    for run in range(len(weights[0])):
        layers, promised, time = [w[run].copy() for w in weights], None, 0
        while True:
            signals = [x]
            for w in layers:
                signals.append(signals[-1] @ w.T)
            excess = ((signals[-1] - best) ** 2).sum() / len(x)
            learned = np.einsum("nk,no,ok->k", u, signals[-1], vectors) / s
            if promised is None and excess <= 2 * pace.TOLERANCE * power.sum():
                promised = time * step
            if promised is not None and (learned >= 1 - pace.TOLERANCE)[relevant].all():
                break
            error = (y - signals[-1]) / len(x)
            for n in range(len(layers) - 1, -1, -1):
                change, error = error.T @ signals[n], error @ layers[n]
                layers[n] += step * change
            time += 1
            assert time < 60_000
        ends = np.maximum(ends, [promised, time * step])
    return ends


TASKS = {
    "white inputs": ([1, 1, 1], 2, [8]),
    "scales 1 and 10": ([1, 0.1], 1, [8]),
    "two targets": ([1, 0.3, 0.1], 2, [8]),
    "one layer": ([1, 0.3, 0.05], 2, []),
    "three layers": ([1, 0.3, 0.2], 1, [10, 10]),
    "decaying spectrum": (1 / np.arange(1, 13), 2, [16]),
    "narrow layer": ([1, 0.5, 0.3, 0.2], 4, [2]),
    "narrow layer, white inputs": ([1, 1, 1], 3, [1]),
    "redundant inputs": ([1, 0.2, 0, 0], 2, [8]),
}


@pytest.mark.parametrize("task", TASKS)
def test_time_to_learn_is_that_of_gradient_descent(task):
    columns, targets, hidden = TASKS[task]
    x, y = draw(columns, targets)
    if 0 in columns:
        x[:, -1] = x[:, 0]  # twice the same, and a column of zeros
        y = y - (y - best_outputs(x, y, 2)[0])
    weights = weights_of([x.shape[1], *hidden, targets])
    size = np.linalg.norm(np.linalg.lstsq(x, y)[0], 2)
    depth = len(weights)
    step = 0.1 / (depth * size ** (2 - 2 / depth) * max(columns) ** 2)
    promised, learned = descend(x, y, weights, step)
    time = predicted_time(x, y, weights)
    assert promised <= time <= 3 * learned


@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_time_of_one_layer_is_exact(condition):
    """Each direction decays at the rate of its variance, and its share of the power is known."""
    x, y = draw(np.sqrt(np.geomspace(1, 1 / condition, 5)), 1)
    time = predicted_time(x, y, [np.full((1, 1, 5), 1e-9)])
    share = (y.T @ (x / np.linalg.norm(x, axis=0))) ** 2
    variance = (x**2).mean(axis=0)
    missing = float((share * np.exp(-variance * time)).sum() / share.sum())
    assert missing == pytest.approx(pace.TOLERANCE, rel=0.2)


@pytest.mark.parametrize("condition", [1e3, 1e6, 1e8])
def test_time_is_that_of_a_stiff_flow(condition):
    """Of both layers of a network, by an implicit method."""
    x, y = draw([1, condition**-0.25, condition**-0.5], 1)
    w1, w2 = weights_of([3, 4, 1], scale=0.01, runs=1)
    sigma_yx, sigma_xx = y.T @ x / len(x), x.T @ x / len(x)
    target = np.linalg.lstsq(x, y)[0].T

    def velocity(_, flat):
        first, second = flat[:12].reshape(4, 3), flat[12:].reshape(1, 4)
        error = sigma_yx - second @ first @ sigma_xx
        return np.concatenate([(second.T @ error).ravel(), (error @ first.T).ravel()])

    def learned(_, flat):
        product = flat[12:].reshape(1, 4) @ flat[:12].reshape(4, 3)
        return float((product @ sigma_xx @ target.T)[0, 0] / (y**2).mean()) - 0.99

    learned.terminal = True
    path = scipy.integrate.solve_ivp(
        velocity, (0, 1e12), np.concatenate([w1.ravel(), w2.ravel()]), "Radau",
        events=learned, rtol=1e-6, atol=1e-9,
    )  # fmt: skip
    assert path.t[-1] <= 1.05 * predicted_time(x, y, [w1, w2]) <= 1.3 * path.t[-1]


def test_time_of_equal_variances_continues_that_of_nearly_equal_ones():
    """Where they count as different, a mode is integrated, and takes as long."""
    weights = weights_of([3, 8, 1])
    times = []
    for lower in (1.0, 0.94):
        x, y = draw([1, 1, lower], 1)
        times.append(predicted_time(x, y, weights))
    assert times[1] == pytest.approx(times[0], rel=0.15)


def test_failing_solver_leaves_an_upper_bound(monkeypatch):
    x, y = draw([1, 0.1, 0.03], 1)
    weights = weights_of([3, 8, 8, 1])
    time = predicted_time(x, y, weights)
    monkeypatch.setattr(scipy.integrate, "solve_ivp", lambda *_, **__: SimpleNamespace(status=-1))
    assert time < predicted_time(x, y, weights) < 3 * time


def test_many_inputs_have_few_different_variances():
    """So that modes of many inputs cost no more than those of few."""
    x, y = draw(np.sqrt(np.geomspace(1, 1e-8, 300)), 1, samples=300)
    data = Data(x, y)
    pathways = [(data.sigma_yx, data.sigma_xx, weights_of([300, 2, 1]))]
    (mode,) = pace.relevant_modes(pace.learned_maps(data, pathways), pathways)
    assert len(mode.variance) <= np.log(1e8) / np.log(pace.EQUAL) + 1
    assert mode.power == pytest.approx((y**2).mean(), rel=pace.EQUAL - 1)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("scales", [[1, 1, 1, 1], [1e6, 1, 1e-6, 1]])
def test_best_map_is_that_of_least_squares(rank, scales):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 4)) + np.array([0, 3, 0, 0])
    x[:, 3] = x[:, 1]
    y = x[:, :3] @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(50, 3))
    scaled = x * scales
    best = pace.best_map(y.T @ scaled / 50, scaled.T @ scaled / 50, rank, 0.0)
    outputs, _, s = best_outputs(x, y, rank)
    np.testing.assert_allclose(
        scaled @ best.v @ best.rows.T @ best.u.T, outputs, atol=1e-7 * abs(outputs).max()
    )
    assert best.power.sum() == pytest.approx((s**2).sum() / 50)
    assert (best.next_power > 0) == (rank < 3)


def test_step_is_fine_where_the_map_is_large_along_weak_inputs():
    """The curvature of a balanced network that has learned, from the Jacobian of its map."""
    x, y = draw([1, 0.01], 2)
    data, weights = Data(x, y), weights_of([2, 4, 2], runs=1)
    u, s, vt = np.linalg.svd(np.linalg.lstsq(x, y)[0].T)
    first, second = np.sqrt(s)[:, None] * vt, u * np.sqrt(s)
    jacobian = np.hstack([np.kron(second, np.eye(2)), np.kron(np.eye(2), first.T)])
    curvature = jacobian.T @ np.kron(np.eye(2), data.sigma_xx) @ jacobian
    largest = np.linalg.eigvalsh(curvature)[-1]
    maps = pace.learned_maps(data, [(data.sigma_yx, data.sigma_xx, weights)])
    layers = [np.linalg.norm(w, 2, axis=(-2, -1))[:, None] for w in weights]
    step = pace.flow_step(data, layers, maps)
    assert pace.TOLERANCE / 3 < step * largest / 2 < pace.TOLERANCE


def test_growth_to_half_is_that_of_the_closed_forms():
    for s, d, a0 in [(2.0, 0.5, 1e-4), (1.0, 1.0, 0.1), (0.3, 2.0, 0.01)]:
        for depth, closed in ((2, deep_half_time), (1, shallow_half_time)):
            time = pace.growth_time(s, d, a0, s / d / 2, depth)
            assert time == pytest.approx(float(closed(*np.array([[s], [d], [a0]]))[0]), rel=1e-4)
    assert pace.growth_time(1.0, 0.0, 1e-3, 1e-2, 2) == pytest.approx(np.log(10) / 2)
