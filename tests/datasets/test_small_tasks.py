"""Exclusive or, and tables from the configuration."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check_refusal

from neuralrace.datasets.table import Table
from neuralrace.datasets.xor import CROSSOVER, Xor


def test_xor_is_true_where_signs_differ():
    task = Xor(name="xor").load()
    corners = {name: float(y[0]) for name, y in zip(task.item_names, task.y, strict=True)}
    assert corners == {"(-1, -1)": -1, "(-1, +1)": 1, "(+1, -1)": 1, "(+1, +1)": -1}
    assert [f"({a:+.0f}, {b:+.0f})" for a, b in task.x] == list(task.item_names)


def test_xor_has_no_linear_mode_but_each_corner_has_one():
    task = Xor(name="xor").load()
    np.testing.assert_array_equal(task.sigma_yx, 0)
    np.testing.assert_array_equal(task.sigma_xx, np.eye(2))
    assert task.y_power == 1
    for corner in np.eye(4):  # the gate of a pathway
        gated = task.y.T @ np.diag(corner) @ task.x / 4
        np.testing.assert_allclose(np.linalg.norm(gated), np.sqrt(2) / 4)
        inputs = task.x.T @ np.diag(corner) @ task.x / 4
        np.testing.assert_allclose(np.linalg.eigvalsh(inputs), [0, 1 / 2], atol=1e-15)


def test_margin_is_a_third_input_along_the_label():
    plain, task = Xor(name="xor").load(), Xor(name="xor", margin=0.5).load()
    corners = {name: tuple(row) for name, row in zip(task.item_names, task.x, strict=True)}
    assert corners == {
        "(-1, -1)": (-1, -1, -0.5),
        "(-1, +1)": (-1, 1, 0.5),
        "(+1, -1)": (1, -1, 0.5),
        "(+1, +1)": (1, 1, -0.5),
    }
    np.testing.assert_array_equal(task.x[:, :2], plain.x)
    np.testing.assert_array_equal(task.y, plain.y)
    assert task.item_names == plain.item_names


def mode(task, gate):
    """The only mode of a pathway: s, and the eigenvalue d of sigma_xx for its input vector."""
    gated = task.x * gate[:, None]
    _, (s,), v = np.linalg.svd(task.y.T @ gated / 4)
    inputs = gated.T @ gated / 4
    np.testing.assert_allclose(inputs @ v[0], v[0] @ inputs @ v[0] * v[0], atol=1e-14)
    return s, v[0] @ inputs @ v[0]


@given(margin=st.floats(1e-3, 2))
@settings(max_examples=25)
def test_margin_sets_the_speed_of_pathways(margin):
    task = Xor(name="xor", margin=margin).load()
    label = task.y[:, 0]
    linear = [mode(task, label == sign) for sign in (1, -1)]
    np.testing.assert_allclose(linear, [[margin / 2, margin**2 / 2]] * 2, atol=1e-14)
    single = [mode(task, corner) for corner in np.eye(4)]
    power = 2 + margin**2
    np.testing.assert_allclose(single, [[np.sqrt(power) / 4, power / 4]] * 4, atol=1e-14)
    # the third input alone separates the classes
    np.testing.assert_array_equal(np.sign(task.x[:, 2]), label)


def test_pathways_of_classes_overtake_pathways_of_corners_at_the_crossover():
    def lead(margin):
        task = Xor(name="xor", margin=margin).load()
        return mode(task, task.y[:, 0] == 1)[0] - mode(task, np.eye(4)[0])[0]

    np.testing.assert_allclose(lead(CROSSOVER), 0, atol=1e-15)
    assert lead(CROSSOVER - 0.01) < 0 < lead(CROSSOVER + 0.01)


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (0.0, "must be greater than 0"),
        (-1.0, "must be greater than 0"),
        (2.1, "must be at most 2"),
        (float("nan"), "expected a finite number"),
    ],
)
def test_margin_outside_its_range_is_refused(margin, words):
    check_refusal(Xor, {"name": "xor", "margin": margin}, "margin", words)


ROWS = {"x": [[1, 0.5], [0, 2], [3, 4]], "y": [[3], [1.0], [-2]]}


def table(**changes):
    return Table.model_validate_json(json.dumps({"name": "table"} | ROWS | changes))


def test_table_has_the_rows_of_the_configuration():
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
    ("changes", "key", "words"),
    [
        ({"x": [[1, 2], [3], [4, 5]]}, "x", "[3.0]: row 1 has length 1, and row 0 has 2"),
        ({"y": [[1], [2], [3, 4]]}, "y", "[3.0, 4.0]: row 2 has length 2, and row 0 has 1"),
        ({"y": [[1], [2]]}, "y", "has 2 entries, and x has 3 rows"),
        ({"x": [], "y": []}, "x", "at least 1 item"),
        ({"x": [[], [], []]}, "x.0", "at least 1 item"),
        ({"contexts": [0, 1]}, "contexts", "has 2 entries, and x has 3 rows"),
        ({"contexts": []}, "contexts", "has 0 entries"),
        ({"contexts": [0, 3, 3]}, "contexts", "up to 3 without [1, 2]; number contexts from 0"),
        ({"contexts": [1, 1, 1]}, "contexts", "up to 1 without [0]"),
        ({"contexts": [0, -1, 1]}, "contexts.1", "at least 0"),
        ({"y": [[1], [2], ["three"]]}, "y.2.0", "expected a number"),
    ],
)
def test_inconsistent_table_is_refused(changes, key, words):
    check_refusal(table, changes, key, words)
