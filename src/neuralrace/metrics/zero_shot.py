"""How well a routing network answers pairs of domains that it was never trained on."""

import xarray as xr

from neuralrace.metrics.describe import Values, crossing_time, described
from neuralrace.records.evidence import Evidence

# Relative error below which a pair of domains counts as learned.
LEARNED = 0.1


def zero_shot(evidence: Evidence) -> Values:
    """Error of trained and of untrained pairs at the end, and how much later the latter falls.

    Errors are squared, relative to those of a network that answers zero, so 1 - error is the power
    that a network explains. The ratio compares what is explained of untrained pairs with what is of
    trained ones: 1 where all that was learned transfers, 0 where nothing does, whatever small error
    training leaves. NaN where every pair is trained.

    Source: Saxe, Sodhani, Lewallen 2022, figs. 4 and 5.
    """
    trained = evidence.recorded("trained_error", "pair_error")
    untrained = evidence.trajectory["untrained_error"]
    seen, unseen = (error.isel(time=-1, drop=True) for error in (trained, untrained))
    level = xr.DataArray(-LEARNED)
    first, second = (crossing_time(-error, level, evidence.time) for error in (trained, untrained))
    return {
        "final_trained_error": described(seen, "relative error of trained pairs at the end"),
        "final_untrained_error": described(unseen, "relative error of untrained pairs at the end"),
        "zero_shot_gap": described(
            unseen - seen, "relative error of untrained less that of trained pairs at the end"
        ),
        "zero_shot_ratio": described(
            ((1 - unseen) / (1 - seen)).where(seen < 1),
            "explained power of untrained over that of trained pairs at the end",
        ),
        "untrained_delay": described(
            second / first,
            f"time to a relative error of {LEARNED:.0%}, untrained over trained pairs",
        ),
    }
