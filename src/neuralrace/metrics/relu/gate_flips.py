"""Changes of the gates of a ReLU network during training."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.receptive_fields.receptive_fields import (
    half_way_time,
    participation,
    unit_mean,
    weights_on_ring,
)
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.half_spaces import flip_fraction
from neuralrace.theory.reln.gates import relu_gates

PerUnit = Float[np.ndarray, "init_scale seed unit snapshot"]


@Metric(
    requires="layered relu",
    observables="weights",
    variables={
        "gate_flip_fraction": ("layer snapshot", "share of gates that differ from the start"),
        "carried_gate_flip_fraction": (
            "layer snapshot",
            "share of gates that differ from the start, by the units' power at the end",
        ),
        "recent_gate_flips": (
            "layer snapshot",
            "share of gates that differ from the snapshot before",
        ),
        "final_gate_flips": ("layer", "share of gates that differ from the start at the end"),
        "final_carried_gate_flips": (
            "layer",
            "share of gates that differ from the start at the end, by the units' power",
        ),
        "always_open_units": ("layer", "share of units that are open on every sample at the end"),
        "always_open_share": (
            "layer",
            "share of units that are open on every sample at the end, by power",
        ),
        "gate_flips_between": (
            "layer snapshot other_snapshot",
            "share of gates that differ between two snapshots",
        ),
        "never_changed": ("layer", "share of gates that are the same at all snapshots"),
        "flips_before_localisation": (
            "",
            "share of the flips of the first hidden layer that come before its localisation",
        ),
        "predicted_gate_flips": (
            "snapshot",
            "share of gates of the first hidden layer that differ from the start, by theory",
        ),
        "flip_prediction_error": (
            "",
            "distance of the share of gates that differ from the start from theory, mean over "
            "snapshots",
        ),
    },
)
def gate_flips(cell: CellResults) -> Values:
    """Share of gates that differ from an earlier time, and of units that are finally always open.

    A gate is the state of one unit on one sample. Shares are 0 for gates that are fixed. Units have
    equal weights. In `carried` shares and in `always_open_share` they are weighted by their final
    power: the length of their incoming times that of their outgoing weights.

    If the dataset knows the distribution of its classes, its inputs are a ring, and the flips of
    the first hidden layer are also compared with the localisation of `receptive_fields`. The share
    of flips before localisation may exceed 1, as gates can flip back. Theory is for Gaussian inputs
    with the covariances of the classes, and only for classes of mean zero.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6 and appendix B, which assume fixed gates;
    notes on localisation, sec. 2.1, which ask how fixed they are.
    """
    weights = cell.weights()
    samples = len(cell.data.x)
    finite = np.all(np.isfinite(weights[0]), axis=(-2, -1))
    finite_pairs = finite[..., None] & finite[..., None, :]
    counts, never_changed = _open_at_both(weights, cell.data.x)
    by_layer: dict[str, list[np.ndarray]] = {}
    for both, into, out in zip(counts, weights[:-1], weights[1:], strict=True):
        power = np.linalg.norm(into[:, :, -1], axis=-1) * np.linalg.norm(out[:, :, -1], axis=-2)
        opened = np.diagonal(both, axis1=-2, axis2=-1)
        differ = (opened[..., None] + opened[..., None, :] - 2 * both) / samples
        flips, always = differ[..., 0], (opened == samples).astype(float)
        recent = np.full_like(flips, np.nan)
        recent[..., 1:] = np.diagonal(differ, offset=1, axis1=-2, axis2=-1)
        for name, per_unit, weight in (
            ("gate_flip_fraction", flips, np.ones_like(power)),
            ("carried_gate_flip_fraction", flips, power),
            ("recent_gate_flips", recent, np.ones_like(power)),
            ("always_open_units", always, np.ones_like(power)),
            ("always_open_share", always, power),
        ):
            mean = np.where(finite, _mean(per_unit, weight), np.nan)
            by_layer.setdefault(name, []).append(mean)
        between = np.where(finite_pairs, differ.mean(axis=2), np.nan)
        by_layer.setdefault("gate_flips_between", []).append(between)
    like = cell.trajectory["weight_1"].isel(unit_0=0, unit_1=0, drop=True)
    like = like.expand_dims(layer=np.arange(1, len(weights)), axis=2)
    pairs = like.expand_dims(other_snapshot=like["snapshot"].values, axis=-1)
    curves = {
        name: (pairs if name == "gate_flips_between" else like).copy(data=np.stack(layers, axis=2))
        for name, layers in by_layer.items()
    }
    constant = like.isel(snapshot=0, drop=True).copy(data=never_changed)
    final = {name: curve.isel(snapshot=-1, drop=True) for name, curve in curves.items()}
    values = {
        "gate_flip_fraction": curves["gate_flip_fraction"],
        "carried_gate_flip_fraction": curves["carried_gate_flip_fraction"],
        "recent_gate_flips": curves["recent_gate_flips"],
        "final_gate_flips": final["gate_flip_fraction"],
        "final_carried_gate_flips": final["carried_gate_flip_fraction"],
        "always_open_units": final["always_open_units"],
        "always_open_share": final["always_open_share"],
        "gate_flips_between": curves["gate_flips_between"],
        "never_changed": constant.where(finite.all(axis=-1)[..., None]),
    }
    return values | _on_ring(cell, curves["gate_flip_fraction"].sel(layer=1, drop=True))


def _on_ring(cell: CellResults, flips: xr.DataArray) -> Values:
    """Flips of the first hidden layer before localisation and by theory, where they are known.

    Args:
        cell: has the dataset and the weights.
        flips: share of gates that differ from the start, (init_scale, seed, snapshot).
    """
    mixture = cell.spec.dataset.mixture()
    if mixture is None:
        return {}
    fields, like = weights_on_ring(cell)
    reached = xr.apply_ufunc(
        np.interp,
        half_way_time(like.copy(data=unit_mean(participation(fields)))),
        like["snapshot_flow_time"],
        flips,
        input_core_dims=[[], ["snapshot"], ["snapshot"]],
        vectorize=True,
    )
    values = {"flips_before_localisation": reached / flips.isel(snapshot=-1, drop=True)}
    if mixture.means.any():
        return values
    start = np.broadcast_to(fields[:, :, :1], fields.shape)
    by_class = [flip_fraction(covariance, start, fields) for covariance in mixture.covariances]
    predicted = flips.copy(data=np.mean(by_class, axis=(0, -1))).where(flips.notnull())
    error = abs(predicted - flips).isel(snapshot=slice(1, None))
    return values | {
        "predicted_gate_flips": predicted,
        "flip_prediction_error": error.mean("snapshot", skipna=False),
    }


def _open_at_both(
    weights: Sequence[Float[np.ndarray, "init_scale seed snapshot _out _in"]],
    x: Float[np.ndarray, "sample input"],
) -> tuple[
    list[Float[np.ndarray, "init_scale seed _unit snapshot snapshot"]],
    Float[np.ndarray, "init_scale seed layer"],
]:
    """Number of samples on which each unit is open at both of two snapshots.

    Returns:
        The numbers by hidden layer, and the share of gates that are the same at all snapshots.
    """
    runs, snapshots = weights[0].shape[:2], weights[0].shape[2]
    counts = [np.empty((*runs, w.shape[-2], snapshots, snapshots)) for w in weights[:-1]]
    never_changed = np.empty((*runs, len(counts)))
    for ensemble in np.ndindex(runs):
        # memory: activity on all samples is held for one snapshot at a time, gates for one run
        times = [relu_gates(at, x) for at in zip(*(w[ensemble] for w in weights), strict=True)]
        for layer, gates in enumerate(zip(*times, strict=True)):
            by_unit = np.stack(gates, axis=1)
            same = by_unit.all(axis=1) | ~by_unit.any(axis=1)
            never_changed[*ensemble, layer] = same.mean()
            for unit, opened in enumerate(by_unit):
                # single precision is faster, and sums of ones are exact up to 2^24 samples
                single = opened.astype(np.float32)
                counts[layer][*ensemble, unit] = single @ single.T
    return counts, never_changed


def _mean(
    per_unit: PerUnit, weight: Float[np.ndarray, "init_scale seed unit"]
) -> Float[np.ndarray, "init_scale seed snapshot"]:
    """Weighted mean over units."""
    return (per_unit * weight[..., None]).sum(axis=2) / weight.sum(axis=-1)[..., None]
