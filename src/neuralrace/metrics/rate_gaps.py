"""Whether adjacent layers come to grow at the same rate (Basu et al., conjecture 4)."""

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def rate_gaps(evidence: Evidence) -> Values:
    """Gaps of growth rates, early and late in training, absolute and relative to the rates.

    Early is the first tenth of the time axis, late the last.
    """
    absolute = evidence.recorded("rate_gap", "rate_gap")
    tenth = max(absolute.sizes["time"] // 10, 1)
    early, late = slice(0, tenth), slice(-tenth, None)
    values = {}
    for name, long_name in (
        ("rate_gap", "gap of growth rates"),
        ("relative_rate_gap", "gap of growth rates over their sum"),
        ("relative_norm_rate_gap", "gap of growth rates of squared norms over their sum"),
    ):
        curve = evidence.trajectory[name]
        first = curve.isel(time=early).mean("time")
        last = curve.isel(time=late).mean("time")
        values[f"early_{name}"] = described(first, f"{long_name}, first tenth of training")
        values[f"late_{name}"] = described(last, f"{long_name}, last tenth of training")
    peak = absolute.max("time")
    values["late_over_peak_rate_gap"] = described(
        values["late_rate_gap"] / peak, "gap of growth rates, late over its peak"
    )
    norms = evidence.recorded("layer_norm", "layer_norm")
    middle = norms.sizes["time"] // 2
    values["peak_rate_gap"] = described(peak, "largest gap of growth rates")
    halves = {"early": ("first", 0, middle), "late": ("second", middle, -1)}
    for name, (half, begin, end) in halves.items():
        growth = norms.isel(time=end, drop=True) - norms.isel(time=begin, drop=True)
        hidden = growth.isel(layer=slice(None, -1)).mean("layer")
        values[f"{name}_norm_growth"] = described(
            growth, f"growth of the layer norm in the {half} half of training"
        )
        values[f"{name}_growth_deviation"] = described(
            abs(growth / hidden - 1),
            "its distance from the mean over all layers but the last, relative to the mean",
        )
    return values
