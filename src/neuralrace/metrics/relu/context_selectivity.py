"""Contexts in which the units of a ReLU network are open, by their part of the outputs."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults
from neuralrace.theory.reln.gates import relu_activity

NEGLIGIBLE = 1e-12
"""Share of the targets' power below which a part of the targets is a rounding error."""


@Metric(
    requires="layered relu contexts",
    observables="weights",
    variables={
        "carried_residual": (
            "open_contexts",
            "share of the residual that units open in so many contexts carry at the end",
        ),
        "carried_residual_curve": (
            "open_contexts snapshot",
            "share of the residual that units open in so many contexts carry",
        ),
        "carried_common": (
            "open_contexts",
            "share of the common part that units open in so many contexts carry at the end",
        ),
        "carried_common_curve": (
            "open_contexts snapshot",
            "share of the common part that units open in so many contexts carry",
        ),
        "context_gated_share": (
            "",
            "share of the carried residual in units whose gate is one within every context",
        ),
        "context_specific_units": (
            "",
            "share of units that are on for samples of a single context only at the end",
        ),
        "context_specific_share": (
            "",
            "share of the carried residual in units that are on in a single context only",
        ),
        "mean_open_contexts": (
            "",
            "contexts that a unit is open in, by what it carries of the residual",
        ),
    },
)
def context_selectivity(cell: CellResults) -> Values:
    """Share of the targets that units carry, by the number of contexts in which they are open.

    Targets are the sum of the best linear map of the inputs, the common part, and the residual R. A
    unit with activity h_n and outgoing weights v carries sum_n h_n v.R_n / |R|^2 of the residual,
    and likewise of the common part. Over all units the sum is 1 once the targets are learned. It is
    NaN for a part that the targets do not have.

    A unit is open in a context if it is on for more than half of the samples of the context. It is
    specific to a context if it is on for samples of this context only. In a network with several
    hidden layers, the units are those of the last one.

    Source: Jarvis et al., "Make Haste Slowly", secs. 4 and 5: the pathways of the residual are open
    in C - 1 of C contexts. The count is derived here.
    """
    data = cell.data
    *encoders, readout = cell.weights()
    hidden = relu_activity([*encoders, readout], data.x)[-1]
    gates = (hidden > 0).astype(float)
    contexts = (cell.contexts == np.arange(cell.contexts.max() + 1)[:, None]).astype(float)
    # share of the samples of each context on which a unit is open
    shares = gates @ contexts.T / contexts.sum(axis=1)
    open_contexts = np.sum(shares > 0.5, axis=-1)
    by_context = np.all(np.isin(shares, (0, 1)), axis=-1)
    specific = np.sum(shares > 0, axis=-1) == 1
    linear = data.x @ np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    numbers = np.arange(len(contexts) + 1)
    snapshots = cell.trajectory["weight_1"].isel(unit_0=0, unit_1=0, drop=True)
    residual, common = (
        _carried(hidden, readout, part, data.y) for part in (data.y - linear, linear)
    )

    def by_number(carried: np.ndarray) -> xr.DataArray:
        """Sums over the units that are open in equally many contexts."""
        sums = [np.sum(carried * (open_contexts == number), axis=-1) for number in numbers]
        like = snapshots.expand_dims(open_contexts=numbers, axis=2)
        return like.copy(data=np.stack(sums, axis=2))

    def mean(values: np.ndarray) -> xr.DataArray:
        """Final mean over units, weighted by what they carry of the residual."""
        weight = residual[:, :, -1]
        weighted = np.sum(weight * values[:, :, -1], axis=-1) / np.sum(weight, axis=-1)
        return per_run(cell, weighted)

    residual_curve, common_curve = by_number(residual), by_number(common)
    return {
        "carried_residual": residual_curve.isel(snapshot=-1, drop=True),
        "carried_residual_curve": residual_curve,
        "carried_common": common_curve.isel(snapshot=-1, drop=True),
        "carried_common_curve": common_curve,
        "context_gated_share": mean(by_context),
        "context_specific_units": per_run(cell, specific[:, :, -1].mean(axis=-1)),
        "context_specific_share": mean(specific),
        "mean_open_contexts": mean(open_contexts),
    }


def _carried(
    hidden: Float[np.ndarray, "*runs unit sample"],
    readout: Float[np.ndarray, "*runs output unit"],
    part: Float[np.ndarray, "sample output"],
    targets: Float[np.ndarray, "sample output"],
) -> Float[np.ndarray, "*runs unit"]:
    """Share of a part p of the targets that each unit carries, sum_n h_n v.p_n / |p|^2."""
    power = np.sum(part**2)
    if power <= NEGLIGIBLE * np.sum(targets**2):
        return np.full(hidden.shape[:-1], np.nan)
    return np.einsum("...un,no,...ou->...u", hidden, part, readout, optimize=True) / power
