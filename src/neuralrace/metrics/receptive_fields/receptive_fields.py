"""Shape of receptive fields: the incoming weights of hidden units on a ring of inputs."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Float, Inexact

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, per_run
from neuralrace.results.cells import CellResults

Fields = Float[np.ndarray, "*runs unit input"]
PerUnit = Float[np.ndarray, "*runs unit"]

HELD = 0.9
"""Share of a unit's energy in its energy window."""
LONGEST = 1 / 3
"""Longest energy window of a localised unit, as a share of the ring."""
OPPOSED = 0.4
"""Least opposition of an oscillating unit; on 40 inputs one field of white noise in ten has it."""
AROUND = 1 / 20
"""Distance within which the largest weight counts as unmoved, as a share of the ring."""
ROUNDING = 1e-9
"""Differences of energies below this share of a unit's energy are rounding errors."""


@Metric(
    observables="weights|pathway_maps",
    variables={
        "unit_participation": ("unit", "inverse participation ratio times inputs at the end"),
        "participation": (
            "",
            "inverse participation ratio times inputs at the end, mean over units",
        ),
        "unit_participation_ratio": (
            "unit",
            "inverse participation ratio over its mean for random phases at the end",
        ),
        "participation_ratio": (
            "",
            "inverse participation ratio over its mean for random phases at the end, mean over "
            "units",
        ),
        "unit_weight_kurtosis": ("unit", "excess kurtosis of weights over inputs at the end"),
        "weight_kurtosis": (
            "",
            "excess kurtosis of weights over inputs at the end, mean over units",
        ),
        "unit_energy_window": (
            "unit",
            "shortest share of the ring with 90% of the energy at the end",
        ),
        "energy_window": (
            "",
            "shortest share of the ring with 90% of the energy at the end, mean over units",
        ),
        "unit_dominant_frequency": (
            "unit",
            "frequency of most power, in cycles per ring, at the end",
        ),
        "dominant_frequency": (
            "",
            "frequency of most power, in cycles per ring, at the end, mean over units",
        ),
        "unit_cycles": (
            "unit",
            "cycles of the dominant frequency within the energy window at the end",
        ),
        "cycles": (
            "",
            "cycles of the dominant frequency within the energy window at the end, mean over units",
        ),
        "unit_opposition": (
            "unit",
            "minus the least correlation of a field with itself moved on at the end",
        ),
        "opposition": (
            "",
            "minus the least correlation of a field with itself moved on at the end, mean over "
            "units",
        ),
        "localised_share": ("", "share of units whose receptive field is localised at the end"),
        "oscillating_share": ("", "share of units whose receptive field is oscillating at the end"),
        "neither_share": ("", "share of units whose receptive field is neither at the end"),
        "mode_kept": (
            "",
            "share of units whose mode at the end is where it was at their growth is half way",
        ),
        "mode_kept_by_chance": (
            "",
            "share of units whose mode at the end is where it was at growth is half way, of "
            "another unit",
        ),
        "mode_kept_from_start": (
            "",
            "share of units whose mode at the end is where it was at the start",
        ),
        "localised_curve": ("snapshot", "share of units whose receptive field is localised"),
        "oscillating_curve": ("snapshot", "share of units whose receptive field is oscillating"),
        "participation_curve": (
            "snapshot",
            "inverse participation ratio times inputs, mean over units",
        ),
        "field_norm_curve": (
            "snapshot",
            "length of a unit's incoming weights, root mean square over units",
        ),
        "localisation_time": (
            "",
            "flow time at which mean participation is half way to its end",
            "tau",
        ),
        "growth_time": (
            "",
            "flow time at which the mean squared length is half way to its end",
            "tau",
        ),
        "centre_bias": (
            "",
            "length of the mean direction of the centres of receptive fields at the end",
        ),
    },
    shares="localised_share oscillating_share neither_share mode_kept mode_kept_by_chance "
    "mode_kept_from_start",
)
def receptive_fields(cell: CellResults) -> Values:
    """Shape of the receptive fields of the first hidden layer: spread, window, oscillation, class.

    Measures are given for every unit at the end of training, and as means over units. The functions
    of their names define them: `participation`, `participation_ratio`, `weight_kurtosis`,
    `energy_window`, `dominant_frequency`, `cycles` and `opposition`; `class_shares` defines the
    classes. Units whose weights are all zero are left out. Means are NaN if no unit is left, and
    for diverged runs.

    Times are flow times, in units of tau, at which a mean over units is first half way from its
    initial to its final value; NaN unless it grows. `mode_kept` variables are the share of units
    whose largest weight stays within a twentieth of the ring. Its final place is compared with that
    at the first snapshot with half of the growth in power, of the same unit or, for chance, of the
    next unit. `mode_kept_from_start` compares it with the initial place.

    Source: notes on localisation, secs. 1 and 2.1, which recognise localised fields by eye; the
    measures are derived here.
    """
    fields, like = weights_on_ring(cell)
    final = fields[:, :, -1]
    units = np.arange(1, final.shape[-2] + 1)
    values = {}
    for measure in MEASURES:
        name, per_unit = measure.__name__, measure(final)
        values[f"unit_{name}"] = per_run(cell, per_unit, unit=units)
        values[name] = per_run(cell, unit_mean(per_unit))
    for name, share in class_shares(final).items():
        values[f"{name}_share"] = per_run(cell, share)
    power = like.copy(data=(fields**2).sum(axis=-1).mean(axis=-1))
    grown = _at_half_way(fields, power.values)
    earlier = {
        "mode_kept": grown,
        "mode_kept_by_chance": np.roll(grown, 1, axis=-2),
        "mode_kept_from_start": fields[:, :, 0],
    }
    for name, before in earlier.items():
        values[name] = per_run(cell, unit_mean(_mode_kept(before, final)))
    spread = like.copy(data=unit_mean(participation(fields)))
    shares = class_shares(fields)
    return values | {
        "localised_curve": like.copy(data=shares["localised"]),
        "oscillating_curve": like.copy(data=shares["oscillating"]),
        "participation_curve": spread,
        "field_norm_curve": power**0.5,
        "localisation_time": half_way_time(spread),
        "growth_time": half_way_time(power),
        "centre_bias": per_run(cell, centre_bias(final)),
    }


