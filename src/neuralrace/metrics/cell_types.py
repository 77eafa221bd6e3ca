"""What the hidden units of a ReLU network trained on XoR turn into."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.datasets.xor import Xor
from neuralrace.errors import UserError
from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.reln.gates import relu_network

# Share of the power above which a corner counts as occupied.
OCCUPIED = 0.05


def cell_types(evidence: Evidence) -> Values:
    """Units by the corner of the square that their incoming weights w point to, at the end.

    Units count by their power |v||w|, v the weight to the output. Pointing to a corner is a cosine
    of 1; directions at random have 0.90 with the nearest corner on average, and half of their
    readouts have the sign of its label.

    Raises:
        UserError: the dataset is not XoR, or the network no ReLU network with one hidden layer and
            without biases.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 3.
    """
    dataset = evidence.cell.dataset
    if not isinstance(dataset, Xor):
        raise UserError(f"dataset.name: {dataset.name!r}: metrics: cell_types is for xor")
    relu_network(evidence.cell, "metrics: cell_types", hidden=1)
    data = evidence.data
    corner = {"corner": list(data.item_names)}
    directions = data.x / np.linalg.norm(data.x, axis=1, keepdims=True)
    labels = xr.DataArray(data.y[:, 0], corner, ("corner",))
    encoder = evidence.recorded("weight_1", "weights").isel(snapshot=-1, drop=True)
    readout = evidence.recorded("weight_2", "weights").isel(snapshot=-1, unit_2=0, drop=True)
    length = ufuncs.sqrt((encoder**2).sum("unit_0", skipna=False))
    cosine = xr.dot(encoder, xr.DataArray(directions, corner, ("corner", "unit_0"))) / length
    nearest = cosine == cosine.max("corner")
    power = abs(readout) * length

    def share(of: xr.DataArray) -> xr.DataArray:
        weighted = (power * of).sum("unit_1", skipna=False)
        return weighted / power.sum("unit_1", skipna=False)

    occupied = share(nearest)
    return {
        "corner_cosine": described(
            share(cosine.max("corner")), "mean cosine between units and the nearest corner"
        ),
        "matching_readouts": described(
            share(nearest & (ufuncs.sign(readout) == labels)).sum("corner", skipna=False),
            "share of units whose readout has the sign of the nearest corner's label",
        ),
        "corner_share": described(occupied, "share of units nearest a corner"),
        "corners_occupied": described(
            (occupied >= OCCUPIED).sum("corner").where(occupied.notnull().all("corner")),
            f"corners with at least {OCCUPIED:.0%} of the units",
        ),
    }
