"""Circulant structure of second moments of gated inputs on a ring."""

import numpy as np

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.values import Values
from neuralrace.networks.gated import Gated
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import gated_moments
from neuralrace.theory.ring import circulant_violation, joint_blocks

SHIFTED = 100
"""Number of samples that are shifted to every place of the ring, with both signs."""


@Metric(
    requires="gated mean_readout unit_pathways fresh_samples gates_of_any_sample one_output "
    "sees_all_inputs",
    variables={
        "input_circulance_law": (
            "",
            "distance of the second moment of inputs from circulant, by their law",
        ),
        "input_circulance_samples": ("", "distance of the second moment of inputs from circulant"),
        "block_circulance_same": (
            "",
            "mean distance from circulant of the second moment behind one gate",
        ),
        "block_circulance_other": (
            "",
            "mean distance from circulant of the second moment behind two gates",
        ),
        "joint_violation": (
            "",
            "part of the second moment of gated inputs that joint shifts change",
        ),
        "joint_eigenvalue_error": (
            "",
            "largest distance of its eigenvalues from those of its blocks by frequency, over "
            "the largest eigenvalue",
        ),
    },
)
def ring_structure(cell: CellResults) -> Values:
    """Distance of second moments from matrices that a Fourier transform (block-)diagonalises.

    The inputs are a ring. Distances are relative Frobenius norms to the nearest circulant matrix: 0
    for perfect symmetry. Moments of gated inputs are over samples with the exact symmetries of the
    distribution, so that deviations are due to the gates alone. These samples are part of the fixed
    sample, shifted to every place of the ring, with both signs. Joint shifts move pathways and
    inputs together.

    Each seed has its own fixed sample of the distribution. Values along joint shifts are NaN if the
    number of inputs is no multiple of the pathways. Moments behind two gates are NaN for a single
    pathway.

    Source: notes on localisation, first idea of section 5.
    """
    spec, seeds = cell.spec, cell.trajectory["seed"]
    network = cell.gated
    samples = [sampled(spec, int(seed)) for seed in seeds.values]
    rows = [_structure(data, network) for data in samples]
    law = circulant_violation(spec.dataset.mixture().covariances.mean(axis=0))
    values = {"input_circulance_law": np.full(len(seeds), law)}
    values |= {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {name: seeds.copy(data=each) for name, each in values.items()}


def _structure(data: Data, network: Gated) -> dict[str, float]:
    """Values of one fixed sample by name."""
    symmetric = at_every_place(data)
    gates = network.gates.gates(symmetric)
    _, second, _ = gated_moments(symmetric.x, symmetric.y[:, 0], gates)
    units, inputs = second.shape[:2]
    blocks = np.array([[circulant_violation(second[i, :, j]) for j in range(units)]
                       for i in range(units)])  # fmt: skip
    same, other = np.trace(blocks) / units, np.nan
    if units > 1:
        other = blocks[~np.eye(units, dtype=bool)].mean()
    violation, error = np.nan, np.nan
    if inputs % units == 0:
        joint = joint_blocks(second)
        violation = joint.violation
        values = np.linalg.eigvalsh(second.reshape(units * inputs, units * inputs))
        by_frequency = np.sort(np.linalg.eigvalsh(joint.blocks), axis=None)
        error = np.abs(by_frequency - values).max() / values[-1]
    return {
        "input_circulance_samples": circulant_violation(data.sigma_xx),
        "block_circulance_same": same,
        "block_circulance_other": other,
        "joint_violation": violation,
        "joint_eigenvalue_error": error,
    }


def at_every_place(data: Data) -> Data:
    """Evenly chosen samples x of the fixed sample; x and -x are shifted to every place."""
    inputs = data.x.shape[1]
    chosen = np.linspace(0, len(data.x), min(SHIFTED, len(data.x)), endpoint=False, dtype=int)
    moved = [sign * np.roll(data.x[chosen], shift, axis=1)
             for sign in (1, -1) for shift in range(inputs)]  # fmt: skip
    return Data(x=np.concatenate(moved), y=np.tile(data.y[chosen], (2 * inputs, 1)))
