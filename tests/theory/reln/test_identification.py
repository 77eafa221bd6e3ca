"""Gate identification, against all possible clusterings and known clusters."""

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
    """Repeated patterns, from pairs of pattern and count."""
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
    """The minimum of the inertia over all clusterings of the distinct rows."""
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
def test_clustering_is_optimal(patterns, counts, clusters):
    patterns = rows(*zip(patterns, counts, strict=False))
    active = patterns[patterns.any(axis=1)]
    assume(len(np.unique(active, axis=0)) >= clusters)
    gating = identify(patterns, clusters, units=50)
    assume(len(gating.gates) == clusters)
    np.testing.assert_allclose(
        inertia(active, gating.centroids), least_inertia(active, clusters), atol=1e-9
    )
    np.testing.assert_array_equal(gating.gates, gating.centroids > 0.5)
    np.testing.assert_allclose(gating.shares.sum(), 1)
    # the centroids weighted by their shares add up to the mean of all rows
    np.testing.assert_allclose(gating.shares @ gating.centroids, active.mean(axis=0))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 4))
def test_order_and_copies_of_patterns_do_not_matter(random, copies, clusters):
    rng = np.random.default_rng(random.randrange(10**6))
    patterns = rng.uniform(size=(30, 5)) < 0.6
    first = identify(patterns, clusters, units=20)
    silent = np.zeros((random.randrange(4), 5), dtype=bool)
    again = np.vstack([patterns] * copies + [silent])
    second = identify(rng.permutation(again, axis=0), clusters, units=20)
    for name in ("centroids", "gates", "widths"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_allclose(first.shares, second.shares)


def test_known_pathways_are_identified_and_sorted_by_open_samples():
    noisy = [
        ((1, 1, 0, 0, 0, 0), 4),
        ((1, 0, 1, 0, 0, 0), 4),
        ((0, 0, 0, 1, 1, 0), 5),
        ((0, 1, 1, 1, 1, 1), 3),
    ]
    silent = ((0,) * 6, 99)
    patterns = rows((SECOND, 40), (FIRST, 12), (COMMON, 37), *noisy, silent)
    gating = identify(patterns, 3, units=21)
    np.testing.assert_array_equal(gating.gates, [COMMON, FIRST, SECOND])
    np.testing.assert_allclose(gating.shares, [40 / 105, 20 / 105, 45 / 105])
    np.testing.assert_array_equal(gating.widths, [8, 4, 9])
    first = np.array([20, 16, 16, 0, 0, 0]) / 20
    np.testing.assert_allclose(gating.centroids[1], first)


def test_pathways_are_sorted_by_open_samples_and_then_by_the_first_difference():
    wide = ((1, 1, 1, 0), 1), ((1, 0, 1, 1), 1), ((0, 1, 1, 1), 1), ((1, 1, 0, 1), 1)
    narrow = ((0, 0, 1, 0), 1), ((1, 0, 0, 0), 1)
    gating = identify(rows(*narrow, *wide), 6, units=6)
    np.testing.assert_array_equal(
        gating.gates,
        [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]],
    )


def test_clusters_weight_patterns_by_their_counts():
    first, second, rare = (1, 1, 1, 1, 0, 0), (1, 1, 1, 0, 0, 0), (0, 0, 0, 0, 1, 1)
    gating = identify(rows((first, 100), (second, 100), (rare, 1)), 2, units=2)
    np.testing.assert_array_equal(gating.gates, [first, second])


def test_a_gate_is_closed_where_half_of_its_cluster_is_open():
    gating = identify(rows(((1, 1, 0), 3), ((1, 0, 0), 3)), 1, units=1)
    np.testing.assert_array_equal(gating.centroids, [[1, 0.5, 0]])
    np.testing.assert_array_equal(gating.gates, [[True, False, False]])


def test_a_cluster_that_is_closed_everywhere_leaves_its_units_to_others():
    lone = [(tuple(row), 5) for row in np.eye(6, dtype=int)]
    gating = identify(rows((COMMON, 60), *lone), 2, units=12)
    np.testing.assert_array_equal(gating.gates, [COMMON])
    np.testing.assert_array_equal(gating.widths, [12])
    np.testing.assert_allclose(gating.shares, [60 / 90])