def weights_on_ring(cell: CellResults) -> tuple[Fields, xr.DataArray]:
    """Receptive fields at the snapshots; all NaN where one weight is not finite.

    Returns:
        The weights (init_scale, seed, snapshot, unit, input), and an array with the axes
        (init_scale, seed, snapshot) and their coordinates.
    """
    fields = cell.receptive_fields
    weights = fields.values.astype(float)
    finite = np.isfinite(weights).all(axis=(-2, -1), keepdims=True)
    return np.where(finite, weights, np.nan), fields.isel(unit=0, input=0, drop=True)


def half_way_time(curve: xr.DataArray) -> xr.DataArray:
    """Flow time at which a curve is first half way to its final value; NaN unless it grows.

    Args:
        curve: has the dimension `snapshot` and the coordinate `snapshot_flow_time`.
    """
    along = curve.rename(snapshot="time")
    start, end = (along.isel(time=at, drop=True) for at in (0, -1))
    crossed = crossing_time(along, (start + end) / 2, along["snapshot_flow_time"])
    return crossed.where(end > start).drop_vars("snapshot_flow_time", errors="ignore")


def _at_half_way(
    fields: Float[np.ndarray, "*runs snapshot unit input"],
    power: Float[np.ndarray, "*runs snapshot"],
) -> Fields:
    """Fields at the first snapshot with half of the growth in power; NaN unless it grows."""
    half = (power[..., :1] + power[..., -1:]) / 2
    first = np.argmax(power >= half, axis=-1)
    half_way = np.take_along_axis(fields, first[..., None, None, None], axis=-3)[..., 0, :, :]
    return np.where((power[..., -1] > power[..., 0])[..., None, None], half_way, np.nan)


