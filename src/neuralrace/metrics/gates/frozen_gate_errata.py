"""Equations for frozen gates as the notes have them and as they hold, against the simulation."""

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
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
    """Distance of equations from the weights and the loss at the end of training.

    Equations are evaluated at the end of training, from the weights that training starts from, as
    written and corrected. Equation 7 stands for its solution with its initial condition; 24, for
    every pathway alone, is for gates of which no two are open together; 30 is for the first and 31
    for the second of every two neighbouring pathways with one gate, open together with no other.
    Elsewhere they are NaN. Distances of weights are relative Frobenius norms, those of losses are
    over the initial loss; 30 and 31 share theirs.

    For gates of which no two are open together, maps of pathways at the end are also held against
    least squares on samples: those that open the pathway, the next one, and all. The drift of
    differences is how far the weights of neighbouring pathways, the first and second, third and
    fourth, ... have moved apart or together, over how far apart they were.

    Source: notes on localisation, sections 3.3 to 3.5.
    """
    spec, data, trajectory = cell.spec, cell.data, cell.trajectory
    gates = cell.gated.gates.gates(data)
    maps = cell.trajectory["pathway_maps"].isel(output=0)
    # maps hold the readout, 1/K
    weights = len(gates) * maps.values.astype(float)
    start, end = weights[:, :, 0], weights[:, :, -1]
    losses = trajectory["loss"].values / spec.training.loss.factor(len(data.x))
    frozen = FrozenGates.from_samples(data.x, data.y[:, 0], gates)
    time = cell.flow_time.values[[-1]]
    errors = np.full((2, 2, *start.shape[:2], len(EQUATIONS)), np.nan)
    fits = _least_squares(data, gates)
    misfit = [_distances(end / len(gates), fit) for fit in fits]
    for ensemble in np.ndindex(start.shape[:2]):
        for name, forms in _forms(frozen, gates, time, start[ensemble]).items():
            units = {"30": np.s_[::2], "31": np.s_[1::2]}.get(name, np.s_[:])
            for form, found in enumerate(forms):
                at = (form, *ensemble, EQUATIONS.index(name))
                errors[0, *at] = _distance(found[units], end[ensemble][units])
                difference = frozen.loss(found) - losses[ensemble][-1]
                errors[1, *at] = np.abs(difference) / losses[ensemble][0]
    runs = trajectory["diverged_at"]
    known = runs < 0
    by_equation = runs.expand_dims(equation=list(EQUATIONS), axis=2)
    by_fit = runs.expand_dims(fitted_on=list(FITTED_ON), axis=2)
    shares = {
        "negative_coefficients": unreachable_share(
            frozen.b.ravel(), _flat(frozen), start.reshape(*start.shape[:2], -1)
        ),
        "null_share": np.full(start.shape[:2], 1 - frozen.rank / frozen.b.size),
    }
    values = {
        f"{form}{what}_error": by_equation.copy(data=errors[row, column]).where(known)
        for row, what in enumerate(("", "_loss"))
        for column, form in enumerate(("written", "corrected"))
    }
    return values | {
        "least_squares_misfit": by_fit.copy(data=np.stack(misfit, axis=-1)).where(known),
        "difference_drift": runs.copy(data=_drift(start, end)).where(known),
        "negative_coefficients": runs.copy(data=shares["negative_coefficients"]).where(known),
        "null_share": runs.copy(data=shares["null_share"]).where(known),
    }


def _forms(
    frozen: FrozenGates, gates: Float[np.ndarray, "unit sample"], time: np.ndarray, start: Weights
) -> dict[str, tuple[Weights, Weights]]:
    """Weights at one time by equation, as written and corrected, of the equations that apply."""
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
    """Maps of the pathways by least squares on the samples of `FITTED_ON`; NaN for shared ones."""
    if not _exclusive(gates):
        return [np.full((len(gates), data.x.shape[1]), np.nan)] * len(FITTED_ON)
    own = np.array([np.linalg.lstsq(data.x[g > 0], data.y[g > 0, 0])[0] for g in gates])
    everywhere = np.linalg.lstsq(data.x, data.y[:, 0])[0]
    return [own, np.roll(own, -1, axis=0), np.tile(everywhere, (len(gates), 1))]


def _drift(
    start: Float[np.ndarray, "*runs unit input"], end: Float[np.ndarray, "*runs unit input"]
) -> Float[np.ndarray, "*runs"]:
    """|change of the differences of neighbours| over |differences|; NaN for an odd one out."""
    if start.shape[-2] % 2:
        return np.full(start.shape[:-2], np.nan)
    before, after = (w[..., ::2, :] - w[..., 1::2, :] for w in (start, end))
    return _distances(after, before)


def _distances(
    found: Float[np.ndarray, "*runs unit input"], reference: Float[np.ndarray, "*#runs unit input"]
) -> Float[np.ndarray, "*runs"]:
    """|found - reference| over |reference|, by run."""
    axes = (-2, -1)
    return np.asarray(
        np.linalg.norm(found - reference, axis=axes) / np.linalg.norm(reference, axis=axes)
    )


def _exclusive(gates: Float[np.ndarray, "unit sample"]) -> bool:
    """Whether no two gates are open on one sample."""
    return bool(np.count_nonzero(gates, axis=0).max() <= 1)


def _flat(frozen: FrozenGates) -> Float[np.ndarray, "feature feature"]:
    """Second moment of the gated inputs of all pathways side by side."""
    return frozen.a.reshape(frozen.b.size, frozen.b.size)


def _distance(found: Float[np.ndarray, "..."], reference: Float[np.ndarray, "..."]) -> np.floating:
    """|found - reference| over |reference|."""
    return np.linalg.norm(found - reference) / np.linalg.norm(reference)
