"""What lets one family of context pathways win: a head start while the common pathway learns."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

Families = dict[tuple[int, ...], CellResults]


@Figure(
    reads={
        "context_stage context_stage_four": {
            "trajectory": "loss",
            "theory": "loss",
        },
        "three_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Families on the residual alone and beside a common pathway, and what they gain meanwhile."""
    three, four, whole = (
        gated.families(results.cells(experiment))
        for experiment in ("context_stage", "context_stage_four", "three_contexts_gated")
    )
    figure, axes = style.panels(2, 2, height=1.55)
    (alone, beside), (alone_four, starts) = axes
    looks = _looks({*three, *four, *whole})
    _draw_losses(alone, three, "pathway_modes", looks)
    _draw_losses(alone_four, four, "pathway_modes", looks)
    _draw_losses(beside, whole, "head_start", looks)
    for numbers, cell in whole.items():
        _draw_strongest(starts, cell, looks[numbers])
    starts.sharex(beside)
    for ax in axes[:, 0]:
        ax.set_ylabel("loss over\ninitial loss")
    for ax in axes[1]:
        ax.set_xlabel(r"flow time (units of $\tau$)")
    starts.set(yscale="log", ylabel="singular value")
    parts = ((three, "residual alone"), (whole, "whole"), (four, "residual alone"))
    titles = [f"{part}, $C$ = {_contexts(cells)}" for cells, part in parts]
    style.letters(axes.flat, [*titles, "first mode in b"])
    entries = [
        style.entry(f"$q$ = {gated.family(numbers)}", **look) for numbers, look in looks.items()
    ]
    theory = style.entry("theory", **style.THEORY)
    stated = style.entry("Jarvis et al., closed form", **style.PAPER)
    style.legend(figure, [*entries, style.BAND, theory, stated], columns=3)
    return figure


def _looks(found: set[tuple[int, ...]]) -> dict[tuple[int, ...], dict]:
    """Colours of families, and lines of which one shows under another."""
    numbers = sorted(found)
    widths = np.linspace(3.4, 1.4, len(numbers))
    return {
        each: {"color": colour, "linewidth": width}
        for each, colour, width in zip(numbers, style.ordered(len(numbers)), widths, strict=True)
    }


def _contexts(cells: Families) -> int:
    """Contexts of the task of all families."""
    return gated.task(next(iter(cells.values()))).contexts


def _draw_losses(ax: Axes, cells: Families, solution: str, looks: dict) -> None:
    """Loss of every family over time, a closed form on top, and the paper's."""
    for numbers, cell in cells.items():
        loss = gated.relative(cell.get("trajectory", "loss"))
        style.over_seeds(ax, cell.flow_time, loss, **looks[numbers])
    for cell in cells.values():
        for name, look in (("staged_modes", style.PAPER), (solution, style.THEORY)):
            theory = gated.relative(cell.get("theory", "loss", solution=name)).mean("seed")
            ax.plot(cell.flow_time, theory, **look)
    ax.set(xlim=(0, float(cell.flow_time[-1])), ylim=(0, None))


def _draw_strongest(ax: Axes, cell: CellResults, look: dict) -> None:
    """Largest singular value of the context pathways, mean over these, theory on top."""
    pathways = np.flatnonzero(~gated.pathway_gates(cell).all(axis=1))
    at = {"pathway": pathways, "pathway_mode": 0}
    values = gated.smallest(cell.get("trajectory", "pathway_values")).isel(at).mean("pathway")
    theory = cell.get("theory", "pathway_values", solution="pathway_modes")
    theory = gated.smallest(theory).isel(at).mean(["pathway", "seed"])
    style.over_seeds(ax, cell.flow_time, values, **look)
    ax.plot(cell.flow_time, theory, **style.THEORY)
