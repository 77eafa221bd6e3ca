"""Metrics of pathways side by side: shares, learning times and correlations."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

from builders import (
    assert_close,
    cell_with_requirements,
    metrics_of,
    trained_trajectory,
)
from neuralrace.metrics.gates.pathway_correlations import commutator, first_value_without

CONTEXTUAL = {
    "dataset": {"name": "contextual", "contexts": 2, "objects": 2},
    "network": {"name": "gated", "hidden": [4], "gates": {"name": "contexts", "open_in": [1]}},
    "init": {"name": "normal"},
    "init_scales": [0.01, 0.1],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 4000},
    "record": {"every": 10, "observables": ["pathway_values"]},
}
pathway_cell = partial(cell_with_requirements, base=CONTEXTUAL)


# Shares and half times ---------------------------------------------------------------------------


def test_pathway_shares_follow_from_squared_maps():
    cell = pathway_cell(["pathway_share"])
    trajectory = trained_trajectory(cell)
    values = trajectory["pathway_values"].copy()
    values[:, :, -1] = 0
    values[:, :, -1, 0, :2] = [3.0, 1.0]
    values[:, :, -1, 2, 0] = 2.0
    metrics = metrics_of(cell, trajectory.assign(pathway_values=values))["pathway_share"]
    assert_close(metrics, np.broadcast_to([10 / 14, 0, 4 / 14], metrics.shape))


def test_half_time_and_error_of_pathway_modes():
    cell = pathway_cell(["analytic_fit", "pathway_share"], solutions=["pathway_modes"])
    trajectory = trained_trajectory(cell)
    time = trajectory["flow_time"].values
    values = trajectory["pathway_values"].copy()
    # straight lines that reach half of their final value at 1/2 and at 7/8 of the time
    values[:] = 0.01 * (time / time[-1])[:, None, None]
    values[:, :, :, 0, 0] = 3 * time / time[-1]
    values[:, :, :, 1, 0] = np.maximum(0, 4 * time / time[-1] - 3)
    trajectory = trajectory.assign(pathway_values=values)
    off = values.copy()
    off[:, :, 2, 1, 0] += 0.6
    predicted = xr.concat([values, off], xr.Variable("solution", ["same", "off"]))
    loss = trajectory["loss"].expand_dims(solution=["same", "off"])
    theory = xr.Dataset({"pathway_values": predicted, "loss": loss})
    metrics = metrics_of(cell, trajectory, theory)
    half = metrics["pathway_half_time"].isel(pathway_mode=0)
    assert_close(half.isel(pathway=0), np.full(half.isel(pathway=0).shape, time[-1] / 2), rtol=1e-6)
    assert_close(
        half.isel(pathway=1), np.full(half.isel(pathway=0).shape, 7 / 8 * time[-1]), rtol=1e-6
    )
    error = metrics["pathway_error_sup"].isel(init_scale=0, seed=0)
    assert_close(error.sel(solution="same"), np.zeros(3))
    assert_close(error.sel(solution="off").transpose(), [0, 0.2, 0])


# Correlations ------------------------------------------------------------------------------------


def correlation_cell(dataset, **gates):
    network = {"name": "gated", "hidden": [4], "gates": {"name": "contexts"} | gates}
    return pathway_cell(["pathway_correlations"], network=network, dataset=dataset)


def test_input_correlations_commute_for_hierarchies_only():
    """Compared with eigenvectors: both are diagonal in the right singular vectors, or not."""
    for structures, diagonal in ((["hierarchy"], True), (["hierarchy", "ring", "ring"], False)):
        dataset = {"name": "contextual", "contexts": 3, "objects": 4, "structures": structures}
        cell = correlation_cell(dataset, open_in=[2])
        metrics = metrics_of(cell)["pathway_commutator"]
        data = cell.dataset.load()
        sigma_yx, sigma_xx = data.y.T @ data.x, data.x.T @ data.x
        # a generic combination of commuting matrices has the eigenvectors of both
        _, v = np.linalg.eigh(sigma_yx.T @ sigma_yx + 0.3 * sigma_xx)
        rotated = v.T @ sigma_xx @ v
        rest = np.linalg.norm(rotated - np.diag(np.diag(rotated)))
        assert (rest < 1e-9) == diagonal
        assert (metrics.sel(pathway=1) < 1e-12) == diagonal
        # sigma_xx of pathways with one-hot objects only is a multiple of the identity
        np.testing.assert_allclose(metrics.sel(pathway=[2, 3, 4]), 0, atol=1e-12)
    first, second = np.diag([1.0, 0]), np.array([[0, 1.0], [1, 0]])
    np.testing.assert_allclose(commutator(first, second), 1)


def test_residual_is_uncorrelated_with_contexts_over_all_samples_only():
    cell = correlation_cell({"name": "contextual", "contexts": 3, "objects": 4}, open_in=[2])
    metrics = metrics_of(cell)
    np.testing.assert_allclose(metrics["residual_context_correlation"], 0, atol=1e-12)
    # outputs of the best linear map are both means minus the mean over both
    data = cell.dataset.load()
    mean = data.y.reshape(3, 4, -1)
    linear = mean.mean(0, keepdims=True) + mean.mean(1, keepdims=True) - mean.mean((0, 1))
    left = (mean - linear).reshape(12, -1)
    expected = max(np.linalg.norm(r) / np.linalg.norm(y) for r, y in zip(left, data.y, strict=True))
    np.testing.assert_allclose(metrics["residual_context_correlation_of_one"], expected)
    assert expected > 0.3


def test_first_singular_value_falls_with_every_input_and_output_and_every_positive_sample():
    """Against eigenvalues of the Gram matrix; with the edge case of an orthogonal sample."""
    rng = np.random.default_rng(4)

    def first(x, y):
        return np.sqrt(np.linalg.eigvalsh(x.T @ y @ y.T @ x)[-1])

    data = correlation_cell({"name": "contextual", "contexts": 3, "objects": 4}, open_in=[2])
    data = data.dataset.load()
    positive = rng.random((6, 4)), rng.random((6, 7))
    signed = rng.normal(size=(6, 4)), rng.normal(size=(6, 7))
    for x, y in (positive, signed, (data.x, data.y)):
        ratios = first_value_without(x, y)
        for removed, kept in {
            "input": [(np.delete(x, i, axis=1), y) for i in range(x.shape[1])],
            "output": [(x, np.delete(y, i, axis=1)) for i in range(y.shape[1])],
            "sample": [(np.delete(x, i, axis=0), np.delete(y, i, axis=0)) for i in range(len(x))],
        }.items():
            expected = max(first(*each) for each in kept) / first(x, y)
            np.testing.assert_allclose(ratios.sel(removed=removed), expected)
            # without a sample whose signs cancel those of others the value is larger
            assert (expected < 1) == (removed != "sample" or x is not signed[0])
    # a weak sample that is orthogonal to all others is the edge case: nothing falls without it
    x, y = (np.pad(part, (0, 1)) for part in positive)
    x[-1, -1] = y[-1, -1] = 0.1
    np.testing.assert_allclose(first_value_without(x, y).sel(removed="sample"), 1, rtol=1e-12)


def test_correlations_need_pathways_and_two_input_groups():
    with pytest.raises(ValueError, match=r"network.name: 'layered'.* use gated"):
        pathway_cell(["pathway_correlations"], network={"name": "layered", "hidden": [4]})
    network = {"name": "gated", "hidden": [4], "gates": {"name": "per_example"}}
    cell = pathway_cell(["pathway_correlations"], network=network, dataset={"name": "xor"})
    assert "its inputs come in no two groups" in str(cell.unfit())
