"""Whether samples of one label come to share their ReLU gates (Basu et al., conjecture 4)."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
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
    """Share of gates in which two samples differ, over pairs of samples, at the start and the end.

    Pairs are all pairs of different samples of one label, or of two labels. Each is (init_scale,
    seed, hidden_layer); NaN for a run that diverged.
    """
    weights = cell.weights()
    biases = None
    if cell.spec.layered.bias:
        biases = [cell.trajectory[f"bias_{n}"].values for n in range(1, len(weights) + 1)]
    labels = cell.data.y.argmax(axis=-1)
    like = cell.trajectory["loss"].isel(time=0, drop=True)
    learned = cell.trajectory["diverged_at"] < 0
    like = like.expand_dims(hidden_layer=np.arange(1, len(weights)), axis=-1)
    values: Values = {}
    for at, when in ((0, "initial"), (-1, "final")):
        found = np.stack(
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
            values[f"{when}_{name}"] = like.copy(data=found[..., column]).where(learned)
    return values


def _differences(weights, biases, x, labels) -> np.ndarray:
    """For each hidden layer: difference within and between labels, and identity within."""
    rows = []
    for opened in gates(weights, biases, x)[:-1]:
        groups = [opened[labels == label] for label in np.unique(labels)]
        sizes = np.array([len(group) for group in groups])
        equal = [_equal_pairs(group.sum(axis=0), len(group)) for group in groups]
        within, pairs = np.sum(equal), np.sum(sizes * (sizes - 1))
        everywhere = _equal_pairs(opened.sum(axis=0), len(opened))
        others = len(opened) * (len(opened) - 1) - pairs
        alike = sum(_identical_pairs(group) for group in groups)
        rows.append((1 - within / pairs, 1 - (everywhere - within) / others, alike / pairs))
    return np.array(rows)


def _equal_pairs(opened: np.ndarray, samples: int) -> float:
    """Ordered pairs of samples with the same gate, averaged over units.

    Args:
        opened: on how many samples each unit is open.
        samples: how many there are.
    """
    return float(np.mean(opened * (opened - 1) + (samples - opened) * (samples - opened - 1)))


def _identical_pairs(group: np.ndarray) -> int:
    """Ordered pairs of samples with the same gates in all units."""
    counts = np.unique(group, axis=0, return_counts=True)[1]
    return int(np.sum(counts * (counts - 1)))
