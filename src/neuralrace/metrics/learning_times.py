"""When each mode is learned."""

import numpy as np
import xarray as xr

from neuralrace.metrics.describe import Values, crossing_time, described
from neuralrace.records.evidence import Evidence
from neuralrace.theory.modes import deep_half_time, shallow_half_time


def learning_times(evidence: Evidence) -> Values:
    """Times to half of each mode's target, measured, predicted and as the summary writes them.

    The first half runs from the initial strength eps to half the target s/d, the second from there
    to s/d - eps. The summary gives log(s/eps)/s for both; the closed form for whitened inputs gives
    log(s/eps - 1)/(2 s).
    """
    strength = evidence.recorded("mode_strength", "mode_strength")
    start = evidence.solved("initial_mode", "aligned_modes, untied_modes or shallow_modes")
    modes = evidence.data.modes
    target = evidence.target
    learned = target > 0
    half = crossing_time(strength, target / 2, evidence.time).where(learned)
    full = crossing_time(strength, target - start, evidence.time).where(learned)
    predict = deep_half_time if evidence.cell.network.hidden else shallow_half_time
    predicted = start.copy(data=predict(modes.s, modes.d, start.values)).where(learned)
    s = xr.DataArray(modes.s, dims="mode", coords={"mode": evidence.modes})
    with np.errstate(divide="ignore", invalid="ignore"):
        written = np.log(target / start.where(start > 0)) / s.where(learned)
    reached = half.where(learned, drop=True)
    drive = s.where(learned, drop=True)
    # pairs of modes, the first of them stronger; equal modes have no order
    ranked = drive - drive.rename(mode="other_mode") > 1e-9 * s.max()
    in_order = ranked.any() & ((reached < reached.rename(mode="other_mode")) | ~ranked)
    return {
        "half_time": described(half, "flow time to half the target", "1"),
        "half_time_over_predicted": described(
            half / predicted, "time to half the target over the closed form"
        ),
        "half_time_over_written": described(
            half / written, "time to half the target over log(s/eps)/s"
        ),
        "second_half_over_written": described(
            (full - half) / written, "time from half the target to s - eps over log(s/eps)/s"
        ),
        "second_half_over_first": described(
            (full - half) / half, "time from half the target to s - eps over time to half"
        ),
        "modes_in_order": described(
            in_order.all(("mode", "other_mode")).astype(float),
            "1 if stronger modes reach half their target first",
        ),
        "half_time_spread": described(
            reached.max("mode", skipna=False) / reached.min("mode", skipna=False),
            "slowest over fastest time to half the target",
        ),
        "half_time_times_s": described(half * s, "time to half the target times s"),
    }
