"""Bounds on the growth of layers (Basu et al., theorem 3), computed from a run."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, matrix_norm, per_run
from neuralrace.results.cells import CellResults
from neuralrace.theory import growth_bound as theory

LEVELS = np.linspace(0.05, 0.95, 19)
"""Shares of the way from the initial to the final layer strength at which times are read."""
DEPTHS = (2, 3, 4)
"""Depths at which the bound is evaluated with one set of constants, as in fig. 1 (iii)."""
RISEN = 0.9
"""Share of its plateau at which the rise time of a bound is read."""
SETTLED = 1e-6
"""Share of the target below which residuals, and with them growth rates, are rounding errors."""


@Metric(
    observables="layer_norm linear_map",
    variables={
        "norm_gap_delta": ("", "Delta, largest gap of layer norms"),
        "kappa1": ("", "kappa1, largest |prod W|/|sigma_yx|"),
        "kappa2": ("", "kappa2, smallest |prod W|/(|W_l| + Delta)^L"),
        "layer_strength": ("time", "largest (|W_l| + Delta)^L of any layer"),
        "strength_bound": ("time", "bound on the layer strength, constants from the run"),
        "quoted_strength_bound": (
            "time",
            "bound on the layer strength, constants as quoted (0.98, 0.65)",
        ),
        "norm_product": ("time", "product of all layer norms"),
        "product_norm": ("time", "norm of the product of all weights"),
        "strength_over_bound": ("", "largest strength over its bound"),
        "strength_over_quoted_bound": ("", "largest strength over its bound with quoted constants"),
        "norm_product_over_quoted_bound": (
            "",
            "largest product of norms over the bound with quoted constants",
        ),
        "residual_slack": ("", "smallest (2 kappa1 + 1)|Sigma| - |P| - |Sigma - P|"),
        "written_residual_slack": ("", "the same with kappa1 as the proof defines it"),
        "least_time_over_measured": ("", "largest least time over the time taken, finite depth"),
        "deep_least_time_over_measured": ("", "the same with U^(2-2/L) replaced by U^2"),
        "written_time_over_integral": ("", "eq. 18 as printed over the integral of eq. 23"),
        "kappa1_as_written": ("", "kappa1 as the proof defines it, least |sigma_yx|/|prod W|"),
        "final_kappa2": ("", "final |prod W|/(|W_l| + Delta)^L"),
        "quoted_bound_over_norm_product": (
            "",
            "final bound with quoted constants over the product of norms",
        ),
        "bound_time": (
            "depth",
            "time in which the bound with quoted constants at each depth, all else from this run "
            "(fig. 1 iii), rises to 90% of its plateau",
            "tau",
        ),
        "bound_sharpness": ("depth", "its largest rate over its mean rate until then"),
        "norm_rate_over_bound": ("", "largest growth rate of a layer norm over its bound (eq. 15)"),
        "norm_rate_over_spectral_bound": ("", "the same with the spectral norm of the residual"),
    },
)
def growth_bound(cell: CellResults) -> Values:
    """Constants of the growth bound from a run, and the run relative to its bounds.

    A bound holds if the ratio of strength to bound is at most 1 throughout. Bounds are evaluated
    with the constants of the run, and with the constants that the paper quotes. Times compare the
    least time that eq. 18 allows, in three forms, with the time that the run takes. They hold if
    their ratio is at most 1.

    Source: Basu et al., theorem 3, equations 15, 18 and 23, fig. 1.
    """
    norms = cell.trajectory["layer_norm"]
    total = cell.trajectory["linear_map"]
    depth = norms.sizes["layer"]
    sigma = cell.data.sigma_yx
    target = float(np.linalg.norm(sigma))
    product = np.linalg.norm(total.values, axis=(-2, -1))
    residual = np.linalg.norm(sigma - total.values, axis=(-2, -1))
    constants = theory.growth_constants(norms.values, product, target)
    strength = theory.layer_strength(norms.values, constants.gap).max(axis=-1)
    time = cell.flow_time.values
    start = strength[..., 0]
    k1, k2 = constants.kappa1, constants.kappa2
    bound = theory.growth_bound(time, start, theory.GrowthLaw(depth, k1, k2, target))

    def printed(layers: int) -> theory.GrowthLaw:
        return theory.GrowthLaw(layers, theory.QUOTED_KAPPA1, theory.QUOTED_KAPPA2, target)

    quoted = theory.growth_bound(time, start, printed(depth))
    norm_product = norms.prod("layer")

    levels = start[..., None] + (strength[..., -1] - start)[..., None] * LEVELS
    reached = _first_times(strength, levels, time)
    u0 = start[..., None]
    law = theory.GrowthLaw(depth, k1[..., None], k2[..., None], target)

    def shortest(form) -> np.ndarray:
        least = form(levels, u0, law)
        grows = (levels > u0) & (reached > 0) & np.isfinite(least)
        ratio = np.divide(least, reached, where=grows, out=np.full(least.shape, -np.inf))
        worst = ratio.max(axis=-1)
        return np.where(np.isfinite(worst), worst, np.nan)

    def per_time(values: np.ndarray) -> xr.DataArray:
        return cell.trajectory["loss"].copy(data=values)

    weakest = norms.values[..., 0, :].max(axis=-1) + constants.gap
    risen = RISEN * printed(depth).plateau

    def per_depth(form) -> xr.DataArray:
        values = [
            np.where(risen > weakest**n, form(risen, weakest**n, printed(n)), np.nan)
            for n in DEPTHS
        ]
        return per_run(cell, np.stack(values, axis=-1), depth=DEPTHS)

    slack = theory.residual_slack(residual, product, target, k1[..., None])
    written = theory.residual_slack(
        residual, product, target, constants.kappa1_as_written[..., None]
    )
    by_run = {
        "norm_gap_delta": constants.gap,
        "kappa1": k1,
        "kappa2": k2,
        "strength_over_bound": (strength / bound).max(axis=-1),
        "strength_over_quoted_bound": (strength / quoted).max(axis=-1),
        "norm_product_over_quoted_bound": (norm_product.values / quoted).max(axis=-1),
        "residual_slack": slack.min(axis=-1) / target,
        "written_residual_slack": written.min(axis=-1) / target,
        "least_time_over_measured": shortest(theory.fastest_time),
        "deep_least_time_over_measured": shortest(theory.fastest_time_deep),
        "written_time_over_integral": np.mean(
            theory.fastest_time_as_written(levels, u0, law)
            / theory.fastest_time_deep(levels, u0, law),
            axis=-1,
        ),
        "kappa1_as_written": constants.kappa1_as_written,
        "final_kappa2": product[..., -1] / strength[..., -1],
        "quoted_bound_over_norm_product": quoted[..., -1] / norm_product.values[..., -1],
    }
    values = {name: per_run(cell, array) for name, array in by_run.items()} | {
        "layer_strength": per_time(strength),
        "strength_bound": per_time(bound),
        "quoted_strength_bound": per_time(quoted),
        "norm_product": norm_product,
        "product_norm": per_time(product),
        "bound_time": per_depth(theory.fastest_time),
        "bound_sharpness": per_depth(theory.rise_sharpness),
    }
    if "singular_values" in cell.trajectory:
        values |= _rates(cell, norms, sigma - total.values)
    return values


def _rates(cell: CellResults, norms: xr.DataArray, residual: np.ndarray) -> Values:
    """Growth rates of layer norms between two recorded times, over their bound (eq. 15).

    The bound is the product of the spectral norms of all other layers times the norm of the
    residual. It is the larger of its values at both ends of the interval.
    """
    spectral = cell.trajectory["singular_values"].max("singular_mode").values
    others = spectral.prod(axis=-1, keepdims=True) / spectral
    time = cell.flow_time.values
    rate = np.diff(norms.values, axis=-2) / np.diff(time)[:, None]
    target = np.linalg.norm(cell.data.sigma_yx)

    def worst(order) -> xr.DataArray:
        size = matrix_norm(residual, order)[..., None]
        bound = size * others
        bound = np.maximum(bound[..., 1:, :], bound[..., :-1, :])
        ratio = np.where(size[..., 1:, :] <= SETTLED * target, 0.0, rate / bound)
        return per_run(cell, ratio.max(axis=(-2, -1)))

    return {
        "norm_rate_over_bound": worst("fro"),
        "norm_rate_over_spectral_bound": worst(2),
    }


def _first_times(curve: np.ndarray, levels: np.ndarray, time: np.ndarray) -> np.ndarray:
    """First time at which each run's curve reaches each of its levels, by interpolation.

    Args:
        curve: (init_scale, seed, time).
        levels: (init_scale, seed, level).
        time: (time).
    """
    rising = np.maximum.accumulate(curve, axis=-1)
    times = np.empty(levels.shape)
    for index in np.ndindex(curve.shape[:-1]):
        times[index] = np.interp(levels[index], rising[index], time)
    return times
