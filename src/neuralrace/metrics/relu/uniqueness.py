"""Whether the loss of a ReLU network identifies the contexts in which its units are open."""

from math import comb

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import least_squares

from neuralrace.datasets.contextual import Contextual
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.contextual import head_start, staged_loss

BOUNDS = np.log(np.finfo(float).tiny), 0.0
"""Bounds of the logarithms of fitted initial strengths: from the smallest normal number to 1."""
NAMES = (
    "unfitted_gap",
    "head_start_gap",
    "fitted_gap",
    "fitted_common_start",
    "fitted_context_start",
)
"""Values of `_gaps`, in its order."""


@Metric(
    requires="contextual_hierarchies whole_targets layered relu one_hidden normal_start "
    "squared_error",
    variables={
        "unfitted_gap": (
            "open_in",
            "largest distance of the loss from the closed form with the start of equal widths, "
            "over initial loss",
        ),
        "head_start_gap": (
            "open_in",
            "the same with the head start that the common pathway gives the others",
        ),
        "fitted_gap": ("open_in", "the same with both starts fitted to the loss"),
        "fitted_common_start": ("open_in", "fitted start of the modes of the common pathway"),
        "fitted_context_start": (
            "open_in",
            "fitted start of the modes of the context pathways on the residual",
        ),
    },
)
def uniqueness(cell: CellResults) -> Values:
    """Distance of the loss from the closed form of each family of context pathways.

    A family has a common pathway, and pathways that are open in q of C contexts, q = 1 ... C - 1.
    Distances are 0 for perfect agreement, and NaN for diverged runs. The closed form is the same
    for q and C - q contexts, so the loss cannot distinguish them; their head starts differ.

    Initial strengths without a fit are h sigma^2/2 for h units. Half of all units are in the common
    pathway, and the context pathways share the other half equally. Two numbers are fitted to each
    run by least squares over the time axis. These are the logarithms of the initial strength of all
    common modes and of that of all context modes.

    Source: Jarvis et al., "Make Haste Slowly", proposition 4.2 and sec. 5; the paper compares
    losses and does not state the initial strengths.
    """
    dataset, spec = cell.spec.dataset, cell.spec
    (hidden,) = spec.layered.hidden
    families = np.arange(1, dataset.contexts)
    loss = cell.trajectory["loss"]
    relative = loss / spec.training.loss.factor(len(cell.data.x))
    values = xr.apply_ufunc(
        lambda curve, sigma, open_in: _gaps(
            curve, cell.flow_time.values, dataset, int(open_in), hidden * sigma**2 / 4
        ),
        relative,
        relative["init_scale"],
        xr.DataArray(families, {"open_in": families}, "open_in"),
        input_core_dims=[["time"], [], []],
        output_core_dims=[[]] * len(NAMES),
        vectorize=True,
    )
    return dict(zip(NAMES, values, strict=True))


def _gaps(
    loss: Float[np.ndarray, " time"],
    time: Float[np.ndarray, " time"],
    dataset: Contextual,
    open_in: int,
    half: float,
) -> tuple[float, ...]:
    """Values of one run and one family, in the order of `NAMES`.

    Args:
        loss: 1/2 <|y - yhat|^2> of the run.
        time: flow time.
        dataset: has the numbers of contexts and objects.
        open_in: number of contexts in which a context pathway is open.
        half: initial strength h sigma^2/2 of a pathway with half of the units.
    """
    if not np.isfinite(loss).all():
        return (np.nan,) * len(NAMES)
    contexts, objects = dataset.contexts, dataset.objects
    task = contexts, objects, open_in

    def distance(common: np.ndarray, context: np.ndarray) -> np.ndarray:
        return (staged_loss(time, *task, common, context) - loss) / loss[0]

    def gap(common: np.ndarray, context: np.ndarray) -> float:
        return float(np.max(np.abs(distance(common, context))))

    def by_mode(common: float, context: float) -> tuple[np.ndarray, np.ndarray]:
        """The initial strengths of all common and of all context modes."""
        modes, context_modes = contexts + objects - 1, objects - 1
        return np.full(modes, common), np.full(context_modes, context)

    start = half, half / comb(contexts, open_in)
    common, context = by_mode(*start)
    fit = least_squares(
        lambda logarithms: distance(*by_mode(*np.exp(logarithms))),
        np.clip(np.log(start), *BOUNDS),
        bounds=BOUNDS,
    )
    fitted = np.exp(fit.x)
    return (
        gap(common, context),
        gap(common, head_start(*task, common, context)),
        gap(*by_mode(*fitted)),
        *fitted.tolist(),
    )
