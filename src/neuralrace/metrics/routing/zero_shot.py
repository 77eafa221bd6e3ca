"""Zero-shot error of routing networks: on pairs of domains that are not trained."""

import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time
from neuralrace.results.cells import CellResults

LEARNED = 0.1
"""Relative error at which a pair of domains counts as learned."""


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
    """Final error of trained and of untrained pairs, and how much later the latter are learned.

    Errors are squared errors over those of a network with outputs of zero: 0 for perfect outputs.
    The power that a network explains is 1 - error. The ratio of explained powers is 1 if everything
    that is learned transfers to untrained pairs, and 0 if nothing does. It does not depend on the
    error that training leaves. Values of untrained pairs are NaN if every pair is trained.

    Source: Saxe, Sodhani, Lewallen 2022, figs. 4 and 5.
    """
    trained = cell.trajectory["trained_error"]
    untrained = cell.trajectory["untrained_error"]
    end, untrained_end = (error.isel(time=-1, drop=True) for error in (trained, untrained))
    level = xr.DataArray(-LEARNED)
    time, untrained_time = (
        crossing_time(-error, level, cell.flow_time) for error in (trained, untrained)
    )
    return {
        "final_trained_error": end,
        "final_untrained_error": untrained_end,
        "zero_shot_gap": untrained_end - end,
        "zero_shot_ratio": ((1 - untrained_end) / (1 - end)).where(end < 1),
        "untrained_delay": untrained_time / time,
    }
