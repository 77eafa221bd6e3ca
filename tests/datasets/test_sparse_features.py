"""Sparse features: their moments, in closed form."""

import numpy as np
import pytest

from neuralrace.datasets.sparse_features import SparseFeatures


@pytest.mark.parametrize("active", [0.05, 0.5, 1.0])
def test_features_are_independent_with_unit_variance(active):
    strengths = (1.0, 0.5, 0.2)
    data = SparseFeatures(
        name="sparse_features", strengths=strengths, active=active, samples=200_000
    ).load()
    np.testing.assert_allclose(np.mean(data.x > 0, axis=0), active, atol=0.005)
    np.testing.assert_allclose(np.cov(data.x.T), np.eye(3), atol=0.03)
    # mean of a uniform variable on [0, c] that is active with this probability, over its deviation
    mean = active / 2 / np.sqrt(active / 3 - active**2 / 4)
    np.testing.assert_allclose(data.x.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(data.x.max(axis=0), mean * 2 / active, rtol=0.01)
    np.testing.assert_array_equal(data.y, data.x * strengths)
