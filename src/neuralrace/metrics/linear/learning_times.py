"""Learning time of each mode, measured and predicted."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time
from neuralrace.networks.layered import Layered
from neuralrace.results.cells import CellResults
from neuralrace.theory.modes import deep_half_time, shallow_half_time

EQUAL = 1e-9
"""Strengths that differ by less, over the largest, are equal."""


@Metric(
    observables="mode_strength",
    variables={
        "half_time": ("mode", "flow time to half the target", "tau"),
        "half_time_over_predicted": ("mode", "time to half the target over the closed form"),
        "half_time_over_written": ("mode", "time to half the target over log(s/eps)/s"),
        "second_half_over_written": (
            "mode",
            "time from half the target to s - eps over log(s/eps)/s",
        ),
        "second_half_over_first": (
            "mode",
            "time from half the target to s - eps over time to half",
        ),
        "half_time_over_theory": (
            "mode solution",
            "time to half the target over that of the solution's mode",
        ),
        "half_time_error": (
            "mode solution",
            "distance of the time to half the target from theory, over the latter",
        ),
        "final_strength_over_target": ("mode", "strength of a mode at the end over its target"),
        "modes_in_order": ("", "1 if stronger modes reach half their target first"),
        "half_time_spread": ("", "slowest over fastest time to half the target"),
        "half_time_times_s": ("mode", "time to half the target times s"),
        "later_share": (
            "",
            "largest share of its target that a weaker mode has when a stronger one has half",
        ),
        "logistic_rate": (
            "mode",
            "slope of log(a/(s/d - a)) over 2 s, between a tenth and nine tenths of the target",
        ),
    },
)
def learning_times(cell: CellResults) -> Values:
    """Time to half of each mode's target s/d, and its ratio to the time of every solution.

    Ratios to theory are 1 for perfect agreement, and errors are 0. If a solution gives
    `initial_mode`, times are also compared with closed forms. The closed form for whitened inputs
    is log(s/eps - 1)/(2 s) from an initial strength eps. The summary of the theory has log(s/eps)/s
    for the first half, to s/(2 d), and for the second, from there to s/d - eps. Times are flow
    times in units of tau; modes without a target are NaN.
    """
    strength = cell.trajectory["mode_strength"]
    target = cell.target
    learned = target > 0
    half = crossing_time(strength, target / 2, cell.flow_time).where(learned)
    s = cell.strength
    reached = half.where(learned, drop=True)
    ranked = _ranked(s.where(learned))
    # strengths of weaker modes when a stronger one reaches half its target
    share = (strength / target.where(learned)).rename(mode="other_mode")
    at = (strength >= target / 2).argmax("time").where(learned, drop=True).astype(int)
    later = share.isel(time=at).where(ranked & reached.notnull())
    values = {"half_time": half}
    if "initial_mode" in cell.theory:
        values |= _closed_forms(cell, cell.spec.layered, strength, half)
    if "mode_strength" in cell.theory:
        solved = crossing_time(cell.theory["mode_strength"], target / 2, cell.flow_time)
        ratio = half / solved.where(learned)
        values["half_time_over_theory"] = ratio
        values["half_time_error"] = abs(ratio - 1)
    return values | {
        "final_strength_over_target": (strength.isel(time=-1, drop=True) / target).where(learned),
        "modes_in_order": in_order(half, s.where(learned)),
        "half_time_spread": reached.max("mode", skipna=False) / reached.min("mode", skipna=False),
        "half_time_times_s": half * s,
        "later_share": later.max(("mode", "other_mode")).drop_vars(
            ["time", "flow_time"], errors="ignore"
        ),
        "logistic_rate": _logistic_rate(strength / target.where(learned), cell.flow_time) / (2 * s),
    }


def in_order(half: xr.DataArray, s: xr.DataArray) -> xr.DataArray:
    """1 where modes reach half their target in the order of their strengths, else 0.

    Args:
        half: time to half of each mode, (init_scale, seed, mode).
        s: strength of each mode, NaN for those without a target.
    """
    ranked = _ranked(s)
    ordered = ranked.any() & ((half < half.rename(mode="other_mode")) | ~ranked)
    return ordered.all(("mode", "other_mode")).astype(float)


def _ranked(s: xr.DataArray) -> xr.DataArray:
    """Pairs of modes, (mode, other_mode), whose first one is stronger; equal ones have no order."""
    return s - s.rename(mode="other_mode") > EQUAL * s.max()


def _logistic_rate(share: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of log(share/(1 - share)) where the share is in [0.1, 0.9]."""
    steep = (share >= 0.1) & (share <= 0.9)
    logit = ufuncs.log(share / (1 - share)).where(steep)
    clock = time.where(steep)
    clock = clock - clock.mean("time")
    return (clock * logit).sum("time", min_count=2) / (clock**2).sum("time", min_count=2)


def _closed_forms(
    cell: CellResults, network: Layered, strength: xr.DataArray, half: xr.DataArray
) -> Values:
    """Half times over those of the closed form and of the summary of the theory."""
    start = cell.theory["initial_mode"]
    modes = cell.data.modes
    target = cell.target
    learned = target > 0
    full = crossing_time(strength, target - start, cell.flow_time).where(learned)
    predict = deep_half_time if network.hidden else shallow_half_time
    predicted = start.copy(data=predict(modes.s, modes.d, start.values)).where(learned)
    s = cell.strength
    with np.errstate(divide="ignore", invalid="ignore"):
        written = np.log(target / start.where(start > 0)) / s.where(learned)
    return {
        "half_time_over_predicted": half / predicted,
        "half_time_over_written": half / written,
        "second_half_over_written": (full - half) / written,
        "second_half_over_first": (full - half) / half,
    }
