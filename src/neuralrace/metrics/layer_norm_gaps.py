"""How far apart the norms of the layers are."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.theory.balance import norm_gap, norm_gap_bound


def layer_norm_gaps(evidence: Evidence) -> Values:
    """Gaps between layer norms: absolute, relative, against their bounds, and over training.

    The constants are those of lemma 2 and corollary 2.1 of Basu et al., corrected: the gap of
    adjacent layers never exceeds sqrt|tr C|, and equals |tr C| over the sum of the norms.
    """
    norms = evidence.recorded("layer_norm", "layer_norm")
    depth = norms.sizes["layer"]
    pair = {"pair": np.arange(1, depth)}
    below = norms.isel(layer=slice(None, -1)).rename(layer="pair").assign_coords(pair)
    above = norms.isel(layer=slice(1, None)).rename(layer="pair").assign_coords(pair)
    gap = abs(above - below)
    start, end = gap.isel(time=0, drop=True), gap.isel(time=-1, drop=True)
    trace = (above**2 - below**2).isel(time=0, drop=True)
    bound = trace.copy(data=norm_gap_bound(trace.values))
    identity = xr.apply_ufunc(norm_gap, trace, above + below)
    widest = norms.max("layer") - norms.min("layer")
    squares = norms.isel(time=0, drop=True) ** 2
    far = ufuncs.sqrt(squares.max("layer") - squares.min("layer"))
    # layers that start balanced to rounding have no gap to compare with
    balanced = abs(trace) < 1e-12 * squares.sum("layer")
    bound, far = bound.where(~balanced), far.where(~balanced.all("pair"))
    relative = gap / (above + below)
    ends = norms.isel(time=0, drop=True), norms.isel(time=-1, drop=True)
    return {
        "initial_norm_gap": described(start, "initial gap between adjacent layer norms"),
        "final_norm_gap": described(end, "final gap between adjacent layer norms"),
        "norm_gap_change": described(
            (abs(end - start) / start).where(~balanced), "relative change of the gap over training"
        ),
        "norm_gap_over_bound": described(
            (gap / bound).max("time"), "largest gap over sqrt|tr C| of the start"
        ),
        "norm_gap_identity_error": described(
            (abs(gap - identity) / norms.isel(time=-1, drop=True).max("layer")).max("time"),
            "largest distance of the gap from |tr C(0)|/(sum of norms), over the final norm",
        ),
        "any_pair_gap_over_bound": described(
            widest.max("time") / far, "largest gap of any two layers over the telescoped bound"
        ),
        "final_relative_norm_gap": described(
            relative.isel(time=-1, drop=True), "final gap over the sum of the norms"
        ),
        "initial_relative_norm_gap": described(
            relative.isel(time=0, drop=True), "initial gap over the sum of the norms"
        ),
        "initial_squared_norm": described(squares, "initial squared layer norm"),
        "norm_growth": described(ends[1] - ends[0], "growth of the layer norm"),
        "norm_growth_deviation": described(
            abs((ends[1] - ends[0]) / (ends[1] - ends[0]).mean("layer") - 1),
            "distance of a layer's growth from the mean over layers, relative to the mean",
        ),
        "norm_gap_rise": described(
            (gap.max("time") / start).where(~balanced), "largest gap over the initial one"
        ),
        "largest_norm_gap": described(gap.max("time"), "largest gap between adjacent layer norms"),
        "initial_over_final_norm": described(
            ends[0] / ends[1], "initial layer norm over the final one"
        ),
    }
