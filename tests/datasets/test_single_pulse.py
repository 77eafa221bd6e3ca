"""Single pulses: all pulses against moments in closed form, and new samples against both."""

import json
from collections import Counter
from math import lcm

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check_refusal

from neuralrace.datasets.single_pulse import SinglePulse


def make(**parameters):
    return SinglePulse.model_validate_json(json.dumps({"name": "single_pulse"} | parameters))


@st.composite
def tasks(draw):
    inputs = draw(st.integers(1, 12))
    widths = st.lists(st.integers(1, inputs), min_size=2, max_size=2).map(sorted)
    return make(
        inputs=inputs,
        widths=[draw(widths), draw(widths)],
        complement=draw(st.booleans()),
        support=draw(st.sampled_from(["zero_one", "plus_minus"])),
    )


def classes(task):
    """Rows of class one and of class two."""
    return np.split(task.load().x, 2)


def pulses(task, number):
    """Number of occurrences of each pulse in a class, from loops over starts and widths."""
    low, high = task.widths[number]
    on, off = (1, 0) if task.support == "zero_one" else (1, -1)
    counts = Counter()
    for start in range(task.inputs):
        for width in range(low, high + 1):
            lit = {(start + step) % task.inputs for step in range(width)}
            for inside, outside in [(on, off), (off, on)][: 1 + task.complement]:
                counts[tuple(inside if i in lit else outside for i in range(task.inputs))] += 1
    return counts


# All pulses -----------------------------------------------------------------------------------


def test_pulses_of_four_inputs_are_listed():
    data = make(inputs=4, widths=[[2, 2], [1, 1]]).load()
    rows = ["1100", "0110", "0011", "1001", "1000", "0100", "0010", "0001"]
    np.testing.assert_array_equal(data.x, [list(map(float, row)) for row in rows])
    np.testing.assert_array_equal(data.y[:, 0], [1, 1, 1, 1, 0, 0, 0, 0])


@given(task=tasks())
@settings(max_examples=40)
def test_all_pulses_are_equally_frequent(task):
    data = task.load()
    assert data.y.shape == (len(data.x), 1)
    halves = classes(task)
    numbers = [high - low + 1 for low, high in task.widths]
    for number, half in enumerate(halves):
        expected = pulses(task, number)
        repeats = lcm(*numbers) // numbers[number]
        assert Counter(map(tuple, half)) == {row: repeats * n for row, n in expected.items()}
    np.testing.assert_array_equal(data.y[:, 0], np.repeat([1, 0], len(halves[0])))


@given(task=tasks())
@settings(max_examples=40)
def test_mixture_has_the_moments_of_all_pulses(task):
    law = task.mixture()
    for half, mean, covariance in zip(classes(task), law.means, law.covariances, strict=True):
        np.testing.assert_allclose(half.mean(axis=0), mean, atol=1e-14)
        np.testing.assert_allclose(half.T @ half / len(half), covariance, atol=1e-14)
        np.testing.assert_array_equal(covariance, np.roll(covariance, 1, axis=(0, 1)))
    np.testing.assert_array_equal(law.targets, [1, 0])
    assert law.marginal is None


@given(task=tasks())
@settings(max_examples=25)
def test_pulses_are_translation_invariant_on_the_ring(task):
    for half in classes(task):
        turned = np.roll(half, 1, axis=1)
        assert Counter(map(tuple, half)) == Counter(map(tuple, turned))


def test_support_and_complement_are_maps_of_the_plain_pulses():
    plain = make(inputs=7, widths=[[2, 4], [1, 2]]).load().x
    signs = make(inputs=7, widths=[[2, 4], [1, 2]], support="plus_minus").load().x
    np.testing.assert_array_equal(signs, 2 * plain - 1)
    both = make(inputs=7, widths=[[2, 4], [1, 2]], complement=True)
    for number, half in enumerate(np.split(plain, 2)):
        expected = Counter(map(tuple, [*half, *(1 - half)]))
        assert Counter(map(tuple, classes(both)[number])) == expected
    np.testing.assert_array_equal(both.mixture().means, 1 / 2)


