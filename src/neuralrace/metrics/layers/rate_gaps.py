"""Gaps between the growth rates of adjacent layers (Basu et al., conjecture 4)."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults


@Metric(
    observables="layer_norm rate_gap",
    variables={
        "early_rate_gap": ("pair", "gap of growth rates, first tenth of training"),
        "late_rate_gap": ("pair", "gap of growth rates, last tenth of training"),
        "early_relative_rate_gap": (
            "pair",
            "gap of growth rates over their sum, first tenth of training",
        ),
        "late_relative_rate_gap": (
            "pair",
            "gap of growth rates over their sum, last tenth of training",
        ),
        "early_relative_norm_rate_gap": (
            "pair",
            "gap of growth rates of squared norms over their sum, first tenth of training",
        ),
        "late_relative_norm_rate_gap": (
            "pair",
            "gap of growth rates of squared norms over their sum, last tenth of training",
        ),
        "late_over_peak_rate_gap": ("pair", "gap of growth rates, late over its peak"),
        "peak_rate_gap": ("pair", "largest gap of growth rates"),
        "early_norm_growth": ("layer", "growth of the layer norm in the first half of training"),
        "early_growth_deviation": (
            "layer",
            "its distance from the mean over all layers but the last, relative to the mean",
        ),
        "late_norm_growth": ("layer", "growth of the layer norm in the second half of training"),
        "late_growth_deviation": (
            "layer",
            "its distance from the mean over all layers but the last, relative to the mean",
        ),
    },
)
def rate_gaps(cell: CellResults) -> Values:
    """Gaps between growth rates of adjacent layers, early and late in training.

    Gaps are 0 for layers that grow at the same rate. Relative gaps are over the sum of the rates.
    Early is the mean over the first tenth of the time axis, late over the last tenth.

    Source: Basu et al., conjecture 4.
    """
    absolute = cell.trajectory["rate_gap"]
    tenth = max(absolute.sizes["time"] // 10, 1)
    early, late = slice(0, tenth), slice(-tenth, None)
    values = {}
    for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"):
        curve = cell.trajectory[name]
        values[f"early_{name}"] = curve.isel(time=early).mean("time")
        values[f"late_{name}"] = curve.isel(time=late).mean("time")
    peak = absolute.max("time")
    values["late_over_peak_rate_gap"] = values["late_rate_gap"] / peak
    norms = cell.trajectory["layer_norm"]
    middle = norms.sizes["time"] // 2
    values["peak_rate_gap"] = peak
    for name, begin, end in (("early", 0, middle), ("late", middle, -1)):
        growth = norms.isel(time=end, drop=True) - norms.isel(time=begin, drop=True)
        hidden = growth.isel(layer=slice(None, -1)).mean("layer")
        values[f"{name}_norm_growth"] = growth
        values[f"{name}_growth_deviation"] = abs(growth / hidden - 1)
    return values
