"""The semantic hierarchy: its singular values, and the value of its properties."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from neuralrace.datasets.hierarchy import Hierarchy


def test_singular_values_are_those_of_the_tree():
    modes = Hierarchy(name="hierarchy").load().modes
    assert_allclose(4 * modes.s, np.sqrt([7, 3, 1, 1]))


def test_scale_multiplies_targets():
    plain, scaled = Hierarchy(name="hierarchy").load(), Hierarchy(name="hierarchy", scale=4).load()
    assert_array_equal(scaled.y, 4 * plain.y)
    assert_array_equal(scaled.x, plain.x)


def test_scale_of_one_is_left_out_of_the_specification():
    """So results of earlier versions stay valid."""
    assert Hierarchy(name="hierarchy", scale=1.0).model_dump() == {"name": "hierarchy"}
