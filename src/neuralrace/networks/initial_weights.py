"""Initial weights of all runs of a cell, whatever the law."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EVERYTHING
from neuralrace.networks.initialisers.base import Effective, Initialiser, Weights


def initial_weights(
    law: Initialiser,
    widths: tuple[int, ...],
    modes: Modes,
    scales: Sequence[float],
    seeds: Sequence[int],
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of every run of a cell.

    Args:
        law: how to draw.
        widths: units per layer, inputs first.
        modes: singular modes of the task.
        scales: init scales.
        seeds: run seeds.
        mean_readout: whether the last layer is the mean over its inputs, whatever the scale.

    Returns:
        W_1 ... W_L, each (init_scale, seed, out, in), float64.

    Raises:
        UserError: the law does not exist for these widths.
    """
    weights = _at_scales(lambda seed: law.draw(seed, widths, modes), scales, seeds)
    if mean_readout:
        weights[-1] = np.full_like(weights[-1], 1 / widths[-2])
    return weights


def initial_edges(
    law: Initialiser,
    architecture: Architecture,
    effective: Effective,
    scales: Sequence[float],
    seeds: Sequence[int],
    sees: Mapping[str, np.ndarray] = EVERYTHING,
    mean_readout: bool = False,
) -> Weights:
    """Initial weights of every run of a gated network.

    Args:
        law: how to draw.
        architecture: the graph.
        effective: see `Law.draw_edges`.
        scales: init scales.
        seeds: run seeds.
        sees: inputs that an edge sees, by its name; its weights from all others are zero.
        mean_readout: whether an output node takes the mean over all units that reach it, whatever
            the scale.

    Returns:
        One array per edge, (init_scale, seed, out, in), float64.

    Raises:
        UserError: the law does not exist for this graph.
    """
    weights = _at_scales(lambda seed: law.draw_edges(seed, architecture, effective), scales, seeds)
    if mean_readout:
        for name in architecture.outputs:
            into = architecture.incoming[name]
            units = sum(weights[edge].shape[-1] for edge in into)
            for edge in into:
                weights[edge] = np.full_like(weights[edge], 1 / units)
    return [
        weight * sees[name] if (name := architecture.edge_name(edge)) in sees else weight
        for edge, weight in enumerate(weights)
    ]


def _at_scales(
    draw: Callable[[int], Weights], scales: Sequence[float], seeds: Sequence[int]
) -> Weights:
    try:
        draws = [draw(seed) for seed in seeds]
    except ValueError as error:
        raise UserError(f"init: {error}") from error
    unit = [np.stack(layer) for layer in zip(*draws, strict=True)]
    return [np.multiply.outer(np.asarray(scales), layer) for layer in unit]
