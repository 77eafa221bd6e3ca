"""Optimisers against their updates by hand, and their gradient-flow time."""

import numpy as np
import pytest

from neuralrace.training.trainer import train

RATE, STEPS = 0.02, 12


def training_with(optimiser, **parts):
    return {"learning_rate": RATE, "steps": STEPS, "optimiser": optimiser} | parts


def sgd(slopes):
    return slopes[-1]


def momentum(slopes, kept=0.7):
    """The sum of all gradients so far, each weighted by its age."""
    return sum(kept**age * slope for age, slope in enumerate(reversed(slopes)))


def adam(slopes, b1=0.8, b2=0.95, eps=1e-3):
    """Kingma and Ba 2015: weighted means of all gradients and of their squares."""
    ages = np.arange(len(slopes))[::-1]
    mean, square = (
        np.average(values, axis=0, weights=kept**ages)
        for kept, values in ((b1, slopes), (b2, np.square(slopes)))
    )
    return mean / (np.sqrt(square) + eps)


CASES = {
    "sgd": ({"name": "sgd"}, sgd),
    "momentum": ({"name": "momentum", "momentum": 0.7}, momentum),
    "adam": ({"name": "adam", "b1": 0.8, "b2": 0.95, "eps": 1e-3}, adam),
}


@pytest.mark.parametrize("case", CASES)
def test_weights_follow_updates_by_hand(make_run, case):
    optimiser, update = CASES[case]
    ensemble = make_run(training=training_with(optimiser))
    data, variables = ensemble.dataset.load(), train(ensemble).variables
    for runs in np.ndindex(2, 2):
        recorded = [variables[f"weight_{layer}"][runs] for layer in (1, 2)]
        (w1, w2), slopes = (w[0] for w in recorded), ([], [])
        for step in range(STEPS + 1):
            for w, expected in zip((w1, w2), recorded, strict=True):
                np.testing.assert_allclose(w, expected[step], rtol=1e-11, atol=1e-13)
            error = (data.x @ (w2 @ w1).T - data.y) / len(data.x)
            slopes[0].append(w2.T @ error.T @ data.x)
            slopes[1].append(error.T @ data.x @ w1.T)
            w1, w2 = (w - RATE * update(past) for w, past in zip((w1, w2), slopes, strict=True))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_mini_batches_reduce_the_loss(make_run, case, precision):
    batch = {"name": "mini", "size": 5}
    ensemble = make_run(
        training=training_with(CASES[case][0], steps=400, batch=batch),
        record={"every": 400},
        precision=precision,
    )
    loss = train(ensemble).variables["loss"]
    assert loss.dtype == precision
    assert (loss[..., -1] < 0.9 * loss[..., 0]).all()


def test_sgd_and_momentum_follow_gradient_flow(make_run):
    trainings = {case: make_run(training=training_with(CASES[case][0])).training for case in CASES}
    assert [t.optimiser.is_plain for t in trainings.values()] == [True, False, False]
    assert [t.optimiser.follows_flow for t in trainings.values()] == [True, True, False]
    # half the mean of squared errors is the loss that flow time is stated for
    assert trainings["sgd"].flow_step(20) == RATE
    np.testing.assert_allclose(trainings["momentum"].flow_step(20), RATE / 0.3)


def test_clock_of_an_optimiser_without_flow_ignores_how_losses_are_normalised(make_run):
    loss = {"normalisation": "sum"}
    plain, adam = (
        make_run(training=training_with({"name": name}, loss=loss)).training
        for name in ("sgd", "adam")
    )
    np.testing.assert_allclose(plain.flow_step(20), 40 * RATE)
    assert adam.flow_step(20) == RATE
