"""Masks of trained pairs: regular, as their docstrings state, or random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.errors import UserError
from neuralrace.networks.gates.pairs import AllPairs, Band, RandomRegular
from neuralrace.networks.routing import PAIRS


def pairs(cls, partners):
    """The mask of a class with K partners; `all` has as many as there are domains."""
    if cls is AllPairs:
        return AllPairs(name="all")
    return cls(name={Band: "band", RandomRegular: "random_regular"}[cls], partners=partners)


def overlaps(mask):
    """Partners that two input domains have in common, sorted: the same for permuted domains."""
    shared = mask.astype(int) @ mask.T
    return tuple(sorted(shared[np.triu_indices(len(mask), 1)]))


def test_all_choices_of_pairs_are_tested():
    assert set(PAIRS) == {AllPairs, Band, RandomRegular}


@given(
    cls=st.sampled_from(PAIRS),
    size=st.integers(1, 7).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m))),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_rows_and_columns_are_regular(cls, size, seed):
    domains, partners = size
    scheme = pairs(cls, partners)
    mask = scheme.mask(domains, seed)
    expected = domains if cls is AllPairs else partners
    assert mask.shape == (domains, domains)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask.sum(axis=0), expected)
    np.testing.assert_array_equal(mask.sum(axis=1), expected)
    np.testing.assert_array_equal(mask, scheme.mask(domains, seed))
    picture = scheme.picture(domains, seed)
    np.testing.assert_array_equal(picture.values, mask)
    assert (picture.rows, picture.columns) == ("input domain", "output domain")


@given(st.integers(1, 9).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m))))
@settings(max_examples=40)
def test_band(size):
    domains, partners = size
    mask = pairs(Band, partners).mask(domains, seed=0)
    before, after = (partners - 1) // 2, partners // 2
    for i in range(domains):
        trained = {j % domains for j in range(i - before, i + after + 1)}
        assert set(np.flatnonzero(mask[i])) == trained


def test_band_and_all_are_the_same_for_every_seed():
    for cls in (AllPairs, Band):
        first, second = (pairs(cls, 3).mask(7, seed) for seed in (0, 1))
        np.testing.assert_array_equal(first, second)


def test_random_masks_are_more_than_permuted_bands():
    masks = [pairs(RandomRegular, 3).mask(7, seed) for seed in range(12)]
    assert len({mask.tobytes() for mask in masks}) == 12
    patterns = {overlaps(mask) for mask in masks}
    assert len(patterns) >= 3
    assert patterns != {overlaps(pairs(Band, 3).mask(7, 0))}


def test_random_masks_are_uniform():
    # of the 90 masks of four domains with two partners each, 18 fall into two squares that have
    # nothing in common; the band is one of the other 72
    count = 250
    masks = np.stack([pairs(RandomRegular, 2).mask(4, seed) for seed in range(count)])
    split = np.mean([overlaps(mask) == (0, 0, 0, 0, 2, 2) for mask in masks])
    assert abs(split - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / count)
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 4.5 * np.sqrt(0.25 / count)


@pytest.mark.parametrize("cls", [Band, RandomRegular])
def test_more_partners_than_domains_are_refused(cls):
    with pytest.raises(UserError, match="there are 4 domains") as error:
        pairs(cls, 5).mask(4, seed=0)
    assert (error.value.key, error.value.value) == ("network.pairs.partners", "5")
    assert pairs(cls, 5).mask(5, seed=0).all()


@pytest.mark.parametrize("cls", [Band, RandomRegular])
@given(domains=st.integers(1, 30), partners=st.integers(1, 30))
def test_a_share_of_the_domains_is_the_nearest_number_of_them(cls, domains, partners):
    partners = min(partners, domains)
    by_share = cls(name=pairs(cls, 1).name, share=partners / domains)
    np.testing.assert_array_equal(by_share.mask(domains, 3), pairs(cls, partners).mask(domains, 3))


@pytest.mark.parametrize("parameters", [{}, {"partners": 2, "share": 0.5}], ids=["neither", "both"])
def test_either_partners_or_share_is_required(parameters):
    with pytest.raises(ValueError, match="give either partners or share"):
        Band(name="band", **parameters)


def test_a_share_of_less_than_one_domain_is_refused():
    with pytest.raises(UserError, match="less than one of 4 domains") as error:
        Band(name="band", share=0.1).mask(4, seed=0)
    assert (error.value.key, error.value.value) == ("network.pairs.share", "0.1")
