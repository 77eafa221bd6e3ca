"""Linear networks along known paths of their weights, with observables in plain NumPy."""

from functools import partial
from itertools import pairwise

import numpy as np

from builders import cell_with_requirements, flow_time, recorded_trajectory
from neuralrace.theory.gradient_flow import linear_flow

TWO_MODES = {
    "dataset": {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 4, "outputs": 2},
    "network": {"name": "layered", "hidden": [5]},
    "init": {"name": "normal"},
    "init_scales": [0.2, 0.5],
    "seeds": 2,
    "training": {"learning_rate": 0.01, "steps": 200},
    "record": {"every": 1, "snapshots": 10},
}
linear_cell = partial(cell_with_requirements, base=TWO_MODES)


def initial_weights(cell):
    """Initial weights, (init_scale, seed, out, in)."""
    data = cell.dataset.load()
    widths = (data.x.shape[1], *cell.network.hidden, data.y.shape[1])
    draws = [cell.init.draw(seed, widths, data.modes) for seed in range(cell.seeds)]
    scales = np.array(cell.init_scales)[:, None, None, None]
    return [scales * np.stack(layer) for layer in zip(*draws, strict=True)]


def gradient_flow(cell):
    """Gradient flow from the initial weights of the cell."""
    data = cell.dataset.load()
    return linear_flow(flow_time(cell), initial_weights(cell), data.sigma_yx, data.sigma_xx)


def arbitrary_path(cell):
    """A smooth path of weights that obeys no law, so that every drift is large."""
    rng = np.random.default_rng(1)
    time = flow_time(cell)[:, None, None]
    return [
        w[..., None, :, :] + time * rng.normal(size=w.shape[-2:]) for w in initial_weights(cell)
    ]


def frobenius(matrices):
    return np.stack([np.linalg.norm(m, axis=(-2, -1)) for m in matrices], axis=-1)


def linear_map(path):
    total = path[0]
    for layer in path[1:]:
        total = layer @ total
    return total


def observe(cell, path):
    """The observables of a linear network along a path of weights."""
    data = cell.dataset.load()
    total = linear_map(path)
    imbalance = [b.mT @ b - a @ a.mT for a, b in pairwise(path)]
    drift = [c - c[..., :1, :, :] for c in imbalance]
    diagonal = [np.diagonal(c, axis1=-2, axis2=-1) for c in drift]
    outside = [c * (1 - np.eye(c.shape[-1])) for c in drift]
    every = (path[0].shape[2] - 1) // cell.record.snapshots
    arrays = {
        "layer_norm": frobenius(path),
        "linear_map": total,
        "mode_strength": np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v),
        "imbalance_trace": np.stack([np.trace(c, axis1=-2, axis2=-1) for c in imbalance], -1),
        "imbalance_norm": frobenius(imbalance),
        "imbalance_drift": frobenius(drift),
        "neuron_imbalance_drift": np.stack([np.linalg.norm(c, axis=-1) for c in diagonal], -1),
        "offdiagonal_imbalance_drift": frobenius(outside),
    }
    arrays["output_curve"] = np.einsum("...oi,ni->...no", total, data.x)
    residual = arrays["output_curve"] - data.y
    variance = np.where(data.y.any(axis=0), data.y.var(axis=0), np.nan)
    arrays["output_error"] = np.mean(residual**2, axis=-2) / variance
    arrays["outputs"] = arrays["output_curve"][:, :, ::every]
    arrays |= {f"weight_{n}": w[:, :, ::every] for n, w in enumerate(path, start=1)}
    if len(path) == 2:
        vectors = np.concatenate([path[0] @ data.modes.v, path[1].mT @ data.modes.u], axis=-1)
        arrays["gram"] = vectors.mT @ vectors
    return recorded_trajectory(cell, **arrays)
