"""Effective rank of the linear map of a network."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import entr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults

EQUAL = 1e-9
"""Strengths that differ by less, over the largest, are equal."""


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
    rank = cell.trajectory["loss"].copy(data=_effective_rank(_singular_values(total.values)))
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


def _singular_values(
    maps: Float[np.ndarray, "*runs output input"],
) -> Float[np.ndarray, "*runs _mode"]:
    """Singular values of each map; NaN where an entry is not finite, as after divergence."""
    finite = np.asarray(np.isfinite(maps).all(axis=(-2, -1)))
    # the decomposition raises an error if an entry is NaN
    values = np.linalg.svd(np.where(finite[..., None, None], maps, 0), compute_uv=False)
    return np.where(finite[..., None], values, np.nan)


def _effective_rank(values: Float[np.ndarray, "*runs mode"]) -> Float[np.ndarray, "*runs"]:
    """Exponential of the entropy of values over their sum; NaN where all are 0."""
    total = values.sum(axis=-1, keepdims=True)
    shares = np.divide(values, total, where=total > 0, out=np.full(values.shape, np.nan))
    return np.exp(entr(shares).sum(axis=-1))
