"""Distance of learned receptive fields from theory."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.receptive_fields.receptive_fields import (
    class_shares,
    overlap,
    participation,
    unit_mean,
    weights_on_ring,
)
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults


@Metric(
    observables="weights|pathway_maps",
    solutions="frozen_gates|frozen_gates_descent|initial_gates|mean_field",
    variables={
        "field_overlap": (
            "solution",
            "cosine of a unit's receptive field with that of theory, mean over units",
        ),
        "field_error": ("solution", "distance of receptive fields from theory over their norm"),
        "predicted_participation": (
            "solution",
            "inverse participation ratio times inputs by theory, mean over units",
        ),
        "predicted_localised_share": (
            "solution",
            "share of units whose receptive field is localised by theory",
        ),
    },
    shares="predicted_localised_share",
)
def receptive_field_fit(cell: CellResults) -> Values:
    """Final receptive fields of the simulation compared with every solution, unit by unit.

    Perfect agreement is an overlap of 1 and an error of 0. Overlaps are signed cosines, and leave
    out units whose weights are all zero. Overlap and error are NaN for diverged runs; predicted
    values are not.

    Source: derived here, as notes on localisation, sec. 2.2, suggest.
    """
    solved = cell.get("theory", "receptive_fields")
    solved = solved.transpose("init_scale", "seed", "solution", "unit", "input")
    fields, _ = weights_on_ring(cell)
    learned, theory = fields[:, :, -1:], solved.values
    distance, size = (
        np.linalg.norm(weights, axis=(-2, -1)) for weights in (theory - learned, learned)
    )
    like = solved.isel(unit=0, input=0, drop=True)

    values = {
        "field_overlap": overlap(theory, learned),
        "field_error": distance / np.where(size > 0, size, np.nan),
        "predicted_participation": unit_mean(participation(theory)),
        "predicted_localised_share": class_shares(theory)["localised"],
    }
    return {name: like.copy(data=array) for name, array in values.items()}
