"""How well a routing network answers pairs of domains that it was never trained on."""

import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, crossing_time
from neuralrace.results.cells import CellResults

# Relative error below which a pair of domains counts as learned.
LEARNED = 0.1


@Metric(
    observables="pair_error",
    variables={
        "final_trained_error": ("", "relative error of trained pairs at the end"),
        "final_untrained_error": ("", "relative error of untrained pairs at the end"),
        "zero_shot_gap": ("", "relative error of untrained less that of trained pairs at the end"),
        "zero_shot_ratio": (
            "",
            "explained power of untrained over that of trained pairs at the end",
        ),
        "untrained_delay": ("", "time to a relative error of 10%, untrained over trained pairs"),
    },
)
def zero_shot(cell: CellResults) -> Values:
    """Error of trained and of untrained pairs at the end, and how much later the latter falls.

    Errors are squared, relative to those of a network that answers zero, so 1 - error is the power
    that a network explains. The ratio compares what is explained of untrained pairs with what is of
    trained ones: 1 where all that was learned transfers, 0 where nothing does, whatever small error
    training leaves. NaN where every pair is trained.

    Source: Saxe, Sodhani, Lewallen 2022, figs. 4 and 5.
    """
    trained = cell.trajectory["trained_error"]
    untrained = cell.trajectory["untrained_error"]
    seen, unseen = (error.isel(time=-1, drop=True) for error in (trained, untrained))
    level = xr.DataArray(-LEARNED)
    first, second = (crossing_time(-error, level, cell.flow_time) for error in (trained, untrained))
    return {
        "final_trained_error": seen,
        "final_untrained_error": unseen,
        "zero_shot_gap": unseen - seen,
        "zero_shot_ratio": ((1 - unseen) / (1 - seen)).where(seen < 1),
        "untrained_delay": second / first,
    }
