"""Which gates on objects in contexts a ReLU network can have, and which ones it has."""

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.reln.gates import relu_gates, relu_network
from neuralrace.theory import gate_patterns

# More samples than these have too many patterns to try one by one.
MOST_SAMPLES = 12
KINDS = ("all", "realisable", "beyond the lemma")


def realisable_patterns(evidence: Evidence) -> Values:
    """Gate patterns of units, counted by what can be, what lemma 4.1 allows, and what is.

    A pattern says on which samples a unit is open; none of them is a pattern too. Beyond the lemma
    are realisable patterns that are no function of the context alone nor of the object alone, and
    open on more than a single sample. Units that are shut on all samples show no pattern. A unit
    with activity h_n and outgoing weights v carries sum_n h_n v.y_n of the targets; the share of a
    set of units is that of what all carry, and may be negative or exceed 1 before anything is
    learned.

    Raises:
        UserError: the dataset has no contexts or too many samples, or the network is no ReLU
            network with one hidden layer and without biases.

    Source: Jarvis et al., "Make Haste Slowly", lemma 4.1 and appendix D.
    """
    cell, data = evidence.cell, evidence.data
    if data.contexts is None or not data.input_groups:
        raise UserError(
            f"dataset.name: {cell.dataset.name!r}: metrics: realisable_patterns is for datasets "
            "with contexts, such as contextual"
        )
    if len(data.x) > MOST_SAMPLES:
        raise UserError(
            f"dataset: has {len(data.x)} samples: metrics: realisable_patterns is for at most "
            f"{MOST_SAMPLES}; use fewer objects or contexts"
        )
    relu_network(cell, "metrics: realisable_patterns", hidden=1)
    encoder, readout = (weight[:, :, -1] for weight in evidence.weights())
    (gates,) = relu_gates([encoder, readout], data.x)
    carried = np.maximum(encoder @ data.x.T, 0) * (readout.mT @ data.y.T)
    runs = evidence.trajectory["diverged_at"]
    undefined = runs.copy(data=~np.isfinite(carried).all(axis=(-2, -1)))
    carried = carried.sum(axis=-1)
    objects = data.x[:, : data.input_groups[0]].argmax(axis=1)
    allowed = gate_patterns.consistent_with_lemma(
        gates.reshape(-1, len(data.x)), data.contexts, objects
    ).reshape(carried.shape)
    opened = np.any(gates, axis=-1)
    beyond = opened & ~allowed

    def distinct(units: np.ndarray) -> xr.DataArray:
        """Different patterns among some units of each run."""
        counts = np.empty(runs.shape)
        for run in np.ndindex(counts.shape):
            counts[run] = len(np.unique(gates[run][units[run]], axis=0))
        return runs.copy(data=counts).where(~undefined)

    realisable = gate_patterns.realisable_patterns(data.x)
    outside = ~gate_patterns.consistent_with_lemma(realisable, data.contexts, objects)
    counts = [2.0 ** len(data.x), len(realisable), outside.sum()]
    return {
        "patterns": described(
            xr.DataArray(counts, {"pattern_kind": list(KINDS)}, ("pattern_kind",)),
            "gate patterns over all samples",
        ),
        "shown_patterns": described(
            distinct(opened), "different gate patterns of the units at the end"
        ),
        "shown_beyond_lemma": described(
            distinct(beyond), "different gate patterns of the units at the end, beyond lemma 4.1"
        ),
        "share_beyond_lemma": described(
            runs.copy(data=(carried * beyond).sum(axis=-1) / carried.sum(axis=-1)),
            "output on the targets that units beyond lemma 4.1 carry at the end",
        ),
    }
