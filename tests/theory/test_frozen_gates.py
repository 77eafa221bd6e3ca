"""Frozen gates, against sums over samples, matrix exponentials and gradient descent."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import config
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from neuralrace.theory import frozen_gates, printed_equations
from neuralrace.theory.frozen_gates import (
    FrozenGates,
    exclusive_weights,
    gated_moments,
    moment_modes,
    redundant_weights,
)

seeds = st.integers(0, 2**32 - 1)
TIME = np.array([0.0, 0.3, 2.0, 40.0])

# Gates of three or so units on samples with one normal u per unit.
SCHEMES = {
    "one": lambda u, x: u[:1] @ x.T >= 0,
    "half-spaces": lambda u, x: u @ x.T >= 0,
    "duplicated": lambda u, x: u[[0, 1, 0]] @ x.T >= 0,
    "antipodal and always on": lambda u, x: np.concatenate(
        [u[:1] @ x.T >= 0, u[:1] @ x.T < 0, np.ones((1, len(x)), dtype=bool)]
    ),
    "exclusive": lambda u, x: (u @ x.T).argmax(0) == np.arange(len(u))[:, None],
    "graded": lambda u, x: np.abs(np.tanh(u @ x.T)),
}
schemes = st.sampled_from(list(SCHEMES))


def samples(seed, scheme, count=30, inputs=3, runs=()):
    """Inputs, targets, gates and initial weights."""
    rng = np.random.default_rng(seed)
    x, normals = rng.normal(size=(count, inputs)), rng.normal(size=(3, inputs))
    gates = SCHEMES[scheme](normals, x).astype(float)
    gates[gates.sum(1) == 0] = 1  # none is silent
    return x, rng.normal(size=count), gates, rng.normal(size=(*runs, len(gates), inputs))


def answers(x, gates, weights):
    """Outputs of the network by its definition, for each sample."""
    return np.mean([gate * (x @ w) for gate, w in zip(gates, weights, strict=True)], axis=0)


def rates(x, y, gates, weights):
    """Negative gradient of the loss, by the chain rule for every sample."""
    error = y - answers(x, gates, weights)
    return np.stack([(gate * error) @ x for gate in gates]) / (len(gates) * len(x))


@given(seeds, schemes)
def test_loss_is_the_mean_over_samples(seed, scheme):
    x, y, gates, weights = samples(seed, scheme, runs=(2,))
    expected = [np.mean((y - answers(x, gates, w)) ** 2) / 2 for w in weights]
    np.testing.assert_allclose(FrozenGates.from_samples(x, y, gates).loss(weights), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_those_of_the_integrated_flow(scheme):
    x, y, gates, start = samples(1, scheme)

    def velocity(_, flat):
        return rates(x, y, gates, flat.reshape(start.shape)).ravel()

    flow = solve_ivp(velocity, (0, TIME[-1]), start.ravel(), "DOP853", TIME, rtol=1e-12, atol=1e-13)
    weights = FrozenGates.from_samples(x, y, gates).weights(TIME, start)
    np.testing.assert_allclose(weights, flow.y.T.reshape(weights.shape), atol=1e-10)


@given(seeds, schemes)
def test_weights_are_those_of_the_matrix_exponential(seed, scheme):
    """An extra row of the generator holds the drive, so that singular moments need no inverse."""
    x, y, gates, start = samples(seed, scheme, count=7)
    net, units = FrozenGates.from_samples(x, y, gates), len(gates)
    generator = np.zeros((start.size + 1, start.size + 1))
    generator[:-1, :-1] = -net.a.reshape(start.size, start.size) / units**2
    generator[:-1, -1] = net.b.ravel() / units
    weights = net.weights(TIME, start)
    for time, now in zip(TIME, weights, strict=True):
        exact = (expm(generator * time) @ np.append(start, 1.0))[:-1]
        np.testing.assert_allclose(now.ravel(), exact, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("learning_rate", [0.1, 40.0])
def test_descent_is_gradient_descent(scheme, learning_rate):
    x, y, gates, start = samples(2, scheme)
    step, current, path = np.array([0, 1, 2, 17]), start, []
    for _ in range(step[-1] + 1):
        path.append(current)
        current = current + learning_rate * rates(x, y, gates, current)
    path = np.stack(path)[step]
    weights = FrozenGates.from_samples(x, y, gates).descent(step, learning_rate, start)
    np.testing.assert_allclose(weights, path, atol=1e-11 * np.abs(path).max())


def test_a_diverging_rate_gives_its_growth_and_then_no_numbers():
    x, y, gates, start = samples(3, "half-spaces")
    net = FrozenGates.from_samples(x, y, gates)
    critical = 2 * len(gates) ** 2 / net.modes.values[-1]
    calm, stalled, wild = (
        net.loss(net.descent(np.array([400, 401]), factor * critical, start))
        for factor in (0.99, 1.0, 1.01)
    )
    assert calm[1] < calm[0] < net.loss(start)
    np.testing.assert_allclose(stalled[1], stalled[0])
    np.testing.assert_allclose(wild[1] / wild[0], 1.02**2, rtol=1e-3)
    assert not np.isfinite(net.descent(np.array([10**6]), 2 * critical, start)).any()


@given(seeds, schemes)
def test_descent_in_small_steps_is_the_flow(seed, scheme):
    """The error is of first order in the step."""
    x, y, gates, start = samples(seed, scheme)
    net = FrozenGates.from_samples(x, y, gates)
    flow = net.weights(np.array([8.0]), start)
    coarse, fine = (
        np.abs(net.descent(np.array([8 * n]), 1 / n, start) - flow).max() for n in (500, 1000)
    )
    np.testing.assert_allclose(coarse / fine, 2, rtol=0.02)


@given(seeds, schemes)
def test_limit_is_least_squares_and_keeps_what_no_input_reaches(seed, scheme):
    """Against numpy's least squares on the gated inputs, for the change of the weights."""
    x, y, gates, start = samples(seed, scheme)
    net = FrozenGates.from_samples(x, y, gates)
    gated = (gates.T[:, :, None] * x[:, None]).reshape(len(x), -1) / len(gates)
    change, _, rank, _ = np.linalg.lstsq(gated, y - gated @ start.ravel())
    limit = net.limit(start)
    scale = np.abs(limit).max()
    np.testing.assert_allclose(limit.ravel(), start.ravel() + change, atol=1e-8 * scale)
    assert net.rank == rank
    residual = y - gated @ limit.ravel()
    np.testing.assert_allclose(net.optimal_loss, residual @ residual / len(y) / 2, atol=1e-12)
    np.testing.assert_allclose(net.loss(limit), net.optimal_loss, atol=1e-11)
    late = net.weights(np.array([1e12]), start)[0]
    np.testing.assert_allclose(late, limit, atol=1e-8 * scale)


