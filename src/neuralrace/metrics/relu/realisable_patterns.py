"""Gate patterns that a ReLU network can have on objects in contexts, and those that it has."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
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
    """Number of gate patterns that are possible, realisable, beyond lemma 4.1, and observed.

    A pattern is the set of samples on which a unit is open; the empty set is included. Patterns
    beyond the lemma depend on both the context and the object, and are open on more than one
    sample. Counts beyond the lemma are 0 if it holds. Observed patterns are those of units at the
    end, without units that are closed on all samples.

    A unit with activity h_n and outgoing weights v carries sum_n h_n v.y_n of the targets y_n. The
    share of a set of units is relative to the sum over all units. It may be negative or exceed 1
    before anything is learned.

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
        """Number of different patterns among the selected units of each run."""
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
