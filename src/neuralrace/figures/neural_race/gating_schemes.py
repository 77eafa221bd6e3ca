"""Gating schemes: pathways that pairs of domains share, pairs that are trained, gates by sample."""

import numpy as np
from jaxtyping import Bool, Int
from matplotlib import colormaps
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.gates.always_on import AlwaysOnSamples
from neuralrace.gates.base import Picture
from neuralrace.gates.half_space import HalfSpace
from neuralrace.networks.gated import Gated
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "generalisation_random pathways pathways_apart race xor_gated": {
            "trajectory": "",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Pathway blocks of the race, masks of trained pairs, and gates on the samples of XoR.

    Random masks are those of the first seed.
    """
    blocks = sorted(map(_blocks, results.cells("race")), key=lambda each: each[0])
    large = results.cell("pathways_apart")
    # of the random masks the one with as many trained pairs as the band
    random = min(
        results.cells("generalisation_random"),
        key=lambda cell: abs(_mask(cell).sum() - _mask(large).sum()),
    )
    trained = {"band": results.cell("pathways"), "larger band": large, "random": random}
    gates = _sample_gates(results)

    figure = Canvas(figsize=(style.COLUMN, 4.1))
    rows = figure.add_gridspec(3, 1, height_ratios=(0.95, 1.2, 1))
    above, middle, below = (
        rows[row].subgridspec(1, count).subplots(squeeze=False)[0]
        for row, count in enumerate(map(len, (blocks, trained, gates)))
    )
    for ax, (size, squares) in zip(above, blocks, strict=True):
        style.heat(ax, squares, 0, 1, aspect="equal")
        ax.set_xlabel(f"output domain\n$P$ = {size**2}")
    for ax, (name, cell) in zip(middle, trained.items(), strict=True):
        mask = _mask(cell)
        style.heat(ax, mask, 0, 1, aspect="equal")
        ax.set_xlabel(f"output domain\n{name}, $K$ = {mask[0].sum()}")
    for ax, (name, picture) in zip(below, gates.items(), strict=True):
        style.heat(ax, picture.values, 0, 1)
        ax.set(xlabel=f"{picture.columns}\n{name}", ylabel=picture.rows)
    for axes in (above, middle):
        axes[0].set_ylabel("input domain")
    titles = ["pathway blocks", "trained pairs", "gates on XoR"]
    style.letters([above[0], middle[0], below[0]], titles)
    dark, light = (colormaps[style.HEAT](value) for value in (0.0, 1.0))
    shades = [
        Patch(facecolor=light, label="b: trained; c: open"),
        Patch(facecolor=dark, label="b: never seen; c: closed"),
    ]
    style.legend(figure, shades, columns=2)
    return figure


def _mask(cell: CellResults) -> Bool[np.ndarray, "input_domain output_domain"]:
    """Trained pairs of the first seed."""
    return cell.trained_pairs[0]


def _blocks(cell: CellResults) -> tuple[int, Int[np.ndarray, "input_domain output_domain"]]:
    """Domains to a side of a pathway block, and blocks as the squares of a chessboard."""
    count = cell.spec.dataset.count
    size = cell.routing.families(count)[0].size
    square = np.arange(count) // size
    return size, (square[:, None] + square) % 2


def _sample_gates(results: Results) -> dict[str, Picture]:
    """Gates of the configured scheme by sample, and of two others on the same samples."""
    cell = results.cell("xor_gated")
    data, network = cell.data, cell.spec.network
    if not isinstance(network, Gated):
        raise UserError(f"{cell.name}: network {network.name!r} has no gates of pathways to draw")
    own = network.gates.picture(data)
    return {
        "always on": AlwaysOnSamples(name="always_on").picture(data),
        "half-spaces": HalfSpace(name="half_space", pathways=len(own.values)).picture(data),
        network.gates.name.replace("_", " "): own,
    }