@pytest.mark.parametrize(
    ("scheme", "null"), [("duplicated", [1, 0, -1]), ("antipodal and always on", [1, 1, -1])]
)
def test_null_components_never_move(scheme, null):
    x, y, gates, start = samples(4, scheme)
    net = FrozenGates.from_samples(x, y, gates)
    np.testing.assert_array_equal(null @ gates, 0)
    assert net.rank == 6
    paths = (
        net.weights(np.array([0.0, 1.0, 1e9]), start),
        net.descent(np.array([0, 5, 10**6]), 0.5, start),
    )
    for path in paths:
        still = np.tensordot(null, path, axes=(0, 1))
        np.testing.assert_allclose(still, np.tile(still[:1], (3, 1)), rtol=0, atol=1e-13)
        assert np.abs(path[2] - path[0]).max() > 0.1


@given(seeds, st.integers(1, 3))
def test_runs_are_independent_and_flow_is_linear_in_the_start(seed, runs):
    x, y, gates, start = samples(seed, "half-spaces", runs=(2, runs))
    net = FrozenGates.from_samples(x, y, gates)
    together = net.weights(TIME, start)
    assert together.shape == (2, runs, 4, 3, 3)
    np.testing.assert_allclose(together[1, 0], net.weights(TIME, start[1, 0]), atol=1e-13)
    middle = net.weights(TIME, start.mean((0, 1)))
    np.testing.assert_allclose(middle, together.mean((0, 1)), atol=1e-12)
    assert net.loss(together).shape == (2, runs, 4)
    assert np.all(np.diff(net.loss(together), axis=-1) <= 1e-12)
    later = net.weights(TIME, together[0, 0, 1])
    np.testing.assert_allclose(later, net.weights(TIME + TIME[1], start[0, 0]), atol=1e-12)


