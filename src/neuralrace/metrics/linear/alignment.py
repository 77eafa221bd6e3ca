"""How encoder and decoder vectors of a mode come to agree, and to leave other modes alone."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, crossing_time
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import diagonal, vectors

LEARNED = 0.99
"""Share of its target from which on a mode counts as learned."""


@Metric(
    observables="gram mode_strength",
    variables={
        "initial_cosine": ("mode", "cosine between encoder and decoder vector at the start"),
        "final_cosine": ("mode", "cosine between encoder and decoder vector at the end"),
        "alignment_over_growth": ("mode", "time to |cos| = 0.9 over time to half the target"),
        "growth_time": ("mode", "flow time to half the target, of either sign"),
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
    """Encoder vector W_1 v_k against decoder vector W_2^T u_k, of one mode and of different ones.

    A mode is aligned once |cos| >= 0.9, and has grown once its strength is half its target. Modes
    without a target are left out. A negative target asks for opposite vectors, so distances are
    those from the decoder vector times the sign of the target.
    """
    encoder, decoder, across = vectors(cell)
    encoder_norm, decoder_norm = ufuncs.sqrt(diagonal(encoder)), ufuncs.sqrt(diagonal(decoder))
    cosine = diagonal(across) / (encoder_norm * decoder_norm)
    target = cell.target
    wanted = target != 0
    signed = diagonal(across) * ufuncs.sign(target)
    squares = diagonal(encoder) + diagonal(decoder)
    apart = ufuncs.sqrt((squares - 2 * signed).clip(min=0) / (squares / 2)).where(wanted)
    lengths = ufuncs.minimum(encoder_norm, decoder_norm) / ufuncs.maximum(
        encoder_norm, decoder_norm
    )
    strength = cell.trajectory["mode_strength"] * ufuncs.sign(target)
    aligned_at = crossing_time(abs(cosine), xr.full_like(target, 0.9), cell.flow_time).where(wanted)
    grown_at = crossing_time(strength, abs(target) / 2, cell.flow_time).where(wanted)
    grown = (strength >= abs(target) / 2).argmax("time")
    norms = encoder_norm * decoder_norm.rename(mode="other_mode")
    foreign = across["mode"] != across["other_mode"]
    overlap = abs(across / norms).where(foreign & wanted & wanted.rename(mode="other_mode"))
    largest = overlap.max(("mode", "other_mode"))
    start, end = {"time": 0, "drop": True}, {"time": -1, "drop": True}
    return {
        "initial_cosine": cosine.where(wanted).isel(**start),
        "final_cosine": cosine.where(wanted).isel(**end),
        "alignment_over_growth": aligned_at / grown_at,
        "growth_time": grown_at,
        "largest_gap": apart.max("time"),
        "initial_gap": apart.isel(**start),
        "final_gap": apart.isel(**end),
        "initial_length_ratio": lengths.where(wanted).isel(**start),
        "grown_length_ratio": lengths.isel(time=grown)
        .where(grown_at.notnull())
        .drop_vars(["time", "flow_time"], errors="ignore"),
        "final_encoder_length": (encoder_norm / ufuncs.sqrt(abs(target))).where(wanted).isel(**end),
        "final_decoder_length": (decoder_norm / ufuncs.sqrt(abs(target))).where(wanted).isel(**end),
        "initial_overlap": largest.isel(**start),
        "largest_overlap": largest.max("time"),
        "final_overlap": largest.isel(**end),
        **_first_learned(overlap, strength / abs(target.where(wanted))),
    }


def _first_learned(overlap: xr.DataArray, share: xr.DataArray) -> Values:
    """Overlaps at the time at which the first mode has been learned.

    Args:
        overlap: |cos| between vectors of different modes, NaN elsewhere.
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
        small = np.argsort(shares[ensemble][at])[:2]  # NaN, where there is no target, comes last
        both = [*table[ensemble][at, first], *table[ensemble][at, :, first]]
        with_first[ensemble] = np.nanmax(both) if np.isfinite(both).any() else np.nan
        others = table[ensemble][at][np.ix_(small, small)]
        of_others[ensemble] = np.nanmax(others) if np.isfinite(others).any() else np.nan
    like = overlap.isel(time=0, mode=0, other_mode=0, drop=True).transpose(*runs)
    return {
        "overlap_with_learned": like.copy(data=with_first),
        "overlap_of_others": like.copy(data=of_others),
    }
