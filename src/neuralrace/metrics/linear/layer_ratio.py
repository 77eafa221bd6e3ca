"""Ratio of the two layers of each mode."""

import numpy as np
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import diagonal, vectors
from neuralrace.theory.modes import two_layer_limit_ratio


@Metric(
    observables="gram",
    variables={
        "initial_layer_ratio": ("mode", "larger over smaller layer at the start"),
        "final_layer_ratio": ("mode", "larger over smaller layer at the end"),
        "final_layer_ratio_over_limit": (
            "mode",
            "final ratio of layers over (delta + sqrt(delta^2 + 4 s^2))/(2 s)",
        ),
        "layer_ratio_growth": ("mode", "largest ratio of layers over the initial one"),
    },
)
def layer_ratio(cell: CellResults) -> Values:
    """Ratio of the larger to the smaller layer of each mode, at the start and at the end.

    The ratio is 1 for balanced layers. The final ratio over its limit is 1 if it agrees perfectly
    with theory: s is the singular value, delta the conserved difference of squared layers.

    Source: Basu et al., corollary 2.4.
    """
    encoder, decoder, _ = vectors(cell)
    lengths = ufuncs.sqrt(diagonal(encoder)), ufuncs.sqrt(diagonal(decoder))
    learned = cell.target > 0
    ratio = ufuncs.maximum(*lengths) / ufuncs.minimum(*lengths)
    first = [length.isel(time=0, drop=True) for length in lengths]
    s = np.where(learned, cell.data.modes.s, 1.0)
    stacked = np.stack([length.values for length in first], axis=-2)
    limit = first[0].copy(data=two_layer_limit_ratio(s, stacked)).where(learned)
    end = ratio.isel(time=-1, drop=True).where(learned)
    start = ratio.isel(time=0, drop=True).where(learned)
    return {
        "initial_layer_ratio": start,
        "final_layer_ratio": end,
        "final_layer_ratio_over_limit": end / limit,
        "layer_ratio_growth": ratio.max("time").where(learned) / start,
    }
