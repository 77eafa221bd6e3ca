"""Translation symmetry on a ring of inputs: what the Fourier transform diagonalises.

Inputs whose statistics are the same at all sites have a circulant second moment. The second moments
of gated inputs do not, in general: a gate singles out sites. If the gates of the units are
shifts of each other, g_{k+1}(x shifted) = g_k(x), the statistics stay the same when units and sites
move together. In sites relative to their unit, a_kl then depends on k and l through l - k alone,
and the Fourier transform over units splits <g_k g_l x x^T> into one block per frequency.

The K units lie L/K sites apart, K a divisor of the L inputs.

Source: notes on localisation, first idea of section 5; derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float


@dataclass(frozen=True)
class RingBlocks:
    """Second moment of gated inputs by frequency of the joint shift.

    Attributes:
        blocks: Hermitian; frequency q/K cycles per unit, sites relative to the unit.
        violation: norm of what lies outside of the blocks, relative to the norm of the moment;
            rounding if the moment is the same after joint shifts.
    """

    blocks: Complex[np.ndarray, "frequency input input"]
    violation: float


def circulant_violation(matrix: Float[np.ndarray, "input input"]) -> float:
    """Distance to the nearest circulant matrix relative to the norm; 0 for the matrix 0.

    Args:
        matrix: any square one.

    Source: measures what the notes on localisation, first idea of section 5, hope for.
    """
    site = np.arange(len(matrix))[:, None]
    by_shift = matrix[site, (site + site.T) % len(matrix)]
    return _distance(by_shift, by_shift.mean(axis=0))


def joint_blocks(second: Float[np.ndarray, "unit input unit input"]) -> RingBlocks:
    """Block-diagonalise the second moment of gated inputs by the joint shift.

    Together the blocks have the eigenvalues of the moment, if its violation is 0, and otherwise of
    its average over all joint shifts.

    Args:
        second: <g_k g_l x x^T>.

    Raises:
        ValueError: if units do not divide inputs.

    Source: derived here.
    """
    units, inputs = second.shape[:2]
    if inputs % units:
        raise ValueError(f"{units} units cannot lie evenly on a ring of {inputs} inputs")
    unit = np.arange(units)
    site = (unit[:, None] * (inputs // units) + np.arange(inputs)) % inputs
    other = (unit[:, None] + unit) % units
    # unit, distance of the other unit, relative site of each
    relative = second[
        unit[:, None, None, None],
        site[:, None, :, None],
        other[:, :, None, None],
        site[other][:, :, None, :],
    ]
    average = relative.mean(axis=0)
    return RingBlocks(units * np.fft.ifft(average, axis=0), _distance(relative, average))


def _distance(matrix: Float[np.ndarray, "..."], nearest: Float[np.ndarray, "..."]) -> float:
    norm = np.linalg.norm(matrix)
    return float(np.linalg.norm(matrix - nearest) / norm) if norm else 0.0