@pytest.mark.parametrize("kind", ["graded", "binary", "signed"])
def test_moments_do_not_depend_on_the_chunks(monkeypatch, kind):
    x, y, gates, _ = samples(5, "graded")
    gates = {"graded": gates, "binary": (gates > 0.5).astype(float), "signed": gates - 0.5}[kind]
    whole = gated_moments(x, y, gates)
    gated = (gates.T[:, :, None] * x[:, None]).reshape(len(x), -1)
    np.testing.assert_allclose(whole[1].reshape(9, 9), gated.T @ gated / 30, atol=1e-15)
    np.testing.assert_allclose(whole[0].ravel(), y @ gated / 30, atol=1e-15)
    assert whole[2] == np.mean(y**2)
    for chunk in (1, 7, 30):
        monkeypatch.setattr(frozen_gates, "CHUNK", chunk)
        for one, other in zip(gated_moments(x, y, gates), whole, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-15)


def test_gated_inputs_of_all_samples_are_never_held_at_once(monkeypatch):
    rng = np.random.default_rng(6)
    x, gates = rng.normal(size=(8000, 24)), (rng.random((24, 8000)) < 0.5).astype(float)
    tracemalloc.start()
    gated_moments(x, x[:, 0], gates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * gates.size * 24 / 3


def test_gaussian_moments_are_those_of_a_large_balanced_sample():
    rng = np.random.default_rng(7)
    roots, normals = rng.normal(size=(2, 4, 4)), rng.normal(size=(3, 4))
    targets = np.array([1.0, -0.5])
    x = np.concatenate([rng.normal(size=(100_000, 4)) @ root.T for root in roots])
    y = np.repeat(targets, 100_000)
    gates = (normals @ x.T >= 0).astype(float)
    net = FrozenGates.from_gaussian(roots @ roots.mT, targets, normals)
    sample = FrozenGates.from_samples(x, y, gates)
    np.testing.assert_allclose(net.y_power, sample.y_power)
    scale = np.abs(net.a).max()
    np.testing.assert_allclose(net.a, sample.a, atol=0.01 * scale)
    np.testing.assert_allclose(net.b, sample.b, atol=0.01 * scale)
    assert net.rank == 12
    best = net.limit(np.zeros((3, 4)))
    losses = (y - answers(x, gates, best)) ** 2 / 2
    assert abs(losses.mean() - net.optimal_loss) < 5 * losses.std() / np.sqrt(len(y))


@given(seeds)
def test_opposite_gaussian_gates_are_two_linear_networks(seed):
    """A unit and its opposite learn independently, each on its half of the inputs."""
    rng = np.random.default_rng(seed)
    root, normal = rng.normal(size=(3, 3)), rng.normal(size=3)
    covariance, targets = (root @ root.T)[None], np.array([1.0])
    pair = FrozenGates.from_gaussian(covariance, targets, np.stack([normal, -normal]))
    three = FrozenGates.from_gaussian(covariance, targets, np.stack([normal, -normal, 0 * normal]))
    assert pair.rank == three.rank
    np.testing.assert_allclose(three.optimal_loss, pair.optimal_loss, rtol=1e-10)
    # y = 1 from |u.x|: 1 - (mean of |z|)^2 is left of the power
    np.testing.assert_allclose(pair.optimal_loss, (1 - 2 / np.pi) / 2, rtol=1e-10)


def test_exclusive_units_learn_alone():
    x, y, gates, start = samples(8, "exclusive", runs=(2,))
    net = FrozenGates.from_samples(x, y, gates)
    for k, weights in enumerate(np.moveaxis(net.weights(TIME, start), 2, 0)):
        alone = exclusive_weights(TIME, net.b[k], net.a[k, :, k], 3, start[:, k])
        np.testing.assert_allclose(alone, weights, atol=1e-12)
        fit, *_ = np.linalg.lstsq(x[gates[k] > 0], y[gates[k] > 0])
        np.testing.assert_allclose(net.limit(start)[:, k], 3 * np.tile(fit, (2, 1)))


def test_redundant_units_learn_by_halves():
    x, y, gates, start = samples(8, "exclusive", runs=(2,))
    net = FrozenGates.from_samples(x, y, gates[[0, 1, 0]])
    weights = net.weights(TIME, start)
    first, second = redundant_weights(TIME, net.b[0], net.a[0, :, 0], 3, start[:, 0], start[:, 2])
    np.testing.assert_allclose(weights[..., 0, :], first, atol=1e-12)
    np.testing.assert_allclose(weights[..., 2, :], second, atol=1e-12)
    apart = (start[:, 0] - start[:, 2])[:, None]
    np.testing.assert_allclose(first - second, np.tile(apart, (1, 4, 1)), atol=1e-13)


def test_printed_fixed_point_and_rate_lack_the_readout():
    """Eqs. 7 and 10 give weights K times smaller and K times faster; they hold for K = 1."""
    x, y, gates, start = samples(9, "half-spaces")
    net, size = FrozenGates.from_samples(x, y, gates), start.size
    flat = net.b.ravel(), net.a.reshape(size, size)
    printed = printed_equations.written_weights(TIME, *flat, 3, start.ravel()).reshape(4, 3, 3)
    np.testing.assert_allclose(printed, net.weights(3 * TIME, 3 * start) / 3, atol=1e-12)
    end = printed_equations.written_weights(np.array([1e9]), *flat, 3, start.ravel())
    np.testing.assert_allclose(end.reshape(3, 3), net.limit(start) / 3)
    assert net.loss(end.reshape(3, 3)) > net.optimal_loss + 0.05
    x, y, gates, start = samples(9, "one")
    net = FrozenGates.from_samples(x, y, gates)
    printed = printed_equations.written_weights(TIME, net.b[0], net.a[0, :, 0], 1, start[0])
    np.testing.assert_allclose(printed, net.weights(TIME, start)[:, 0], atol=1e-12)


def test_real_exponents_reach_few_starts():
    """From a start of 0, the coefficients of all driven modes have the sign of -c."""
    x, y, gates, start = samples(11, "half-spaces", runs=(50,))
    net = FrozenGates.from_samples(x, y, gates)
    flat = net.b.ravel(), net.a.reshape(9, 9)
    at_zero = printed_equations.unreachable_share(*flat, np.zeros(9))
    assert at_zero == np.mean(net.b.ravel() @ net.modes.vectors > 0)
    share = printed_equations.unreachable_share(*flat, 100 * start.reshape(50, 9))
    assert 0.4 < share.mean() < 0.6
    reached = printed_equations.unreachable_share(
        *flat, net.modes.vectors @ (net.modes.solution + np.ones(9))
    )
    assert reached == 0


def test_printed_limit_and_redundant_pair():
    x, y, gates, start = samples(12, "exclusive")
    net = FrozenGates.from_samples(x, y, gates[[0, 1, 0]])
    moments = net.b[0], net.a[0, :, 0]
    limit = printed_equations.written_weights(TIME, *moments, 3, start[0])
    np.testing.assert_allclose(limit[0], start[0])  # "infinity" is the start at t = 0
    fit = np.linalg.solve(moments[1], moments[0])
    np.testing.assert_allclose(
        printed_equations.written_weights(np.array([1e6]), *moments, 3, start[0])[0], fit
    )
    late = np.array([0.0, 1e9])
    first, second = printed_equations.written_redundant(late, *moments, 3, start[0], start[2])
    exact, other = redundant_weights(late, *moments, 3, start[0], start[2])
    np.testing.assert_allclose(first - second, exact - other)  # eq. 31 holds
    np.testing.assert_allclose(first[0], exact[0])
    # what is missing at the end is half of the difference
    np.testing.assert_allclose(first[1], 1.5 * fit)
    np.testing.assert_allclose(exact[1], 1.5 * fit + (start[0] - start[2]) / 2)
    middle = np.array([3.0])
    one, _ = printed_equations.written_redundant(middle, *moments, 3, start[0], start[2])
    decay = expm(-2 * moments[1] * 3.0 / 9)
    np.testing.assert_allclose(one[0], 1.5 * fit + decay @ (start[0] - 1.5 * fit))


def test_a_unit_whose_gate_never_fires_stays_and_leaves_the_others_alone():
    x, y, gates, start = samples(13, "half-spaces")
    gates[1] = 0
    time = np.array([0.0, 2.0, 50.0])
    path = FrozenGates.from_samples(x, y, gates).weights(time, start)
    np.testing.assert_allclose(path[:, 1], np.tile(start[1], (3, 1)), rtol=1e-12)
    others = np.delete(np.arange(len(gates)), 1)
    # the answer is a mean over all units, the silent one among them
    scale = len(gates) / len(others)
    alone = FrozenGates.from_samples(x, scale * y, gates[others])
    rescaled = alone.weights(time / scale**2, start[others])
    np.testing.assert_allclose(path[:, others], rescaled, rtol=1e-9, atol=1e-12)


def test_bad_moments_are_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    x, y, _, start = samples(13, "half-spaces")
    with pytest.raises(ValueError, match="does not fit"):
        FrozenGates(np.zeros((2, 3)), np.eye(6), 1.0)
    eye = np.eye(3)
    wrong = {
        "not symmetric": (np.triu(np.ones((3, 3))), np.zeros(3)),
        "its eigenvalues are -1 to 1": (np.diag([1.0, 1.0, -1.0]), np.zeros(3)),
        "in which they do not vary": (np.diag([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 0.1])),
    }
    for message, (second, cross) in wrong.items():
        net = FrozenGates(cross[None], second[None, :, None], 1.0)
        with pytest.raises(ValueError, match=message):
            net.limit(start[:1])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        exclusive_weights(TIME, np.ones(3), -eye, 2, np.zeros(3))
    with pytest.raises(ValueError, match="covariance is not positive"):
        FrozenGates.from_gaussian(-eye[None], np.ones(1), eye)
    net = FrozenGates.from_samples(x, y, np.ones((1, 30)))
    with pytest.raises(ValueError, match="step must not be negative"):
        net.descent(np.array([-1]), 0.1, start[:1])


def test_modes_within_rounding_of_0_are_null():
    x, y, gates, _ = samples(14, "duplicated")
    b, a, y_power = gated_moments(x, y, gates)
    noise = 1e-17 * np.random.default_rng(14).normal(size=(9, 9))
    modes = moment_modes(a.reshape(9, 9) + noise + noise.T, b.ravel(), y_power)
    assert modes.rank == 6
    np.testing.assert_array_equal(modes.values[:3], 0)
    np.testing.assert_array_equal(modes.solution[:3], 0)
