"""Conserved quantities of adjacent layers, and their drift."""

from itertools import pairwise

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, matrix_norm
from neuralrace.results.cells import CellResults
from neuralrace.theory.balance import (
    conservation_residual_as_written,
    imbalances,
    spectral_gap_bound,
    spectral_gap_bound_as_written,
)


@Metric(
    requires="recorded_biases",
    observables="imbalance layer_norm",
    variables={
        "imbalance_drift": ("pair", "largest change of C over the final squared norms"),
        "neuron_drift": (
            "pair",
            "largest change of its diagonal less squared biases over the final squared norms",
        ),
        "offdiagonal_drift": (
            "pair",
            "largest change of its off-diagonal part over the final squared norms",
        ),
        "norm_difference_drift": (
            "pair",
            "largest change of the difference of squared norms over the final squared norms",
        ),
        "bias_corrected_drift": (
            "pair",
            "largest change of the difference of squared norms less the squared bias norm over "
            "the final squared norms",
        ),
        "initial_imbalance": ("pair", "|C|_F at the start"),
        "initial_imbalance_squared": ("pair", "|C|_F^2 at the start"),
        "spectral_gap_over_bound": ("pair", "largest gap of spectral norms over sqrt(|C|_2)"),
        "spectral_gap_over_written_bound": ("pair", "largest gap of spectral norms over |C|_2"),
        "norm_gap_over_written_bound": ("pair", "largest gap of Frobenius norms over |C|_2"),
        "written_conservation_residual": (
            "pair",
            "largest residual of eq. 8 with its printed sign over |C|_F",
        ),
        "initial_relative_imbalance": (
            "pair",
            "|C|_F at the start over |W_{l+1}^T W_{l+1}|_F + |W_l W_l^T|_F",
        ),
    },
)
def balance(cell: CellResults) -> Values:
    """Drift of the conserved quantities of adjacent layers, and bounds on their norm gaps.

    Drifts are 0 for perfect conservation, and relative to the final sum of squared layer norms. The
    imbalance is C = W_{l+1}^T W_{l+1} - W_l W_l^T. Linear and gated networks conserve all of C.
    ReLU networks conserve its diagonal less squared biases, so also the difference of squared
    norms. A bound holds if the gap over the bound is at most 1.

    Source: Basu et al., theorem 1 and equations 8, 11 and 12.
    """
    trace = cell.trajectory["imbalance_trace"]
    norms = cell.trajectory["layer_norm"] ** 2
    size = norms.isel(time=-1, drop=True).sum("layer")
    change = trace - trace.isel(time=0, drop=True)
    corrected = change
    if "bias_norm" in cell.trajectory:
        squares = cell.trajectory["bias_norm"] ** 2
        growth = squares - squares.isel(time=0, drop=True)
        corrected = change - growth.isel(layer=slice(None, -1)).rename(layer="pair").assign_coords(
            pair=change["pair"]
        )
    changes = {
        "imbalance": cell.trajectory["imbalance_drift"],
        "neuron": cell.trajectory["neuron_imbalance_drift"],
        "offdiagonal": cell.trajectory["offdiagonal_imbalance_drift"],
        "norm_difference": abs(change),
        "bias_corrected": abs(corrected),
    }
    values = {f"{name}_drift": value.max("time") / size for name, value in changes.items()}
    values["initial_imbalance"] = cell.trajectory["imbalance_norm"].isel(time=0, drop=True)
    values["initial_imbalance_squared"] = values["initial_imbalance"] ** 2
    if "weight_1" in cell.trajectory:
        like = trace.isel(time=0, drop=True)
        values |= _spectral(cell, like)
        values["initial_relative_imbalance"] = like.copy(data=_relative(cell))
    return values


def _relative(cell: CellResults) -> np.ndarray:
    """Initial |C| over the sum of the norms of its two terms, (init_scale, seed, pair)."""
    first = [w[:, :, 0] for w in cell.weights()]
    shares = [
        np.linalg.norm(c, axis=(-2, -1))
        / (
            np.linalg.norm(above.mT @ above, axis=(-2, -1))
            + np.linalg.norm(below @ below.mT, axis=(-2, -1))
        )
        for c, (below, above) in zip(imbalances(first), pairwise(first), strict=True)
    ]
    return np.stack(shares, axis=-1)


def _spectral(cell: CellResults, like: xr.DataArray) -> Values:
    """Equations 8, 11 and 12 at the snapshots; `like` has the axes (init_scale, seed, pair)."""
    weights = cell.weights()
    start = [c[:, :, :1] for c in imbalances(weights)]
    gap, frobenius_gap = (
        np.stack([abs(b - a) for a, b in pairwise(matrix_norm(w, order) for w in weights)], axis=-1)
        for order in (2, "fro")
    )
    corrected = np.stack([spectral_gap_bound(c) for c in start], axis=-1)
    written = np.stack([spectral_gap_bound_as_written(c) for c in start], axis=-1)
    residual = np.stack(
        [
            np.linalg.norm(conservation_residual_as_written(below, above, c0), axis=(-2, -1))
            / np.linalg.norm(c0, axis=(-2, -1))
            for below, above, c0 in zip(weights, weights[1:], start, strict=False)
        ],
        axis=-1,
    )
    curves = {
        "spectral_gap_over_bound": gap / corrected,
        "spectral_gap_over_written_bound": gap / written,
        "norm_gap_over_written_bound": frobenius_gap / written,
        "written_conservation_residual": residual,
    }
    return {name: like.copy(data=curve.max(axis=2)) for name, curve in curves.items()}
