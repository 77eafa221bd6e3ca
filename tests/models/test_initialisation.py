"""Initialisation laws have the properties that their docstrings state."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.datasets.modes import PrescribedModes
from neuralrace.errors import UserError
from neuralrace.models.initialisation import (
    LAWS,
    Aligned,
    Decoupled,
    Glorot,
    Normal,
    Orthogonal,
    Tied,
    ZeroBalanced,
    initial_weights,
)

WIDTHS = (5, 7, 4)
few = settings(max_examples=25)
unit = st.integers(1, 6)


def task(inputs, outputs, singular_values=(3.0,), basis="random", seed=0):
    return PrescribedModes(
        name="modes",
        singular_values=singular_values,
        inputs=inputs,
        outputs=outputs,
        basis=basis,
        seed=seed,
    ).load()


MODES = task(5, 4, (3.0, -2.0, 1.0)).modes


def product(weights):
    return reduce(lambda below, above: above @ below, weights)


def law_of(cls):
    return cls(name=cls.model_fields["name"].annotation.__args__[0])


@pytest.fixture(params=LAWS, ids=lambda cls: cls.__name__)
def law(request):
    return law_of(request.param)


# All laws --------------------------------------------------------------------------------------


@given(data=st.data())
@few
def test_shapes_and_scale(data):
    law = law_of(data.draw(st.sampled_from(LAWS)))
    inputs, outputs = data.draw(unit), data.draw(unit)
    hidden = data.draw(st.lists(unit, max_size=3))
    if isinstance(law, Decoupled | Tied):
        hidden = [min(inputs, outputs) + data.draw(unit)]
    widths = (inputs, *hidden, outputs)
    scale, seeds = data.draw(st.floats(1e-3, 1e3)), range(data.draw(unit))
    weights = initial_weights(law, widths, task(inputs, outputs).modes, (1.0, scale), seeds)
    assert [w.shape for w in weights] == [
        (2, len(seeds), n_out, n_in) for n_in, n_out in pairwise(widths)
    ]
    for w in weights:
        assert w.dtype == np.float64
        np.testing.assert_allclose(w[1], scale * w[0], rtol=1e-15)


def test_draws_are_paired_by_seed(law):
    weights = initial_weights(law, WIDTHS, MODES, (1.0,), (0, 1))
    alone = initial_weights(law, WIDTHS, MODES, (1.0, 2.0), (1,))
    differ = []
    for both, one in zip(weights, alone, strict=True):
        np.testing.assert_array_equal(both[0, 1], one[0, 0])
        differ.append(not np.array_equal(both[0, 0], both[0, 1]))
    assert any(differ)


# One law ---------------------------------------------------------------------------------------


def test_layers_keep_their_draws_when_others_are_added():
    shallow = Normal(name="normal").draw(3, (5, 4, 2), MODES)
    deep = Normal(name="normal").draw(3, (5, 4, 2, 6), MODES)
    for one, other in zip(shallow, deep, strict=False):
        np.testing.assert_array_equal(one, other)


def test_normal_in_the_mode_basis_is_equivariant():
    law = Normal(name="normal", basis="modes")
    rotated = law.draw(0, WIDTHS, MODES)
    plain = Normal(name="normal").draw(0, WIDTHS, MODES)
    np.testing.assert_allclose(rotated[0] @ MODES.input_basis, plain[0], atol=1e-13)
    np.testing.assert_allclose(MODES.output_basis.T @ rotated[-1], plain[-1], atol=1e-13)
    # a deep network moves its outer layers only, a single layer is rotated on both sides
    deep, deep_plain = (rule.draw(0, (5, 3, 6, 4), MODES) for rule in (law, Normal(name="normal")))
    np.testing.assert_array_equal(deep[1], deep_plain[1])
    (single,), (single_plain,) = (
        rule.draw(0, (5, 4), MODES) for rule in (law, Normal(name="normal"))
    )
    np.testing.assert_allclose(
        MODES.output_basis.T @ single @ MODES.input_basis, single_plain, atol=1e-13
    )


@pytest.mark.parametrize(
    ("law", "variances"),
    [
        (Normal(name="normal"), (1, 1)),
        (Glorot(name="glorot"), (2 / 110, 2 / 90)),
        (Glorot(name="glorot", variance="product"), (1 / 2800, 1 / 1400)),
    ],
    ids=["normal", "glorot standard", "glorot product"],
)
def test_entry_variance(law, variances):
    for w, variance in zip(law.draw(0, (40, 70, 20), MODES), variances, strict=True):
        # 4.5 standard errors of mean and variance of as many normal draws
        assert abs(w.mean()) < 4.5 * np.sqrt(variance / w.size)
        assert abs(w.var() / variance - 1) < 4.5 * np.sqrt(2 / w.size)


def test_glorot_has_the_directions_of_normal():
    for variance in ("standard", "product"):
        glorot = Glorot(name="glorot", variance=variance).draw(2, WIDTHS, MODES)
        for one, other in zip(glorot, Normal(name="normal").draw(2, WIDTHS, MODES), strict=True):
            ratio = one / other
            np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)


def test_orthogonal_layers():
    law = Orthogonal(name="orthogonal")
    for w in law.draw(0, (5, 7, 4, 4), MODES):
        np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False), 1, rtol=1e-12)
    # Haar measure has mean 0 and mean square 1/n, which a bare QR decomposition misses; 4.5 errors
    corners = np.array([law.draw(seed, (3, 3), MODES)[0] for seed in range(600)])
    assert np.abs(corners.mean(axis=0)).max() < 4.5 / np.sqrt(3 * 600)
    error = np.std(corners**2, axis=0) / np.sqrt(600)
    assert (np.abs((corners**2).mean(axis=0) - 1 / 3) < 4.5 * error).all()


@given(widths=st.lists(unit, min_size=3, max_size=5), imbalance=st.floats(0.2, 2), seed=unit)
@few
def test_zero_balanced(widths, imbalance, seed):
    def imbalances(weights):
        return [above.T @ above - below @ below.T for below, above in pairwise(weights)]

    modes = task(widths[0], widths[-1]).modes
    balanced = ZeroBalanced(name="zero_balanced").draw(seed, tuple(widths), modes)
    skewed = ZeroBalanced(name="zero_balanced", imbalance=imbalance).draw(
        seed, tuple(widths), modes
    )
    for c in imbalances(balanced):
        np.testing.assert_allclose(c, 0, atol=1e-12)
    strengths = np.linalg.svd(balanced[0], compute_uv=False)[: min(widths)]
    assert ((strengths > 0.5) & (strengths < 1.5)).all()
    np.testing.assert_allclose(product(skewed), product(balanced), atol=1e-11)
    violated = [np.linalg.norm(c) > 0.01 for c in imbalances(skewed)]
    # only the outermost layers are rescaled
    assert violated == [index in (0, len(widths) - 3) for index in range(len(widths) - 2)]
    log_ratio = np.log(np.linalg.norm(skewed[-1]) / np.linalg.norm(skewed[0]))
    np.testing.assert_allclose(log_ratio, imbalance, rtol=1e-9, atol=1e-9)


@given(hidden=st.lists(unit, max_size=3), seed=unit)
@few
def test_aligned_starts_decoupled(hidden, seed):
    strengths = tuple(0.5 + 0.25 * layer for layer in range(len(hidden) + 1))
    law = Aligned(name="aligned", layer_strengths=strengths)
    weights = law.draw(seed, (5, *hidden, 4), MODES)
    rank = min(hidden, default=4)
    between = MODES.u.T @ product(weights) @ MODES.v
    carried = np.prod(strengths) * np.array([1, -1, 1, 1])
    carried[rank:] = 0
    np.testing.assert_allclose(between, np.diag(carried), atol=1e-12)
    for w, strength in zip(weights, strengths, strict=True):
        found = np.linalg.svd(w, compute_uv=False)
        np.testing.assert_allclose(found[: min(rank, 4)], strength, rtol=1e-12)
        np.testing.assert_allclose(found[min(rank, 4) :], 0, atol=1e-12)


def test_aligned_layers_have_strength_one_by_default():
    for w in Aligned(name="aligned").draw(0, WIDTHS, MODES):
        np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False)[:4], 1, rtol=1e-12)


def test_decoupled_modes_share_nothing():
    first, second = Decoupled(name="decoupled").draw(0, (5, 10, 4), MODES)
    encoder, decoder = first @ MODES.v, second.T @ MODES.u
    vectors = np.concatenate([encoder, decoder], axis=1)
    gram = vectors.T @ vectors
    within = np.tile(np.eye(4, dtype=bool), (2, 2))
    np.testing.assert_allclose(gram[~within], 0, atol=1e-12)
    assert (np.abs(gram[within]) > 1e-3).all()
    # neither balanced nor aligned
    assert np.abs(np.diag(encoder.T @ encoder - decoder.T @ decoder)).min() > 1e-2
    cosines = np.sum(encoder * decoder, axis=0)
    cosines /= np.linalg.norm(encoder, axis=0) * np.linalg.norm(decoder, axis=0)
    assert np.abs(cosines).max() < 0.999


def test_tied_encoder_and_decoder_are_equal():
    first, second = Tied(name="tied").draw(0, WIDTHS, MODES)
    np.testing.assert_allclose(first @ MODES.v, second.T @ MODES.u, atol=1e-13)
    between = MODES.u.T @ second @ first @ MODES.v
    np.testing.assert_allclose(between, between.T, atol=1e-13)
    assert np.linalg.eigvalsh(between).min() > 1e-3  # seven units for four modes: full rank
    assert np.abs(between - np.diag(np.diag(between))).max() > 1e-2


@pytest.mark.parametrize(
    ("law", "widths", "message"),
    [
        (Aligned(name="aligned", layer_strengths=(1.0,)), WIDTHS, "1 entries for 2 layers"),
        (Decoupled(name="decoupled"), (5, 3, 4), r"at least 4 units.*\[3\]"),
        (Decoupled(name="decoupled"), (5, 6, 6, 4), r"one hidden layer.*\[6, 6\]"),
        (Tied(name="tied"), (5, 4), "one hidden layer; got 0"),
    ],
    ids=["strengths", "too few units", "too deep", "too shallow"],
)
def test_law_that_does_not_exist_is_refused(law, widths, message):
    with pytest.raises(UserError, match="init: .*" + message):
        initial_weights(law, widths, MODES, (1.0,), (0,))
