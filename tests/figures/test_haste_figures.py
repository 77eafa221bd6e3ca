"""What the figures of ReLU networks and their gated networks compute for themselves."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from neuralrace.errors import UserError
from neuralrace.figures.contextual import (
    alike,
    at_loss,
    candidates,
    families,
    first,
    nearest,
    open_in,
    opening,
    pathway_gates,
    relative,
    task,
    typical,
)
from neuralrace.figures.make_haste.similarity import turned
from neuralrace.figures.neural_race import structural_forms
from neuralrace.metrics.relu.imitation import classical_scaling
from neuralrace.results.cells import CellResults, open_results

draws = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(draws)
def test_scaling_of_inner_products_is_that_of_the_vectors(rng: np.random.Generator):
    vectors = rng.normal(size=(7, 5)) * (9, 4, 1, 1, 1) + rng.normal(size=5)
    scaled = classical_scaling(vectors @ vectors.T)
    (expected,) = structural_forms.classical_scaling(vectors[None])
    np.testing.assert_allclose(pdist(scaled), pdist(expected), atol=1e-9)
    np.testing.assert_allclose(scaled.sum(axis=0), 0, atol=1e-9)


@given(draws, st.floats(0, 2 * np.pi), st.booleans())
def test_turning_undoes_rotations_and_reflections(
    rng: np.random.Generator, angle: float, mirror: bool
):
    points = rng.normal(size=(6, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[0] *= -1 if mirror else 1
    np.testing.assert_allclose(turned(points @ turn, points), points, atol=1e-9)
    near = points + 0.3 * rng.normal(size=points.shape)
    off = np.linalg.norm(turned(near, points) - points)
    np.testing.assert_allclose(pdist(turned(near, points)), pdist(near), atol=1e-9)
    assert off <= np.linalg.norm(near @ turn - points) + 1e-9


@given(draws, st.floats(0.1, 0.95))
def test_outputs_at_a_loss_lie_between_snapshots(rng: np.random.Generator, level: float):
    losses = np.array([1.0, 0.7, 0.4, 0.1])
    slope, start = rng.normal(size=(2, 3, 2))
    # outputs that are linear in the loss are met exactly
    outputs = start + losses[:, None, None] * slope
    np.testing.assert_allclose(at_loss(level, losses, outputs), start + level * slope, atol=1e-12)


def test_outputs_beyond_the_losses_are_those_of_the_ends():
    losses, outputs = np.array([1.0, 0.5, 0.2]), np.arange(3.0)[:, None, None]
    assert at_loss(2.0, losses, outputs) == 0
    assert at_loss(0.1, losses, outputs) == 2


def test_typical_run_is_closest_to_the_mean_of_those_that_did_not_diverge():
    speed = xr.DataArray([np.nan, 0.0, 0.5, 0.8, 4.0], dims="seed")
    loss = 1 - speed * xr.DataArray(np.linspace(0, 0.2, 5), dims="time")
    runs = loss.assign_coords(seed=range(5)).expand_dims(init_scale=[0.1])
    cell = CellResults("a/b/c", Path(), trajectory=xr.Dataset({"loss": runs}))
    # the mean speed is 1.325, whose nearest is 0.8; of the median it would be 0.5
    assert typical(cell) == 3
    assert first(cell) == 1


def test_nearest_snapshots_are_so_by_ratio():
    # of 0.2 the ratio to 0.4 is smaller than that to 0.05, and the difference larger
    assert nearest(np.array([1.0, 0.4, 0.05, 0.01]), (0.2, 0.02, 5.0)) == [1, 3, 0]


def test_modes_that_stay_together_are_alike():
    time = np.linspace(0, 1, 50)
    curves = np.stack([2 * time, 2 * time**8, 2 * time + 0.1, 0.001 * time], axis=-1)
    # the first two end alike, and only the first and the third are so throughout
    assert alike(xr.DataArray(curves, dims=("time", "pathway_mode"))) == [[0, 2], [1]]


def test_families_are_in_the_order_of_their_contexts(results_root: Path, cell_ids: list[str]):
    results = open_results(results_root, cell_ids)
    found = families(reversed(results.cells("contextual_gated")))
    assert list(found) == [(1,), (2,)]
    for numbers, cell in found.items():
        assert open_in(cell.spec.network, cell.name) == numbers
        dataset = task(cell)
        opened = pathway_gates(cell).reshape(-1, dataset.contexts, dataset.objects).all(axis=2)
        assert opened.sum(axis=1).tolist() == [dataset.contexts, *[numbers[0]] * 3]
        assert opening(pathway_gates(cell)[0], dataset) == "common"
        told = ", ".join(str(context) for context in range(1, numbers[0] + 1))
        assert opening(pathway_gates(cell)[1], dataset) == f"open in {told}"
    assert candidates(results.cell("contextual")) == {
        (1,): "one",
        (2,): "two",
        (1, 2): "one_and_two",
    }


def test_other_tasks_and_networks_are_refused(results_root: Path, cell_ids: list[str]):
    cell = open_results(results_root, cell_ids).cell("semantic_deep")
    with pytest.raises(UserError, match=r"semantic.* has no contexts"):
        task(cell)
    with pytest.raises(UserError, match=r"'layered' has no gates of pathways"):
        pathway_gates(cell)
    with pytest.raises(UserError, match=r"semantic.* no pathways that are open by context"):
        open_in(cell.spec.network, cell.name)


def test_relative_loss_is_of_the_smallest_init_scale():
    loss = xr.DataArray(
        [[[4.0, 2.0]], [[10.0, 1.0]]],
        {"init_scale": [0.1, 0.01], "seed": [0]},
        ("init_scale", "seed", "time"),
    )
    np.testing.assert_allclose(relative(loss), [[1, 0.1]])
