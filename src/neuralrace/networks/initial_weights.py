"""Initial weights of all runs of a cell, for any initialiser."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import ALL_INPUTS
from neuralrace.networks.initialisers.base import Effective, Initialiser, Weights


def initial_weights(
    initialiser: Initialiser,
    widths: tuple[int, ...],
    modes: Modes,
    scales: Sequence[float],
    seeds: Sequence[int],
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of a layered network, for every run of a cell.

    Args:
        initialiser: draws the weights.
        widths: units per layer, inputs first.
        modes: singular modes of the task.
        scales: init scales.
        seeds: run seeds.
        mean_readout: whether the last layer is the mean over its inputs at any scale.

    Returns:
        W_1 ... W_L, each (init_scale, seed, out, in), float64.

    Raises:
        UserError: the initialiser does not exist for these widths.
    """
    weights = _at_scales(lambda seed: initialiser.draw(seed, widths, modes), scales, seeds)
    if mean_readout:
        weights[-1] = np.full_like(weights[-1], 1 / widths[-2])
    return weights


def initial_edges(
    initialiser: Initialiser,
    architecture: Architecture,
    effective: Effective,
    scales: Sequence[float],
    seeds: Sequence[int],
    visible_inputs: Mapping[str, np.ndarray] = ALL_INPUTS,
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of a network on a graph, for every run of a cell.

    Args:
        initialiser: draws the weights.
        architecture: the graph.
        effective: see `Initialiser.draw_edges`.
        scales: init scales.
        seeds: run seeds.
        visible_inputs: inputs that an edge receives, by its name; weights from others are zero.
        mean_readout: whether an output node is the mean over all units that reach it, at any scale.

    Returns:
        One array per edge, (init_scale, seed, out, in), float64.

    Raises:
        UserError: the initialiser does not exist for this graph.
    """
    weights = _at_scales(
        lambda seed: initialiser.draw_edges(seed, architecture, effective), scales, seeds
    )
    if mean_readout:
        for name in architecture.outputs:
            into = architecture.incoming[name]
            units = sum(weights[edge].shape[-1] for edge in into)
            for edge in into:
                weights[edge] = np.full_like(weights[edge], 1 / units)
    return [
        weight * visible_inputs.get(architecture.edge_name(edge), 1)
        for edge, weight in enumerate(weights)
    ]


def _at_scales(
    draw: Callable[[int], Weights], scales: Sequence[float], seeds: Sequence[int]
) -> Weights:
    unit = [np.stack(layer) for layer in zip(*map(draw, seeds), strict=True)]
    return [np.multiply.outer(np.asarray(scales), layer) for layer in unit]