def _mode_kept(before: Fields, after: Fields) -> PerUnit:
    """1 for units whose largest weight stays around its place, else 0; NaN for zero weights."""
    present = (np.abs(before).max(axis=-1) > 0) & (np.abs(after).max(axis=-1) > 0)
    distance = np.abs(np.abs(before).argmax(axis=-1) - np.abs(after).argmax(axis=-1))
    inputs = before.shape[-1]
    near = np.minimum(distance, inputs - distance) <= AROUND * inputs
    return np.where(present, near.astype(float), np.nan)


# Measures of a unit ----------------------------------------------------------------------------


def participation(fields: Fields) -> PerUnit:
    """Inverse participation ratio sum w^4/(sum w^2)^2 times the number of inputs L.

    The value is 1 for weights of equal size, 1.5 for a sinusoid, 3 L/(L + 2) on average for
    Gaussian noise, and L for a single input. It is NaN for zero weights.

    Source: derived here.
    """
    return fields.shape[-1] * (_energy(fields) ** 2).sum(axis=-1)


def participation_ratio(fields: Fields) -> PerUnit:
    """Participation over its mean for random phases with the same power spectrum.

    The value is 1 for a single sinusoid, and on average for Gaussian noise of any spectrum. A
    larger value is due to the phases of the frequencies, not to their powers. It is NaN for zero
    weights.

    A sum of waves with powers v_k and independent phases has the mean participation
    3 - (3/2 sum v_k^2 + 1/2 (v_0^2 + v_{L/2}^2))/(sum v_k)^2. The fourth moment of a wave is
    3/2 v_k^2, and v_k^2 at the frequencies 0 and L/2, which have signs in place of phases.

    Source: derived here.
    """
    inputs = fields.shape[-1]
    power = np.abs(np.fft.rfft(_scaled(fields))) ** 2
    power[..., 1 : (inputs + 1) // 2] *= 2  # rfft leaves out negative frequencies
    ends = power[..., 0] ** 2
    if inputs % 2 == 0:
        ends = ends + power[..., -1] ** 2
    gaussian = (1.5 * (power**2).sum(axis=-1) + 0.5 * ends) / power.sum(axis=-1) ** 2
    return participation(fields) / (3 - gaussian)


def weight_kurtosis(fields: Fields) -> PerUnit:
    """Excess kurtosis of the weights of a unit over inputs; NaN if all weights are equal."""
    scaled = _scaled(fields)
    deviation = scaled - scaled.mean(axis=-1, keepdims=True)
    variance = (deviation**2).mean(axis=-1)
    rounding = (fields.shape[-1] * np.finfo(float).eps) ** 2
    return (deviation**4).mean(axis=-1) / np.where(variance > rounding, variance, np.nan) ** 2 - 3


def energy_window(fields: Fields) -> PerUnit:
    """Shortest window of the ring with 90% of sum w^2, as a share of the ring.

    Source: derived here.
    """
    energy, inputs = _energy(fields), fields.shape[-1]
    # twice around the ring, so that windows may cross its end
    upto = np.cumsum(np.concatenate([energy, energy], axis=-1), axis=-1)
    shortest = np.ones(energy.shape[:-1])
    for length in range(1, inputs):
        within = upto[..., length : length + inputs] - upto[..., :inputs]
        shortest += within.max(axis=-1) < HELD - ROUNDING
    return np.where(np.isnan(upto[..., 0]), np.nan, shortest / inputs)


def dominant_frequency(fields: Fields) -> PerUnit:
    """Frequency with the largest |sum_i w_i exp(-2 pi i k i/L)|^2, in cycles per ring.

    Frequencies are from 0, the mean weight, to L/2 for L inputs. The lowest of equal ones counts.
    """
    power = np.abs(np.fft.rfft(_scaled(fields))) ** 2
    largest = power.max(axis=-1)
    first = np.argmax(power >= (1 - ROUNDING) * largest[..., None], axis=-1)
    return np.where(np.isnan(largest), np.nan, first)


def cycles(fields: Fields) -> PerUnit:
    """Number of cycles of the dominant frequency within the energy window."""
    return dominant_frequency(fields) * energy_window(fields)


def opposition(fields: Fields) -> PerUnit:
    """Minus the least correlation of a field with its own shifts around the ring.

    The value is 1 for a sinusoid, due to a shift by half a wavelength. It is at most 0 for a field
    of one sign, and NaN for zero weights. White noise on 40 inputs has 0.29 on average, and 1 field
    in 10 reaches 0.4.

    Source: derived here.
    """
    power = np.abs(np.fft.rfft(_scaled(fields))) ** 2
    correlation = np.fft.irfft(power, fields.shape[-1])
    return np.asarray(-correlation.min(axis=-1) / correlation[..., 0])


MEASURES: tuple[Callable[[Fields], PerUnit], ...] = (
    participation,
    participation_ratio,
    weight_kurtosis,
    energy_window,
    dominant_frequency,
    cycles,
    opposition,
)


# Over the units of a run -----------------------------------------------------------------------


def class_shares(fields: Fields) -> dict[str, Float[np.ndarray, "*runs"]]:
    """Shares of units that are localised, oscillating and neither; they add up to 1.

    A unit is localised if its energy window is at most a third of the ring and has at most one
    cycle. It is oscillating if the window has more than one cycle and its opposition is at least
    0.4. The latter excludes most noise, whose signs change at irregular distances. Units whose
    weights are all zero are left out.

    Source: derived here.
    """
    window = energy_window(fields)
    turning = window * dominant_frequency(fields) > 1
    localised = (window <= LONGEST) & ~turning
    oscillating = turning & (opposition(fields) >= OPPOSED)
    members = {
        "localised": localised,
        "oscillating": oscillating,
        "neither": ~localised & ~oscillating,
    }
    return {
        name: unit_mean(np.where(np.isnan(window), np.nan, member))
        for name, member in members.items()
    }


def centre_bias(fields: Fields) -> Float[np.ndarray, "*runs"]:
    """|mean over units of exp(i angle)| for the angle of the centre of a unit's energy.

    The value is 1 if all centres are equal, 0 if they are evenly spaced around the ring, and about
    sqrt(pi/(4 K)) for K random centres. Units whose energy has no centre are left out.

    Source: derived here.
    """
    inputs = fields.shape[-1]
    resultant = _energy(fields) @ np.exp(2j * np.pi * np.arange(inputs) / inputs)
    length = np.abs(resultant)
    directed = length > ROUNDING
    direction = resultant / np.where(directed, length, 1)
    return np.asarray(np.abs(unit_mean(np.where(directed, direction, np.nan))))


def overlap(
    fields: Float[np.ndarray, "*#runs unit input"], others: Float[np.ndarray, "*#runs unit input"]
) -> Float[np.ndarray, "*runs"]:
    """Cosine of two fields of each unit, mean over units with weights other than zero."""
    lengths = np.linalg.norm(fields, axis=-1) * np.linalg.norm(others, axis=-1)
    return unit_mean((fields * others).sum(axis=-1) / np.where(lengths > 0, lengths, np.nan))


def unit_mean(per_unit: Inexact[np.ndarray, "*runs unit"]) -> Inexact[np.ndarray, "*runs"]:
    """Mean over the units whose value is not NaN; NaN if there are none."""
    defined = ~np.isnan(per_unit)
    count = defined.sum(axis=-1)
    total = np.where(defined, per_unit, 0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _scaled(fields: Fields) -> Fields:
    """Weights over the largest weight of their unit; NaN for zero weights.

    Squares of very small or very large weights would underflow or overflow without it.
    """
    largest = np.abs(fields).max(axis=-1, keepdims=True)
    return fields / np.where(largest > 0, largest, np.nan)


def _energy(fields: Fields) -> Fields:
    """Share of each input in sum w^2 of its unit; NaN for zero weights."""
    squared = _scaled(fields) ** 2
    return squared / squared.sum(axis=-1, keepdims=True)
