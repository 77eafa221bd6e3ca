"""How near the gated network of XoR comes to a ReLU network once its start is fitted."""

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.xor import D, S, xor_loss

# Units that answer two adjacent examples at once, as all do at the start, grow faster by this.
TWO_EXAMPLES = np.sqrt(2)
# Starts that are tried, as shares of what is learned, before the best one is refined.
STARTS = np.geomspace(1e-9, 0.9, 90)


@Metric(
    requires="xor|xor_with_margin",
    variables={
        "fitted_start": ("", "start of every pathway that fits best"),
        "fitted_loss_error_sup": (
            "",
            "largest distance of loss from theory with a fitted start over initial loss",
        ),
        "fitted_rival_error_sup": (
            "",
            "the same from pathways that grow as units active on two examples",
        ),
    },
)
def fitted_start(cell: CellResults) -> Values:
    """Least distance of the loss from four gated pathways that start alike, and that start.

    One number is fitted to each run: the common start a0 that minimises the largest distance. The
    same is done for a rival of the same shape whose pathways grow sqrt(2) times as fast, the rate
    of units that are active on two examples. Distances are over the initial loss.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3, does not say how the start was chosen.
    """
    loss = cell.trajectory["loss"].transpose(..., "time")
    time = cell.flow_time.values
    curves = loss.values.reshape(-1, len(time))
    found = np.array([_fit(time, curve) for curve in curves])
    rival = np.array([_fit(TWO_EXAMPLES * time, curve) for curve in curves])
    like = loss.isel(time=0, drop=True)
    shape = like.shape
    return {
        "fitted_start": like.copy(data=found[:, 0].reshape(shape)),
        "fitted_loss_error_sup": like.copy(data=found[:, 1].reshape(shape)),
        "fitted_rival_error_sup": like.copy(data=rival[:, 1].reshape(shape)),
    }


def _fit(time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"]) -> tuple[float, float]:
    """The start that fits best, and its largest distance over the initial loss."""
    if not np.isfinite(loss).all():
        return np.nan, np.nan

    def distance(log_start: float) -> float:
        start = np.full(4, np.exp(log_start))
        return float(np.max(np.abs(xor_loss(time, start) - loss)) / loss[0])

    tried = np.log(STARTS * S[0] / D[0])
    best = int(np.argmin([distance(start) for start in tried]))
    around = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    found = minimize_scalar(distance, bounds=around, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x)), float(found.fun)
