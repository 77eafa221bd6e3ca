"""Structural forms: covariances by independent routes, and drawings that fit the graph."""

import numpy as np
import pytest
from refusals import check_refusal
from scipy.fft import dct
from scipy.sparse.csgraph import connected_components, laplacian

from neuralrace.datasets.structural_forms import StructuralForm

FORMS = ("tree", "chain", "ring", "cluster", "cross_cutting")
PURE = FORMS[:-1]
ALL = pytest.mark.parametrize(
    ("form", "items"),
    [(form, items) for form in FORMS for items in (8, 16)]
    + [("tree", 2), ("chain", 2), ("chain", 5), ("ring", 3), ("cluster", 12), ("cross_cutting", 4)],
)


def make(form, items=8):
    return StructuralForm(name="structural_form", form=form, items=items)


def adjacency(form):
    edges, latent = form.graph()
    weights = np.zeros((form.items + latent, form.items + latent))
    for a, b, weight in edges:
        assert weights[a, b] == 0
        weights[a, b] = weights[b, a] = weight
    return weights


def strengths(form, vectors):
    """Eigenvalues of the covariance for vectors, after a check that they are eigenvectors."""
    vectors = np.asarray(vectors, dtype=float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.einsum("ki,ij,kj->k", vectors, form.covariance(), vectors)
    np.testing.assert_allclose(form.covariance() @ vectors.T, vectors.T * values, atol=1e-12)
    return values


def contrasts(items):
    """Vectors by level of a binary tree: all leaves, then a contrast for each inner node."""
    levels, half = [[np.ones(items)]], items // 2
    while half:
        split = np.r_[np.ones(half), -np.ones(half)]
        levels.append(list(np.kron(np.eye(items // (2 * half)), split)))
        half //= 2
    return levels


@ALL
def test_targets_have_the_covariance_exactly(form, items):
    form = make(form, items)
    task = form.load()
    np.testing.assert_allclose(task.y @ task.y.T, form.covariance(), atol=1e-13)
    np.testing.assert_allclose(task.y, task.y.T, atol=1e-14)
    np.testing.assert_array_equal(task.x, np.eye(items))
    eigenvalues = np.linalg.eigvalsh(form.covariance())[::-1]
    np.testing.assert_allclose(task.modes.s, np.sqrt(eigenvalues) / items)
    np.testing.assert_allclose(task.modes.d, 1 / items)
    assert task.modes.joint


@pytest.mark.parametrize("form", PURE)
def test_covariance_inverts_the_schur_complement_of_the_precision(form):
    form = make(form)
    precision = laplacian(adjacency(form)) + np.eye(len(adjacency(form))) / 5
    seen, hidden = slice(None, form.items), slice(form.items, None)
    through = np.linalg.solve(precision[hidden, hidden], precision[hidden, seen])
    marginal = precision[seen, seen] - precision[seen, hidden] @ through
    np.testing.assert_allclose(form.covariance() @ marginal, np.eye(form.items), atol=1e-12)


@pytest.mark.parametrize("items", [2, 5, 8])
def test_chain_has_cosine_modes(items):
    k = np.arange(items)
    values = strengths(make("chain", items), dct(np.eye(items), norm="ortho", axis=0))
    np.testing.assert_allclose(values, 1 / (2 - 2 * np.cos(np.pi * k / items) + 1 / 5))


@pytest.mark.parametrize("items", [3, 8, 9])
def test_ring_has_degenerate_fourier_pairs(items):
    k = np.arange(1, (items + 1) // 2)[:, None]
    angle = 2 * np.pi * k * np.arange(items) / items
    cosines, sines = (strengths(make("ring", items), wave(angle)) for wave in (np.cos, np.sin))
    np.testing.assert_allclose(cosines, sines)
    np.testing.assert_allclose(cosines, 1 / (2 - 2 * np.cos(2 * np.pi * k[:, 0] / items) + 1 / 5))
    np.testing.assert_allclose(strengths(make("ring", items), [np.ones(items)]), 5)


@pytest.mark.parametrize("items", [2, 8, 16])
def test_tree_has_its_splits_as_modes_from_coarse_to_fine(items):
    form = make("tree", items)
    depth = items.bit_length() - 1
    # A contrast of the two halves below a node leaves this node at zero. Below it, nodes of one
    # level are equal, which leaves one chain from the leaves to the node; leaves have unit force.
    weights = 4.0 ** np.arange(depth)  # from the root down

    def driven_leaf(below, grounded):
        matrix = np.eye(len(below) + 1) / 5
        for level, weight in enumerate(below):
            matrix[[level, level + 1], [level, level + 1]] += [2 * weight, weight]
            matrix[level, level + 1] -= 2 * weight
            matrix[level + 1, level] -= weight
        free = matrix[grounded:, grounded:]
        return np.linalg.solve(free, np.eye(len(free))[-1])[-1]

    expected = [driven_leaf(weights, 0)]
    expected += [driven_leaf(weights[level:], 1) for level in range(depth)]
    values = [strengths(form, level) for level in contrasts(items)]
    for measured, value in zip(values, expected, strict=True):
        np.testing.assert_allclose(measured, value)
    assert (np.diff(expected) < 0).all()


def test_second_mode_of_the_tree_is_the_split_at_the_root():
    modes = make("tree").load().modes
    np.testing.assert_allclose(np.abs(modes.v[:, 0]), 1 / np.sqrt(8))
    np.testing.assert_allclose(modes.v[:, 1] * modes.v[0, 1] * 8, [1] * 4 + [-1] * 4, atol=1e-12)
    s = modes.s[[0, 1, 2, 4]]  # one of each level
    assert (s[:-1] / s[1:] > 1.2).all()  # distinct learning times, which scale as 1/s


@pytest.mark.parametrize("items", [8, 12])
def test_cluster_modes_are_groups_then_contrasts_within(items):
    form = make("cluster", items)
    size = items // 4
    within = np.zeros((4 * (size - 1), items))
    for row, (group, item) in enumerate(np.ndindex(4, size - 1)):
        within[row, group * size + np.r_[: item + 2]] = [1] * (item + 1) + [-(item + 1)]
    groups = strengths(form, np.kron(np.eye(4), np.ones(size)))
    inside = strengths(form, within)
    # a contrast within a group leaves its latent node at zero; a group mode moves it
    np.testing.assert_allclose(inside, 1 / (4 + 1 / 5))
    np.testing.assert_allclose(groups, 1 / (4 + 1 / 5 - 16 * size / (4 * size + 1 / 5)))
    assert groups[0] > 10 * inside[0]


@pytest.mark.parametrize("items", [4, 8, 16])
def test_cross_cutting_adds_a_grouping_to_the_tree(items):
    form = make("cross_cutting", items)
    added = form.covariance() - make("tree", items).covariance()
    same = np.equal.outer(np.arange(items) % 2, np.arange(items) % 2)
    # within a group all items are equal, between groups nothing is shared
    shared = added[0, 2]
    np.testing.assert_allclose(added, same * shared + np.eye(items) / (4 + 1 / 5), atol=1e-13)
    assert shared > 0
    # the grouping is orthogonal to all splits but the finest, and stronger than they are
    alternating = np.tile([1.0, -1.0], items // 2)
    root = np.repeat([1.0, -1.0], items // 2)
    crossing, taxonomy = strengths(form, [alternating, root])
    eigenvalues = np.linalg.eigvalsh(form.covariance())[::-1]
    np.testing.assert_allclose([crossing, taxonomy], eigenvalues[1:3])
    assert crossing > 1.2 * taxonomy


@ALL
def test_graph_has_the_form_of_its_name(form, items):
    form = make(form, items)
    weights = adjacency(form)
    degrees = (weights > 0).sum(axis=0)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    pieces, _ = connected_components(weights)
    assert pieces == (4 if form.form == "cluster" else 1)
    edges, latent = form.graph()
    match form.form:
        case "tree":
            assert latent == items - 1
            assert (degrees[:items] == 1).all()
            assert (degrees[items:] == [3] * (latent - 1) + [2]).all()
        case "chain":
            assert latent == 0
            assert sorted(degrees) == [1, 1] + [2] * (items - 2)
        case "ring":
            assert latent == 0
            assert (degrees == 2).all()
        case "cluster":
            assert latent == 4
            assert (degrees == [1] * items + [items // 4] * 4).all()
        case "cross_cutting":
            assert latent == items - 1 + 2
            assert (degrees[:items] == 2).all()
            assert (degrees[-2:] == items // 2).all()
    assert len(edges) == degrees.sum() / 2


@ALL
def test_positions_draw_the_graph(form, items):
    form = make(form, items)
    edges, latent = form.graph()
    positions = form.positions()
    assert positions.shape == (items + latent, 2)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    assert (distances + 9 * np.eye(len(positions))).min() > 0.1
    lengths = np.array([distances[a, b] for a, b, _ in edges])
    match form.form:
        case "chain" | "ring" | "cluster":
            np.testing.assert_allclose(lengths, lengths[0])
        case "tree" | "cross_cutting":
            np.testing.assert_array_equal(positions[:items, 1], 0)
            tree = [edge for edge in edges if edge[1] < 2 * items - 1]
            for child, parent, _ in tree:
                assert positions[parent, 1] == positions[child, 1] + 1
            middles = np.zeros((items - 1, 2))
            for child, parent, _ in tree:
                middles[parent - items] += positions[child] / 2
            np.testing.assert_allclose(positions[items : 2 * items - 1, 0], middles[:, 0])
            assert (positions[2 * items - 1 :, 1] < 0).all()


@pytest.mark.parametrize(
    ("form", "items", "numbers"),
    [
        ("tree", 6, "a power of two"),
        ("ring", 2, "at least 3"),
        ("cluster", 10, "a multiple of 4 from 8 on"),
        ("cluster", 4, "a multiple of 4 from 8 on"),
        ("cross_cutting", 12, "a power of two from 4 on"),
        ("cross_cutting", 2, "a power of two from 4 on"),
    ],
)
def test_impossible_number_of_items_is_refused(form, items, numbers):
    parameters = {"form": form, "items": items}
    check_refusal(make, parameters, "items", f"{items}: form {form} needs {numbers}; change")
