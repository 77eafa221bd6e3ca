"""Values that figures of ReLU networks and gated networks compute."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from neuralrace.errors import UserError
from neuralrace.figures.contextual import (
    candidate_names,
    families,
    first_seed,
    mode_groups,
    nearest_snapshots,
    open_in,
    opening_label,
    outputs_at_loss,
    pathway_gates,
    task,
    typical_seed,
)
from neuralrace.figures.make_haste.similarity import upright
from neuralrace.figures.sweeps import relative_loss
from neuralrace.metrics.relu.imitation import classical_scaling
from neuralrace.results.cells import CellResults

draws = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(draws)
def test_classical_scaling_of_inner_products_equals_that_of_vectors(rng: np.random.Generator):
    vectors = rng.normal(size=(7, 5)) * (9, 4, 1, 1, 1) + rng.normal(size=5)
    scaled = classical_scaling(vectors @ vectors.T)
    centred = vectors - vectors.mean(axis=0)
    expected = centred @ np.linalg.svd(centred)[2][:2].T
    np.testing.assert_allclose(pdist(scaled), pdist(expected), atol=1e-9)
    np.testing.assert_allclose(scaled.sum(axis=0), 0, atol=1e-9)


@given(draws, st.floats(0, 2 * np.pi), st.booleans())
def test_upright_points_do_not_depend_on_rotations_and_reflections(
    rng: np.random.Generator, angle: float, mirror: bool
):
    points, groups = rng.normal(size=(6, 2)), np.repeat([0, 1, 2], 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[0] *= -1 if mirror else 1
    shown, turned = (each @ upright(each, groups) for each in (points, points @ turn))
    np.testing.assert_allclose(turned, shown, atol=1e-9)
    np.testing.assert_allclose(pdist(shown), pdist(points), atol=1e-9)
    first, last = shown[groups == 0].mean(axis=0), shown[groups == 2].mean(axis=0)
    assert first[0] == pytest.approx(0, abs=1e-9)
    assert first[1] > 0 <= last[0]


@given(draws, st.floats(0.1, 0.95))
def test_outputs_at_a_loss_lie_between_snapshots(rng: np.random.Generator, level: float):
    losses = np.array([1.0, 0.7, 0.4, 0.1])
    slope, start = rng.normal(size=(2, 3, 2))
    # Interpolation is exact for outputs that are linear in the loss.
    outputs = start + losses[:, None, None] * slope
    np.testing.assert_allclose(
        outputs_at_loss(level, losses, outputs), start + level * slope, atol=1e-12
    )


def test_outputs_beyond_the_losses_are_those_of_the_ends():
    losses, outputs = np.array([1.0, 0.5, 0.2]), np.arange(3.0)[:, None, None]
    assert outputs_at_loss(2.0, losses, outputs) == 0
    assert outputs_at_loss(0.1, losses, outputs) == 2


def test_typical_run_is_closest_to_the_mean_of_those_that_did_not_diverge():
    speed = xr.DataArray([np.nan, 0.0, 0.5, 0.8, 4.0], dims="seed")
    loss = 1 - speed * xr.DataArray(np.linspace(0, 0.2, 5), dims="time")
    runs = loss.assign_coords(seed=range(5)).expand_dims(init_scale=[0.1])
    cell = CellResults("a/b/c", Path(), trajectory=xr.Dataset({"loss": runs}))
    # The mean speed is 1.325, nearest to 0.8; nearest to the median would be 0.5.
    assert typical_seed(cell) == 3
    assert first_seed(cell) == 1


def test_nearest_snapshots_are_chosen_by_ratio():
    # 0.4 is nearer to 0.2 than 0.05 by ratio, and farther by difference.
    assert nearest_snapshots(np.array([1.0, 0.4, 0.05, 0.01]), (0.2, 0.02, 5.0)) == [1, 3, 0]


def test_modes_with_close_curves_are_one_group():
    time = np.linspace(0, 1, 50)
    curves = np.stack([2 * time, 2 * time**8, 2 * time + 0.1, 0.001 * time], axis=-1)
    # The first two have equal ends; only the first and the third are close at all times.
    assert mode_groups(xr.DataArray(curves, dims=("time", "pathway_mode"))) == [[0, 2], [1]]


def test_families_are_sorted_by_number_of_contexts(results_of):
    results = results_of("make_haste/")
    by_family = families(reversed(results.cells("contextual_gated")))
    assert list(by_family) == [(1,), (2,)]
    for numbers, cell in by_family.items():
        assert open_in(cell.spec.network, cell.name) == numbers
        dataset = task(cell)
        opened = pathway_gates(cell).reshape(-1, dataset.contexts, dataset.objects).all(axis=2)
        assert opened.sum(axis=1).tolist() == [dataset.contexts, *[numbers[0]] * 3]
        assert opening_label(pathway_gates(cell)[0], dataset) == "common"
        contexts = ", ".join(str(context) for context in range(1, numbers[0] + 1))
        assert opening_label(pathway_gates(cell)[1], dataset) == f"open in {contexts}"
    assert candidate_names(results.cell("contextual")) == {(1,): "one", (2,): "two"}


@pytest.mark.parametrize(
    ("part", "key", "problem"),
    [
        (task, "experiments.deep_linear.semantic_deep.dataset.name", "no contexts"),
        (pathway_gates, "experiments.deep_linear.semantic_deep.network.name", "no gates of path"),
        (lambda cell: open_in(cell.spec.network, "a"), "a", "no pathways that are open by context"),
    ],
)
def test_other_tasks_and_networks_are_refused(results_of, part, key: str, problem: str):
    with pytest.raises(UserError, match=problem) as error:
        part(results_of("deep_linear/semantic").cell("semantic_deep"))
    assert error.value.key == key


def test_relative_loss_is_of_the_smallest_init_scale():
    loss = xr.DataArray(
        [[[4.0, 2.0]], [[10.0, 1.0]]],
        {"init_scale": [0.1, 0.01], "seed": [0]},
        ("init_scale", "seed", "time"),
    )
    np.testing.assert_allclose(relative_loss(loss), [[1, 0.1]])
