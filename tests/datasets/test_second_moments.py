"""Eigenmodes of matrices of second moments."""

import numpy as np
import pytest

from neuralrace.datasets.second_moments import eigenmodes


def test_modes_without_input_have_no_variance():
    x = np.random.default_rng(0).normal(size=(50, 3)) @ np.eye(3, 5)
    moment = x.T @ x / len(x)
    values, vectors, rounding = eigenmodes(moment, "moment")
    assert (values[:2] == 0).all()
    assert (np.diff(values[1:]) > 0).all()
    assert 0 < rounding < 1e-13
    np.testing.assert_allclose(vectors * values @ vectors.T, moment, atol=1e-14)


@pytest.mark.parametrize(
    ("matrix", "wrong"),
    [
        ([[1.0, 0.5], [0.0, 1.0]], "moment is not symmetric"),
        ([[1.0, 0.0], [0.0, -1.0]], "moment is not positive semidefinite"),
    ],
)
def test_matrix_that_is_not_positive_semidefinite_is_refused(matrix, wrong):
    with pytest.raises(ValueError, match=wrong):
        eigenmodes(np.array(matrix), "moment")
