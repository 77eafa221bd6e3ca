"""Distance of a ReLU network from the gated network of XoR with a fitted initial strength."""

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults
from neuralrace.theory.xor import D, S, xor_loss

TWO_EXAMPLES = np.sqrt(2)
"""Growth rate of units that are active on two adjacent examples, as all are at the start, over that
of units that are active on one."""
STARTS = np.geomspace(1e-9, 0.9, 90)
"""Initial strengths of the grid search, as shares of the final one; the best one is refined."""


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
    """Least distance of the loss from that of four gated pathways with equal initial strengths.

    Distances are the largest over time, relative to the initial loss: 0 for perfect agreement. The
    only fitted parameter of a run is the common initial strength a0, which minimises the distance.
    The rival is a fit of pathways that grow sqrt(2) times as fast, as units do that are active on
    two examples.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3, which does not state the initial strength.
    """
    loss = cell.trajectory["loss"].transpose(..., "time")
    time = cell.flow_time.values
    curves = loss.values.reshape(-1, len(time))
    fits = np.array([_fit(time, curve) for curve in curves])
    rivals = np.array([_fit(TWO_EXAMPLES * time, curve) for curve in curves])
    shape = loss.shape[:-1]
    return {
        "fitted_start": per_run(cell, fits[:, 0].reshape(shape)),
        "fitted_loss_error_sup": per_run(cell, fits[:, 1].reshape(shape)),
        "fitted_rival_error_sup": per_run(cell, rivals[:, 1].reshape(shape)),
    }


def _fit(time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"]) -> tuple[float, float]:
    """The best initial strength, and its largest distance over the initial loss."""
    if not np.isfinite(loss).all():
        return np.nan, np.nan

    def distance(log_start: float) -> float:
        start = np.full(4, np.exp(log_start))
        return float(np.max(np.abs(xor_loss(time, start) - loss)) / loss[0])

    # the bounded search finds a local minimum, so a grid search comes first
    grid = np.log(STARTS * S[0] / D[0])
    best = int(np.argmin([distance(start) for start in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    fit = minimize_scalar(distance, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(fit.x)), float(fit.fun)