# Widths ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.integers(0, 300))
def test_units_are_distributed_by_largest_remainder(counts, more):
    units = len(counts) + more
    patterns = rows(*zip(map(tuple, np.eye(6, dtype=int)), counts, strict=False))
    gating = identify(patterns, len(counts), units)
    np.testing.assert_array_equal(gating.gates, np.eye(6, dtype=bool)[: len(counts)])
    quotas = units * np.array(counts) / sum(counts)
    assert gating.widths.sum() == units
    assert (gating.widths >= 1).all()
    if (quotas >= 1).all():
        assert (abs(gating.widths - quotas) < 1).all()
        # largest remainder: no cluster that was rounded down has a larger remainder
        remainder, raised = quotas % 1, gating.widths > quotas
        if raised.any() and not raised.all():
            assert remainder[raised].min() >= remainder[~raised].max() - 1e-9


def test_small_clusters_keep_one_unit():
    patterns = rows((COMMON, 997), (FIRST, 1), (SECOND, 2))
    np.testing.assert_array_equal(identify(patterns, 3, units=10).widths, [8, 1, 1])


# Networks and errors ----------------------------------------------------------------------------


def test_network_has_the_gates_and_widths():
    gating = identify(rows((COMMON, 2), (FIRST, 1), (SECOND, 1)), 3, units=12)
    rng = np.random.default_rng(0)
    data = Data(x=rng.normal(size=(6, 3)), y=rng.normal(size=(6, 2)))
    wiring = gating.network.wiring(data)
    np.testing.assert_array_equal(wiring.pathway_gates, gating.gates)
    nodes = wiring.architecture.nodes
    assert [nodes[p.nodes[1]] for p in wiring.architecture.pathways] == [6, 3, 3]


def test_a_sample_without_open_pathway_is_an_error():
    gating = identify(rows((FIRST, 3)), 1, units=2)
    with pytest.raises(NoGatingError, match=r"open on 3 of 6 samples, .* sample 3") as error:
        _ = gating.network
    assert (error.value.key, error.value.value, error.value.remedy) == ("pathways", "1", "use more")


@pytest.mark.parametrize(
    ("patterns", "pathways", "units", "key", "words"),
    [
        (rows((COMMON, 5), (FIRST, 1)), 3, 9, "pathways", "only 2 distinct"),
        (rows(((0,) * 6, 5)), 1, 9, "gates", "every unit is closed"),
        (rows((COMMON, 5), (FIRST, 1)), 2, 1, "pathways", "only 1 hidden units"),
        (rows(*[(tuple(row), 5) for row in np.eye(6)]), 1, 9, "pathways", "every cluster is"),
    ],
    ids=["patterns", "silent", "units", "closed clusters"],
)
def test_gates_that_make_no_network_are_refused(patterns, pathways, units, key, words):
    with pytest.raises(NoGatingError, match=words) as error:
        identify(patterns, pathways, units)
    assert error.value.key == key
    assert error.value.value == (str(pathways) if key == "pathways" else "")
    assert error.value.remedy


def test_fewer_than_one_pathway_are_refused():
    with pytest.raises(UserError, match="pathways: 0") as error:
        identify(rows((COMMON, 5)), 0, 3)
    assert error.value.remedy == "use at least 1"


def test_patterns_stack_all_networks_snapshots_and_units():
    rng = np.random.default_rng(1)
    encoder, readout = rng.normal(size=(3, 4, 5, 2)), rng.normal(size=(3, 4, 1, 5))
    x = rng.normal(size=(7, 2))
    everywhere = np.array(
        [[encoder[net, at, unit] @ sample > 0 for sample in x]
         for net in range(3) for at in range(4) for unit in range(5)]
    )  # fmt: skip
    np.testing.assert_array_equal(gate_patterns([encoder, readout], x), everywhere)
    by_snapshot = everywhere.reshape(3, 4, 5, 7)
    for source, at in (("start", 0), ("end", -1)):
        patterns = gate_patterns([encoder, readout], x, source)
        np.testing.assert_array_equal(patterns, by_snapshot[:, at].reshape(15, 7))
