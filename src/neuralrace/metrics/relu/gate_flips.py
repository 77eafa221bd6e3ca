"""How much the gates of a ReLU network change while it learns."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.metrics.receptive_fields.receptive_fields import (
    half_way_time,
    participation,
    unit_mean,
    weights_on_ring,
)
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
    """Gates that are not as they were, and units that end up open on every sample.

    A gate is that of one unit on one sample. Units count alike or, where it says carried, by their
    power at the end: the length of their incoming times that of their outgoing weights.

    Inputs whose law is known are a ring; see `_on_ring` for what there is besides.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6 and appendix B, which take gates to be fixed;
    notes on localisation, sec. 2.1, which ask how far they are.
    """
    weights = cell.weights()
    samples = len(cell.data.x)
    known = np.all(np.isfinite(weights[0]), axis=(-2, -1))
    known_pairs = known[..., None] & known[..., None, :]
    counts, never_changed = _open_at_both(weights, cell.data.x)
    found: dict[str, list[np.ndarray]] = {}
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
            mean = np.where(known, _mean(per_unit, weight), np.nan)
            found.setdefault(name, []).append(mean)
        between = np.where(known_pairs, differ.mean(axis=2), np.nan)
        found.setdefault("gate_flips_between", []).append(between)
    like = cell.trajectory["weight_1"].isel(unit_0=0, unit_1=0, drop=True)
    like = like.expand_dims(layer=np.arange(1, len(weights)), axis=2)
    pairs = like.expand_dims(other_snapshot=like["snapshot"].values, axis=-1)
    curves = {
        name: (pairs if name == "gate_flips_between" else like).copy(data=np.stack(layers, axis=2))
        for name, layers in found.items()
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
        "never_changed": constant.where(known.all(axis=-1)[..., None]),
    }
    return values | _on_ring(cell, curves["gate_flip_fraction"].sel(layer=1, drop=True))


def _on_ring(cell: CellResults, flips: xr.DataArray) -> Values:
    """Flips in the first hidden layer, beside localisation and beside theory.

    Nothing unless the dataset knows the law of its classes. The share of flips by the time of
    localisation, as `receptive_fields` has it, may exceed 1 where gates flip back. Theory is that
    of Gaussian inputs with the covariances of the classes, for classes of mean zero.

    Args:
        cell: of a ReLU network.
        flips: share of gates that differ from the start, (init_scale, seed, snapshot).
    """
    law = cell.spec.dataset.mixture()
    if law is None:
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
    if law.means.any():
        return values
    start = np.broadcast_to(fields[:, :, :1], fields.shape)
    by_class = [flip_fraction(covariance, start, fields) for covariance in law.covariances]
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
    """For each hidden layer, on how many samples a unit is open at both of two snapshots.

    Returns:
        The counts of each layer, and the share of gates that are the same at all snapshots.
    """
    runs, snapshots = weights[0].shape[:2], weights[0].shape[2]
    counts = [np.empty((*runs, w.shape[-2], snapshots, snapshots)) for w in weights[:-1]]
    never_changed = np.empty((*runs, len(counts)))
    for ensemble in np.ndindex(runs):
        # activity on all samples is held for one snapshot at a time, gates for one run
        times = [relu_gates(at, x) for at in zip(*(w[ensemble] for w in weights), strict=True)]
        for layer, gates in enumerate(zip(*times, strict=True)):
            by_unit = np.stack(gates, axis=1)
            same = by_unit.all(axis=1) | ~by_unit.any(axis=1)
            never_changed[*ensemble, layer] = same.mean()
            for unit, opened in enumerate(by_unit):
                # sums of ones are exact in single precision, up to 2^24 samples
                single = opened.astype(np.float32)
                counts[layer][*ensemble, unit] = single @ single.T
    return counts, never_changed


def _mean(
    per_unit: PerUnit, weight: Float[np.ndarray, "init_scale seed unit"]
) -> Float[np.ndarray, "init_scale seed snapshot"]:
    """Weighted mean over units."""
    return (per_unit * weight[..., None]).sum(axis=2) / weight.sum(axis=-1)[..., None]
