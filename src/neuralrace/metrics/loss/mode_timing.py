"""When the outputs align with the modes of the task, and how runs vary in time from then on."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, loss_levels
from neuralrace.results.cells import CellResults

ALIGNED = 0.9
"""Cosine at which singular vectors count as aligned, as in the metric `alignment`."""
ONSET = 0.01
"""Share of its strength at which a mode has begun to be learned."""


@Metric(
    observables="output_curve",
    variables={
        "mode_alignment_time": (
            "mode",
            "flow time at which the outputs' correlation with the inputs aligns with a mode",
            "tau",
        ),
        "mode_onset_time": (
            "mode",
            "flow time at which the outputs have a hundredth of the strength of a mode",
            "tau",
        ),
        "deviation_since_alignment": (
            "mode loss_level",
            "distance of the time from alignment to a share of the initial loss from its mean over "
            "seeds, over the mean time from the start",
        ),
        "deviation_since_onset": (
            "mode loss_level",
            "distance of the time from onset to a share of the initial loss from its mean over "
            "seeds, over the mean time from the start",
        ),
    },
)
def mode_timing(cell: CellResults) -> Values:
    """Times of alignment and of onset of each mode, and what of the spread of times they explain.

    The correlation C = f^T x / N of outputs f with inputs x tends to sigma_yx, whose modes have
    singular vectors u and v. Its strength along a mode is u.C v. It is aligned with the mode once
    |u.C v| is 0.9 of the geometric mean of |C v| and |C^T u|, which are equal if u and v are
    singular vectors of C. The onset is when the strength is 0.01 of the singular value of the mode.

    The deviations are those of the metric `plateaus`, with alignment or onset in place of the start
    of training. They are 0 if all seeds take equally long from then on. Vectors of modes with equal
    singular values are not unique.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, which explains the variance over runs by the
    time of alignment. Both measures are derived here.
    """
    x, modes = cell.data.x, cell.data.modes
    curve = cell.trajectory["output_curve"]
    correlation = np.swapaxes(curve.values, -2, -1) @ x / len(x)  # (..., time, output, input)
    right, left = correlation @ modes.v, np.swapaxes(correlation, -2, -1) @ modes.u
    strength = np.sum(modes.u * right, axis=-2)
    sizes = np.linalg.norm(right, axis=-2) * np.linalg.norm(left, axis=-2)
    with np.errstate(invalid="ignore"):  # outputs of zero
        cosine = abs(strength) / np.sqrt(sizes)
    like = curve.isel(sample=0, output=0, drop=True)
    like = like.expand_dims(mode=cell.modes, axis=-1)
    onset = ONSET * cell.strength
    aligned_at = crossing_time(like.copy(data=cosine), xr.full_like(onset, ALIGNED), cell.flow_time)
    begun_at = crossing_time(like.copy(data=strength), onset, cell.flow_time)
    loss = cell.trajectory["loss"]
    reached = crossing_time(-loss, -loss_levels(cell), cell.flow_time)
    mean = reached.mean("seed", skipna=False)

    def deviation(event: xr.DataArray) -> xr.DataArray:
        since = reached - event
        off = ufuncs.abs(since - since.mean("seed", skipna=False)) / mean
        return off.transpose("init_scale", "seed", "mode", "loss_level")

    return {
        "mode_alignment_time": aligned_at,
        "mode_onset_time": begun_at,
        "deviation_since_alignment": deviation(aligned_at),
        "deviation_since_onset": deviation(begun_at),
    }
