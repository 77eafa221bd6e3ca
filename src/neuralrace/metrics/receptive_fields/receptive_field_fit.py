"""How far theory is from the receptive fields that networks learn."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.metrics.receptive_fields.receptive_fields import (
    class_shares,
    overlap,
    participation,
    unit_mean,
    weights_on_ring,
)
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
)
def receptive_field_fit(cell: CellResults) -> Values:
    """Receptive fields of every solution beside those of the simulation, unit by unit, at the end.

    Overlaps are cosines with their sign; units whose weights are all zero have none. What theory
    predicts of its own fields is there for runs that diverged too, their distances are NaN.

    Source: derived here; notes on localisation, sec. 2.2, ask for it.
    """
    solved = cell.get("theory", "receptive_fields")
    solved = solved.transpose("init_scale", "seed", "solution", "unit", "input")
    fields, _ = weights_on_ring(cell)
    learned, theory = fields[:, :, -1:], solved.values
    distance, size = (
        np.linalg.norm(weights, axis=(-2, -1)) for weights in (theory - learned, learned)
    )
    like = solved.isel(unit=0, input=0, drop=True)

    def found(values: np.ndarray) -> xr.DataArray:
        return like.copy(data=values)

    return {
        "field_overlap": found(overlap(theory, learned)),
        "field_error": found(distance / np.where(size > 0, size, np.nan)),
        "predicted_participation": found(unit_mean(participation(theory))),
        "predicted_localised_share": found(class_shares(theory)["localised"]),
    }
