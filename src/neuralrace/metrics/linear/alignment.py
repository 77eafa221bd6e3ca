"""Alignment of the encoder and decoder vectors of modes."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, per_run
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import diagonal, vectors

LEARNED = 0.99
"""Share of its target at which a mode counts as learned."""


@Metric(
    observables="gram mode_strength",
    variables={
        "initial_cosine": ("mode", "cosine between encoder and decoder vector at the start"),
        "final_cosine": ("mode", "cosine between encoder and decoder vector at the end"),
        "alignment_over_growth": ("mode", "time to |cos| = 0.9 over time to half the target"),
        "growth_time": ("mode", "flow time to half the target, of either sign", "tau"),
        "largest_gap": (
            "mode",
            "largest distance of encoder from decoder vector over their length",
        ),
        "initial_gap": (
            "mode",
            "distance of encoder from decoder vector over their length at the start",
        ),
        "final_gap": (
            "mode",
            "distance of encoder from decoder vector over their length at the end",
        ),
        "initial_length_ratio": (
            "mode",
            "shorter over longer of encoder and decoder vector at the start",
        ),
        "grown_length_ratio": (
            "mode",
            "shorter over longer of encoder and decoder vector at half the target",
        ),
        "final_encoder_length": ("mode", "length of the encoder vector over sqrt(|s|) at the end"),
        "final_decoder_length": ("mode", "length of the decoder vector over sqrt(|s|) at the end"),
        "initial_overlap": (
            "",
            "largest |cos| between encoder and decoder vectors of different modes at the start",
        ),
        "largest_overlap": (
            "",
            "largest |cos| between encoder and decoder vectors of different modes at any time",
        ),
        "final_overlap": (
            "",
            "largest |cos| between encoder and decoder vectors of different modes at the end",
        ),
        "overlap_with_learned": (
            "",
            "largest |cos| between vectors of the first mode that is learned and of others, then",
        ),
        "overlap_of_others": (
            "",
            "largest |cos| between vectors of the two modes that have grown least when the "
            "first is learned",
        ),
    },
)
def alignment(cell: CellResults) -> Values:
    """Angles and distances between the encoder vectors W_1 v_k and the decoder vectors W_2^T u_k.

    Vectors of one mode have |cos| = 1 and distance 0 if they are perfectly aligned. Vectors of
    different modes have an overlap of 0 if they do not interfere. A mode is aligned once
    |cos| >= 0.9, and has grown once its strength is half its target. Modes without a target are
    NaN. A negative target needs opposite vectors: distances are from the decoder vector times the
    sign of the target.
    """
    encoder, decoder, across = vectors(cell)
    encoder_norm, decoder_norm = ufuncs.sqrt(diagonal(encoder)), ufuncs.sqrt(diagonal(decoder))
    cosine = diagonal(across) / (encoder_norm * decoder_norm)
    target = cell.target
    present = target != 0
    signed = diagonal(across) * ufuncs.sign(target)
    squares = diagonal(encoder) + diagonal(decoder)
    apart = ufuncs.sqrt((squares - 2 * signed).clip(min=0) / (squares / 2)).where(present)
    lengths = ufuncs.minimum(encoder_norm, decoder_norm) / ufuncs.maximum(
        encoder_norm, decoder_norm
    )
    strength = cell.trajectory["mode_strength"] * ufuncs.sign(target)
    level = xr.full_like(target, 0.9)
    aligned_at = crossing_time(abs(cosine), level, cell.flow_time).where(present)
    grown_at = crossing_time(strength, abs(target) / 2, cell.flow_time).where(present)
    grown = (strength >= abs(target) / 2).argmax("time")
    norms = encoder_norm * decoder_norm.rename(mode="other_mode")
    foreign = across["mode"] != across["other_mode"]
    overlap = abs(across / norms).where(foreign & present & present.rename(mode="other_mode"))
    largest = overlap.max(("mode", "other_mode"))
    balanced = ufuncs.sqrt(abs(target))  # length of both vectors at convergence, if equal
    start, end = {"time": 0, "drop": True}, {"time": -1, "drop": True}
    return {
        "initial_cosine": cosine.where(present).isel(**start),
        "final_cosine": cosine.where(present).isel(**end),
        "alignment_over_growth": aligned_at / grown_at,
        "growth_time": grown_at,
        "largest_gap": apart.max("time"),
        "initial_gap": apart.isel(**start),
        "final_gap": apart.isel(**end),
        "initial_length_ratio": lengths.where(present).isel(**start),
        "grown_length_ratio": lengths.isel(time=grown)
        .where(grown_at.notnull())
        .drop_vars(["time", "flow_time"], errors="ignore"),
        "final_encoder_length": (encoder_norm / balanced).where(present).isel(**end),
        "final_decoder_length": (decoder_norm / balanced).where(present).isel(**end),
        "initial_overlap": largest.isel(**start),
        "largest_overlap": largest.max("time"),
        "final_overlap": largest.isel(**end),
        **_first_learned(cell, overlap, strength / abs(target.where(present))),
    }


def _first_learned(cell: CellResults, overlap: xr.DataArray, share: xr.DataArray) -> Values:
    """Overlaps at the time at which the first mode is learned.

    Args:
        cell: has the runs.
        overlap: |cos| between vectors of different modes, NaN on the diagonal.
        share: strength of each mode over its target, NaN without a target.
    """
    runs = ("init_scale", "seed")
    table = overlap.transpose(*runs, "time", "mode", "other_mode").values
    shares = share.transpose(*runs, "time", "mode").values
    with_first, of_others = (np.full(table.shape[:2], np.nan) for _ in range(2))
    for ensemble in np.ndindex(table.shape[:2]):
        learned = shares[ensemble] >= LEARNED
        if not learned.any():
            continue
        at = int(learned.any(axis=1).argmax())
        first = int(np.nanargmax(np.where(learned[at], shares[ensemble][at], np.nan)))
        small = np.argsort(shares[ensemble][at])[:2]  # argsort puts modes without a target last
        both = [*table[ensemble][at, first], *table[ensemble][at, :, first]]
        with_first[ensemble] = np.nanmax(both) if np.isfinite(both).any() else np.nan
        others = table[ensemble][at][np.ix_(small, small)]
        of_others[ensemble] = np.nanmax(others) if np.isfinite(others).any() else np.nan
    return {
        "overlap_with_learned": per_run(cell, with_first),
        "overlap_of_others": per_run(cell, of_others),
    }
