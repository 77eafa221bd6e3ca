"""Which gates on objects in contexts a ReLU network can have, and which ones it has."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory import gate_patterns
from neuralrace.theory.reln.gates import relu_gates

KINDS = ("all", "realisable", "beyond the lemma")


@Metric(
    requires="layered relu one_hidden contexts two_input_groups few_samples",
    observables="weights",
    variables={
        "patterns": ("pattern_kind", "gate patterns over all samples"),
        "shown_patterns": ("", "different gate patterns of the units at the end"),
        "shown_beyond_lemma": (
            "",
            "different gate patterns of the units at the end, beyond lemma 4.1",
        ),
        "share_beyond_lemma": (
            "",
            "output on the targets that units beyond lemma 4.1 carry at the end",
        ),
    },
)
def realisable_patterns(cell: CellResults) -> Values:
    """Gate patterns of units, counted by what can be, what lemma 4.1 allows, and what is.

    A pattern says on which samples a unit is open; none of them is a pattern too. Beyond the lemma
    are realisable patterns that are no function of the context alone nor of the object alone, and
    open on more than a single sample. Units that are shut on all samples show no pattern. A unit
    with activity h_n and outgoing weights v carries sum_n h_n v.y_n of the targets; the share of a
    set of units is that of what all carry, and may be negative or exceed 1 before anything is
    learned.

    Source: Jarvis et al., "Make Haste Slowly", lemma 4.1 and appendix D.
    """
    data = cell.data
    encoder, readout = (weight[:, :, -1] for weight in cell.weights())
    (gates,) = relu_gates([encoder, readout], data.x)
    carried = np.maximum(encoder @ data.x.T, 0) * (readout.mT @ data.y.T)
    runs = cell.trajectory["diverged_at"]
    undefined = runs.copy(data=~np.isfinite(carried).all(axis=(-2, -1)))
    carried = carried.sum(axis=-1)
    objects = data.x[:, : data.input_groups[0]].argmax(axis=1)
    allowed = gate_patterns.consistent_with_lemma(
        gates.reshape(-1, len(data.x)), cell.contexts, objects
    ).reshape(carried.shape)
    opened = np.any(gates, axis=-1)
    beyond = opened & ~allowed

    def distinct(units: np.ndarray) -> xr.DataArray:
        """Different patterns among some units of each run."""
        counts = np.empty(runs.shape)
        for ensemble in np.ndindex(counts.shape):
            counts[ensemble] = len(np.unique(gates[ensemble][units[ensemble]], axis=0))
        return runs.copy(data=counts).where(~undefined)

    realisable = gate_patterns.realisable_patterns(data.x)
    outside = ~gate_patterns.consistent_with_lemma(realisable, cell.contexts, objects)
    counts = [2.0 ** len(data.x), len(realisable), outside.sum()]
    return {
        "patterns": xr.DataArray(counts, {"pattern_kind": list(KINDS)}, ("pattern_kind",)),
        "shown_patterns": distinct(opened),
        "shown_beyond_lemma": distinct(beyond),
        "share_beyond_lemma": runs.copy(
            data=(carried * beyond).sum(axis=-1) / carried.sum(axis=-1)
        ),
    }
