"""Gaps between layer norms, and their bounds."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.balance import norm_gap, norm_gap_bound


@Metric(
    observables="layer_norm",
    variables={
        "initial_norm_gap": ("pair", "initial gap between adjacent layer norms"),
        "final_norm_gap": ("pair", "final gap between adjacent layer norms"),
        "norm_gap_change": ("pair", "relative change of the gap over training"),
        "norm_gap_over_bound": ("pair", "largest gap over sqrt|tr C| of the start"),
        "norm_gap_identity_error": (
            "pair",
            "largest distance of the gap from |tr C(0)|/(sum of norms), over the final norm",
        ),
        "any_pair_gap_over_bound": ("", "largest gap of any two layers over the telescoped bound"),
        "final_relative_norm_gap": ("pair", "final gap over the sum of the norms"),
        "initial_relative_norm_gap": ("pair", "initial gap over the sum of the norms"),
        "initial_squared_norm": ("layer", "initial squared layer norm"),
        "norm_growth": ("layer", "growth of the layer norm"),
        "norm_growth_deviation": (
            "layer",
            "distance of a layer's growth from the mean over layers, relative to the mean",
        ),
        "norm_gap_rise": ("pair", "largest gap over the initial one"),
        "largest_norm_gap": ("pair", "largest gap between adjacent layer norms"),
        "initial_over_final_norm": ("layer", "initial layer norm over the final one"),
    },
)
def layer_norm_gaps(cell: CellResults) -> Values:
    """Gaps between layer norms: absolute, relative, over their bounds, and over training.

    Gaps are 0 for balanced layers. A bound holds if the gap over the bound is at most 1. The gap of
    adjacent layers is at most sqrt|tr C|, and equals |tr C| over the sum of their norms, where C is
    the imbalance of `balance`. The error of this identity is 0 for perfect agreement. Ratios to an
    initial gap or bound are NaN for layers that start balanced.

    Source: Basu et al., lemma 2 and corollary 2.1, corrected.
    """
    norms = cell.trajectory["layer_norm"]
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
    # the bound of layers that start balanced is a rounding error
    balanced = abs(trace) < 1e-12 * squares.sum("layer")
    bound, far = bound.where(~balanced), far.where(~balanced.all("pair"))
    relative = gap / (above + below)
    ends = norms.isel(time=0, drop=True), norms.isel(time=-1, drop=True)
    return {
        "initial_norm_gap": start,
        "final_norm_gap": end,
        "norm_gap_change": (abs(end - start) / start).where(~balanced),
        "norm_gap_over_bound": (gap / bound).max("time"),
        "norm_gap_identity_error": (
            abs(gap - identity) / norms.isel(time=-1, drop=True).max("layer")
        ).max("time"),
        "any_pair_gap_over_bound": widest.max("time") / far,
        "final_relative_norm_gap": relative.isel(time=-1, drop=True),
        "initial_relative_norm_gap": relative.isel(time=0, drop=True),
        "initial_squared_norm": squares,
        "norm_growth": ends[1] - ends[0],
        "norm_growth_deviation": abs((ends[1] - ends[0]) / (ends[1] - ends[0]).mean("layer") - 1),
        "norm_gap_rise": (gap.max("time") / start).where(~balanced),
        "largest_norm_gap": gap.max("time"),
        "initial_over_final_norm": ends[0] / ends[1],
    }
