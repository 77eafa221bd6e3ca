"""Equations for frozen gates, as printed in the notes and as corrected, against simulation."""

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run, relative_distance
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import FrozenGates, exclusive_weights, redundant_weights
from neuralrace.theory.printed_equations import (
    unreachable_share,
    written_redundant,
    written_weights,
)

EQUATIONS = ("7", "24", "30", "31")
FITTED_ON = ("own gate", "next gate", "all")
Weights = Float[np.ndarray, "unit input"]


@Metric(
    requires="gated mean_readout unit_pathways squared_error one_output sees_all_inputs",
    observables="pathway_maps",
    variables={
        "written_error": ("equation", "distance of weights from an equation as written"),
        "corrected_error": ("equation", "distance of weights from an equation as corrected"),
        "written_loss_error": (
            "equation",
            "distance of loss over initial loss from an equation as written",
        ),
        "corrected_loss_error": (
            "equation",
            "distance of loss over initial loss from an equation as corrected",
        ),
        "least_squares_misfit": (
            "fitted_on",
            "distance of the maps of pathways from least squares on some samples",
        ),
        "difference_drift": (
            "",
            "change of the difference of neighbouring pathways over its start",
        ),
        "negative_coefficients": ("", "share of modes in which exp(C) 1 would have to be negative"),
        "null_share": ("", "share of directions of the weights in which gated inputs do not vary"),
    },
)
def frozen_gate_errata(cell: CellResults) -> Values:
    """Distance of the final weights and loss from equations, as printed and as corrected.

    Distances are 0 for perfect agreement. Those of weights are relative Frobenius norms; those of
    losses are over the initial loss. Equations are evaluated at the end of training, from the
    initial weights:

    - 7 with its initial condition, for any gates;
    - 24 for each pathway alone, if no two gates are open together;
    - 30 and 31 for the first and second of two neighbouring pathways with one gate, if no other
      gate is open together with it. Both have the same distance of losses.

    Equations that do not apply to the gates are NaN.

    If no two gates are open together, the final maps of pathways are also compared with least
    squares on three sets of samples: those of the pathway's gate, of the next gate, and all. The
    drift is the change of the difference of neighbouring pathways (first and second, third and
    fourth, ...) over their initial difference.

    Source: notes on localisation, sections 3.3 to 3.5.
    """
    spec, data, trajectory = cell.spec, cell.data, cell.trajectory
    gates = cell.gated.gates.gates(data)
    maps = trajectory["pathway_maps"].isel(output=0)
    # maps include the readout, a factor 1/K for K pathways
    weights = len(gates) * maps.values.astype(float)
    start, end = weights[:, :, 0], weights[:, :, -1]
    losses = trajectory["loss"].values / spec.training.loss.factor(len(data.x))
    frozen = FrozenGates.from_samples(data.x, data.y[:, 0], gates)
    time = cell.flow_time.values[[-1]]
    errors = np.full((2, 2, *start.shape[:2], len(EQUATIONS)), np.nan)
    fits = _least_squares(data, gates)
    misfit = [relative_distance(end / len(gates), fit) for fit in fits]
    for ensemble in np.ndindex(start.shape[:2]):
        for name, forms in _forms(frozen, gates, time, start[ensemble]).items():
            units = {"30": np.s_[::2], "31": np.s_[1::2]}.get(name, np.s_[:])
            for form, predicted in enumerate(forms):
                at = (form, *ensemble, EQUATIONS.index(name))
                errors[0, *at] = _distance(predicted[units], end[ensemble][units])
                difference = frozen.loss(predicted) - losses[ensemble][-1]
                errors[1, *at] = np.abs(difference) / losses[ensemble][0]
    unreachable = unreachable_share(
        frozen.b.ravel(), _flat(frozen), start.reshape(*start.shape[:2], -1)
    )
    null = np.full(start.shape[:2], 1 - frozen.rank / frozen.b.size)
    values = {
        f"{form}{quantity}_error": per_run(cell, errors[row, column], equation=EQUATIONS)
        for row, quantity in enumerate(("", "_loss"))
        for column, form in enumerate(("written", "corrected"))
    } | {
        "least_squares_misfit": per_run(cell, np.stack(misfit, axis=-1), fitted_on=FITTED_ON),
        "difference_drift": per_run(cell, _drift(start, end)),
        "negative_coefficients": per_run(cell, unreachable),
        "null_share": per_run(cell, null),
    }
    converged = trajectory["diverged_at"] < 0
    return {name: array.where(converged) for name, array in values.items()}


def _forms(
    frozen: FrozenGates, gates: Float[np.ndarray, "unit sample"], time: np.ndarray, start: Weights
) -> dict[str, tuple[Weights, Weights]]:
    """Weights at one time as printed and as corrected, by the equations that apply."""
    units, b = len(start), frozen.b
    corrected = frozen.weights(time, start)[0]
    written = written_weights(time, b.ravel(), _flat(frozen), units, start.ravel())
    forms = {"7": (written.reshape(start.shape), corrected)}
    own = [(time, b[unit], frozen.a[unit, :, unit], units) for unit in range(units)]
    if _exclusive(gates):
        alone = [(*each, weights) for each, weights in zip(own, start, strict=True)]
        written = np.concatenate([written_weights(*each) for each in alone])
        forms["24"] = written, np.concatenate([exclusive_weights(*each) for each in alone])
    if units % 2 == 0 and np.array_equal(gates[::2], gates[1::2]) and _exclusive(gates[::2]):
        pairs = [(*own[first], *start[first : first + 2]) for first in range(0, units, 2)]
        forms["30"] = forms["31"] = (
            np.concatenate([weights for pair in pairs for weights in written_redundant(*pair)]),
            np.concatenate([weights for pair in pairs for weights in redundant_weights(*pair)]),
        )
    return forms


def _least_squares(
    data: Data, gates: Float[np.ndarray, "unit sample"]
) -> list[Float[np.ndarray, "unit input"]]:
    """Maps of the pathways by least squares on the samples of `FITTED_ON`; NaN if gates overlap."""
    if not _exclusive(gates):
        return [np.full((len(gates), data.x.shape[1]), np.nan)] * len(FITTED_ON)
    own = np.array([np.linalg.lstsq(data.x[g > 0], data.y[g > 0, 0])[0] for g in gates])
    everywhere = np.linalg.lstsq(data.x, data.y[:, 0])[0]
    return [own, np.roll(own, -1, axis=0), np.tile(everywhere, (len(gates), 1))]


def _drift(
    start: Float[np.ndarray, "*runs unit input"], end: Float[np.ndarray, "*runs unit input"]
) -> Float[np.ndarray, "*runs"]:
    """Relative change of the differences of neighbouring pathways; NaN if their number is odd."""
    if start.shape[-2] % 2:
        return np.full(start.shape[:-2], np.nan)
    before, after = (w[..., ::2, :] - w[..., 1::2, :] for w in (start, end))
    return relative_distance(after, before)


def _exclusive(gates: Float[np.ndarray, "unit sample"]) -> bool:
    """Whether at most one gate is open on each sample."""
    return bool(np.count_nonzero(gates, axis=0).max() <= 1)


def _flat(frozen: FrozenGates) -> Float[np.ndarray, "feature feature"]:
    """Second moment of the gated inputs of all pathways side by side."""
    return frozen.a.reshape(frozen.b.size, frozen.b.size)


def _distance(weights: Weights, reference: Weights) -> np.floating:
    return np.linalg.norm(weights - reference) / np.linalg.norm(reference)
