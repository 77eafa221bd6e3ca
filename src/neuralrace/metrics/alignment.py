"""How encoder and decoder vectors of a mode come to agree, and to leave other modes alone."""

import numpy as np
import xarray as xr

from neuralrace.metrics.evidence import Evidence, Values, crossing_time, described


def vectors(evidence: Evidence) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Inner products in hidden space, by mode: encoder-encoder, decoder-decoder, encoder-decoder.

    Each has dimensions (..., mode, other_mode).
    """
    gram = evidence.recorded("gram", "gram")
    rank = len(evidence.modes)
    first, second = slice(0, rank), slice(rank, 2 * rank)

    def block(rows: slice, columns: slice) -> xr.DataArray:
        part = gram.isel(vector=rows, other_vector=columns)
        part = part.rename(vector="mode", other_vector="other_mode")
        return part.assign_coords(mode=evidence.modes, other_mode=evidence.modes)

    return block(first, first), block(second, second), block(first, second)


def diagonal(matrix: xr.DataArray) -> xr.DataArray:
    """Entries (k, k) of an array with dimensions mode and other_mode."""
    rank = matrix.sizes["mode"]
    index = xr.DataArray(np.arange(rank), dims="mode", coords={"mode": matrix["mode"]})
    return matrix.isel(mode=index, other_mode=index).drop_vars("other_mode")


def alignment(evidence: Evidence) -> Values:
    """Cosine between encoder vector W_1 v_k and decoder vector W_2^T u_k, and when it settles.

    A mode is aligned once |cos| >= 0.9, and has grown once its strength is half its target. Learned
    modes are those with a target.
    """
    encoder, decoder, across = vectors(evidence)
    encoder_norm, decoder_norm = np.sqrt(diagonal(encoder)), np.sqrt(diagonal(decoder))
    cosine = diagonal(across) / (encoder_norm * decoder_norm)
    target = evidence.target
    learned = target != 0
    strength = evidence.recorded("mode_strength", "mode_strength") * np.sign(target)
    aligned_at = crossing_time(abs(cosine), xr.full_like(target, 0.9), evidence.time).where(learned)
    grown_at = crossing_time(strength, abs(target) / 2, evidence.time).where(learned)
    norms = encoder_norm * decoder_norm.rename(mode="other_mode")
    foreign = across["mode"] != across["other_mode"]
    overlap = abs(across / norms).where(foreign & learned & learned.rename(mode="other_mode"))
    end = {"time": -1, "drop": True}
    return {
        "final_cosine": described(
            cosine.where(learned).isel(**end),
            "cosine between encoder and decoder vector at the end",
        ),
        "alignment_over_growth": described(
            aligned_at / grown_at, "time to |cos| = 0.9 over time to half the target"
        ),
        "final_encoder_length": described(
            (encoder_norm / np.sqrt(abs(target))).where(learned).isel(**end),
            "length of the encoder vector over sqrt(|s|) at the end",
        ),
        "initial_overlap": described(
            overlap.isel(time=0, drop=True).max(("mode", "other_mode")),
            "largest |cos| between encoder and decoder vectors of different modes at the start",
        ),
        "final_overlap": described(
            overlap.isel(**end).max(("mode", "other_mode")),
            "largest |cos| between encoder and decoder vectors of different modes at the end",
        ),
    }
