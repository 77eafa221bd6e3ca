"""Nonlinearity of the decision boundary of ReLU networks on XoR with a margin."""

from contextlib import suppress

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
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
    """Nonlinearity of the output between the classes, and shares of the kinds of hidden units.

    The nonlinearity index is [f(1, -1, 0) - f(1, 1, 0)]/2, averaged over both points of each class:
    ([f(1, -1, 0) + f(-1, 1, 0)] - [f(1, 1, 0) + f(-1, -1, 0)])/4. These points are the corners
    without the margin Delta, where every linear function has an index of 0. Units that point to
    one sample each and learn its target have 2/(2 + Delta^2), for Delta^2 up to 2.
    `nonlinearity_share` is the index over this value.

    A unit j carries sum_n y_n v_j h_jn of the output on the samples n. An `xor` unit is open on
    exactly one sample, a `linear` unit on exactly the two samples of one class, an `other` unit on
    samples of both classes. Their shares of the sum over all units add up to 1. A share may be
    negative or exceed 1 before anything is learned. The theory of the final `xor` share is the race
    of `xor` and `linear` pathways from the initial weights; its error is 0 for perfect agreement.

    Source: Jarvis et al., "Make Haste Slowly", sec. 3 and appendix C, fig. 2; the index and the
    shares are derived here.
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
    """Final share of the `xor` units by theory, without fitted parameters."""
    first = encoder.isel(snapshot=0, drop=True).transpose("init_scale", "seed", "unit_1", "unit_0")
    second = readout.isel(snapshot=0, drop=True).transpose("init_scale", "seed", "unit_1")
    share = np.full(second.shape[:2], np.nan)
    # theory refuses units between the edges of examples, which only weights made by hand have
    with suppress(ValueError):
        start = margin.neuron_start(first.values.astype(float), second.values.astype(float), width)
        time = cell.flow_time.values[[0, -1]]
        share = margin.xor_share(time, width, start.linear, start.xor)[..., -1]
    return per_run(cell, share)
