"""Translation symmetry on a ring of inputs: block-diagonal moments by Fourier transform.

Inputs whose statistics are equal at all sites have a circulant second moment. The second moments of
gated inputs are not circulant in general, because a gate depends on particular sites. Let the gates
of the units be shifts of each other, g_{k+1}(x shifted) = g_k(x). Then the statistics are invariant
if units and sites shift together. For sites relative to their unit, a_kl depends on k and l only
through l - k. So the Fourier transform over units splits <g_k g_l x x^T> into one block per
frequency.

The K units are L/K sites apart, where K divides the number L of inputs.

Source: notes on localisation, first idea of section 5; derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

from neuralrace.extensions.representation import short_repr


@dataclass(frozen=True)
class RingBlocks:
    """Second moment of gated inputs by frequency of the joint shift.

    Attributes:
        blocks: Hermitian; frequency q/K cycles per unit, sites relative to the unit.
        violation: norm of the part outside the blocks, relative to the norm of the moment. It is
            within rounding of 0 if the moment is invariant under joint shifts.
    """

    blocks: Complex[np.ndarray, "frequency input input"]
    violation: float

    __repr__ = short_repr


def circulant_violation(matrix: Float[np.ndarray, "input input"]) -> float:
    """Distance to the nearest circulant matrix relative to the norm; 0 for the matrix 0.

    Args:
        matrix: any square matrix.

    Source: quantifies an assumption of the notes on localisation, first idea of section 5.
    """
    site = np.arange(len(matrix))[:, None]
    by_shift = matrix[site, (site + site.T) % len(matrix)]
    return _distance(by_shift, by_shift.mean(axis=0))


def joint_blocks(second: Float[np.ndarray, "unit input unit input"]) -> RingBlocks:
    """Block-diagonalise the second moment of gated inputs by the joint shift.

    Together the blocks have the eigenvalues of the average of the moment over all joint shifts. If
    the violation is 0, these are the eigenvalues of the moment itself.

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
    # axes: unit, distance to the other unit, relative site of either unit
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
