"""Fits of closed forms to the loss, on losses from formulas that are written out."""

from math import comb

import numpy as np
import pytest

from builders import (
    assert_close,
    cell_with_requirements,
    flow_time,
    metrics_of,
)
from neuralrace.theory.contextual import head_start, staged_loss

CONTEXTUAL = {
    "dataset": {"name": "contextual", "contexts": 4, "objects": 8},
    "network": {"name": "layered", "hidden": [700], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [1e-4],
    "seeds": 1,
    "training": {"learning_rate": 0.001, "steps": 8000, "loss": {"normalisation": "half_sum"}},
    "record": {"every": 40},
}


def contextual_cell(contexts, **changes):
    dataset = CONTEXTUAL["dataset"] | {"contexts": contexts}
    return cell_with_requirements(["uniqueness"], CONTEXTUAL, **({"dataset": dataset} | changes))


def staged(time, contexts, open_in, common, context):
    """Loss of 8 objects by the formulas of the notes, with sums over samples and time t/N."""

    def learned(s, d, a0, k=1.0):
        a = (s / (k * d)) / (1 - (1 - s / (k * d * a0)) * np.exp(-2 * s * time))
        return s * a - k * d * a**2 / 2

    loss = np.full(time.shape, 0.5 * 8 * contexts * 4 * 2)  # eight properties a sample
    loss -= learned(np.sqrt(15 * (8 + contexts) * (contexts + 1)), 8 + contexts, common)
    loss -= (contexts - 1) * learned(np.sqrt(15 * 8), 8, common)
    for power in (7, 3, 3, 1, 1, 1, 1):
        s = np.sqrt(power * contexts * (contexts + 1))
        loss -= learned(s, contexts, common)
        q, k = open_in, comb(contexts - 2, open_in - 1) / open_in
        s = np.sqrt(power * q * (contexts - q) / contexts)
        loss -= comb(contexts, q) * learned(s, q, context, k)
    return loss


def fitted(cell, loss):
    metrics = metrics_of(cell, loss=np.reshape(loss, (1, 1, -1)))
    return metrics.isel(init_scale=0, seed=0)


@pytest.mark.parametrize(("contexts", "open_in"), [(3, 2), (4, 2), (4, 3), (5, 2)])
def test_family_of_a_loss_and_its_initial_strengths_are_recovered(contexts, open_in):
    cell = contextual_cell(contexts)
    time = np.arange(0, 8001, 40) * 0.001
    metrics = fitted(cell, staged(time, contexts, open_in, 3e-6, 2e-3))
    assert metrics["fitted_gap"].dims == ("open_in",)
    np.testing.assert_array_equal(metrics["open_in"], np.arange(1, contexts))
    own = metrics.sel(open_in=open_in)
    assert_close(own["fitted_gap"], 0.0, atol=1e-6)
    assert_close(own["fitted_common_start"], 3e-6, rtol=1e-5)
    assert_close(own["fitted_context_start"], 2e-3, rtol=1e-5)
    assert own["unfitted_gap"] > 0.05
    others = [q for q in range(1, contexts) if q != open_in]
    same = [contexts - open_in]  # has the same closed form
    for q in others:
        gap = float(metrics["fitted_gap"].sel(open_in=q))
        assert (gap < 1e-6) == (q in same), (q, gap)


@pytest.mark.parametrize("contexts", [3, 4])
def test_initial_strengths_without_a_fit_are_those_of_equal_widths(contexts):
    cell = contextual_cell(contexts)
    time = np.arange(0, 8001, 40) * 0.001
    half = 700 * 1e-8 / 4
    for open_in in range(1, contexts):
        loss = staged(time, contexts, open_in, half, half / comb(contexts, open_in))
        metrics = fitted(cell, loss).sel(open_in=open_in)
        assert_close(metrics["unfitted_gap"], 0.0, atol=1e-12)
        assert_close(metrics["fitted_common_start"], half, rtol=1e-4)
        assert metrics["head_start_gap"] > 0.01


def test_head_starts_agree_with_theory():
    cell = contextual_cell(4)
    task = 4, 8, 3
    common, context = np.full(11, 700 * 1e-8 / 4), np.full(7, 700 * 1e-8 / 16)
    start = head_start(*task, common, context)
    loss = 32 * staged_loss(flow_time(cell), *task, common, start)  # the sum over 32 samples
    metrics = fitted(cell, loss)
    assert_close(metrics["head_start_gap"].sel(open_in=3), 0.0, atol=1e-12)
    assert (metrics["head_start_gap"].sel(open_in=[1, 2]) > 0.01).all()


def test_gaps_do_not_depend_on_the_units_of_the_loss():
    cell = contextual_cell(3)
    time = np.arange(0, 8001, 40) * 0.001
    loss = staged(time, 3, 2, 3e-6, 2e-3)
    bent = np.where(time < 4, loss, 0.5 * loss)
    metrics = fitted(cell, bent)
    mean = contextual_cell(
        3, training={"learning_rate": 0.024, "steps": 8000, "loss": {"normalisation": "half_mean"}}
    )
    again = fitted(mean, bent / 24)
    for name in ("unfitted_gap", "fitted_gap", "head_start_gap"):
        assert_close(metrics[name], again[name].values, rtol=1e-6)
    expected = np.max(np.abs(bent - staged(time, 3, 2, *2 * [700 * 1e-8 / 4]))) / loss[0]
    assert expected > 0  # equal initial strengths are not those of equal widths
    own = np.max(np.abs(bent - staged(time, 3, 2, 700 * 1e-8 / 4, 700 * 1e-8 / 12))) / loss[0]
    assert_close(metrics["unfitted_gap"].sel(open_in=2), own, rtol=1e-9)


def test_every_run_has_its_own_fit():
    cell = contextual_cell(3, init_scales=[1e-4, 1e-3], seeds=2)
    time = np.arange(0, 8001, 40) * 0.001
    starts = np.array([[1e-6, 1e-5], [1e-4, 1e-3]])
    loss = [[staged(time, 3, 2, a0, 10 * a0) for a0 in row] for row in starts]
    loss[1][0] = np.where(time < 5, loss[1][0], np.nan)
    metrics = metrics_of(cell, loss=np.array(loss)).sel(open_in=2)
    expected = starts.copy()
    expected[1, 0] = np.nan
    assert_close(metrics["fitted_common_start"], expected, rtol=1e-4)
    assert_close(metrics["fitted_context_start"], 10 * expected, rtol=1e-4)
    assert metrics["unfitted_gap"].isnull().sum() == 1
