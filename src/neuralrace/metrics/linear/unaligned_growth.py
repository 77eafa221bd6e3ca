"""Growth of unaligned modes: the sum p = a + b grows, the difference m = a - b decays."""

from scipy.integrate import cumulative_simpson
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
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
    """Conserved product and decay rate of modes that do not interfere (initialiser `decoupled`).

    The vectors a and b are the encoder and the decoder vector of a mode. Gradient flow conserves
    |p||m|: its drift is 0 for perfect agreement. log(|m|/|p|) falls by twice the time integral of
    s - a.b: its slope is 2 for perfect agreement.
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
    # the change has begun, and the smaller of p and m is not yet lost in rounding
    smaller, larger = ufuncs.minimum(total, difference), ufuncs.maximum(total, difference)
    readable = (abs(fall) > 0.1) & (smaller > 1e-6 * larger)
    measured = log_ratio.isel(time=0, drop=True) - log_ratio
    return {
        "product_drift": abs(product / product.isel(time=0) - 1).max("time").where(learned),
        "log_ratio_slope": (measured / fall).where(readable & learned).mean("time"),
    }
