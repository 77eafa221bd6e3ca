"""Functional cell types: the corner of XoR that each hidden unit points to."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults

OCCUPIED = 0.05
"""Share of the power at which a corner counts as occupied."""


@Metric(
    requires="xor|xor_with_margin layered relu one_hidden",
    observables="weights",
    variables={
        "corner_cosine": ("", "mean cosine between units and the nearest corner"),
        "matching_readouts": (
            "",
            "share of units whose readout has the sign of the nearest corner's label",
        ),
        "corner_share": ("corner", "share of units nearest a corner"),
        "corners_occupied": ("", "corners with at least 5% of the units"),
    },
)
def cell_types(cell: CellResults) -> Values:
    """Final incoming weights w of hidden units by the corner of the square that is nearest.

    Units are weighted by their power |v||w|, where v is the weight to the output. The mean cosine
    is 1 if all units point to a corner, and 0.90 for random directions. The share of readouts with
    the sign of the corner's label is 1 for perfect cell types, and 1/2 for random readouts.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3.
    """
    data = cell.data
    corner = {"corner": list(data.item_names)}
    directions = data.x / np.linalg.norm(data.x, axis=1, keepdims=True)
    labels = xr.DataArray(data.y[:, 0], corner, ("corner",))
    encoder = cell.trajectory["weight_1"].isel(snapshot=-1, drop=True)
    readout = cell.trajectory["weight_2"].isel(snapshot=-1, unit_2=0, drop=True)
    length = ufuncs.sqrt((encoder**2).sum("unit_0", skipna=False))
    cosine = xr.dot(encoder, xr.DataArray(directions, corner, ("corner", "unit_0"))) / length
    nearest = cosine == cosine.max("corner")
    power = abs(readout) * length

    def share(values: xr.DataArray) -> xr.DataArray:
        weighted = (power * values).sum("unit_1", skipna=False)
        return weighted / power.sum("unit_1", skipna=False)

    occupied = share(nearest)
    return {
        "corner_cosine": share(cosine.max("corner")),
        "matching_readouts": share(nearest & (ufuncs.sign(readout) == labels)).sum(
            "corner", skipna=False
        ),
        "corner_share": occupied,
        "corners_occupied": (occupied >= OCCUPIED)
        .sum("corner")
        .where(occupied.notnull().all("corner")),
    }
