"""Objects in contexts: structures by independent routes, modes and residual in closed form.

Arrays of whole targets hold 0 and 1, so their products with integer vectors are exact.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check_refusal

from neuralrace.datasets.contextual import Contextual, Structure, properties
from neuralrace.errors import UserError

STRUCTURES: tuple[Structure, ...] = ("hierarchy", "ring", "cross_cutting")


def make(contexts, **parameters):
    return Contextual(name="contextual", contexts=contexts, **parameters)


def contrasts(objects):
    """Contrast of the two halves below each inner node of a binary tree, and their joint size."""
    half = objects // 2
    while half:
        split = np.r_[np.ones(half), -np.ones(half)]
        for vector in np.kron(np.eye(objects // (2 * half)), split):
            yield vector, 2 * half
        half //= 2


# Structures -------------------------------------------------------------------------------------


def test_hierarchy_of_four_objects_is_the_tree():
    tree = ["1111", "1100", "0011", "1000", "0100", "0010", "0001"]
    np.testing.assert_array_equal(properties("hierarchy", 4), [list(map(float, r)) for r in tree])


def test_ring_and_cross_cutting_structure_of_eight_objects():
    shared: dict[Structure, str] = {
        "ring": "11000001 11100000 01110000 00111000 00011100 00001110 00000111 10000011",
        "cross_cutting": "11110000 00001111 11001100 00110011 10101010 01010101",
    }
    for structure, rows in shared.items():
        expected = np.vstack([[list(map(float, row)) for row in rows.split()], np.eye(8)])
        np.testing.assert_array_equal(properties(structure, 8), expected)


@pytest.mark.parametrize("objects", [2, 4, 8, 16, 32])
def test_objects_of_a_hierarchy_share_the_nodes_above_both(objects):
    table = properties("hierarchy", objects)
    assert table.shape == (2 * objects - 1, objects)
    levels = objects.bit_length()
    for a, b in product(range(objects), repeat=2):
        assert table[:, a] @ table[:, b] == levels - (a ^ b).bit_length()


@pytest.mark.parametrize("objects", [4, 8, 16, 32])
def test_objects_of_a_cross_cutting_structure_share_equal_digits(objects):
    table = properties("cross_cutting", objects)
    digits = objects.bit_length() - 1
    assert table.shape == (2 * digits + objects, objects)
    for a, b in product(range(objects), repeat=2):
        assert table[:, a] @ table[:, b] == digits - (a ^ b).bit_count() + (a == b)


@pytest.mark.parametrize("objects", [4, 5, 8, 13])
def test_properties_of_a_ring_are_shared_by_neighbours(objects):
    table = properties("ring", objects)
    assert table.shape == (2 * objects, objects)
    for row, owners in enumerate(table[:objects]):
        assert set(np.flatnonzero(owners)) == {(row + step) % objects for step in (-1, 0, 1)}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("objects", [4, 8, 16])
def test_singular_values_of_structures_have_closed_forms(structure, objects):
    digits = objects.bit_length() - 1
    match structure:
        case "hierarchy":
            expected = [2 * objects - 1, *(below - 1 for _, below in contrasts(objects))]
        case "ring":
            angles = 2 * np.pi * np.arange(objects) / objects
            expected = (1 + 2 * np.cos(angles)) ** 2 + 1
        case "cross_cutting":
            expected = np.ones(objects)
            expected[0] = objects * digits / 2 + 1
            expected[1 : digits + 1] = objects / 2 + 1
    actual = np.linalg.svd(properties(structure, objects))[1] ** 2
    np.testing.assert_allclose(actual, sorted(expected, reverse=True), atol=1e-12)


def test_eight_objects_have_four_properties_each_in_every_structure():
    for structure in STRUCTURES:
        np.testing.assert_array_equal(properties(structure, 8).sum(axis=0), 4)


# Samples ----------------------------------------------------------------------------------------


def test_samples_are_objects_in_contexts():
    structures = ("ring", "hierarchy", "cross_cutting")
    task = make(3, objects=4, structures=structures).load()
    assert task.input_groups == (4, 3)
    assert task.x.shape == (12, 7)
    assert task.y.shape == (12, 7 + 8 + 7 + 8)
    assert task.contexts is not None
    everywhere, *own = np.split(task.y, [7, 15, 22], axis=1)
    for context, obj in product(range(3), range(4)):
        sample = 4 * context + obj
        assert task.item_names[sample] == f"{obj} in {context}"
        assert task.contexts[sample] == context
        np.testing.assert_array_equal(np.flatnonzero(task.x[sample]), [obj, 4 + context])
        np.testing.assert_array_equal(everywhere[sample], properties("hierarchy", 4)[:, obj])
        for block, structure in enumerate(structures):
            shown = properties(structure, 4)[:, obj] * (block == context)
            np.testing.assert_array_equal(own[block][sample], shown)
    assert set(task.x.flat) == set(task.y.flat) == {0, 1}


def test_single_structure_is_used_for_all_contexts():
    single, repeated = make(3, structures=("ring",)), make(3, structures=("ring",) * 3)
    np.testing.assert_array_equal(single.load().y, repeated.load().y)
    assert make(3).load().y.shape == (24, 15 * 4)
    assert len(set(make(12).load().item_names)) == 96


# Modes ------------------------------------------------------------------------------------------


def closed_modes(objects, contexts):
    """Right singular vectors with s^2 and d, times the number of samples, as exact integers."""
    n, c, top = objects, contexts, 2 * objects - 1
    yield np.r_[c * np.ones(n), n * np.ones(c)], top * (n + c) * (c + 1), n + c
    for other in range(1, c):
        contrast = np.zeros(c)
        contrast[:other], contrast[other] = 1, -other
        yield np.r_[np.zeros(n), contrast], top * n, n
    for vector, below in contrasts(n):
        yield np.r_[vector, np.zeros(c)], (below - 1) * c * (c + 1), c
    yield np.r_[np.ones(n), -np.ones(c)], 0, 0


@pytest.mark.parametrize("objects", [2, 4, 8, 16])
@pytest.mark.parametrize("contexts", [2, 3, 4, 5])
def test_modes_of_hierarchies_are_exact(objects, contexts):
    task = make(contexts, objects=objects).load()
    x, y = task.x.astype(int), task.y.astype(int)
    correlation, modes = y.T @ x, list(closed_modes(objects, contexts))
    vectors = np.array([vector for vector, _, _ in modes]).astype(int)
    assert len(vectors) == objects + contexts
    overlaps = vectors @ vectors.T
    np.testing.assert_array_equal(overlaps, np.diag(np.diag(overlaps)))
    for vector, s_squared, d in zip(vectors, *list(zip(*modes, strict=True))[1:], strict=True):
        np.testing.assert_array_equal(correlation.T @ (correlation @ vector), s_squared * vector)
        np.testing.assert_array_equal(x.T @ (x @ vector), d * vector)


@pytest.mark.parametrize("contexts", [3, 4, 5])
def test_modes_are_those_of_the_correlations(contexts):
    task = make(contexts).load()
    samples = 8 * contexts
    s = np.array(
        [15 * (8 + contexts) * (contexts + 1)]
        + [15 * 8] * (contexts - 1)
        + [h * contexts * (contexts + 1) for h in (7, 3, 3, 1, 1, 1, 1)]
        + [0]
    )
    d = np.array([8 + contexts] + [8] * (contexts - 1) + [contexts] * 7 + [0])
    order = np.argsort(-s, kind="stable")
    singular_values = np.linalg.svd(task.sigma_yx)[1]
    np.testing.assert_allclose(singular_values, np.sqrt(s[order]) / samples, atol=1e-14)
    np.testing.assert_allclose(task.modes.s, singular_values, rtol=0, atol=1e-14)
    np.testing.assert_allclose(task.modes.d, d[order] / samples, atol=1e-13)
    assert task.modes.joint
    assert task.y_power * samples == 64 * contexts  # four properties everywhere, four in context


def test_different_structures_mix_the_modes_of_contexts():
    def commutator(structures):
        task = make(3, structures=structures).load()
        x, y = task.x.astype(int), task.y.astype(int)
        correlation, inputs = y.T @ x, x.T @ x
        squared = correlation.T @ correlation
        return squared @ inputs - inputs @ squared, task.modes.joint

    for structures in [(structure,) for structure in STRUCTURES]:
        different, joint = commutator(structures)
        assert joint
        np.testing.assert_array_equal(different, 0)
    different, joint = commutator(STRUCTURES)
    assert not joint
    # all objects together have h^2 = 15, 10 and 13: only what involves contexts is mixed
    np.testing.assert_array_equal(different[:8, :8], 0)
    assert different[8:].any()


# Parts ------------------------------------------------------------------------------------------


def additive(y, contexts):
    """Best fit by a sum of functions of object and context, from means in exact fractions.

    Each object occurs once in each context, so this is the best linear map of all inputs.
    """
    cells = np.vectorize(Fraction)(y.astype(int)).reshape(contexts, len(y) // contexts, -1)
    by_object = cells.sum(axis=0, keepdims=True) / contexts
    by_context = cells.sum(axis=1, keepdims=True) / cells.shape[1]
    both = by_object.sum(axis=1, keepdims=True) / cells.shape[1]
    return (by_object + by_context - both).reshape(y.shape).astype(float)


@st.composite
def tasks(draw):
    contexts, objects = draw(st.integers(2, 5)), draw(st.sampled_from([2, 4, 8, 16]))
    known = st.sampled_from(STRUCTURES if objects > 2 else STRUCTURES[:1])
    structures = draw(
        st.sampled_from([1, contexts]).map(int).flatmap(lambda count: st.tuples(*[known] * count))
    )
    return {"contexts": contexts, "objects": objects, "structures": structures}


@given(task=tasks())
@settings(max_examples=20)
def test_parts_are_the_best_linear_map_and_its_residual(task):
    whole, common, residual = (make(**task, part=p).load() for p in ("whole", "common", "residual"))
    for part in (common, residual):
        np.testing.assert_array_equal(part.x, whole.x)
        assert (part.item_names, part.input_groups) == (whole.item_names, whole.input_groups)
    np.testing.assert_allclose(common.y + residual.y, whole.y, atol=1e-13)
    np.testing.assert_allclose(common.y, additive(whole.y, task["contexts"]), atol=1e-13)
    np.testing.assert_allclose(residual.sigma_yx, 0, atol=1e-14)
    np.testing.assert_allclose(common.sigma_yx, whole.sigma_yx, atol=1e-14)
    np.testing.assert_allclose(common.y_power + residual.y_power, whole.y_power, rtol=1e-13)


@given(task=tasks())
@settings(max_examples=20)
def test_residual_has_no_mean_over_contexts_or_objects(task):
    contexts, objects = task["contexts"], task["objects"]
    data = make(**task, part="residual").load()
    # least squares of m samples and n inputs has a rounding error of at most m n u (Higham,
    # "Accuracy and Stability of Numerical Algorithms", thm. 20.3); tasks reach an eighth of it
    rounding = data.x.size * np.finfo(float).eps
    cells = data.y.reshape(contexts, objects, -1)
    np.testing.assert_allclose(cells.mean(axis=0), 0, atol=rounding)
    np.testing.assert_allclose(cells.mean(axis=1), 0, atol=rounding)
    np.testing.assert_allclose(cells[..., : 2 * objects - 1], 0, atol=rounding)
    left = cells[..., 2 * objects - 1 :]
    for block, structure in enumerate((task["structures"] * contexts)[:contexts]):
        table = properties(structure, objects)
        deviation = (table - table.mean(axis=1, keepdims=True)).T
        mine, left = left[..., : len(table)], left[..., len(table) :]
        for context in range(contexts):
            weight = (block == context) - 1 / contexts
            np.testing.assert_allclose(mine[context], weight * deviation, atol=rounding)
    assert left.shape[-1] == 0


@pytest.mark.parametrize("contexts", [3, 4, 5])
def test_residual_of_hierarchies_drives_pathways_open_in_some_contexts(contexts):
    """A pathway from objects that is open in q contexts: s = h sqrt(q (C - q)/C) and d = q."""
    task = make(contexts, part="residual").load()
    assert task.contexts is not None
    assert task.y_power * len(task.y) == pytest.approx(17 * (contexts - 1), rel=1e-13)
    shown = task.x[:, : task.input_groups[0]]
    for q in range(1, contexts):
        gated = shown * (task.contexts < q)[:, None]
        np.testing.assert_array_equal(gated.T @ shown, q * np.eye(8))
        h_squared = np.array([7, 3, 3, 1, 1, 1, 1, 0])
        expected = np.sqrt(h_squared * q * (contexts - q) / contexts)
        np.testing.assert_allclose(np.linalg.svd(task.y.T @ gated)[1], expected, atol=1e-13)


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "key", "words"),
    [
        (
            {"objects": 6},
            "objects",
            "6: structure hierarchy needs 2, 4, 8 or a higher power of two",
        ),
        # the ring exists for 6 objects, but not the hierarchy of all contexts
        ({"objects": 6, "structures": ("ring",)}, "objects", "structure hierarchy needs 2, 4, 8"),
        ({"objects": 2, "structures": ("ring",)}, "objects", "structure ring needs at least 4"),
        (
            {"objects": 2, "structures": ("hierarchy", "cross_cutting", "hierarchy")},
            "objects",
            "structure cross_cutting needs 4, 8 or a higher power of two",
        ),
        ({"objects": 1}, "objects", "at least 2"),
        ({"contexts": 1}, "contexts", "at least 2"),
        ({"structures": ("ring",) * 2}, "structures", "2 structures for 3 contexts; use one for"),
        ({"structures": ()}, "structures", "0 structures for 3 contexts"),
        (
            {"structures": ("ring",) * 4},
            "structures",
            "4 structures for 3 contexts ... one for each",
        ),
        ({"structures": ("tree",)}, "structures.0", "'hierarchy', 'ring' or 'cross_cutting'"),
        ({"part": "context"}, "part", "'whole', 'common' or 'residual'"),
    ],
)
def test_impossible_task_is_refused(parameters, key, words):
    check_refusal(make, {"contexts": 3} | parameters, key, words)


@pytest.mark.parametrize(
    ("structure", "objects"),
    [("hierarchy", 1), ("hierarchy", 12), ("ring", 3), ("cross_cutting", 2), ("cross_cutting", 6)],
)
def test_impossible_number_of_objects_is_refused(structure, objects):
    with pytest.raises(UserError, match=f"structure {structure} needs") as error:
        properties(structure, objects)
    assert (error.value.key, error.value.value) == ("objects", str(objects))
