"""XoR with a margin, against gradient descent of ReLU and gated networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import root_scalar

from neuralrace.datasets.xor import CROSSOVER, Xor
from neuralrace.theory.modes import aligned_initial_mode
from neuralrace.theory.xor import xor_start
from neuralrace.theory.xor_margin import (
    linear_loss,
    neuron_start,
    points,
    race_loss,
    race_outputs,
    speeds,
    split_start,
    xor_loss,
    xor_share,
)


def random_weights(seed, *shape, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((*shape, 3)), scale * rng.standard_normal(shape)


def descend(encoder, decoder, margin, step, steps, residual=None):
    """Gradient descent of the ReLU network; its weights, and its loss at every step.

    If `residual` is present it stays constant: y is the residual of an output of 0.
    """
    x, y = points(margin)
    losses = []
    for _ in range(steps):
        preactivation = encoder @ x.T
        hidden = np.maximum(preactivation, 0)
        error = y - decoder @ hidden if residual is None else residual
        losses.append((error**2).mean() / 2)
        back = decoder[:, None] * (preactivation > 0) * error / 4
        encoder, decoder = encoder + step * back @ x, decoder + step * hidden @ error / 4
    return encoder, decoder, np.array(losses)


def test_points_are_those_of_the_dataset_and_speeds_their_singular_values():
    margin = 0.7
    x, y = points(margin)
    data = Xor(name="xor", margin=margin).load()
    np.testing.assert_array_equal(x, data.x)
    np.testing.assert_array_equal(y, data.y[:, 0])
    linear, xor = speeds(margin)
    for open_on, s, pathways in ((y > 0, linear, 2), (y < 0, linear, 2), ([2], xor, 4)):
        sigma_yx, sigma_xx = y[open_on] @ x[open_on] / 4, x[open_on].T @ x[open_on] / 4
        np.testing.assert_allclose(np.linalg.norm(sigma_yx), s)
        np.testing.assert_allclose(sigma_xx @ sigma_yx, pathways * s**2 * sigma_yx, atol=1e-15)


def test_xor_is_faster_below_the_crossover():
    np.testing.assert_allclose(np.subtract(*speeds(float(CROSSOVER))), 0, atol=1e-15)
    assert speeds(0.8)[0] < speeds(0.8)[1]
    assert speeds(0.83)[0] > speeds(0.83)[1]


def test_split_start_is_the_mean_aligned_start_of_equal_shares():
    w, v = random_weights(0, 500, 64, scale=1e-3)
    x, y = points(0.9)
    linear, xor = split_start(64, 1e-3)
    for units, direction, expected in (
        (32, np.array([[0.0], [0.0], [1.0]]), linear),
        (16, x[2:3].T / np.linalg.norm(x[2]), xor),
    ):
        a0 = aligned_initial_mode(w[:, :units], v[:, None, :units], np.array([[y[2]]]), direction)
        np.testing.assert_allclose(a0.mean(), expected, rtol=0.03)


def late_strength(encoder, decoder, margin, step):
    """Strength of every unit in its pathway of example or class, extrapolated back to time 0."""
    x, y = points(margin)
    time = 24.0
    w, v, _ = descend(encoder, decoder, margin, step, round(time / step), residual=y)
    active = w @ x.T > 0
    linear, xor = speeds(margin)
    alone = active.sum(1) == 1
    along_x = v[:, None] * y * (w @ x.T) / np.linalg.norm(x[0]) * np.exp(-2 * xor * time)
    along_third = v * w[:, 2] * np.exp(-2 * linear * time)
    strength = np.where(active, np.where(alone[:, None], along_x, along_third[:, None]), 0.0)
    return strength, active


@pytest.mark.parametrize("margin", [0.3, 0.7, 1.2, 1.7])
def test_start_is_the_early_descent_unit_by_unit(margin):
    """Against late strengths extrapolated to time 0, with an error of first order in the step."""
    encoder, decoder = random_weights(1, 300)
    start = neuron_start(encoder[:, None], decoder[:, None], margin)
    runs = [late_strength(encoder, decoder, margin, step) for step in (8e-3, 4e-3, 2e-3)]
    # a few units may go either way by the theory, and the step size decides
    agree = np.all([(active == start.active[:, 0]).all(1) for _, active in runs], axis=0)
    assert agree.mean() > 0.98
    alone = start.active[:, 0].sum(1) == 1
    joined = np.where(alone[:, None], start.xor, start.linear[:, [1, 0, 0, 1]])
    assert np.all(joined[agree].max(1) > 0)
    errors = [(strength - joined * active)[agree] for strength, active in runs]
    sizes = np.abs(errors).mean((1, 2))
    np.testing.assert_allclose(sizes[:-1] / sizes[1:], 2, rtol=0.05)
    assert np.abs(2 * errors[2] - errors[1]).mean() < 0.05 * sizes[2]


@pytest.mark.parametrize("margin", [0.7, 0.9])
def test_a_unit_held_on_an_edge_leaves_to_the_side_of_more_time(margin):
    """Descents with different steps disagree; most agree with the theory."""
    x, y = points(margin)
    # active on one example of the class -1, with the wrong sign, and close to the other one's edge
    w = np.linalg.solve(x[[0, 1, 3]], [1.0, -0.45, -0.01])
    steps = 5e-3 * (1 + np.random.default_rng(0).random(40))
    ends = [descend(w[None], np.array([0.2]), margin, h, 500, residual=y)[0] @ x.T for h in steps]
    on_both = np.mean([(end > 0).sum() == 2 for end in ends])
    assert 0 < on_both < 1
    predicted = neuron_start(w[None], np.array([0.2]), margin).active.sum() == 2
    assert predicted == (on_both > 0.5) == (margin < CROSSOVER)


def test_without_a_margin_units_are_those_of_plain_xor():
    encoder, decoder = random_weights(2, 3000, 1)
    x, y = points(1e-5)
    start = neuron_start(encoder, decoder, 1e-5)
    expected = xor_start(encoder[..., :2], decoder, x[:, :2], y)
    np.testing.assert_allclose(start.xor, expected, atol=1e-3)
    np.testing.assert_allclose(start.xor.sum(), expected.sum(), rtol=1e-5)


def test_a_large_margin_leaves_the_third_input_alone():
    encoder, decoder = random_weights(3, 1000, 1)
    start = neuron_start(encoder, decoder, 1e5)
    sign = np.sign(encoder[..., 2] + decoder)
    expected = (encoder[..., 2] + decoder) ** 2 / 4 * (np.concatenate([sign, -sign], -1) > 0)
    np.testing.assert_allclose(start.linear, expected, atol=1e-4)


seeds = st.integers(0, 2**32 - 1)
margins = st.floats(0.05, 2.5)


@settings(max_examples=40)
@given(seed=seeds, margin=margins, scale=st.floats(1e-6, 1e3))
def test_every_unit_joins_one_pathway_and_the_start_is_quadratic(seed, margin, scale):
    encoder, decoder = random_weights(seed, 50)
    _, y = points(margin)
    start = neuron_start(encoder, decoder, margin)
    examples = start.active.sum(-1)
    assert set(examples) <= {1, 2}
    assert np.all(np.abs(start.active @ y) == examples), "active on one class only"
    assert np.all(examples == 2) or margin <= np.sqrt(2)
    scaled = neuron_start(scale * encoder, scale * decoder, margin)
    np.testing.assert_array_equal(scaled.active, start.active)
    np.testing.assert_allclose(scaled.linear, scale**2 * start.linear, rtol=1e-7)
    np.testing.assert_allclose(scaled.xor, scale**2 * start.xor, rtol=1e-7)


@settings(max_examples=20)
@given(seed=seeds, margin=margins)
def test_start_follows_the_symmetries_of_the_points(seed, margin):
    encoder, decoder = random_weights(seed, 50)
    start = neuron_start(encoder, decoder, margin)
    for matrix, sign, examples, classes in (
        (np.eye(3)[[1, 0, 2]], 1, [0, 2, 1, 3], [0, 1]),
        (np.diag([-1.0, -1.0, 1.0]), 1, [3, 2, 1, 0], [0, 1]),
        (np.diag([-1.0, 1.0, -1.0]), -1, [2, 3, 0, 1], [1, 0]),
    ):
        image = neuron_start(encoder @ matrix, sign * decoder, margin)
        np.testing.assert_allclose(image.xor, start.xor[examples], rtol=1e-7)
        np.testing.assert_allclose(image.linear, start.linear[classes], rtol=1e-7)


def test_units_on_their_direction_start_as_modes_do():
    x, y = points(0.6)
    start = neuron_start(0.3 * x / np.linalg.norm(x[0]), 0.1 * y, 0.6)
    np.testing.assert_allclose(start.xor, (0.3 + 0.1) ** 2 / 4)
    assert not start.linear.any()
    third = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, -0.5]])
    start = neuron_start(third, np.array([0.1, -0.2]), 0.6)
    np.testing.assert_allclose(start.linear, [(0.3 + 0.1) ** 2 / 4, (0.5 + 0.2) ** 2 / 4])
    assert not start.xor.any()


def test_units_without_weights_or_on_an_edge():
    start = neuron_start(np.zeros((2, 3)), np.array([0.4, 0.0]), 0.6)
    assert not start.active.any()
    assert not start.linear.any()
    assert not start.xor.any()
    # silent on the class -1 by a hair, with its sign: it becomes active on both
    start = neuron_start(np.array([[0.5, -0.5, 0.0]]), np.array([-3.0]), 0.6)
    np.testing.assert_array_equal(start.active, [[True, False, False, True]])
    nudged = neuron_start(np.array([[0.5, -0.5, -1e-9]]), np.array([-3.0]), 0.6)
    np.testing.assert_allclose(start.linear, nudged.linear, rtol=1e-6)


def test_units_that_return_to_two_edges_at_once_settle():
    """Some units leave an edge when another opens, turn, and return to both edges at once."""
    encoder, decoder = random_weights(8, 100_000)
    start = neuron_start(encoder, decoder, 1.1)
    assert np.all(start.active[:, [0, 3]].any(-1) != start.active[:, [1, 2]].any(-1))


def test_runs_are_independent():
    encoder, decoder = random_weights(4, 2, 3, 20)
    start, one = (
        neuron_start(encoder, decoder, 0.9),
        neuron_start(encoder[1, 2], decoder[1, 2], 0.9),
    )
    for part in ("linear", "xor", "active"):
        np.testing.assert_array_equal(getattr(start, part)[1, 2], getattr(one, part))
    time = np.array([0.0, 5.0, 12.0])
    linear, xor = 1e-4 * start.linear, 1e-4 * start.xor
    np.testing.assert_allclose(
        race_loss(time, 0.9, linear, xor)[1, 2],
        race_loss(time, 0.9, linear[1, 2], xor[1, 2]),
        atol=1e-7,
    )


def gated_network(time, margin, linear_start, xor_start, units=2):
    """Outputs y yhat of the gated network with six pathways, each of several units."""
    x, y = points(margin)
    gates = np.array([y > 0, y < 0, *np.eye(4)]).astype(float)
    directions = np.concatenate([[[0, 0, 1], [0, 0, -1]], x / np.linalg.norm(x[0])])
    hidden = np.ones(units) / np.sqrt(units)
    size = np.sqrt(np.concatenate([linear_start, xor_start]))[:, None]
    w0 = (size * directions)[:, None, :] * hidden[:, None]
    v0 = size * np.array([1, -1, *y])[:, None] * hidden

    def split(flat):
        return flat[: w0.size].reshape(w0.shape), flat[w0.size :].reshape(v0.shape)

    def outputs(w, v):
        return np.einsum("pq,pu,pui,qi->pq", gates, v, w, x)

    def rate(_, flat):
        w, v = split(flat)
        pull = np.einsum("pq,q,qi->pi", gates, y - outputs(w, v).sum(0), x) / 4
        return np.concatenate(
            [(v[..., None] * pull[:, None]).ravel(), (w @ pull[..., None]).ravel()]
        )

    flow = solve_ivp(
        rate, (0, time[-1]), np.r_[w0.ravel(), v0.ravel()],
        t_eval=time, method="DOP853", rtol=1e-10, atol=1e-13,
    )  # fmt: skip
    parts = np.array([outputs(*split(flat)) for flat in flow.y.T]) * y
    return parts[:, :2].sum(1), parts[:, 2:].sum(1)


@pytest.mark.parametrize("margin", [0.5, 0.8, 1.4])
def test_race_is_the_flow_of_the_gated_network(margin):
    """From unequal starts, linear pathways turn towards the examples that are learned late."""
    linear_start, xor_start = np.array([3e-3, 1e-3]), np.array([1e-3, 3e-4, 2e-3, 0.0])
    time = np.linspace(0, 40, 30)
    linear, xor = race_outputs(time, margin, linear_start, xor_start)
    expected_linear, expected_xor = gated_network(time, margin, linear_start, xor_start)
    np.testing.assert_allclose(linear, expected_linear, atol=1e-7)
    np.testing.assert_allclose(xor, expected_xor, atol=1e-7)
    assert np.abs(linear[:, 1] - linear[:, 2]).max() > 0.01, "the linear pathways have turned"
    loss = ((1 - expected_linear - expected_xor) ** 2).mean(-1) / 2
    np.testing.assert_allclose(race_loss(time, margin, linear_start, xor_start), loss, atol=1e-7)


def test_each_type_alone_has_its_closed_form():
    time, margin = np.linspace(0, 60, 40), 0.7
    linear_start, xor_start = np.array([2e-6, 5e-7]), np.array([1e-6, 3e-7, 2e-6, 4e-6])
    np.testing.assert_allclose(
        race_loss(time, margin, linear_start, np.zeros(4)),
        linear_loss(time, margin, linear_start),
        atol=1e-7,
    )
    np.testing.assert_allclose(
        race_loss(time, margin, np.zeros(2), xor_start),
        xor_loss(time, margin, xor_start),
        atol=1e-7,
    )
    first = xor_loss(time[:1], margin, xor_start)[0]
    np.testing.assert_allclose(
        first, ((1 - np.sqrt(2 + margin**2) * xor_start) ** 2).mean() / 2, rtol=1e-14
    )
    first = linear_loss(time[:1], margin, linear_start)[0]
    np.testing.assert_allclose(first, ((1 - margin * linear_start) ** 2).mean() / 2, rtol=1e-14)
    assert linear_loss(np.array([200.0]), margin, linear_start)[0] < 1e-15


def test_an_example_without_pathways_is_not_learned():
    time = np.array([0.0, 1000.0])
    loss = race_loss(time, 0.9, np.array([1e-3, 0.0]), np.array([0.0, 1e-3, 1e-3, 1e-3]))
    np.testing.assert_allclose(loss[-1], 1 / 8, rtol=1e-6)


@settings(max_examples=8)
@given(
    margin=st.floats(0.2, 2),
    linear_start=st.floats(1e-9, 1e-3),
    xor_start=st.floats(1e-9, 1e-3),
)
def test_equal_residuals_tie_the_strengths_and_the_final_share(margin, linear_start, xor_start):
    """Strengths grow as powers 2 s of one function of time, and final outputs add up to 1."""
    time = np.array([0.0, 4.0, 20.0, 80.0])
    starts = np.full(2, linear_start), np.full(4, xor_start)
    linear, xor = race_outputs(time, margin, *starts)
    s_linear, s_xor = speeds(margin)
    grown = [np.log(part[1:, 0] / part[0, 0]) for part in (linear, xor)]
    np.testing.assert_allclose(grown[0] / s_linear, grown[1] / s_xor, rtol=1e-6)

    def excess(log_growth):
        return np.logaddexp(
            np.log(margin * linear_start) + 2 * s_linear * log_growth,
            np.log(4 * s_xor * xor_start) + 2 * s_xor * log_growth,
        )

    log_growth = root_scalar(excess, bracket=(-100, 300), xtol=1e-12).root
    share = 4 * s_xor * xor_start * np.exp(2 * s_xor * log_growth)
    np.testing.assert_allclose(xor_share(time, margin, *starts)[-1], share, rtol=1e-6)


@pytest.mark.parametrize("margin", [0.5, 0.8165, 1.0, 1.3, 1.6])
def test_relu_network_follows_the_race_but_for_the_step(margin):
    """128 units from 1e-4: the error is of first order in the step, and 0.001 of 1/2 at step 0."""
    encoder, decoder = random_weights(7, 128, scale=1e-4)
    start = neuron_start(encoder, decoder, margin)
    time = 34.0
    theory = race_loss(np.arange(0, time, 0.02), margin, start.linear, start.xor)
    losses, errors = [], []
    for step in (0.02, 0.01):
        w, v, loss = descend(encoder, decoder, margin, step, round(time / step))
        losses.append(loss[:: round(0.02 / step)])
        errors.append(np.abs(losses[-1] - theory).max())
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.05)
    assert np.abs(2 * losses[1] - losses[0] - theory).max() < 5e-4
    x, y = points(margin)
    hidden = np.maximum(w @ x.T, 0)
    outputs = v[:, None] * hidden * y
    alone = (hidden > 0).sum(1) == 1
    share = outputs[alone].sum() / outputs.sum()
    final = xor_share(np.array([0.0, time]), margin, start.linear, start.xor)[-1]
    np.testing.assert_allclose(share, final, atol=0.003)


def test_neither_type_alone_describes_the_network_at_the_crossover():
    margin = float(CROSSOVER)
    encoder, decoder = random_weights(6, 128, scale=1e-4)
    start = neuron_start(encoder, decoder, margin)
    time = 0.02 * np.arange(1700)
    _, _, loss = descend(encoder, decoder, margin, 0.02, 1700)
    for alone in (
        linear_loss(time, margin, start.linear),
        xor_loss(time, margin, start.xor),
    ):
        assert np.abs(loss - alone).max() > 0.03


def half_times(margin, *starts):
    """Times at which each type alone halves the loss of 1/2, from equal starts."""
    for s, pathways, a0 in zip(speeds(margin), (2, 4), starts, strict=True):
        yield np.log((1 / (pathways * s * a0) - 1) / (1 + np.sqrt(2))) / (2 * s)


@pytest.mark.parametrize("margin", [0.3, 0.9, 1.8])
def test_losses_are_halved_at_the_textbook_times(margin):
    linear, xor = half_times(margin, 3e-7, 2e-8)
    for loss in (
        linear_loss(np.array([linear]), margin, np.full(2, 3e-7)),
        xor_loss(np.array([xor]), margin, np.full(4, 2e-8)),
    ):
        np.testing.assert_allclose(loss, 0.25, rtol=1e-12)


def test_half_times_from_equal_shares_meet_at_the_crossover_at_any_scale():
    mean = neuron_start(*random_weights(0, 10_000, 1, scale=1.0), float(CROSSOVER))
    for scale in (1e-2, 1e-5):
        linear, xor = half_times(float(CROSSOVER), *split_start(128, scale))
        np.testing.assert_allclose(linear, xor, rtol=1e-12)
        counted = (128 * scale**2 * a0.mean() for a0 in (mean.linear, mean.xor))
        linear, xor = half_times(float(CROSSOVER), *counted)
        assert linear > xor, "fewer units turn linear than half"


def test_wrong_arguments_are_refused():
    for call in (points, speeds):
        for margin in (0.0, -1.0):
            with pytest.raises(ValueError, match="margin"):
                call(margin)
    # one example closes just as another one opens
    with pytest.raises(ValueError, match="several examples at once"):
        neuron_start(np.array([[-1.0, 0.0, -0.5]]), np.array([0.5]), 0.5)
