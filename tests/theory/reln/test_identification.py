"""Identified gates, against every possible clustering and clusters that are known."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.theory.reln.identification import NoGatingError, gate_patterns, identify

COMMON, FIRST, SECOND = (1, 1, 1, 1, 1, 1), (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)


def rows(*patterns):
    """Rows of patterns with how often each occurs."""
    return np.repeat(
        np.array([pattern for pattern, _ in patterns], dtype=bool),
        [count for _, count in patterns],
        axis=0,
    )


def inertia(patterns, centroids):
    """Sum over rows of the squared distance to the nearest centroid."""
    off = patterns[:, None].astype(float) - centroids
    return (off**2).sum(axis=-1).min(axis=1).sum()


def least_inertia(patterns, clusters):
    """The least of all ways to part the distinct rows."""
    distinct, member = np.unique(patterns, axis=0, return_inverse=True)
    best = np.inf
    for labels in product(range(clusters), repeat=len(distinct)):
        if len(set(labels)) == clusters:
            of_row = np.array(labels)[member]
            means = [patterns[of_row == label].mean(axis=0) for label in range(clusters)]
            best = min(best, inertia(patterns, np.array(means)))
    return best


bits = st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=7, unique=True)


@settings(max_examples=40)
@given(bits, st.lists(st.integers(1, 9), min_size=7, max_size=7), st.integers(1, 3))
def test_no_clustering_is_better(patterns, counts, clusters):
    patterns = rows(*zip(patterns, counts, strict=False))
    active = patterns[patterns.any(axis=1)]
    assume(len(np.unique(active, axis=0)) >= clusters)
    found = identify(patterns, clusters, units=50)
    assume(len(found.gates) == clusters)
    np.testing.assert_allclose(
        inertia(active, found.centroids), least_inertia(active, clusters), atol=1e-9
    )
    np.testing.assert_array_equal(found.gates, found.centroids > 0.5)
    np.testing.assert_allclose(found.shares.sum(), 1)
    # every centroid is the mean of the rows that it is nearest to, whose share is that said
    np.testing.assert_allclose(found.shares @ found.centroids, active.mean(axis=0))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 4))
def test_neither_order_nor_number_of_copies_matters(random, copies, clusters):
    rng = np.random.default_rng(random.randrange(10**6))
    patterns = rng.uniform(size=(30, 5)) < 0.6
    first = identify(patterns, clusters, units=20)
    silent = np.zeros((random.randrange(4), 5), dtype=bool)
    again = np.vstack([patterns] * copies + [silent])
    second = identify(rng.permutation(again, axis=0), clusters, units=20)
    for name in ("centroids", "gates", "widths"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_allclose(first.shares, second.shares)


def test_known_pathways_are_found_in_their_order():
    noisy = [
        ((1, 1, 0, 0, 0, 0), 4),
        ((1, 0, 1, 0, 0, 0), 4),
        ((0, 0, 0, 1, 1, 0), 5),
        ((0, 1, 1, 1, 1, 1), 3),
    ]
    silent = ((0,) * 6, 99)
    patterns = rows((SECOND, 40), (FIRST, 12), (COMMON, 37), *noisy, silent)
    found = identify(patterns, 3, units=21)
    np.testing.assert_array_equal(found.gates, [COMMON, FIRST, SECOND])
    np.testing.assert_allclose(found.shares, [40 / 105, 20 / 105, 45 / 105])
    np.testing.assert_array_equal(found.widths, [8, 4, 9])
    first = np.array([20, 16, 16, 0, 0, 0]) / 20
    np.testing.assert_allclose(found.centroids[1], first)


def test_more_open_pathways_come_first_and_equal_gates_by_centroid():
    wide = ((1, 1, 1, 0), 1), ((1, 0, 1, 1), 1), ((0, 1, 1, 1), 1), ((1, 1, 0, 1), 1)
    narrow = ((0, 0, 1, 0), 1), ((1, 0, 0, 0), 1)
    found = identify(rows(*narrow, *wide), 6, units=6)
    np.testing.assert_array_equal(
        found.gates,
        [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]],
    )


def test_clusters_count_their_rows_and_not_their_kinds():
    first, second, rare = (1, 1, 1, 1, 0, 0), (1, 1, 1, 0, 0, 0), (0, 0, 0, 0, 1, 1)
    found = identify(rows((first, 100), (second, 100), (rare, 1)), 2, units=2)
    np.testing.assert_array_equal(found.gates, [first, second])


def test_half_of_a_cluster_is_not_enough():
    found = identify(rows(((1, 1, 0), 3), ((1, 0, 0), 3)), 1, units=1)
    np.testing.assert_array_equal(found.centroids, [[1, 0.5, 0]])
    np.testing.assert_array_equal(found.gates, [[True, False, False]])


def test_a_cluster_that_is_closed_everywhere_leaves_its_units_to_others():
    lone = [(tuple(row), 5) for row in np.eye(6, dtype=int)]
    found = identify(rows((COMMON, 60), *lone), 2, units=12)
    np.testing.assert_array_equal(found.gates, [COMMON])
    np.testing.assert_array_equal(found.widths, [12])
    np.testing.assert_allclose(found.shares, [60 / 90])


# Widths ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.integers(0, 300))
def test_units_are_shared_out_by_size(counts, more):
    units = len(counts) + more
    patterns = rows(*zip(map(tuple, np.eye(6, dtype=int)), counts, strict=False))
    found = identify(patterns, len(counts), units)
    np.testing.assert_array_equal(found.gates, np.eye(6, dtype=bool)[: len(counts)])
    quotas = units * np.array(counts) / sum(counts)
    assert found.widths.sum() == units
    assert (found.widths >= 1).all()
    if (quotas >= 1).all():
        assert (abs(found.widths - quotas) < 1).all()
        # by largest remainder: who was given one more had no smaller a remainder
        rest, given_one = quotas % 1, found.widths > quotas
        if given_one.any() and not given_one.all():
            assert rest[given_one].min() >= rest[~given_one].max() - 1e-9


def test_small_clusters_keep_one_unit():
    patterns = rows((COMMON, 997), (FIRST, 1), (SECOND, 2))
    np.testing.assert_array_equal(identify(patterns, 3, units=10).widths, [8, 1, 1])


# Networks and what stands in the way of one ----------------------------------------------------


def test_the_network_has_the_gates_and_widths():
    found = identify(rows((COMMON, 2), (FIRST, 1), (SECOND, 1)), 3, units=12)
    rng = np.random.default_rng(0)
    data = Data(x=rng.normal(size=(6, 3)), y=rng.normal(size=(6, 2)))
    wiring = found.network.wiring(data)
    np.testing.assert_array_equal(wiring.pathway_gates, found.gates)
    nodes = wiring.architecture.nodes
    assert [nodes[p.nodes[1]] for p in wiring.architecture.pathways] == [6, 3, 3]


def test_every_sample_needs_a_pathway():
    found = identify(rows((FIRST, 3)), 1, units=2)
    with pytest.raises(NoGatingError, match=r"none is open on 3 of 6 samples, .* sample 3; use"):
        _ = found.network


@pytest.mark.parametrize(
    ("patterns", "pathways", "units", "message"),
    [
        (rows((COMMON, 5), (FIRST, 1)), 3, 9, r"pathways: 3: there are only 2 distinct"),
        (rows(((0,) * 6, 5)), 1, 9, r"every unit is closed on every sample"),
        (rows((COMMON, 5), (FIRST, 1)), 2, 1, r"pathways: 2: the number of hidden units is 1"),
        (rows(*[(tuple(row), 5) for row in np.eye(6)]), 1, 9, r"1: every cluster is closed every"),
    ],
    ids=["patterns", "silent", "units", "closed clusters"],
)
def test_gates_that_make_no_network(patterns, pathways, units, message):
    with pytest.raises(NoGatingError, match=message):
        identify(patterns, pathways, units)


def test_at_least_one_pathway():
    with pytest.raises(UserError, match="pathways: 0: use at least 1"):
        identify(rows((COMMON, 5)), 0, 3)


def test_patterns_of_all_networks_and_snapshots():
    rng = np.random.default_rng(1)
    encoder, readout = rng.normal(size=(3, 4, 5, 2)), rng.normal(size=(3, 4, 1, 5))
    x = rng.normal(size=(7, 2))
    everywhere = np.array(
        [[encoder[net, at, unit] @ each > 0 for each in x]
         for net in range(3) for at in range(4) for unit in range(5)]
    )  # fmt: skip
    np.testing.assert_array_equal(gate_patterns([encoder, readout], x), everywhere)
    by_snapshot = everywhere.reshape(3, 4, 5, 7)
    for source, at in (("start", 0), ("end", -1)):
        found = gate_patterns([encoder, readout], x, source)
        np.testing.assert_array_equal(found, by_snapshot[:, at].reshape(15, 7))
