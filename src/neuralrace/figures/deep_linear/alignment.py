"""Encoder and decoder align before they grow."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from scipy.integrate import cumulative_simpson

from neuralrace.figures import style
from neuralrace.records.gram import diagonal, vectors
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "alignment": {
            "trajectory": "gram mode_strength",
        },
        "unaligned": {
            "trajectory": "gram",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Cosine and strength of each mode over time; the invariant and the decay law of one mode."""
    random = results.cell("alignment")
    # the finest step is nearest to the gradient flow, for which both statements are made
    alone = min(results.cells("unaligned"), key=lambda cell: cell.spec.training.learning_rate)
    figure, axes = style.panels(4, height=1.35)
    cosines, growth, invariant, decay = axes[:, 0]

    time = random.flow_time
    encoder, decoder, across = _first_scale(random)
    cosine = across / np.sqrt(encoder * decoder)
    strength = random.get("trajectory", "mode_strength").isel(init_scale=0)
    grown = strength / random.target
    for mode, look in _looks(random).items():
        style.over_seeds(cosines, time, cosine.sel(mode=mode), **look)
        style.over_seeds(growth, time, grown.sel(mode=mode), **look)
    cosines.set(ylabel="cosine", ylim=(-1.08, 1.08), yticks=(-1, 0, 1))
    growth.set(ylabel="strength over target", xlabel=style.FLOW_TIME)

    time = alone.flow_time
    encoder, decoder, across = _first_scale(alone)
    total = np.sqrt(encoder + decoder + 2 * across)
    difference = np.sqrt((encoder + decoder - 2 * across).clip(min=0))
    product = total * difference
    ratio = np.log(difference / total)
    rate = (alone.strength - across).transpose(*across.dims)
    axis = rate.get_axis_num("time")
    fall = rate.copy(data=cumulative_simpson(rate.values, x=time.values, axis=axis, initial=0))
    law = ratio.isel(time=0) - 2 * fall
    for mode, look in _looks(alone).items():
        style.over_seeds(invariant, time, (product / product.isel(time=0)).sel(mode=mode), **look)
        style.over_seeds(decay, time, ratio.sel(mode=mode), **look)
        decay.plot(time, law.sel(mode=mode).mean("seed"), **style.THEORY)
    invariant.axhline(1, **style.THEORY)
    invariant.set(ylabel="$|p||m|$ over initial", ylim=(0.9, 1.1))
    decay.set(ylabel=r"$\log(|m|/|p|)$", xlabel=style.FLOW_TIME)
    growth.set_xlim(0, style.settled(grown.where(random.strength != 0, 0), random.flow_time))
    decay.set_xlim(0, time[-1])
    for upper, lower in ((cosines, growth), (invariant, decay)):
        upper.sharex(lower)
        upper.tick_params(labelbottom=False)

    letters = ["alignment, small random weights", "growth of the same modes"]
    style.letters(axes[:, 0], [*letters, "one mode alone: invariant", "one mode alone: decay law"])
    entries = [
        style.entry("$s > 0$, stronger is darker", **_look(style.ordered(2)[0], False)),
        style.entry("$s < 0$, stronger is darker", **_look(style.ordered(2)[0], True)),
        style.BAND,
        style.entry("theory", **style.THEORY),
    ]
    style.legend(figure, entries, columns=2)
    return figure


def _first_scale(cell: CellResults) -> list:
    """Squared lengths of encoder and decoder vectors and their inner product, by mode."""
    return [diagonal(block).isel(init_scale=0) for block in vectors(cell)]


def _look(colour: Any, negative: bool) -> dict[str, Any]:
    return {"color": colour, "linestyle": style.LINES[int(negative)]}


def _looks(cell: CellResults) -> dict[int, dict[str, Any]]:
    """Line of each mode: the stronger the darker, dashed where s is negative."""
    s = cell.strength
    ranked = [mode for mode in s.sortby(-abs(s))["mode"].values.tolist() if s.sel(mode=mode) != 0]
    colours = style.ordered(len(ranked))
    return {
        mode: _look(colour, bool(s.sel(mode=mode) < 0))
        for mode, colour in zip(ranked, colours, strict=True)
    }
