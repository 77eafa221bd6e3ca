"""ReLU gates that samples of one label share (Basu et al., conjecture 4)."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.linearisation import gates


@Metric(
    requires="layered relu_units",
    observables="weights",
    variables={
        "initial_same_label_gate_difference": (
            "hidden_layer",
            "share of gates that differ within a label, initial",
        ),
        "initial_other_label_gate_difference": (
            "hidden_layer",
            "share of gates that differ between labels, initial",
        ),
        "initial_same_label_gate_identity": (
            "hidden_layer",
            "share of pairs of one label with all gates equal, initial",
        ),
        "final_same_label_gate_difference": (
            "hidden_layer",
            "share of gates that differ within a label, final",
        ),
        "final_other_label_gate_difference": (
            "hidden_layer",
            "share of gates that differ between labels, final",
        ),
        "final_same_label_gate_identity": (
            "hidden_layer",
            "share of pairs of one label with all gates equal, final",
        ),
    },
)
def gate_sharing(cell: CellResults) -> Values:
    """Share of gates in which two samples differ, at the start and the end of training.

    The share is a mean over all pairs of samples of one label, or of different labels. Samples that
    share all gates have a difference of 0 and an identity of 1. Values are NaN for diverged runs.

    Source: Basu et al., conjecture 4.
    """
    weights = cell.weights()
    biases = None
    if cell.spec.layered.bias:
        biases = [cell.trajectory[f"bias_{n}"].values for n in range(1, len(weights) + 1)]
    labels = cell.data.y.argmax(axis=-1)
    like = cell.trajectory["loss"].isel(time=0, drop=True)
    converged = cell.trajectory["diverged_at"] < 0
    like = like.expand_dims(hidden_layer=np.arange(1, len(weights)), axis=-1)
    values: Values = {}
    for at, when in ((0, "initial"), (-1, "final")):
        arrays = np.stack(
            [
                _differences(
                    [w[ensemble][at] for w in weights],
                    biases and [b[ensemble][at] for b in biases],
                    cell.data.x,
                    labels,
                )
                for ensemble in np.ndindex(like.shape[:2])
            ]
        ).reshape(*like.shape[:2], len(weights) - 1, 3)
        for column, name in enumerate(
            (
                "same_label_gate_difference",
                "other_label_gate_difference",
                "same_label_gate_identity",
            )
        ):
            values[f"{when}_{name}"] = like.copy(data=arrays[..., column]).where(converged)
    return values


def _differences(weights, biases, x, labels) -> np.ndarray:
    """Differences within and between labels, and identity within, (hidden_layer, 3)."""
    rows = []
    for opened in gates(weights, biases, x)[:-1]:
        groups = [opened[labels == label] for label in np.unique(labels)]
        sizes = np.array([len(group) for group in groups])
        equal = [_equal_pairs(group.sum(axis=0), len(group)) for group in groups]
        within, pairs = np.sum(equal), np.sum(sizes * (sizes - 1))
        everywhere = _equal_pairs(opened.sum(axis=0), len(opened))
        others = len(opened) * (len(opened) - 1) - pairs
        identical = sum(_identical_pairs(group) for group in groups)
        rows.append((1 - within / pairs, 1 - (everywhere - within) / others, identical / pairs))
    return np.array(rows)


def _equal_pairs(opened: np.ndarray, samples: int) -> float:
    """Number of ordered pairs of samples with the same gate, mean over units.

    Args:
        opened: number of samples on which each unit is open.
        samples: number of all samples.
    """
    return float(np.mean(opened * (opened - 1) + (samples - opened) * (samples - opened - 1)))


def _identical_pairs(group: np.ndarray) -> int:
    """Number of ordered pairs of samples with the same gates in all units."""
    # rows of bits are packed into bytes, which sort several times faster
    counts = np.unique(np.packbits(group > 0, axis=1), axis=0, return_counts=True)[1]
    return int(np.sum(counts * (counts - 1)))
