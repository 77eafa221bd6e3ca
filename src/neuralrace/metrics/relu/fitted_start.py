"""Distance of a ReLU network from the gated network of XoR with a fitted initial strength."""

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults
from neuralrace.theory.modes import deep_mode, mode_loss
from neuralrace.theory.xor import D, S

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
    fits, rivals = _fits(time, curves), _fits(TWO_EXAMPLES * time, curves)
    shape = loss.shape[:-1]
    return {
        "fitted_start": per_run(cell, fits[:, 0].reshape(shape)),
        "fitted_loss_error_sup": per_run(cell, fits[:, 1].reshape(shape)),
        "fitted_rival_error_sup": per_run(cell, rivals[:, 1].reshape(shape)),
    }


def _fits(
    time: Float[np.ndarray, " time"], curves: Float[np.ndarray, "run time"]
) -> Float[np.ndarray, "run 2"]:
    """The best initial strength of each run, and its largest distance over the initial loss."""
    # the bounded search finds a local minimum, so a grid search comes first
    grid = np.log(STARTS * S[0] / D[0])
    candidates = np.stack([_loss(time, start) for start in grid])

    def fit(loss: Float[np.ndarray, " time"]) -> tuple[float, float]:
        if not np.isfinite(loss).all():
            return np.nan, np.nan

        def distance(log_start: float) -> float:
            return float(np.max(np.abs(_loss(time, log_start) - loss)) / loss[0])

        best = int(np.argmin(np.abs(candidates - loss).max(axis=1)))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        fit = minimize_scalar(distance, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        return float(np.exp(fit.x)), float(fit.fun)

    return np.array([fit(loss) for loss in curves])


def _loss(time: Float[np.ndarray, " time"], log_start: float) -> Float[np.ndarray, " time"]:
    """`xor_loss` of four pathways with equal starts: the gain of one of them, four times."""
    strength = deep_mode(time, S[:1], D[:1], np.exp([log_start]))
    return mode_loss(strength, S.sum(keepdims=True), D.sum(keepdims=True), y_power=1.0)
