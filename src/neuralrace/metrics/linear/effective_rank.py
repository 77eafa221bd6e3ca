"""Effective rank of the linear map of a network."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import entr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.linear.learning_times import EQUAL
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.modes import singular_values


@Metric(
    requires="layered linear",
    observables="linear_map",
    variables={
        "effective_rank": ("time", "effective rank of the linear map"),
        "lowest_effective_rank": ("", "lowest effective rank during training"),
        "final_effective_rank": ("", "effective rank at the end"),
        "half_effective_rank": ("mode", "effective rank when a mode reaches half its target"),
        "half_effective_rank_over_sequential": (
            "mode",
            "effective rank when a mode reaches half its target over that of learning in sequence",
        ),
    },
)
def effective_rank(cell: CellResults) -> Values:
    """Effective rank of the product of all weights, over time and when each mode is half learned.

    The effective rank is the exponential of the entropy of the singular values, divided by their
    sum: it is k for k equal singular values. Learning in sequence means that, when a mode reaches
    half its target, stronger modes have reached theirs, weaker ones are 0, and modes of equal
    strength are half learned as well. Modes that never reach half their target are NaN.

    Source: Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality".
    """
    total = cell.trajectory["linear_map"]
    rank = cell.trajectory["loss"].copy(data=_effective_rank(singular_values(total.values)))
    modes, target = cell.data.modes, cell.target
    strength = xr.DataArray(
        np.einsum("ok,...oi,ik->...k", modes.u, total.values, modes.v),
        rank.coords | {"mode": cell.modes},
        (*rank.dims, "mode"),
    )
    half = (strength >= target / 2) & (target > 0)
    at_half = rank.isel(time=half.argmax("time")).where(half.any("time"))
    at_half = at_half.drop_vars(["time", "flow_time"], errors="ignore")
    s = modes.s
    stronger = np.sign(np.where(abs(s - s[:, None]) > EQUAL * s.max(), s - s[:, None], 0))
    sequential = _effective_rank((1 + stronger) / 2 * target.values)
    return {
        "effective_rank": rank,
        "lowest_effective_rank": rank.min("time", skipna=False),
        "final_effective_rank": rank.isel(time=-1, drop=True),
        "half_effective_rank": at_half,
        "half_effective_rank_over_sequential": at_half / target.copy(data=sequential),
    }


def _effective_rank(values: Float[np.ndarray, "*runs mode"]) -> Float[np.ndarray, "*runs"]:
    """Exponential of the entropy of values over their sum; NaN where all are 0."""
    total = values.sum(axis=-1, keepdims=True)
    shares = np.divide(values, total, where=total > 0, out=np.full(values.shape, np.nan))
    return np.exp(entr(shares).sum(axis=-1))