def test_default_widths_and_configured_targets():
    data = make(targets=[2, -3]).load()
    assert data.x.shape == (80, 40)
    np.testing.assert_array_equal(data.x.sum(axis=1), [11] * 40 + [3] * 40)
    np.testing.assert_array_equal(data.y[:, 0], [2] * 40 + [-3] * 40)
    np.testing.assert_array_equal(make(targets=[2, -3]).mixture().targets, [2, -3])
    np.testing.assert_allclose(make().mixture().means[:, 0], [11 / 40, 3 / 40])


# New samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("support", ["zero_one", "plus_minus"])
@pytest.mark.parametrize("complement", [False, True])
def test_new_samples_have_the_distribution_of_all_pulses(support, complement):
    """Every pulse of each class has its frequency within 5 standard errors; no others occur."""
    task = make(
        inputs=6,
        widths=[[4, 6], [1, 2]],
        support=support,
        complement=complement,
        targets=[-1, 2],
    )
    with jax.enable_x64(True):
        x, y = map(np.asarray, jax.jit(task.sampler(), static_argnums=1)(jax.random.key(0), 20_000))
    assert x.dtype == y.dtype == np.float64
    assert y.shape == (20_000, 1)
    total = 0
    for number, target in enumerate(task.targets):
        drawn, expected = Counter(map(tuple, x[y[:, 0] == target])), pulses(task, number)
        assert set(drawn) <= set(expected)
        for row, count in expected.items():
            share = count / sum(expected.values()) / 2
            error = np.sqrt(share * (1 - share) / len(x))
            assert abs(drawn[row] / len(x) - share) < 5 * error
        total += sum(drawn.values())
    assert total == len(x)


def test_new_samples_depend_on_their_key_in_single_precision():
    draw = jax.jit(jax.vmap(make(complement=True).sampler(), (0, None)), static_argnums=1)
    keys = jax.random.split(jax.random.key(0), 2)
    (x, y), (again, same) = draw(keys, 100), draw(keys, 100)
    assert x.shape == (2, 100, 40)
    assert x.dtype == y.dtype == np.float32
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, same)
    assert (x[0] != x[1]).any(axis=-1).mean() > 0.9
    assert {0.0, 1.0} == set(np.asarray(x).flat) == set(np.asarray(y).flat)


# Configuration ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"widths": [[0, 3], [3, 3]]}, "widths", "[0, 3]: ... ring of 40 inputs; use a smallest"),
        ({"widths": [[3, 3], [5, 4]]}, "widths", "[5, 4]: is no range of widths ... from 1 to 40"),
        ({"widths": [[3, 3], [11, 41]]}, "widths", "[11, 41]: is no range of widths"),
        ({"widths": [[3, 3]]}, "widths.1", "required"),
        ({"widths": [[3.5, 4], [3, 3]]}, "widths.0.0", "a whole number"),
        ({"inputs": 10}, "widths", "[11, 11]: is no range of widths on a ring of 10 inputs"),
        (
            {"inputs": 400, "widths": [[1, 16], [1, 17]]},
            "widths",
            "217600 samples ... at most 100000 are allowed; use two ranges of the same size",
        ),
        (
            {"inputs": 400, "widths": [[1, 100], [1, 50]], "complement": True},
            "widths",
            "160000 samples",
        ),
        ({"support": "one_two"}, "support", "'zero_one' or 'plus_minus'"),
        ({"complement": 1}, "complement", "expected true or false"),
    ],
)
def test_invalid_configuration_is_refused(changes, key, words):
    check_refusal(make, changes, key, words)


def test_many_pulses_within_the_limit_are_accepted():
    assert make(inputs=400, widths=[[1, 50], [51, 100]]).load().x.shape == (40_000, 400)
