"""Translation symmetry on a ring of inputs: block-diagonal moments by Fourier transform.

Inputs whose statistics are equal at all sites have a circulant second moment. The second moments of
gated inputs are not circulant in general, because a gate depends on particular sites. Let the gates
of the units be shifts of each other, g_{k+1}(x shifted) = g_k(x). Then the statistics are invariant
if units and sites shift together. For sites relative to their unit, a_kl depends on k and l only
through l - k. So the Fourier transform over units splits <g_k g_l x x^T> into one block per
frequency.

The K units are L/K sites apart, where K divides the number L of inputs. The basis does not depend
on the gates, so it remains the same while gates change, as long as they are shifts of each other.

Source: notes on localisation, first idea of section 5; derived here.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Int

from neuralrace.extensions.representation import short_repr
from neuralrace.theory.frozen_gates import gated_moments

Weights = Float[np.ndarray, "*runs unit input"]


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
    unit, site = np.arange(units), _sites(units, inputs)
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


def shared_normals(weights: Weights) -> Weights:
    """The mean receptive field over units, for sites relative to the unit, moved to each unit.

    As normals of half-spaces they give gates that follow the weights and shift with the inputs,
    those of the ReLU network if receptive fields are shifts of each other.

    Args:
        weights: receptive fields of all units.

    Raises:
        ValueError: if units do not divide inputs.

    Source: derived here.
    """
    site = _sites(*weights.shape[-2:])
    mean = weights[..., np.arange(len(site))[:, None], site].mean(axis=-2)
    return mean[..., np.argsort(site, axis=-1)]


def shifted_descent(
    refreshes: int,
    every: int,
    learning_rate: float,
    start: Float[np.ndarray, "unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "unit input"]:
    """Weights after gradient descent with gates that change as shifts of each other, by frequency.

    The network is that of `refreshed_gates` with half-spaces of `shared_normals` as gates. In the
    Fourier basis of joint shifts, A is block-diagonal at all times and b has frequency 0 alone:
    K dw_q/dt = b_q - B_q w_q/K are L equations for each frequency q. Between refreshes, B_q is
    constant and the descent is a power of 1 - learning_rate B_q/K^2.

    Args:
        refreshes: number of refreshes of the gates, the first at the start.
        every: steps between refreshes.
        learning_rate: gradient-flow time per step.
        start: initial weights.
        x: inputs, a sample per row, that the network learns at the places of all units.
        y: targets.

    Raises:
        ValueError: if units do not divide inputs.

    Source: first idea of section 5 of the notes on localisation; derived here.
    """
    units, weights = len(start), start
    unit, site = np.arange(units)[:, None], _sites(*start.shape)
    for _ in range(refreshes):
        b, second, _ = gated_moments(x, y, (shared_normals(weights) @ x.T > 0).astype(float))
        values, vectors = np.linalg.eigh(joint_blocks(second).blocks)
        amplitudes = np.fft.fft(weights[unit, site], axis=0)
        drive = np.zeros_like(amplitudes)
        drive[0] = b[unit, site].sum(axis=0)
        kept = 1 - learning_rate * values / units**2
        grown = learning_rate / units * (kept[..., None] ** np.arange(every)).sum(axis=-1)
        start_modes, drive_modes = (vectors.conj().mT @ w[..., None] for w in (amplitudes, drive))
        modes = kept[..., None] ** every * start_modes + grown[..., None] * drive_modes
        relative = np.fft.ifft((vectors @ modes)[..., 0], axis=0).real
        weights = relative[unit, np.argsort(site, axis=-1)]
    return weights


def _sites(units: int, inputs: int) -> Int[np.ndarray, "unit input"]:
    """The site at each distance from each unit."""
    if inputs % units:
        raise ValueError(f"{units} units cannot lie evenly on a ring of {inputs} inputs")
    return (np.arange(units)[:, None] * (inputs // units) + np.arange(inputs)) % inputs


def _distance(matrix: Float[np.ndarray, "..."], nearest: Float[np.ndarray, "..."]) -> float:
    norm = np.linalg.norm(matrix)
    return float(np.linalg.norm(matrix - nearest) / norm) if norm else 0.0
