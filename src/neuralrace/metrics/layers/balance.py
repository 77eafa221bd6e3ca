"""What training conserves, and by how much it misses."""

from itertools import pairwise

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, matrix_norm
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
    """Drift of the conserved quantities of adjacent layers (Basu et al., theorem 1).

    Linear and gated nets conserve the whole matrix C; ReLU nets its diagonal, less squared biases,
    and hence the difference of squared norms. Drifts are relative to the final sum of squared
    norms.
    """
    trace = cell.trajectory["imbalance_trace"]
    norms = cell.trajectory["layer_norm"] ** 2
    size = norms.isel(time=-1, drop=True).sum("layer")
    change = trace - trace.isel(time=0, drop=True)
    corrected = change
    if "bias_norm" in cell.trajectory:
        squares = cell.trajectory["bias_norm"] ** 2
        gained = squares - squares.isel(time=0, drop=True)
        corrected = change - gained.isel(layer=slice(None, -1)).rename(layer="pair").assign_coords(
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
    values["initial_imbalance_squared"] = (
        cell.trajectory["imbalance_norm"].isel(time=0, drop=True) ** 2
    )
    if "weight_1" in cell.trajectory:
        values |= _spectral(cell, trace)
        values["initial_relative_imbalance"] = _relative(cell, trace)
    return values


def _relative(cell: CellResults, like: xr.DataArray) -> xr.DataArray:
    """|C| at the start over the norms of the two matrices that it is the difference of."""
    first = [w[:, :, 0] for w in cell.weights()]
    shares = [
        np.linalg.norm(c, axis=(-2, -1))
        / (
            np.linalg.norm(above.mT @ above, axis=(-2, -1))
            + np.linalg.norm(below @ below.mT, axis=(-2, -1))
        )
        for c, (below, above) in zip(imbalances(first), pairwise(first), strict=True)
    ]
    return like.isel(time=0, drop=True).copy(data=np.stack(shares, axis=-1))


def _spectral(cell: CellResults, like: xr.DataArray) -> Values:
    """Equations 8, 11 and 12, from the weights at the snapshots."""
    weights = cell.weights()
    start = [c[:, :, :1] for c in imbalances(weights)]
    gap, frobenius_gap = (
        np.stack([abs(b - a) for a, b in pairwise(matrix_norm(w, order) for w in weights)], axis=-1)
        for order in (2, "fro")
    )
    corrected = np.stack([spectral_gap_bound(c) for c in start], axis=-1)
    written = np.stack([spectral_gap_bound_as_written(c) for c in start], axis=-1)
    left = np.stack(
        [
            np.linalg.norm(conservation_residual_as_written(below, above, c0), axis=(-2, -1))
            / np.linalg.norm(c0, axis=(-2, -1))
            for below, above, c0 in zip(weights, weights[1:], start, strict=False)
        ],
        axis=-1,
    )

    def worst(values: np.ndarray) -> xr.DataArray:
        template = like.isel(time=0, drop=True)
        return template.copy(data=values.max(axis=2))

    return {
        "spectral_gap_over_bound": worst(gap / corrected),
        "spectral_gap_over_written_bound": worst(gap / written),
        "norm_gap_over_written_bound": worst(frobenius_gap / written),
        "written_conservation_residual": worst(left),
    }
