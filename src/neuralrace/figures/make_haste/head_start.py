"""What lets one family of context pathways win: a head start while the common pathway learns.

On Jarvis, Klein, Rosman and Saxe, sec. 4 and appendices F and G, which explain the family that wins
by its speed on the residual of the common pathway. Trained on that alone, pathways that are open in
q and in C - q contexts learn alike, in the closed form of the source and in theory, and those of
half of the contexts are the fastest. Beside a common pathway the same families differ. The source's
closed form (dotted) knows no difference there either; dashed is the one with what context pathways
gain while the common one learns. It shows in their first singular value, which for two contexts is
ahead long before the residual is learned.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results

Families = dict[contextual.Numbers, CellResults]
STAGES = ("context_stage", "context_stage_four", "context_stage_five")
WHOLE = "three_contexts_gated"
SHORT = r"flow time (units of $\tau$)"
HALF = 0.5
"""Loss over initial loss in the middle of the first drop of the residual."""
LATE = 0.05
"""Loss over initial loss at the end of learning."""


@Figure(
    layout="aabbcc;dddeee",
    height=3.9,
    reads={
        "context_stage context_stage_four context_stage_five": {
            "trajectory": "loss",
            "theory": "loss",
        },
        "three_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Families by q."""
    handles = [
        style.handle(f"gated, $q$ = {contextual.family_name(numbers)}", **props)
        for numbers, props in _styles(results).items()
    ]
    theory = style.handle("theory", **style.THEORY)
    stated = style.handle("Jarvis et al., closed form", **style.PAPER)
    return [*handles, style.BAND, theory, stated]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss on the residual alone with three contexts; the title has half times by q."""
    _draw_stage(results, "context_stage", ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same with four contexts."""
    _draw_stage(results, "context_stage_four", ax)


def panel_c(results: Results, ax: Axes) -> None:
    """The same with five contexts."""
    _draw_stage(results, "context_stage_five", ax)


def panel_d(results: Results, ax: Axes) -> None:
    """Loss on the whole task with three contexts, beside a common pathway."""
    families = contextual.families(results.cells(WHOLE))
    losses = _draw_losses(ax, families, "head_start", _styles(results))
    ax.set(yscale="log", ylim=(0.01, 1.2))
    ax.axhline(LATE, **style.GUIDE)
    (one, slow), *_, (two, fast) = _times(families, losses, LATE).items()
    ax.set_title(
        f"Whole task: $q={one}$ takes {slow / fast:.2f} times as long to {LATE:.0%} as $q={two}$"
    )


def panel_e(results: Results, ax: Axes) -> None:
    """Largest singular value of the context pathways of d, mean over these."""
    families = contextual.families(results.cells(WHOLE))
    ends = []
    for numbers, cell in families.items():
        pathways = np.flatnonzero(~contextual.pathway_gates(cell).all(axis=1))
        at = {"pathway": pathways, "pathway_mode": 0}
        values = smallest_scale(cell.get("trajectory", "pathway_values")).isel(at).mean("pathway")
        theory = cell.get("theory", "pathway_values", solution="pathway_modes")
        theory = smallest_scale(theory).isel(at).mean(["pathway", "seed"])
        style.over_seeds(ax, cell.flow_time, values, **_styles(results)[numbers])
        ax.plot(cell.flow_time, theory, **style.THEORY)
        ends.append(values.mean("seed"))
    ahead = float((ends[-1] / ends[0]).max())
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=SHORT, ylabel="first singular value", yscale="log")
    ax.set_xlim(0, float(cell.flow_time[-1]))
    one, *_, two = map(contextual.family_name, families)
    ax.set_title(f"$q={two}$ has up to {ahead:.0f} times the first singular value of $q={one}$")


def _draw_stage(results: Results, experiment: str, ax: Axes) -> None:
    """Draws losses of all families on the residual; the title has their half times."""
    families = contextual.families(results.cells(experiment))
    losses = _draw_losses(ax, families, "pathway_modes", _styles(results))
    ax.set_ylim(0, None)
    contexts = contextual.task(next(iter(families.values()))).contexts
    times = _times(families, losses, HALF).items()
    times = ", ".join(f"{time:.0f} for $q={name}$" for name, time in times)
    ax.set_title(f"Residual, $C={contexts}$: half after {times}")


def _draw_losses(ax: Axes, cells: Families, solution: str, styles: dict) -> list[xr.DataArray]:
    """Draws the loss of every family over time, with theory and the paper's closed form on top."""
    solutions = {"staged_modes": style.PAPER, solution: style.THEORY}
    losses = [
        draw_relative_loss(ax, cell, styles[numbers], solutions) for numbers, cell in cells.items()
    ]
    cell = next(reversed(cells.values()))
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=SHORT, xlim=(0, float(cell.flow_time[-1])))
    return losses


def _times(cells: Families, losses: list[xr.DataArray], level: float) -> dict[str, float]:
    """Times at which the mean loss of each family falls to a share of its start, or NaN."""
    return {
        contextual.family_name(numbers): float(
            cell.flow_time.where(loss.mean("seed") <= level).min()
        )
        for (numbers, cell), loss in zip(cells.items(), losses, strict=True)
    }


def _styles(results: Results) -> dict[contextual.Numbers, dict[str, Any]]:
    """Lines of all families; widths differ, so that lines under another one are visible."""
    cells = [cell for experiment in (*STAGES, WHOLE) for cell in results.cells(experiment)]
    numbers = list(contextual.families(cells))
    widths = np.linspace(3.4, 1.4, len(numbers))
    return {
        family: {"color": contextual.family_props(family)["color"], "linewidth": width}
        for family, width in zip(numbers, widths, strict=True)
    }
