"""An unaligned mode in two halves: the sum p = a + b grows, the difference m = a - b decays."""

from scipy.integrate import cumulative_simpson
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import diagonal, vectors


@Metric(
    observables="gram",
    variables={
        "product_drift": ("mode", "largest relative change of |p||m|"),
        "log_ratio_slope": (
            "mode",
            "fall of log(|m|/|p|) over the integral of s - a.b, averaged over time",
        ),
    },
)
def unaligned_growth(cell: CellResults) -> Values:
    """Invariant and decay law of modes that do not interfere (init law `decoupled`).

    |p||m| is conserved by gradient flow, and log(|m|/|p|) falls by 2 integral of (s - a.b) dt.
    """
    encoder, decoder, across = (diagonal(block) for block in vectors(cell))
    total = ufuncs.sqrt(encoder + decoder + 2 * across)
    difference = ufuncs.sqrt((encoder + decoder - 2 * across).clip(min=0))
    learned = cell.target != 0
    product = total * difference
    log_ratio = ufuncs.log(difference / total)
    rate = -across + cell.data.modes.s
    axis = rate.get_axis_num("time")
    fall = rate.copy(
        data=cumulative_simpson(rate.values, x=cell.flow_time.values, axis=axis, initial=0)
    )
    # judged where the change has begun and the smaller half is not yet lost in rounding
    smaller, larger = ufuncs.minimum(total, difference), ufuncs.maximum(total, difference)
    judged = (abs(fall) > 0.1) & (smaller > 1e-6 * larger)
    measured = log_ratio.isel(time=0, drop=True) - log_ratio
    return {
        "product_drift": abs(product / product.isel(time=0) - 1).max("time").where(learned),
        "log_ratio_slope": (measured / fall).where(judged & learned).mean("time"),
    }
