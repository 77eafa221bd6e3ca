"""Realisable patterns of ReLU units, against combinatorial counts and random units."""

from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stirling2

from neuralrace.theory.gate_patterns import (
    consistent_with_lemma,
    depends_on,
    realisable_patterns,
)


def inputs(objects, contexts):
    """One-hot objects and contexts, sorted by context; contexts and objects of the samples."""
    x = np.hstack(
        [np.tile(np.eye(objects), (contexts, 1)), np.repeat(np.eye(contexts), objects, 0)]
    )
    return x, np.repeat(np.arange(contexts), objects), np.tile(np.arange(objects), contexts)


def rows(patterns):
    return {tuple(row) for row in patterns.tolist()}


def without_exchange(objects, contexts):
    """Boolean tables in which no two rows and columns hold (1, 0; 0, 1): poly-Bernoulli number."""
    return sum(
        factorial(j) ** 2
        * stirling2(objects + 1, j + 1, exact=True)
        * stirling2(contexts + 1, j + 1, exact=True)
        for j in range(min(objects, contexts) + 1)
    )


def test_two_objects_in_two_contexts():
    """14 of 16 patterns, all but the two exchanges; the lemma and its proof have 10 of them."""
    x, contexts, objects = inputs(2, 2)
    patterns = realisable_patterns(x)
    assert len(patterns) == 14
    every = rows(np.indices((2, 2, 2, 2)).reshape(4, -1).T.astype(bool))
    exchanges = {(True, False, False, True), (False, True, True, False)}
    assert every - rows(patterns) == exchanges
    np.testing.assert_array_equal(realisable_patterns(x, strict=True), patterns)
    beyond = rows(patterns[~consistent_with_lemma(patterns, contexts, objects)])
    assert beyond == {row for row in every if sum(row) == 3}
    by_object = {(True, False) * 2, (False, True) * 2}
    ends = {(False,) * 4, (True,) * 4}
    assert rows(patterns[depends_on(patterns, objects)]) == by_object | ends


def test_counterexample_to_the_lemma_is_exact():
    """A unit on for three of four samples depends on neither context nor object alone."""
    x, contexts, objects = inputs(2, 2)
    w = [Fraction(1, 2), Fraction(-1, 2), Fraction(1), Fraction(0)]
    drive = [sum(a * int(b) for a, b in zip(w, row, strict=True)) for row in x.tolist()]
    assert drive == [Fraction(3, 2), Fraction(1, 2), Fraction(1, 2), Fraction(-1, 2)]
    pattern = np.array([[value > 0 for value in drive]])
    assert not consistent_with_lemma(pattern, contexts, objects)[0]
    assert rows(pattern) <= rows(realisable_patterns(x, strict=True))


@pytest.mark.parametrize(("objects", "contexts"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_contextual_patterns_are_the_tables_without_exchange(objects, contexts):
    x, shown, things = inputs(objects, contexts)
    patterns = realisable_patterns(x)
    assert len(rows(patterns)) == len(patterns) == without_exchange(objects, contexts)
    table = patterns.reshape(-1, contexts, objects)
    one, other = table[:, :, None, :, None], table[:, None, :, None, :]
    crossed = table[:, None, :, :, None], table[:, :, None, None, :]
    assert not (one & other & ~crossed[0] & ~crossed[1]).any()
    allowed = consistent_with_lemma(patterns, shown, things)
    # all and none are counted by context and by object
    assert allowed.sum() == 2**contexts + 2**objects - 2 + objects * contexts


def test_the_paper_s_own_inputs():
    """8 objects in 3 contexts: three subsets of the objects, of which any two are nested."""
    sets = np.arange(2**8)
    nested = ((sets[:, None] & sets) == sets[:, None]).astype(int)
    comparable = np.maximum(nested, nested.T)
    assert np.trace(comparable @ comparable @ comparable) == without_exchange(8, 3) == 354106


def test_random_units_show_every_pattern_and_no_other():
    for x in (inputs(2, 2)[0], inputs(2, 3)[0], np.random.default_rng(3).normal(size=(6, 3))):
        w = np.random.default_rng(0).normal(size=(60000, x.shape[1]))
        shown = w @ x.T > 0
        assert rows(shown) == rows(realisable_patterns(x, strict=True))


@settings(max_examples=15)
@given(samples=st.integers(1, 6), rank=st.integers(1, 4), seed=st.integers(0, 99))
def test_samples_in_general_position_have_cover_s_number(samples, rank, seed):
    x = np.random.default_rng(seed).normal(size=(samples, rank))
    patterns = realisable_patterns(x, strict=True)
    assert len(patterns) == 2 * sum(comb(samples - 1, k) for k in range(rank))
    # on and off change places with the sign of w
    assert rows(~patterns) == rows(patterns)


def test_strictness_matters_where_inputs_are_opposite():
    x = np.array([[1.0], [-2.0], [0.0]])
    on, off = True, False
    assert rows(realisable_patterns(x)) == {(off, off, off), (off, on, off), (on, off, off)}
    assert len(realisable_patterns(x, strict=True)) == 0
    assert rows(realisable_patterns(x[:2], strict=True)) == {(off, on), (on, off)}


@settings(max_examples=10)
@given(seed=st.integers(0, 99))
def test_lengths_of_inputs_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 3))
    scaled = 10.0 ** rng.uniform(-9, 9, size=(5, 1)) * x
    np.testing.assert_array_equal(realisable_patterns(scaled), realisable_patterns(x))


def test_lemma_by_context_by_object_or_on_a_single_sample():
    contexts = np.array([0, 1, 0, 1, 2])
    objects = np.array([0, 0, 1, 1, 1])
    patterns = np.array(
        [
            [1, 0, 1, 0, 0],
            [0, 0, 0, 0, 0],
            [1, 1, 1, 1, 1],
            [0, 0, 0, 0, 1],
            [0, 1, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [1, 0, 1, 1, 0],
        ],
        dtype=bool,
    )
    expected = [True, True, True, True, True, True, False]
    assert consistent_with_lemma(patterns, contexts, objects).tolist() == expected
    assert depends_on(patterns, contexts).tolist() == [True, True, True, True, False, False, False]
    assert depends_on(patterns, objects).tolist() == [False, True, True, False, False, True, False]
