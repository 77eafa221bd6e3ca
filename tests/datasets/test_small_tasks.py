"""Exclusive or, and tables from the configuration."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from neuralrace.datasets.table import Table
from neuralrace.datasets.xor import Xor


def test_xor_is_true_where_signs_differ():
    task = Xor(name="xor").load()
    corners = {name: float(y[0]) for name, y in zip(task.item_names, task.y, strict=True)}
    assert corners == {"(-1, -1)": -1, "(-1, +1)": 1, "(+1, -1)": 1, "(+1, +1)": -1}
    assert [f"({a:+.0f}, {b:+.0f})" for a, b in task.x] == list(task.item_names)


def test_xor_is_linear_only_corner_by_corner():
    task = Xor(name="xor").load()
    np.testing.assert_array_equal(task.sigma_yx, 0)
    np.testing.assert_array_equal(task.sigma_xx, np.eye(2))
    assert task.y_power == 1
    for corner in np.eye(4):  # gates of one pathway
        gated = task.y.T @ np.diag(corner) @ task.x / 4
        np.testing.assert_allclose(np.linalg.norm(gated), np.sqrt(2) / 4)
        inputs = task.x.T @ np.diag(corner) @ task.x / 4
        np.testing.assert_allclose(np.linalg.eigvalsh(inputs), [0, 1 / 2], atol=1e-15)


ROWS = {"x": [[1, 0.5], [0, 2], [3, 4]], "y": [[3], [1.0], [-2]]}


def table(**changes):
    return Table.model_validate_json(json.dumps({"name": "table"} | ROWS | changes))


def test_table_is_what_is_written():
    task = table().load()
    np.testing.assert_array_equal(task.x, ROWS["x"])
    np.testing.assert_array_equal(task.y, ROWS["y"])
    assert task.x.dtype == task.y.dtype == np.float64
    assert task.contexts is None


def test_table_has_contexts():
    contexts = table(contexts=[1, 0, 1]).load().contexts
    assert contexts is not None
    np.testing.assert_array_equal(contexts, [1, 0, 1])
    assert np.issubdtype(contexts.dtype, np.integer)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": [[1, 2], [3], [4, 5]]}, "row 1 of x has length 1, row 0 has 2"),
        ({"y": [[1], [2], [3, 4]]}, "row 2 of y has length 2, row 0 has 1"),
        ({"y": [[1], [2]]}, "x has 3 rows, y has 2"),
        ({"x": [], "y": []}, "at least 1 item"),
        ({"x": [[], [], []]}, "at least 1 item"),
        ({"contexts": [0, 1]}, "2 contexts for 3 samples"),
        ({"contexts": []}, "0 contexts for 3 samples"),
        ({"contexts": [0, 3, 3]}, r"contexts go up to 3 and lack \[1, 2\]"),
        ({"contexts": [1, 1, 1]}, r"contexts go up to 1 and lack \[0\]"),
        ({"contexts": [0, -1, 1]}, "greater than or equal to 0"),
        ({"y": [[1], [2], ["three"]]}, "valid number"),
    ],
)
def test_table_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        table(**changes)
