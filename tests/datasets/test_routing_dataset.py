"""Inputs and targets by domain, their flat form, and the routing task."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check_refusal

from neuralrace.datasets import Domains
from neuralrace.datasets.routing import Routing
from neuralrace.errors import UserError

DOMAINS, ITEMS, INPUTS, OUTPUTS = 3, 5, 2, 4


def random_domains(seed=0):
    rng = np.random.default_rng(seed)
    return Domains(
        inputs=rng.normal(size=(DOMAINS, ITEMS, INPUTS)),
        targets=rng.normal(size=(DOMAINS, ITEMS, OUTPUTS)),
    )


def test_correlations_of_domains_are_averages_over_items():
    domains = random_domains()
    for i, x in enumerate(domains.inputs):
        xx = np.mean([np.outer(row, row) for row in x], axis=0)
        np.testing.assert_allclose(domains.sigma_xx[i], xx, atol=1e-14)
        for j, y in enumerate(domains.targets):
            yx = np.mean([np.outer(b, a) for a, b in zip(x, y, strict=True)], axis=0)
            np.testing.assert_allclose(domains.sigma_yx[i, j], yx, atol=1e-14)
    powers = [np.mean([row @ row for row in y]) for y in domains.targets]
    np.testing.assert_allclose(domains.y_power, powers)


PAIRS = st.lists(st.tuples(*[st.integers(0, DOMAINS - 1)] * 2), min_size=1, max_size=6)


@given(pairs=PAIRS)
@settings(max_examples=25)
def test_flat_samples_belong_to_one_pair_each(pairs):
    domains = random_domains()
    flat = domains.flat(np.array(pairs))
    assert flat.contexts is not None
    samples = [(pair, item) for pair in range(len(pairs)) for item in range(ITEMS)]
    assert len(flat.x) == len(flat.y) == len(flat.contexts) == len(samples)
    for row, (pair, item) in enumerate(samples):
        i, j = pairs[pair]
        x, y = np.zeros((DOMAINS, INPUTS)), np.zeros((DOMAINS, OUTPUTS))
        x[i], y[j] = domains.inputs[i, item], domains.targets[j, item]
        np.testing.assert_array_equal(flat.x[row], x.ravel())
        np.testing.assert_array_equal(flat.y[row], y.ravel())
        assert flat.contexts[row] == pair
    assert flat.item_names == flat.output_names == ()


@given(pairs=PAIRS)
@settings(max_examples=25)
def test_correlations_of_flat_samples_are_averages_over_pairs(pairs):
    domains = random_domains()
    flat = domains.flat(np.array(pairs))
    times = np.zeros((DOMAINS, DOMAINS))
    np.add.at(times, tuple(np.transpose(pairs)), 1 / len(pairs))
    blocks = flat.sigma_yx.reshape(DOMAINS, OUTPUTS, DOMAINS, INPUTS).transpose(2, 0, 1, 3)
    np.testing.assert_allclose(blocks, times[:, :, None, None] * domains.sigma_yx, atol=1e-14)
    blocks = flat.sigma_xx.reshape(DOMAINS, INPUTS, DOMAINS, INPUTS)
    for i in range(DOMAINS):
        expected = times[i].sum() * domains.sigma_xx[i]
        np.testing.assert_allclose(blocks[i, :, i], expected, atol=1e-14)
        assert not np.delete(blocks[i], i, axis=1).any()
    np.testing.assert_allclose(flat.y_power, times.sum(axis=0) @ domains.y_power)


def test_unknown_domain_is_refused():
    with pytest.raises(IndexError):
        random_domains().flat(np.array([[0, DOMAINS]]))


def test_too_many_pairs_are_refused():
    # M^2 pairs of 4 items in M * (4 + 7) units are 44 M^3 numbers
    with pytest.raises(UserError, match=r"2\.0e\+08 numbers") as error:
        Routing(name="routing", count=166, inputs="one_hot").load()
    assert (error.value.key, error.value.value) == ("dataset.count", "166")


def test_count_follows_the_name_in_the_canonical_text():
    text = Routing(name="routing", count=3).canonical()
    assert text == '{"name":"routing","count":3,"inputs":"random","seed":0}'


@pytest.mark.parametrize("inputs", ["random", "one_hot"])
def test_every_pair_has_the_hierarchy(inputs):
    domains = Routing(name="routing", count=3, inputs=inputs).domains()
    assert domains.count == 3
    assert domains.inputs.shape == (3, 4, 4)
    assert domains.targets.shape == (3, 4, 7)
    np.testing.assert_allclose(domains.sigma_xx, np.tile(np.eye(4) / 4, (3, 1, 1)), atol=1e-15)
    np.testing.assert_allclose(domains.y_power, (185 + 41 + 9 + 9) / 4)
    for i in range(3):
        # the contrasts of a binary tree, by hand
        tree = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=float)
        tree /= np.linalg.norm(tree, axis=1, keepdims=True)
        for j in range(3):
            table = domains.sigma_yx[i, j] @ domains.inputs[i].T * 4  # inputs are orthonormal
            np.testing.assert_allclose(table, domains.targets[j].T, atol=1e-14)
            np.testing.assert_allclose(
                (table @ tree.T).T @ (table @ tree.T), np.diag([185, 41, 9, 9]), atol=1e-12
            )


def test_strengths_set_the_singular_values():
    plain, even = (
        Routing(name="routing", count=2, **changes) for changes in ({}, {"strengths": (1, 1, 1)})
    )
    assert plain.canonical() == Routing(name="routing", count=2, strengths=(6, 4, 3)).canonical()
    assert set(even.targets.ravel()) == {0, 1}
    values = np.linalg.svd(even.domains().targets[0], compute_uv=False)
    np.testing.assert_allclose(values**2, [7, 3, 1, 1])
    assert even.sha256() != plain.sha256()


def test_sample_of_all_pairs_has_the_modes_of_one_pair():
    count = 3
    routing = Routing(name="routing", count=count)
    task = routing.load()
    assert task.x.shape == (count**2 * 4, count * 4)
    assert task.y.shape == (count**2 * 4, count * 7)
    # sigma_yx has the same table in each of count x count blocks, rotated on the right. The largest
    # singular value of a matrix of ones is count, and averages are over count^2 times 4 samples.
    expected = np.zeros(count * 4)
    expected[:4] = np.sqrt([185, 41, 9, 9]) * count / (count**2 * 4)
    np.testing.assert_allclose(task.modes.s, expected, atol=1e-14)
    np.testing.assert_allclose(task.modes.d, 1 / (count * 4))
    assert task.modes.joint
    input_domain = np.abs(task.x).reshape(-1, count, 4).sum(axis=2).argmax(axis=1)
    output_domain = np.abs(task.y).reshape(-1, count, 7).sum(axis=2).argmax(axis=1)
    np.testing.assert_array_equal(task.contexts, input_domain * count + output_domain)


def test_random_inputs_depend_on_seed_and_domain():
    def inputs(count=2, **changes):
        return Routing(name="routing", count=count, **changes).domains().inputs

    first, second = inputs()
    np.testing.assert_array_equal(inputs(count=5)[:2], [first, second])
    assert np.abs(first - second).max() > 0.1
    assert np.abs(first - inputs(seed=1)[0]).max() > 0.1


def test_random_inputs_are_uniform_over_rotations_and_reflections():
    draws = Routing(name="routing", count=2000).domains().inputs
    # Haar measure on O(4): entries have mean 0, variance 1/4 and fourth moment 3/(4 * 6); traces
    # have mean 0 and variance 1. All 35 statistics are within five standard errors of the mean.
    traces = np.trace(draws, axis1=1, axis2=2)
    entries = draws.reshape(-1, 16)
    for values, mean in (
        (entries, 0),
        (entries**2, 1 / 4),
        (entries[:, :1] ** 4, 1 / 8),
        (traces[:, None], 0),
        (traces[:, None] ** 2, 1),
    ):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - mean) < 5 * error).all()


def test_routing_needs_a_domain():
    parameters = {"name": "routing", "count": 0}
    check_refusal(Routing, parameters, "count", "at least 1")
