"""How much the gates of a ReLU network change while it learns."""

import numpy as np
from jaxtyping import Float

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.reln.gates import relu_gates, relu_network

PerUnit = Float[np.ndarray, "init_scale seed snapshot unit"]


def gate_flips(evidence: Evidence) -> Values:
    """Gates that are not as they were, and units that end up open on every sample.

    A gate is that of one unit on one sample. Units count alike or, where it says carried, by their
    power at the end: the length of their incoming times that of their outgoing weights.

    Raises:
        UserError: the network is no ReLU network without biases.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6 and appendix B, which take gates to be fixed.
    """
    relu_network(evidence.cell, "metrics: gate_flips")
    weights = evidence.weights()
    known = np.all(np.isfinite(weights[0]), axis=(-2, -1))[..., None]
    found: dict[str, list[np.ndarray]] = {}
    for layer, gates in enumerate(relu_gates(weights, evidence.data.x)):
        incoming, outgoing = weights[layer][:, :, -1], weights[layer + 1][:, :, -1]
        power = np.linalg.norm(incoming, axis=-1) * np.linalg.norm(outgoing, axis=-2)
        flips, always = np.not_equal(gates, gates[:, :, :1]).mean(axis=-1), gates.all(axis=-1)
        recent = np.full_like(flips, np.nan)
        recent[:, :, 1:] = np.not_equal(gates[:, :, 1:], gates[:, :, :-1]).mean(axis=-1)
        for name, per_unit, weight in (
            ("gate_flip_fraction", flips, np.ones_like(power)),
            ("carried_gate_flip_fraction", flips, power),
            ("recent_gate_flips", recent, np.ones_like(power)),
            ("always_open_units", always, np.ones_like(power)),
            ("always_open_share", always, power),
        ):
            found.setdefault(name, []).append(_mean(np.where(known, per_unit, np.nan), weight))
    like = evidence.trajectory["weight_1"].isel(unit_0=0, unit_1=0, drop=True)
    curves = {
        name: like.expand_dims(layer=np.arange(1, len(layers) + 1), axis=2).copy(
            data=np.stack(layers, axis=2)
        )
        for name, layers in found.items()
    }
    final = {name: curve.isel(snapshot=-1, drop=True) for name, curve in curves.items()}
    return {
        "gate_flip_fraction": described(
            curves["gate_flip_fraction"], "share of gates that differ from the start"
        ),
        "carried_gate_flip_fraction": described(
            curves["carried_gate_flip_fraction"],
            "share of gates that differ from the start, by the units' power at the end",
        ),
        "recent_gate_flips": described(
            curves["recent_gate_flips"], "share of gates that differ from the snapshot before"
        ),
        "final_gate_flips": described(
            final["gate_flip_fraction"], "share of gates that differ from the start at the end"
        ),
        "final_carried_gate_flips": described(
            final["carried_gate_flip_fraction"],
            "share of gates that differ from the start at the end, by the units' power",
        ),
        "always_open_units": described(
            final["always_open_units"], "share of units that are open on every sample at the end"
        ),
        "always_open_share": described(
            final["always_open_share"],
            "share of units that are open on every sample at the end, by power",
        ),
    }


def _mean(
    per_unit: PerUnit, weight: Float[np.ndarray, "init_scale seed unit"]
) -> Float[np.ndarray, "init_scale seed snapshot"]:
    """Weighted mean over units."""
    return (per_unit * weight[:, :, None]).sum(axis=-1) / weight.sum(axis=-1)[..., None]
