"""How encoder and decoder vectors of a mode come to agree, and to leave other modes alone."""

import xarray as xr
from xarray import ufuncs

from neuralrace.metrics.describe import Values, crossing_time, described
from neuralrace.records.evidence import Evidence
from neuralrace.records.gram import diagonal, vectors


def alignment(evidence: Evidence) -> Values:
    """Cosine between encoder vector W_1 v_k and decoder vector W_2^T u_k, and when it settles.

    A mode is aligned once |cos| >= 0.9, and has grown once its strength is half its target. Learned
    modes are those with a target.
    """
    encoder, decoder, across = vectors(evidence)
    encoder_norm, decoder_norm = ufuncs.sqrt(diagonal(encoder)), ufuncs.sqrt(diagonal(decoder))
    cosine = diagonal(across) / (encoder_norm * decoder_norm)
    target = evidence.target
    learned = target != 0
    strength = evidence.recorded("mode_strength", "mode_strength") * ufuncs.sign(target)
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
            (encoder_norm / ufuncs.sqrt(abs(target))).where(learned).isel(**end),
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
