"""Trajectories of ReLU networks whose weights are hand-made or random."""

import numpy as np

from builders import for_all_runs, recorded_trajectory


def constant_networks(cell, *weights):
    """A trajectory of networks whose weights never change."""
    snapshots = cell.record.snapshots + 1
    return recorded_trajectory(
        cell,
        **{
            f"weight_{number}": np.repeat(for_all_runs(cell, weight)[:, :, None], snapshots, axis=2)
            for number, weight in enumerate(weights, start=1)
        },
    )


def random_networks(cell, *shapes):
    """Random weights, others in every run and at every snapshot."""
    rng = np.random.default_rng(0)
    lead = (len(cell.init_scales), cell.seeds, cell.record.snapshots + 1)
    return {
        f"weight_{number}": rng.normal(size=(*lead, *shape))
        for number, shape in enumerate(shapes, start=1)
    }
