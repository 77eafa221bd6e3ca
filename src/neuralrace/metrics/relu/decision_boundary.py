"""What kind of boundary a ReLU network draws between the classes of XoR with a margin."""

from contextlib import suppress

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory import xor_margin as margin


@Metric(
    requires="xor_with_margin layered relu one_hidden",
    observables="weights",
    variables={
        "nonlinearity_index": (
            "",
            "difference of outputs between classes with the margin taken away, over 2",
        ),
        "nonlinearity_share": (
            "",
            "nonlinearity index over that of units that answer one sample each",
        ),
        "xor_share": ("", "output carried by units open on exactly one sample"),
        "linear_share": (
            "",
            "output carried by units open on exactly the two samples of one class",
        ),
        "other_share": ("", "output carried by units open on samples of both classes"),
        "predicted_xor_share": (
            "",
            "the same for units open on exactly one sample, by theory from the initial weights",
        ),
        "xor_share_error": ("", "distance of the xor share from theory"),
        "nonlinearity_index_curve": (
            "snapshot",
            "difference of outputs between classes with the margin taken away, over 2",
        ),
        "nonlinearity_share_curve": (
            "snapshot",
            "nonlinearity index over that of units that answer one sample each",
        ),
        "xor_share_curve": ("snapshot", "output carried by units open on exactly one sample"),
        "linear_share_curve": (
            "snapshot",
            "output carried by units open on exactly the two samples of one class",
        ),
        "other_share_curve": (
            "snapshot",
            "output carried by units open on samples of both classes",
        ),
    },
)
def decision_boundary(cell: CellResults) -> Values:
    """How nonlinear the network is between the classes, and what kinds of units answer the samples.

    The nonlinearity index is [f(1, -1, 0) - f(1, 1, 0)]/2, averaged over both points of each class:
    ([f(1, -1, 0) + f(-1, 1, 0)] - [f(1, 1, 0) + f(-1, -1, 0)])/4. These are the corners with the
    margin taken away, on which no linear function can tell the classes apart: its index is 0. Units
    that point to one sample each, on which alone they are open up to Delta^2 = 2, and answer it
    rightly have 2/(2 + Delta^2), 1 as the margin vanishes; `nonlinearity_share` is the
    index over that.

    A unit j carries sum_n y_n v_j h_jn of the output on the samples. It is an `xor` unit if it is
    open on exactly one sample, a `linear` unit if it is open on exactly the two samples of one
    class, and an `other` unit if it is open on samples of both classes. The three shares of what
    all units carry add up to 1; one may be negative or exceed 1 before anything is learned. Theory
    of the last `xor` share lets pathways of both kinds race, from the initial weights.

    Source: Jarvis et al., "Make Haste Slowly", sec. 3 and appendix C, fig. 2; the index and the
    shares are ours.
    """
    dataset = cell.spec.dataset
    data = cell.data
    x = xr.DataArray(data.x, dims=("sample", "unit_0"))
    y = xr.DataArray(data.y[:, 0], dims="sample")
    encoder = cell.trajectory["weight_1"]
    readout = cell.trajectory["weight_2"].isel(unit_2=0, drop=True)

    def carried(inputs: xr.DataArray) -> xr.DataArray:
        """sum_n y_n v_j [w_j . x_n]_+ of each unit j."""
        return readout * (xr.dot(encoder, inputs).clip(min=0) * y).sum("sample", skipna=False)

    between = carried(x * xr.DataArray([1.0, 1.0, 0.0], dims="unit_0"))
    index = between.sum("unit_1", skipna=False) / len(y)
    power = carried(x)
    opened = xr.dot(encoder, x) > 0
    positive, negative = ((opened & (y == sign)).sum("sample") for sign in (1, -1))
    alone, mixed = positive + negative == 1, (positive > 0) & (negative > 0)
    kinds = {"xor": alone, "linear": ~alone & ~mixed, "other": mixed}
    curves = {
        "nonlinearity_index": index,
        "nonlinearity_share": index * (2 + dataset.margin**2) / 2,
    }
    for kind, members in kinds.items():
        share = (power * members).sum("unit_1", skipna=False) / power.sum("unit_1", skipna=False)
        curves[f"{kind}_share"] = share
    end = {name: curve.isel(snapshot=-1, drop=True) for name, curve in curves.items()}
    end["predicted_xor_share"] = _predicted(cell, dataset.margin, encoder, readout)
    end["xor_share_error"] = abs(end["predicted_xor_share"] - end["xor_share"])
    return end | {f"{name}_curve": curve for name, curve in curves.items()}


def _predicted(
    cell: CellResults, width: float, encoder: xr.DataArray, readout: xr.DataArray
) -> xr.DataArray:
    """Share of the output that comes from single samples at the end, nothing fitted."""
    first = encoder.isel(snapshot=0, drop=True).transpose("init_scale", "seed", "unit_1", "unit_0")
    second = readout.isel(snapshot=0, drop=True).transpose("init_scale", "seed", "unit_1")
    share = np.full(second.shape[:2], np.nan)
    with suppress(ValueError):  # weights made by hand, with units between the edges of examples
        start = margin.neuron_start(first.values.astype(float), second.values.astype(float), width)
        time = cell.flow_time.values[[0, -1]]
        share = margin.xor_share(time, width, start.linear, start.xor)[..., -1]
    return second.isel(unit_1=0, drop=True).copy(data=share)
