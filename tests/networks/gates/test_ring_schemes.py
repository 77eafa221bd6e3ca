"""Gates on a ring of inputs: bumps, and tilings that give each sample one pathway."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.bumps import Bumps, bumps
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.networks.gates.tiling import Tiling

few = settings(max_examples=25)
widths = st.sampled_from([0.0, 1e-300, 0.3, 1.0, 2.5, 100.0])
ring = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(sorted)
"""Pathways and at least as many inputs."""


def bump_gates(pathways, width):
    return Bumps(name="bumps", pathways=pathways, width=width)


def bump_tiling(pathways, width):
    return Tiling(name="tiling", pathways=pathways, directions="bumps", width=width)


def random_tiling(pathways, seed=0):
    return Tiling(name="tiling", pathways=pathways, directions="random", seed=seed)


def data_of(x):
    return Data(x=np.asarray(x, dtype=float), y=np.ones((len(x), 1)))


def gaussian(inputs, count=40, seed=0):
    return data_of(np.random.default_rng(seed).normal(size=(count, inputs)))


# Bumps -----------------------------------------------------------------------------------------


@given(ring, widths)
@few
def test_bumps_fall_off_to_both_sides_of_their_centre(sizes, width):
    pathways, inputs = sizes
    normals = bump_gates(pathways, width).normals(inputs)
    np.testing.assert_array_equal(normals, bumps(pathways, width, inputs))
    centres = []
    for normal in normals:
        centre = int(normal.argmax())
        centres.append(centre)
        for step in range(-(inputs // 2), inputs // 2 + 1):  # both ways round the ring
            expected = math.exp(-((step / width) ** 2) / 2) if width > 1e-300 else float(step == 0)
            assert normal[(centre + step) % inputs] == pytest.approx(expected, rel=1e-14)
    assert centres == sorted(set(centres))
    for number, centre in enumerate(centres):
        assert abs(centre - number * inputs / pathways) <= 0.5


def test_centres_half_way_between_inputs_leave_even_gaps():
    """Rounding halves to even numbers would make gaps of 2, 3, 3, 2 inputs."""
    centres = bumps(4, 0.0, 10).argmax(axis=1)
    np.testing.assert_array_equal(centres, [0, 3, 5, 8])


def test_bumps_of_width_zero_look_at_one_input():
    data = gaussian(7)
    np.testing.assert_array_equal(bump_gates(7, 0.0).gates(data), data.x.T > 0)
    np.testing.assert_array_equal(bump_gates(2, 0.0).gates(data), data.x.T[[0, 4]] > 0)


def test_bumps_open_together_as_often_as_their_normals_predict():
    """Two half-spaces share (pi - theta)/(2 pi) of an isotropic Gaussian."""
    scheme, count = bump_gates(4, 1.5), 20000
    gates, normals = scheme.gates(gaussian(10, count)), scheme.normals(10)
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    share = (np.pi - np.arccos(np.clip(unit @ unit.T, -1, 1))) / (2 * np.pi)
    error = np.abs(gates @ gates.T / count - share)
    assert (error < 4.5 * np.sqrt(share * (1 - share) / count)).all()
    assert np.ptp(share) > 0.1


# Symmetry --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [bump_gates, bump_tiling])
@given(sizes=ring, width=widths.filter(lambda width: width < 100), seed=st.integers(0, 50))
@few
def test_gates_of_shifted_samples_are_shifted_gates(scheme, sizes, width, seed):
    pathways, inputs = sizes
    common = math.gcd(pathways, inputs)
    chosen, data = scheme(pathways, width), gaussian(inputs, seed=seed)
    gates = chosen.gates(data)
    for times in range(1, common + 1):
        shifted = data_of(np.roll(data.x, times * inputs // common, axis=1))
        expected = np.roll(gates, times * pathways // common, axis=0)
        np.testing.assert_array_equal(chosen.gates(shifted), expected)


@pytest.mark.parametrize("width", [0.0, 1.5])
def test_with_a_pathway_for_every_input_any_shift_is_a_symmetry(width):
    data = gaussian(40, 200)
    for scheme in (bump_gates(40, width), bump_tiling(40, width)):
        gates = scheme.gates(data)
        shifted = scheme.gates(data_of(np.roll(data.x, 1, axis=1)))
        np.testing.assert_array_equal(shifted, np.roll(gates, 1, axis=0))
        assert (gates != shifted).any()


# Tilings ---------------------------------------------------------------------------------------


tilings = st.one_of(
    st.builds(random_tiling, st.integers(1, 12), st.integers(0, 50)),
    st.builds(bump_tiling, st.integers(1, 6), widths),
)


@given(scheme=tilings, seed=st.integers(0, 50), discrete=st.booleans())
@few
def test_every_sample_has_exactly_one_pathway(scheme, seed, discrete):
    data = gaussian(6, seed=seed)
    if discrete:  # pulses, and among them the sample that is zero
        data = data_of(np.vstack([data.x > 0, np.zeros((1, 6))]))
    gates = scheme.gates(data)
    assert gates.shape == (scheme.pathways, len(data.x))
    assert set(np.unique(gates)) <= {0.0, 1.0}
    np.testing.assert_array_equal(gates.sum(axis=0), 1)


@pytest.mark.parametrize("scheme", [random_tiling(1), bump_tiling(1, 0.0), bump_tiling(1, 2.0)])
def test_a_single_pathway_is_always_on(scheme):
    assert (scheme.gates(gaussian(4)) == 1).all()


@given(sizes=ring, width=st.sampled_from([0.0, 0.7, 2.0]), seed=st.integers(0, 50))
@few
def test_the_bump_that_overlaps_most_wins(sizes, width, seed):
    pathways, inputs = sizes
    data, normals = gaussian(inputs, 10, seed), bumps(pathways, width, inputs)
    gates = bump_tiling(pathways, width).gates(data)
    for sample, gate in zip(data.x, gates.T, strict=True):
        overlaps = [math.fsum(a * b for a, b in zip(n, sample, strict=True)) for n in normals]
        assert list(np.flatnonzero(gate)) == [overlaps.index(max(overlaps))]


@given(width=st.sampled_from([1.0, 1.7, 3.0]), half=st.integers(1, 4), start=st.integers(0, 39))
@few
def test_of_equal_overlaps_the_first_wins(width, half, start):
    """An even pulse lies between two bumps; rounding must not choose between them."""
    pulse = np.zeros((1, 40))
    pulse[0, (start + np.arange(2 * half)) % 40] = 1
    middle = {(start + half - 1) % 40, (start + half) % 40}
    (pathway,) = np.flatnonzero(bump_tiling(40, width).gates(data_of(pulse)))
    assert pathway == min(middle)


def test_a_flat_sample_belongs_to_the_first_bump():
    data = data_of(np.array([[1.0], [0.0], [-0.3]]) * np.ones((3, 40)))
    for width in (0.0, 0.6, 1.7, 11.0):
        np.testing.assert_array_equal(bump_tiling(40, width).gates(data)[0], 1)


@given(pathways=st.integers(2, 8), seed=st.integers(0, 50))
@few
def test_random_directions_have_an_arc_of_the_circle_each(pathways, seed):
    """Directions of unequal length would not: the cell of a short one may be empty."""
    angle = np.linspace(0, 2 * np.pi, 20000, endpoint=False)
    circle = data_of(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    gates = random_tiling(pathways, seed).gates(circle)
    assert gates.any(axis=1).all()
    owner = gates.argmax(axis=0)
    assert (owner != np.roll(owner, 1)).sum() == pathways


def test_draws_of_random_tilings_do_not_change_between_versions():
    gates = random_tiling(3, 2).gates(data_of(np.eye(8)))
    np.testing.assert_array_equal(gates.argmax(axis=0), [0, 1, 2, 1, 2, 0, 2, 2])


def test_random_tilings_are_isotropic_and_differ_by_seed():
    data = gaussian(3, 4)
    gates = np.array([random_tiling(2, seed).gates(data) for seed in range(1000)])
    share = gates[:, 0].mean(axis=0)
    assert (np.abs(share - 0.5) < 4.5 * 0.5 / math.sqrt(1000)).all()
    # a sample and its opposite are in opposite cells of two
    opposite = np.array([random_tiling(2, s).gates(data_of(-data.x)) for s in range(1000)])
    np.testing.assert_array_equal(opposite, 1 - gates)


@given(scheme=tilings, seed=st.integers(0, 50))
@few
def test_cells_of_tilings_are_convex_cones(scheme, seed):
    data = gaussian(6, seed=seed)
    owner = scheme.gates(data).argmax(axis=0)
    np.testing.assert_array_equal(scheme.gates(data_of(3 * data.x)).argmax(axis=0), owner)
    for one in range(scheme.pathways):
        members = data.x[owner == one]
        if len(members) > 1:
            between = data_of(members[1:] + members[:-1])
            assert (scheme.gates(between).argmax(axis=0) == one).all()


# Configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [bump_gates, bump_tiling])
def test_more_bumps_than_inputs_are_refused(scheme):
    network = Gated(name="gated", hidden=(2,), gates=scheme(5, 1.0))
    with pytest.raises(UserError, match="the dataset has 4 inputs") as error:
        network.wiring(gaussian(4))
    assert (error.value.key, error.value.value) == ("network.gates.pathways", "5")
    assert len(scheme(4, 1.0).gates(gaussian(4))) == 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"directions": "bumps"}, "width: directions bumps need one; use 0 for single inputs"),
        (
            {"directions": "random", "width": 1.5},
            r"width: 1\.5: directions random have none; leave it out",
        ),
        ({"directions": "bumps", "width": -1.0}, "greater than or equal to 0"),
    ],
    ids=["none", "of random directions", "negative"],
)
def test_width_belongs_to_bumps(parameters, message):
    with pytest.raises(ValidationError, match=message):
        Tiling(name="tiling", pathways=2, **parameters)


@pytest.mark.parametrize(
    "scheme",
    [
        bump_gates(3, 0.5),
        bump_tiling(3, 0.0),
        random_tiling(3, 4),
        HalfSpace(name="half_space", pathways=2, antipodal=True, copies=3),
    ],
    ids=lambda scheme: scheme.name,
)
def test_schemes_are_written_and_read_back(scheme):
    assert type(scheme).model_validate_json(scheme.canonical()) == scheme
