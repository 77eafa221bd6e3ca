"""Metrics of receptive fields, on fields of known shape."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erf
from scipy.stats import kurtosis

from builders import cell_with_requirements, metrics_of, recorded_trajectory
from neuralrace.errors import UserError
from neuralrace.metrics.receptive_fields.receptive_fields import (
    MEASURES,
    centre_bias,
    class_shares,
    cycles,
    dominant_frequency,
    energy_window,
    opposition,
    participation,
    participation_ratio,
    unit_mean,
    weight_kurtosis,
)

L, K, SNAPSHOTS = 40, 6, 5
PLACES = np.arange(L)
DATASET = {"name": "nonlinear_gaussian", "inputs": L, "xi": [3.0, 1.0], "samples": 200}
RING = {
    "dataset": DATASET,
    "network": {"name": "layered", "hidden": [K], "activation": "relu", "readout": "mean"},
    "init": {"name": "normal"},
    "init_scales": [0.1, 1.0],
    "seeds": 2,
    "training": {"learning_rate": 0.5, "steps": 40},
    "record": {"every": 2, "snapshots": SNAPSHOTS - 1, "observables": ["weights"]},
}
CLASSES = ("localised", "oscillating", "neither")
ring_cell = partial(cell_with_requirements, base=RING)
assert_close = partial(np.testing.assert_allclose, rtol=1e-9)


def recorded_fields(cell, fields):
    """The trajectory of a network whose readout is the mean."""
    readout = np.full((*fields.shape[:3], 1, fields.shape[3]), 1 / fields.shape[3])
    return recorded_trajectory(cell, samples=1, weight_1=fields, weight_2=readout)


def metrics_of_fields(fields, *metrics, **changes):
    cell = ring_cell(metrics or ("receptive_fields",), **changes)
    return metrics_of(cell, recorded_fields(cell, fields))


def random_fields(*shape, seed=3):
    return np.random.default_rng(seed).normal(size=(*shape, L))


def distance(centre=0):
    return np.minimum((PLACES - centre) % L, (centre - PLACES) % L)


def bump(width, centre=0):
    """A Gaussian in the distance around the ring."""
    return np.exp(-(distance(centre) ** 2) / (2 * width**2))


def class_of(field):
    shares = class_shares(np.atleast_2d(field))
    (name,) = (name for name in CLASSES if shares[name] == 1)
    return name


# Fields of known shape ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3, 10, 20])
def test_box(width):
    box = np.roll(np.where(width > PLACES, -0.3, 0.0), -width // 2)[None]
    assert_close(participation(box), [L / width])
    assert_close(energy_window(box), [np.ceil(0.9 * width) / L])
    assert dominant_frequency(box) == cycles(box) == 0
    share = width / L
    assert_close(weight_kurtosis(box), (1 - 6 * share * (1 - share)) / (share * (1 - share)))
    assert class_of(box) == ("localised" if width < 20 else "neither")


@pytest.mark.parametrize("width", [1.5, 2.0, 3.0])
def test_gaussian_bump(width):
    fields = bump(width, centre=7)[None]
    assert_close(participation(fields), [L / (width * np.sqrt(2 * np.pi))], rtol=1e-4)
    window = L * energy_window(fields)
    assert erf((window - 2) / (2 * width)) < 0.9 < erf((window + 1) / (2 * width))
    assert class_of(fields) == "localised"


@pytest.mark.parametrize("frequency", [1, 2, 3, 7, 19])
def test_sinusoid(frequency):
    fields = np.cos(2 * np.pi * frequency * PLACES / L + 0.4)[None]
    assert_close(participation(fields), [1.5])
    assert_close(weight_kurtosis(fields), [-1.5])
    assert_close(dominant_frequency(fields), [frequency])
    assert 0.7 < energy_window(fields) <= 0.95
    assert class_of(fields) == ("neither" if frequency == 1 else "oscillating")
    half = L / frequency / 2
    if half % 1 == 0:  # half a wavelength on all signs are opposite
        assert_close(opposition(fields), [1])


def test_flat_fields():
    fields = np.full((1, L), 0.1)
    assert_close(participation(fields), [1])
    assert_close(energy_window(fields), [0.9])
    assert dominant_frequency(fields) == 0
    assert np.isnan(weight_kurtosis(fields))
    assert class_of(fields) == "neither"
    assert_close(opposition(fields), [-1])
    alternating = fields * (-1.0) ** PLACES
    assert_close(participation(alternating), [1])
    assert_close(weight_kurtosis(alternating), [-2])
    assert_close(dominant_frequency(alternating), [L / 2])
    assert class_of(alternating) == "oscillating"


def test_white_noise():
    fields = random_fields(4000)
    for values, expected in (
        (participation(fields), 3 * L / (L + 2)),
        (weight_kurtosis(fields), -6 / (L + 1)),
    ):
        error = values.std() / np.sqrt(len(fields))
        assert abs(values.mean() - expected) < 4 * error < 0.1
    # complex amplitudes have twice the chance of real ones, at 0 and L/2, to be largest or more
    counts = np.bincount(dominant_frequency(fields).astype(int), minlength=L // 2 + 1)
    assert abs(counts[1:-1].mean() / (len(fields) / (L // 2 + 1)) - 1) < 0.15
    shares = class_shares(fields)
    assert shares["localised"] == 0
    # the signs of noise change at irregular distances
    assert np.mean(cycles(fields) > 1) > 0.8
    assert abs(shares["oscillating"] - 0.09) < 0.02
    assert abs(opposition(fields).mean() - 0.29) < 0.01


def test_confined_oscillation_is_not_localised():
    envelope = bump(4.0)
    gabor = envelope * np.cos(2 * np.pi * 7 * PLACES / L)
    assert_close(participation(gabor[None]), 1.5 * participation(envelope[None]), rtol=0.01)
    assert energy_window(gabor[None]) < 0.3
    assert_close(dominant_frequency(gabor[None]), [7])
    assert cycles(gabor[None]) > 1
    assert class_of(gabor) == "oscillating"
    # an envelope with less than one cycle is localised
    assert class_of(envelope * np.cos(2 * np.pi * 2 * PLACES / L)) == "localised"


def test_measures_do_not_overflow():
    fields = bump(2.0)[None]
    for size in (1e-200, 1e200):
        for measure in (participation, weight_kurtosis, energy_window, cycles):
            assert_close(measure(size * fields), measure(fields))


# Arbitrary fields --------------------------------------------------------------------------------

some_fields = arrays(
    float, st.tuples(st.integers(1, 4), st.integers(3, 12)), elements=st.integers(-9, 9).map(float)
)


@given(some_fields)
def test_measures_agree_with_definitions(fields):
    inputs = fields.shape[1]
    for unit, w in enumerate(fields):
        one = fields[unit : unit + 1]
        if not w.any():
            for measure in (participation, energy_window, dominant_frequency, cycles):
                assert np.isnan(measure(one))
            continue
        power = (w**2).sum()
        assert_close(participation(one), [inputs * (w**4).sum() / power**2])
        if np.ptp(w):
            assert_close(weight_kurtosis(one), [kurtosis(w)], atol=1e-12)
        else:
            assert np.isnan(weight_kurtosis(one))
        windows = (
            length
            for length in range(1, inputs + 1)
            for start in range(inputs)
            if 10 * sum(w[(start + n) % inputs] ** 2 for n in range(length)) >= 9 * power
        )
        assert_close(energy_window(one), [next(windows) / inputs])
        frequencies = np.arange(inputs // 2 + 1)
        waves = np.exp(-2j * np.pi * np.outer(frequencies, np.arange(inputs)) / inputs)
        spectrum = abs(waves @ w) ** 2
        largest = frequencies[spectrum > spectrum.max() * (1 - 1e-9)]
        assert_close(dominant_frequency(one), largest[:1])
        assert_close(cycles(one), largest[:1] * energy_window(one))
        moved = [w @ np.roll(w, shift) / power for shift in range(inputs)]
        assert_close(opposition(one), [-min(moved)], atol=1e-12)


@given(some_fields, st.integers(0, 11), st.sampled_from([-3.0, 1e-3, 7.0]))
def test_measures_do_not_depend_on_place_and_size(fields, shift, factor):
    moved = factor * np.roll(fields, shift, axis=-1)
    for measure in MEASURES:
        assert_close(measure(moved), measure(fields), atol=1e-9)
    for name, share in class_shares(fields).items():
        assert_close(class_shares(moved)[name], share)
    assert_close(centre_bias(moved), centre_bias(fields), atol=1e-6)


@given(some_fields)
def test_classes_are_exhaustive_and_exclusive(fields):
    shares = class_shares(fields)
    assert tuple(shares) == CLASSES
    alive = fields.any(axis=-1)
    if not alive.any():
        assert all(np.isnan(share) for share in shares.values())
        return
    assert_close(sum(shares.values()), 1)
    window, within = energy_window(fields)[alive], cycles(fields)[alive]
    turns = (within > 1) & (opposition(fields)[alive] >= 0.4)
    short = (window <= 1 / 3) & (within <= 1)
    assert_close(shares["localised"], np.mean(short))
    assert_close(shares["oscillating"], np.mean(turns))
    assert_close(shares["neither"], np.mean(~short & ~turns))


def test_dead_units_are_left_out():
    fields = np.stack([bump(2.0), np.zeros(L), np.cos(2 * np.pi * 5 * PLACES / L)])
    assert_close(unit_mean(participation(fields)), participation(fields)[[0, 2]].mean())
    assert np.isnan(participation(fields)[1])
    shares = class_shares(fields)
    assert [float(shares[name]) for name in CLASSES] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("inputs", [24, 25])
def test_participation_ratio_is_relative_to_random_phases(inputs):
    """Compared with the mean over random phases, for even and odd numbers of inputs."""
    rng = np.random.default_rng(1)
    fields = np.stack([np.exp(-((np.arange(inputs) - 9.0) ** 2) / 8), rng.normal(size=inputs)])
    amplitudes = np.abs(np.fft.rfft(fields))
    phases = np.exp(2j * np.pi * rng.random((40000, *amplitudes.shape)))
    ends = (0, -1) if inputs % 2 == 0 else (0,)
    for end in ends:
        phases[..., end] = np.sign(phases[..., end].real)
    drawn = participation(np.fft.irfft(amplitudes * phases, inputs))
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    expected = participation(fields) / participation_ratio(fields)
    assert (np.abs(drawn.mean(axis=0) - expected) < 5 * error).all()
    assert_close(participation_ratio(np.roll(fields, 3, axis=-1) * -2), participation_ratio(fields))


def test_participation_ratio_of_waves_and_of_noise():
    waves = np.cos(2 * np.pi * np.array([[1], [7]]) * PLACES / L + 0.3)
    assert_close(participation_ratio(np.concatenate([waves, np.ones((1, L))])), [1, 1, 1])
    noise = random_fields(4000)
    assert abs(participation_ratio(noise).mean() - 1) < 0.02
    assert np.isnan(participation_ratio(np.zeros((1, L))))


# Centres -----------------------------------------------------------------------------------------


def test_centre_bias():
    even = np.stack([bump(2.0, centre) for centre in range(0, L, 5)])
    assert_close(centre_bias(even), 0, atol=1e-12)
    assert_close(centre_bias(even[:1]), 1)
    quarter = np.stack([bump(2.0), bump(1.5, L // 4)])
    assert_close(centre_bias(quarter), np.sqrt(0.5))
    # neither a flat field nor a sinusoid of one cycle has a centre, nor has a dead unit
    nowhere = np.stack([np.ones(L), np.cos(2 * np.pi * PLACES / L), np.zeros(L)])
    assert_close(centre_bias(np.concatenate([quarter, nowhere])), np.sqrt(0.5))
    assert np.isnan(centre_bias(nowhere))


def test_random_centres_are_nearly_even():
    centres = np.random.default_rng(5).integers(0, L, size=(400, 50))
    fields = np.stack([bump(2.0, centre) for centre in range(L)])[centres]
    assert_close(centre_bias(fields).mean(), np.sqrt(np.pi / 200), rtol=0.1)


# Metric ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def growing():
    """Noise that turns into bumps while it grows, the second seed later than the first."""
    noise = random_fields(2, 2, 1, K)
    bumps = 6 * np.stack([bump(2.0, 6 * unit) for unit in range(K)])
    share = np.array([[0, 0.1, 0.9, 1, 1], [0, 0, 0.1, 0.2, 1.0]])[None, :, :, None, None]
    return (1 - share) * noise + share * bumps


@pytest.fixture(scope="module")
def grown(growing):
    return metrics_of_fields(growing)


def test_values_of_units_and_their_means(growing, grown):
    final = growing[:, :, -1]
    for measure in MEASURES:
        name, of_units = measure.__name__, measure(final)
        assert grown[f"unit_{name}"].dims == ("init_scale", "seed", "unit")
        assert_close(grown[f"unit_{name}"], of_units)
        assert grown[name].dims == ("init_scale", "seed")
        assert_close(grown[name], of_units.mean(axis=-1))
    assert grown["unit"].values.tolist() == list(range(1, K + 1))
    assert [float(grown[f"{name}_share"].mean()) for name in CLASSES] == [1, 0, 0]
    assert_close(grown["centre_bias"], centre_bias(final))


def test_curves(growing, grown):
    dims = ("init_scale", "seed", "snapshot")
    assert all(grown[f"{name}_curve"].dims == dims for name in ("localised", "participation"))
    assert_close(grown["participation_curve"], participation(growing).mean(axis=-1))
    length = np.sqrt((growing**2).sum(axis=-1))
    assert_close(grown["field_norm_curve"] ** 2, (length**2).mean(axis=-1))
    for name in ("localised", "oscillating"):
        assert_close(grown[f"{name}_curve"], class_shares(growing)[name])
    assert (grown["localised_curve"].isel(snapshot=0) == 0).all()


def half_way(time, curve):
    """First crossing of the level half way, found interval by interval."""
    level = (curve[0] + curve[-1]) / 2
    for at in range(1, len(curve)):
        if curve[at] >= level:
            share = (level - curve[at - 1]) / (curve[at] - curve[at - 1])
            return time[at - 1] + share * (time[at] - time[at - 1])
    raise AssertionError("it never gets there")


def test_times(grown):
    time = grown["snapshot_flow_time"].values
    assert_close(time, 0.5 * np.arange(0, 41, 10))
    for ensemble in np.ndindex(2, 2):
        spread = grown["participation_curve"].values[ensemble]
        assert_close(grown["localisation_time"].values[ensemble], half_way(time, spread))
        power = grown["field_norm_curve"].values[ensemble] ** 2
        assert_close(grown["growth_time"].values[ensemble], half_way(time, power))
    for name in ("localisation_time", "growth_time"):
        assert grown[name].dims == ("init_scale", "seed")
        assert set(grown[name].coords) == {"init_scale", "seed"}
        assert (grown[name].sel(seed=0) < grown[name].sel(seed=1)).all()


def test_share_of_modes_that_stay():
    """Units that keep, move or swap their places between the half of their growth and the end."""
    places = np.array([2, 10, 20, 30, 36, 39])
    start, late = places + 15, places + np.array([0, 2, -3, 20, 6, 2])
    sizes = [0.1, 0.2, 1.0, 1.0, 1.0]
    at = [start, start, places, late, late]
    one = np.stack([size * np.stack([bump(1.0, c % L) for c in centres])
                    for size, centres in zip(sizes, at, strict=True)])  # fmt: skip
    metrics = metrics_of_fields(np.broadcast_to(one, (2, 2, *one.shape)))
    # two inputs are a twentieth of the ring, around its end too
    assert_close(metrics["mode_kept"], np.full((2, 2), 3 / 6))
    assert_close(metrics["mode_kept_from_start"], np.full((2, 2), 0.0))
    # places of each unit are compared with those of the next unit
    assert_close(
        metrics["mode_kept_by_chance"],
        np.full((2, 2), share_of_close_places(np.roll(places, 1), late)),
    )
    shrinking = metrics_of_fields(np.broadcast_to(one[::-1], (2, 2, *one.shape)))
    assert shrinking["mode_kept"].isnull().all()


def share_of_close_places(before, after):
    """Share of pairs of places that are at most two inputs apart."""
    steps = [min((b - a) % L, (a - b) % L) for b, a in zip(before, after, strict=True)]
    return sum(step <= 2 for step in steps) / len(steps)


def test_shrinking_fields_have_no_time(growing):
    metrics = metrics_of_fields(growing[:, :, ::-1])
    assert metrics["localisation_time"].isnull().all()
    assert metrics["growth_time"].isnull().all()
    still = metrics_of_fields(growing[:, :, :1].repeat(SNAPSHOTS, axis=2))
    assert still["localisation_time"].isnull().all()


def test_diverged_runs_are_undefined(growing):
    broken = growing.copy()
    broken[1, 0, 3:, 2, 5] = [np.nan, np.inf]
    metrics = metrics_of_fields(broken)
    sound = {"init_scale": 0}
    for name, array in metrics.drop_vars("diverged_at").items():
        assert array.sel(seed=1).notnull().all(), name
        assert array.isel(sound).notnull().all(), name
        lost = array.isel(init_scale=1).sel(seed=0)
        if "snapshot" in array.dims:
            assert lost.notnull().values.tolist() == [True] * 3 + [False] * 2
        else:
            assert lost.isnull().all(), name


def test_fields_of_pathways_are_their_maps(growing, grown):
    gates = {"name": "half_space", "pathways": K}
    cell = ring_cell(
        ["receptive_fields"],
        network={"name": "gated", "hidden": [1], "readout": "mean", "gates": gates},
        record=RING["record"] | {"observables": ["pathway_maps"]},
    )
    trajectory = recorded_trajectory(cell, samples=1, pathway_maps=growing[:, :, :, :, None] / K)
    metrics = metrics_of(cell, trajectory)
    for name in grown:
        xr.testing.assert_allclose(metrics[name], grown[name])
    assert "output" not in metrics.coords


# Distance from theory ----------------------------------------------------------------------------


def fit(fields, **by_solution):
    cell = ring_cell(["receptive_field_fit"])
    dims = ("init_scale", "seed", "solution", "unit", "input")
    solved = np.stack(list(by_solution.values()), axis=2)
    trajectory = recorded_fields(cell, fields)
    runs = {name: trajectory[name].values for name in ("init_scale", "seed")}
    coords = runs | {"solution": list(by_solution), "unit": np.arange(1, solved.shape[3] + 1)}
    theory = xr.Dataset({"receptive_fields": (dims, solved)}, coords)
    return metrics_of(cell, trajectory, theory)


def test_distances_from_theory(growing):
    final = growing[:, :, -1]
    metrics = fit(growing, same=final, opposite=-final, double=2 * final)
    assert metrics["field_overlap"].dims == ("init_scale", "seed", "solution")
    assert_close(metrics["field_overlap"].isel(init_scale=0, seed=0), [1, -1, 1])
    assert_close(metrics["field_error"].isel(init_scale=1, seed=1), [0, 2, 1], atol=1e-15)
    shape = participation(final).mean(axis=-1)
    assert_close(metrics["predicted_participation"], np.stack([shape] * 3, axis=-1))
    assert_close(metrics["predicted_localised_share"], 1)


def test_distances_unit_by_unit(growing):
    final, other = growing[:, :, -1].copy(), random_fields(2, 2, K, seed=8)
    final[:, :, 0], other[:, :, 1] = 0, 0  # dead units of either
    fields = np.concatenate([growing[:, :, :-1], final[:, :, None]], axis=2)
    metrics = fit(fields, theory=other)
    for ensemble in np.ndindex(2, 2):
        pairs = list(zip(final[ensemble], other[ensemble], strict=True))[2:]
        cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs]
        assert_close(metrics["field_overlap"].values[ensemble], [np.mean(cosines)])
        squares = ((final - other)[ensemble] ** 2).sum() / (final[ensemble] ** 2).sum()
        assert_close(metrics["field_error"].values[ensemble] ** 2, [squares])
    assert (metrics["predicted_localised_share"] == 0).all()


def test_distance_of_diverged_runs_is_undefined(growing):
    fields = growing.copy()
    fields[0, 1, -1] = np.nan
    metrics = fit(fields, theory=growing[:, :, -1])
    for name in ("field_overlap", "field_error"):
        assert metrics[name].isnull().values.ravel().tolist() == [False, True, False, False]
    assert metrics["predicted_participation"].notnull().all()


def test_theory_without_fields_is_refused(growing):
    cell = ring_cell(["receptive_field_fit"])
    with pytest.raises(UserError, match="theory has no 'receptive_fields'"):
        metrics_of(cell, recorded_fields(cell, growing))


# Gate flips --------------------------------------------------------------------------------------

GAUSSIAN = DATASET | {"marginal": {"name": "gaussian"}, "xi": [3.0, 0.5], "samples": 20000}


@pytest.fixture(scope="module")
def flipped(growing):
    return metrics_of_fields(growing, "receptive_fields", "gate_flips", dataset=GAUSSIAN)


def test_flips_of_gaussian_inputs_are_angles(flipped):
    measured_flips = flipped["gate_flip_fraction"].sel(layer=1, drop=True)
    predicted = flipped["predicted_gate_flips"]
    assert predicted.dims == ("init_scale", "seed", "snapshot")
    deviation = np.sqrt(measured_flips * (1 - measured_flips) / 20000)  # at most that of one unit
    assert (abs(predicted - measured_flips) <= 4 * deviation).all()
    assert (predicted.isel(snapshot=-1) > 0.2).all()
    assert_close(predicted.isel(snapshot=0), 0, atol=1e-12)
    distance = abs(predicted - measured_flips).values[:, :, 1:].mean(axis=-1)
    assert_close(flipped["flip_prediction_error"], distance)
    assert (distance < 0.005).all()


def test_prediction_is_the_mean_over_classes_and_units(growing, flipped):
    covariances = ring_cell([], dataset=GAUSSIAN).dataset.mixture().covariances
    for seed, at in np.ndindex(2, SNAPSHOTS):
        angles = [
            np.arccos(min(u @ S @ w / np.sqrt((u @ S @ u) * (w @ S @ w)), 1))
            for S in covariances
            for u, w in zip(growing[1, seed, 0], growing[1, seed, at], strict=True)
        ]
        predicted = flipped["predicted_gate_flips"].values[1, seed, at]
        assert_close(predicted, np.mean(angles) / np.pi, atol=1e-8)


def test_flips_before_localisation(flipped):
    time = flipped["snapshot_flow_time"].values
    for ensemble in np.ndindex(2, 2):
        flips = flipped["gate_flip_fraction"].values[ensemble][0]
        then = np.interp(flipped["localisation_time"].values[ensemble], time, flips)
        assert_close(flipped["flips_before_localisation"].values[ensemble], then / flips[-1])
    assert (flipped["flips_before_localisation"] > 0.2).all()
    assert (flipped["flips_before_localisation"] < 1).all()


def test_flips_have_no_theory_without_a_centred_mixture(growing):
    pulses = {"name": "single_pulse", "inputs": L}
    metrics = metrics_of_fields(growing, "gate_flips", dataset=pulses)  # means are not zero
    assert "flips_before_localisation" in metrics
    assert "predicted_gate_flips" not in metrics
    table = {"name": "table", "x": np.eye(L).tolist(), "y": np.ones((L, 1)).tolist()}
    metrics = metrics_of_fields(growing, "gate_flips", dataset=table)  # no known distribution
    assert "flips_before_localisation" not in metrics


def test_predicted_flips_of_diverged_runs_are_undefined(growing):
    broken = growing.copy()
    broken[1, 0, 2:] = np.nan
    metrics = metrics_of_fields(broken, "gate_flips").isel(init_scale=1).sel(seed=0)
    assert metrics["predicted_gate_flips"].notnull().values.tolist() == [True] * 2 + [False] * 3
    for name in ("flip_prediction_error", "flips_before_localisation", "never_changed"):
        assert metrics[name].isnull().all(), name
