"""Fourier blocks on a ring of inputs, against explicit matrices and full moments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant, expm

from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.ring import (
    circulant_violation,
    joint_blocks,
    shared_normals,
    shifted_descent,
)

seeds = st.integers(0, 2**32 - 1)
rings = st.sampled_from([(1, 4), (2, 6), (3, 6), (4, 4), (5, 5), (6, 6)])


def joint_shift(weights, count):
    """Weights (..., unit, input) after a joint shift of units and sites."""
    units, inputs = weights.shape[-2:]
    return np.roll(weights, (count, count * (inputs // units)), axis=(-2, -1))


def joint_amplitudes(weights):
    """Weights by frequency of the joint shift, for sites relative to their unit (unitary)."""
    units, inputs = weights.shape[-2:]
    relative = [np.roll(weights[..., k, :], -k * (inputs // units), axis=-1) for k in range(units)]
    return np.fft.fft(np.stack(relative, axis=-2), axis=-2, norm="ortho")


def shifted_gates(seed, units, inputs):
    """A Gaussian task on a ring with half-space gates that are shifts of each other."""
    rng = np.random.default_rng(seed)
    distance = np.minimum(np.arange(inputs), inputs - np.arange(inputs))
    lengths = (0.7, 1.2)
    spectra = [np.fft.fft(np.exp(-((distance / xi) ** 2))).real.clip(0.01) for xi in lengths]
    covariances = np.stack([circulant(np.fft.ifft(spectrum).real) for spectrum in spectra])
    normal = rng.normal(size=inputs)
    normals = np.stack([np.roll(normal, k * inputs // units) for k in range(units)])
    return FrozenGates.from_gaussian(covariances, np.array([0.0, 1.0]), normals)


def random_moments(seed, units, inputs):
    root = np.random.default_rng(seed).normal(size=(units * inputs, units * inputs))
    return (root @ root.T).reshape(units, inputs, units, inputs)


@given(seeds, rings)
def test_gates_that_shift_with_their_inputs_have_exact_blocks(seed, ring):
    """The blocks have all eigenvalues of the moment, and the moment is zero outside them."""
    a = shifted_gates(seed, *ring).a
    split = joint_blocks(a)
    assert split.blocks.shape == (ring[0], ring[1], ring[1])
    assert split.violation < 1e-13
    np.testing.assert_allclose(split.blocks, split.blocks.conj().mT, atol=1e-13)
    whole = np.linalg.eigvalsh(a.reshape(2 * (np.prod(ring),)))
    eigenvalues = np.sort(np.linalg.eigvalsh(split.blocks).ravel())
    np.testing.assert_allclose(eigenvalues, whole, atol=1e-12)


@given(seeds, rings)
def test_blocks_are_the_transform_by_explicit_matrices(seed, ring):
    """For any moment, by an explicit unitary matrix and its rest outside the blocks."""
    units, inputs = ring
    a = random_moments(seed, units, inputs)
    size = units * inputs
    unit_vectors = np.eye(size).reshape(size, units, inputs)
    transform = joint_amplitudes(unit_vectors).reshape(size, size).T
    np.testing.assert_allclose(transform @ transform.conj().T, np.eye(size), atol=1e-13)
    full = transform @ a.reshape(size, size) @ transform.conj().T
    full = full.reshape(units, inputs, units, inputs)
    split = joint_blocks(a)
    same = np.einsum("qrqs->qrs", full)
    np.testing.assert_allclose(split.blocks, same, atol=1e-12 * np.abs(full).max())
    outside = np.linalg.norm(full) ** 2 - np.linalg.norm(same) ** 2
    share = np.sqrt(max(outside, 0)) / np.linalg.norm(a)
    np.testing.assert_allclose(split.violation, share, atol=1e-6)


@given(seeds, rings)
def test_blocks_are_those_of_the_average_over_joint_shifts(seed, ring):
    units, inputs = ring
    a = random_moments(seed, units, inputs)
    size = units * inputs
    average = np.mean(
        [np.roll(a, (n, n * inputs // units) * 2, axis=(0, 1, 2, 3)) for n in range(units)], axis=0
    )
    split, again = joint_blocks(a), joint_blocks(average)
    np.testing.assert_allclose(again.blocks, split.blocks, atol=1e-12 * np.abs(a).max())
    assert again.violation < 1e-14
    distance = np.linalg.norm(a - average) / np.linalg.norm(a)
    np.testing.assert_allclose(split.violation, distance, atol=1e-14)
    assert (distance > 0.1) == (units > 1)
    eigenvalues = np.sort(np.linalg.eigvalsh(split.blocks).ravel())
    whole = np.linalg.eigvalsh(average.reshape(size, size))
    np.testing.assert_allclose(eigenvalues, whole, atol=1e-10 * np.abs(whole).max())


@given(seeds, rings, st.integers(-3, 9))
def test_the_moment_commutes_with_the_shift_and_amplitudes_turn(seed, ring, count):
    net = shifted_gates(seed, *ring)
    size = net.b.size
    a = net.a.reshape(size, size)
    weights = np.random.default_rng(seed).normal(size=(2, *ring))

    def product(w):
        return (w.reshape(-1, size) @ a).reshape(w.shape)

    moved = joint_shift(weights, count)
    np.testing.assert_allclose(product(moved), joint_shift(product(weights), count), atol=1e-12)
    np.testing.assert_allclose(joint_shift(net.b, 1), net.b, atol=1e-13)
    turns = np.exp(-2j * np.pi * count * np.arange(ring[0]) / ring[0])[:, None]
    np.testing.assert_allclose(joint_amplitudes(moved), turns * joint_amplitudes(weights))


def test_each_frequency_learns_alone_and_only_the_first_is_driven():
    """The flow of each frequency, against the flow of all weights."""
    net = shifted_gates(3, 6, 6)
    start = np.random.default_rng(3).normal(size=(6, 6))
    time = 20.0
    blocks, drive = joint_blocks(net.a).blocks, joint_amplitudes(net.b)
    np.testing.assert_allclose(drive[1:], 0, atol=1e-14)
    assert np.abs(drive[0]).max() > 0.01
    target = joint_amplitudes(net.weights(np.array([time]), start)[0])
    for q, initial in enumerate(joint_amplitudes(start)):
        settled = 6 * np.linalg.solve(blocks[q], drive[q])
        now = settled + expm(-blocks[q] * time / 36) @ (initial - settled)
        np.testing.assert_allclose(now, target[q], atol=1e-10)


@given(seeds, st.integers(2, 7))
def test_circulant_violation_is_the_distance_off_the_fourier_diagonal(seed, inputs):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(inputs, inputs))
    fourier = np.fft.fft(np.eye(inputs), norm="ortho")
    full = fourier @ matrix @ fourier.conj().T
    off = np.linalg.norm(full - np.diag(np.diag(full))) / np.linalg.norm(full)
    np.testing.assert_allclose(circulant_violation(matrix), off)
    ring = circulant(rng.normal(size=inputs))
    assert circulant_violation(ring) < 1e-14
    np.testing.assert_allclose(circulant_violation(3 * matrix), off)
    assert circulant_violation(np.zeros((inputs, inputs))) == 0


def test_second_moments_of_one_unit_are_circulant_and_of_two_are_not():
    a = shifted_gates(4, 6, 6).a
    assert circulant_violation(a[0, :, 0]) < 1e-14
    assert circulant_violation(a[0, :, 1]) > 0.05


@given(seeds, rings)
def test_shared_gates_shift_with_their_inputs(seed, ring):
    """They are those of the mean field, and of a ReLU network whose fields are shifts."""
    weights = np.random.default_rng(seed).normal(size=(2, *ring))
    normals = shared_normals(weights)
    np.testing.assert_allclose(joint_shift(normals, 1), normals)
    np.testing.assert_allclose(shared_normals(normals), normals)
    np.testing.assert_allclose(shared_normals(joint_shift(weights, 2)), normals)
    averaged = np.mean([joint_shift(weights, n) for n in range(ring[0])], axis=0)
    np.testing.assert_allclose(normals, averaged, atol=1e-14)


@settings(max_examples=15)
@given(seeds, rings, st.integers(1, 4), st.integers(1, 5))
def test_changing_gates_by_frequency_are_descent_sample_by_sample(seed, ring, refreshes, every):
    """Descent on every sample at the places of all units, without any basis or second moment."""
    units, inputs = ring
    rng = np.random.default_rng(seed)
    x, y, start = rng.normal(size=(4, inputs)), rng.normal(size=4), rng.normal(size=ring)
    found = shifted_descent(refreshes, every, 0.3, start, x, y)
    weights, stride = start, inputs // units
    for _ in range(refreshes):
        field = np.mean([np.roll(w, -k * stride) for k, w in enumerate(weights)], axis=0)
        gate_of = [np.roll(field, k * stride) for k in range(units)]
        for _ in range(every):
            step = np.zeros_like(weights)
            for sample, target in zip(x, y, strict=True):
                for place in range(units):
                    moved = np.roll(sample, place * stride)
                    gate = np.array([normal @ moved > 0 for normal in gate_of])
                    error = target - (gate * (weights @ moved)).mean()
                    step += error * np.outer(gate, moved) / units / (len(x) * units)
            weights = weights + 0.3 * step
    np.testing.assert_allclose(found, weights, rtol=0, atol=1e-10)


def test_units_off_the_ring_are_refused():
    with pytest.raises(ValueError, match="4 units cannot lie evenly on a ring of 6 inputs"):
        shared_normals(np.ones((4, 6)))
    with pytest.raises(ValueError, match="4 units cannot lie evenly on a ring of 6 inputs"):
        joint_blocks(random_moments(0, 4, 6))
