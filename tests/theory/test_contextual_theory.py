"""The contextual task: closed forms, against its data in exact integers and against networks."""

from fractions import Fraction
from itertools import combinations
from math import comb, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.theory.contextual import (
    common_modes,
    context_modes,
    head_start,
    staged_loss,
    tree_strengths,
)
from neuralrace.theory.modes import deep_half_time, deep_mode
from neuralrace.theory.pathway_modes import mean_start, pathway_modes_flow

FAMILIES = [(contexts, q) for contexts in (2, 3, 4, 5) for q in range(1, contexts)]
SIZES = [(2, 2), (3, 4), (3, 8), (4, 8), (5, 8)]


def tree(objects):
    """Rows of the binary tree as integers; the first row is common to all objects."""
    levels = [objects >> level for level in range(objects.bit_length())]
    return np.vstack([np.kron(np.eye(objects // m, dtype=int), np.ones(m, int)) for m in levels])


def contrasts(objects):
    """For every branching node, the contrast of its left and right half."""
    sizes = [objects >> level for level in range(objects.bit_length() - 1)]
    halves = [np.repeat([1, -1], m // 2) for m in sizes]
    return np.vstack([np.kron(np.eye(objects // len(h), dtype=int), h) for h in halves])


def task(contexts, objects):
    """Inputs, targets and the residual times nC, a sample per row, as integers."""
    h, eye = tree(objects), np.eye(contexts, dtype=int)
    context, item = np.divmod(np.arange(objects * contexts), objects)
    x = np.hstack([np.eye(objects, dtype=int)[item], eye[context]])
    y = np.hstack([h.T[item], *(h.T[item] * eye[context][:, [c]] for c in range(contexts))])
    centred = objects * h.T - h.sum(axis=1)
    shares = contexts * eye - 1
    residual = np.hstack(
        [0 * h.T[item], *(centred[item] * shares[context][:, [c]] for c in range(contexts))]
    )
    return x, y, residual


def families(contexts, open_in):
    """Gates of a family by pathway and context of the sample."""
    return np.array([np.isin(range(contexts), c) for c in combinations(range(contexts), open_in)])


def effective(contexts, objects, gates, y, common):
    """Effective data of pathways that see objects only, and of a common pathway if there is one."""
    x = task(contexts, objects)[0].astype(float)
    samples, objects_only = len(x), np.arange(objects + contexts) < objects
    shown = [gate[:, None] * x * objects_only for gate in np.repeat(gates, objects, axis=1)]
    shown = [x] * common + shown
    nodes = {f"x{p}": x.shape[1] for p in range(len(shown))}
    nodes |= {f"h{p}": x.shape[1] for p in range(len(shown))} | {"y": y.shape[1]}
    edges = [edge for p in range(len(shown)) for edge in ((f"x{p}", f"h{p}"), (f"h{p}", "y"))]
    return EffectiveData(
        Architecture(nodes=nodes, edges=tuple(edges)),
        tuple(y.T @ part / samples for part in shown),
        {
            (j, p): left.T @ right / samples
            for j, left in enumerate(shown)
            for p, right in enumerate(shown)
        },
        float((y**2).sum() / samples),
    )


def learn(time, data, a0, doubled=False):
    """Joint flow of pathways from a0 in all modes; `doubled` starts the first one from 2 a0."""
    widths = [4 if doubled and p == 0 else 2 for p in range(len(data.sigma_yx))]
    return pathway_modes_flow(time, data, mean_start(data, widths, np.sqrt(a0)))


@pytest.mark.parametrize(("contexts", "objects"), SIZES)
def test_common_modes_are_exact(contexts, objects):
    """Integer vectors are the modes, and together the modes are the whole correlation."""
    x, y, _ = task(contexts, objects)
    gram, covariance = (y.T @ x).T @ (y.T @ x), x.T @ x
    everywhere = np.repeat([contexts, objects], [objects, contexts])
    by_context = [np.r_[np.zeros(objects, int), 1, -np.eye(contexts - 1, dtype=int)[c]]
                  for c in range(contexts - 1)]  # fmt: skip
    by_object = [np.r_[v, np.zeros(contexts, int)] for v in contrasts(objects)]
    s, d = common_modes(contexts, objects)
    squares = []
    for v, ours, variance in zip([everywhere, *by_context, *by_object], s, d, strict=True):
        square = int((gram @ v)[v != 0][0] // v[v != 0][0])
        np.testing.assert_array_equal(gram @ v, square * v)
        samples = objects * contexts
        assert isclose(ours, square**0.5 / samples, rel_tol=1e-15)
        np.testing.assert_array_equal(covariance @ v, round(variance * samples) * v)
        squares.append(square)
    assert sum(squares) == np.trace(gram)
    np.testing.assert_array_equal(
        squares[contexts:], contexts * (contexts + 1) * tree_strengths(objects)[1:]
    )


@pytest.mark.parametrize("objects", [2, 4, 8, 32])
def test_tree_strengths_are_exact(objects):
    gram, vectors = tree(objects).T @ tree(objects), contrasts(objects)
    squares = tree_strengths(objects)
    for square, v in zip(squares, [np.ones(objects, int), *vectors], strict=True):
        np.testing.assert_array_equal(gram @ v, square * v)
    assert tree_strengths(8).tolist() == [15, 7, 3, 3, 1, 1, 1, 1]


@pytest.mark.parametrize(("contexts", "objects"), SIZES)
def test_residual_is_the_part_that_no_linear_map_explains(contexts, objects):
    x, y, residual = task(contexts, objects)
    np.testing.assert_array_equal(residual.T @ x, 0)
    explained = objects * contexts * y - residual
    assert np.linalg.matrix_rank(np.hstack([x, explained])) == np.linalg.matrix_rank(x)


@pytest.mark.parametrize(("contexts", "open_in"), FAMILIES)
def test_context_modes_are_exact_and_compete(contexts, open_in):
    """Strengths of all pathways of a family and their competition, in integers."""
    objects = 8
    x, _, residual = task(contexts, objects)
    gates, samples = families(contexts, open_in), objects * contexts
    shown = np.repeat(gates, objects, axis=1)[:, :, None] * x[:, :objects]
    sigma = residual.T @ shown  # (pathway, output, object), nC times its value
    s, d, k = context_modes(contexts, objects, open_in)
    gram = sigma[0].T @ sigma[0]
    for v, ours, square in zip(contrasts(objects), s, tree_strengths(objects)[1:], strict=True):
        exact = Fraction(int((gram @ v)[v != 0][0] // v[v != 0][0]), samples**2)
        np.testing.assert_array_equal(gram @ v, int(exact * samples**2) * v)
        assert exact == Fraction(int(square) * open_in * (contexts - open_in), contexts)
        assert isclose(ours, float(exact) ** 0.5 / samples, rel_tol=1e-15)
    np.testing.assert_array_equal(gram.sum(axis=0), 0)
    np.testing.assert_allclose(d, open_in / samples, rtol=1e-15)
    overlap = gates.astype(int) @ gates.T.astype(int)
    felt = np.einsum("jp,joi->poi", overlap, sigma)
    np.testing.assert_array_equal(felt, comb(contexts - 2, open_in - 1) * sigma)
    np.testing.assert_allclose(k * d * samples, comb(contexts - 2, open_in - 1), rtol=1e-15)


@pytest.mark.parametrize(
    ("contexts", "fastest"), [(3, {1, 2}), (4, {2}), (5, {2, 3}), (6, {3}), (7, {3, 4})]
)
def test_families_that_are_fastest_on_the_residual_alone(contexts, fastest):
    """Families of half of the contexts, from the data; C - 1 only up to three contexts."""
    x, _, residual = task(contexts, 2)
    squares = {}
    for q in range(1, contexts):
        sigma = residual.T @ (np.repeat(families(contexts, q)[0], 2)[:, None] * x)
        squares[q] = int((sigma**2).sum())
    assert {q for q, square in squares.items() if square == max(squares.values())} == fastest
    ours = [context_modes(contexts, 2, q)[0][0] for q in range(1, contexts)]
    np.testing.assert_allclose(np.square(ours), [v / (2 * contexts) ** 4 for v in squares.values()])


@pytest.mark.parametrize(("contexts", "open_in"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3)])
def test_family_follows_its_closed_form_and_the_staged_loss(contexts, open_in):
    """Full networks: the common pathway learns the targets, then the family the residual."""
    objects, a0 = 4, 1e-3
    _, y, residual = task(contexts, objects)
    rest = residual / (objects * contexts)
    time = np.array([0.0, 20.0, 50.0, 80.0, 120.0, 400.0])
    family = effective(contexts, objects, families(contexts, open_in), rest, common=False)
    after = learn(time, family, a0)
    s, d, k = context_modes(contexts, objects, open_in)
    mode = deep_mode(time, s, k * d, np.full(objects - 1, a0))
    values = np.broadcast_to(mode[:, None], (*time.shape, len(family.sigma_yx), objects - 1))
    np.testing.assert_allclose(after.singular_values, -np.sort(-values), rtol=1e-6)
    first = effective(contexts, objects, np.zeros((0, contexts), bool), y.astype(float), True)
    loss = learn(time, first, a0, doubled=True).loss + after.loss - family.y_power / 2
    starts = np.full(objects + contexts - 1, 2 * a0), np.full(objects - 1, a0)
    np.testing.assert_allclose(
        staged_loss(time, contexts, objects, open_in, *starts), loss, atol=1e-7
    )


@pytest.mark.parametrize(
    ("contexts", "open_in", "objects"), [(3, 1, 8), (4, 1, 8), (5, 1, 4), (5, 2, 2)]
)
def test_families_of_q_and_of_all_but_q_are_the_same_on_the_residual(contexts, open_in, objects):
    """Pathways of one context equal those of all contexts but one, although their k differ."""
    both = open_in, contexts - open_in
    (s, d, k), (s_other, d_other, k_other) = (context_modes(contexts, objects, q) for q in both)
    np.testing.assert_allclose(s, s_other, rtol=1e-15)
    np.testing.assert_allclose(k * d, k_other * d_other, rtol=1e-15)
    if open_in == 1:
        assert (k, k_other) == (1, pytest.approx(1 / (contexts - 1)))
    rest = task(contexts, objects)[2] / (objects * contexts)
    time = np.linspace(0, 300, 7)
    losses = [
        learn(time, effective(contexts, objects, families(contexts, q), rest, False), 1e-2).loss
        for q in both
    ]
    np.testing.assert_allclose(*losses, atol=1e-7)


@pytest.mark.parametrize(("contexts", "open_in"), FAMILIES)
def test_staged_loss_starts_at_the_targets_and_ends_at_zero(contexts, open_in):
    y = task(contexts, 8)[1]
    time = np.array([0.0, 1e5])
    a0 = 1e-12 * np.ones((2, 1))
    loss = staged_loss(time, contexts, 8, open_in, a0 * np.ones(7 + contexts), a0 * np.ones(7))
    assert loss.shape == (2, 2)
    np.testing.assert_allclose(loss[:, 0], (y**2).sum() / len(y) / 2, rtol=1e-9)
    np.testing.assert_allclose(loss[:, 1], 0, atol=1e-12)


@pytest.mark.parametrize(("contexts", "open_in"), [*FAMILIES, (12, 11), (12, 6)])
def test_head_start_is_the_flow_across_the_sigmoid(contexts, open_in):
    """Against the linear flow of one aligned pathway while the common mode is learned."""
    objects, a0, a0_common = 2, 1e-9, 1e-12
    samples = objects * contexts
    kept = open_in * np.sqrt((contexts + 1) / contexts) / samples
    own = np.sqrt(open_in * (contexts - open_in) / contexts) / samples
    s_c, d_c = (part[-1:] for part in common_modes(contexts, objects))

    def rate(t, state):
        encoder, decoder_kept, decoder_own = state
        mode = deep_mode(np.array([t]), s_c, d_c, np.array([a0_common]))[0, 0]
        left = 1 - mode * d_c[0] / s_c[0]
        push = left * kept
        return [
            push * decoder_kept + own * decoder_own,
            push * encoder,
            own * encoder,
        ]

    start = np.sqrt(a0) * np.array([1, kept, own]) / [1, *2 * [np.hypot(kept, own)]]
    end = deep_half_time(s_c, d_c, np.array([a0_common]))[0] + 15 / own
    flow = solve_ivp(rate, (0, end), start, "DOP853", rtol=1e-11, atol=1e-18)
    late = ((flow.y[0, -1] + flow.y[2, -1]) / 2) ** 2 * np.exp(-2 * own * end)
    starts = np.full(contexts + 1, a0_common), np.array([a0])
    np.testing.assert_allclose(head_start(contexts, objects, open_in, *starts), late, rtol=1e-8)


SUFFICIENT = 1e-7
"""Relative tolerance of flows, far below the bounds on the gaps."""


def gaps_to_joint_training(contexts, objects, open_in, starts):
    """Errors of the staged loss, with the head start and with the initial weights, by start."""
    y, ours, late = task(contexts, objects)[1].astype(float), [], []
    joint = effective(contexts, objects, families(contexts, open_in), y, common=True)
    for a0 in starts:
        time = np.linspace(0, 24 * contexts * np.sqrt(np.log(1 / a0)), 400)
        loss = learn(time, joint, a0, doubled=True).loss
        assert loss[-1] < 0.01 * loss[0]
        common, own = np.full(objects + contexts - 1, 2 * a0), np.full(objects - 1, a0)
        start = head_start(contexts, objects, open_in, common, own)
        for gaps, tried in ((ours, start), (late, own)):
            staged = staged_loss(time, contexts, objects, open_in, common, tried)
            gaps.append(np.abs(staged - loss).max() / loss[0])
    return ours, late


@pytest.mark.parametrize(("contexts", "open_in"), [(3, 1), (3, 2), (4, 3)])
def test_staged_loss_with_head_start_equals_joint_training_for_small_starts(
    contexts, open_in, monkeypatch
):
    """Nothing is fitted. With the initial weights instead, the family learns too late."""
    monkeypatch.setattr("neuralrace.theory.pathway_modes.RTOL", SUFFICIENT)
    ours, late = gaps_to_joint_training(contexts, 4, open_in, (1e-6, 1e-10))
    assert ours[0] < 4e-3
    assert ours[1] < ours[0] / 7
    assert min(late) > 0.02


def test_head_start_fails_where_the_family_learns_the_contexts_first(monkeypatch):
    """Two objects in four contexts: the family learns the modes of contexts first."""
    monkeypatch.setattr("neuralrace.theory.pathway_modes.RTOL", SUFFICIENT)
    ours, _ = gaps_to_joint_training(4, 2, 3, (1e-6, 1e-10))
    assert 0.04 < ours[0] < ours[1]


@pytest.mark.parametrize("contexts", [3, 4, 5, 8])
def test_head_start_lets_all_contexts_but_one_win(contexts):
    """Families of half of the contexts are faster on the residual only; small starts decide."""
    times = []
    for a0 in (1e-40, 1e-80):
        common = np.full(contexts + 1, a0)
        row = []
        for q in range(1, contexts):
            s, d, k = context_modes(contexts, 2, q)
            row += [*deep_half_time(s, k * d, head_start(contexts, 2, q, common, common[:1]))]
        times.append(row)
    assert np.argmin(times[0]) + 1 == contexts - 1
    q, whole = np.arange(1, contexts), contexts * (contexts + 1)
    delay = (1 - np.sqrt(q * (q + 1) / whole)) / np.sqrt(q * (contexts - q) / contexts)
    slope = np.subtract(*times[::-1]) / (40 * np.log(10)) / contexts
    np.testing.assert_allclose(slope, delay + whole**-0.5, rtol=1e-9)


@settings(max_examples=20)
@given(
    family=st.sampled_from(FAMILIES),
    own=st.floats(1e-12, 1e-3),
    common=st.floats(1e-12, 1e-3),
    factor=st.floats(1.5, 10),
)
def test_head_start_is_linear_in_the_pathway_and_longer_for_a_later_common_one(
    family, own, common, factor
):
    contexts = family[0]
    starts = np.full((1, 3 + contexts), common), np.full((2, 3), own)
    head = head_start(contexts, 4, family[1], *starts)
    assert head.shape == (2, 3)
    np.testing.assert_allclose(
        head_start(contexts, 4, family[1], starts[0], factor * starts[1]), factor * head, rtol=1e-12
    )
    assert np.all(head_start(contexts, 4, family[1], factor * starts[0], starts[1]) < head)


def test_invalid_numbers_of_objects_and_contexts_are_refused():
    for objects in (0, 1, 3, 6):
        with pytest.raises(ValueError, match="2, 4, 8"):
            tree_strengths(objects)
    with pytest.raises(ValueError, match="two or more"):
        common_modes(1, 4)
    for q in (0, 3):
        with pytest.raises(ValueError, match="1 to 2 of 3"):
            context_modes(3, 4, q)
