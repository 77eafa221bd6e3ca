"""Three, four and five contexts: ReLU networks and their rectified linear networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 5: hierarchies in all contexts, and gated networks
whose context pathways are open in all contexts but one (q = C - 1). What differs from the source:
its closed form (dotted) has context pathways begin on the residual with the strength of their
initial weights, and is late. Dashed on the losses is the closed form with what they gain while the
common pathway learns, and dashed on singular values are joint modes of all pathways; nothing is
fitted. Dashed lies on the gated network. The ReLU network leaves both, the more so the more
contexts there are. Titles tell its time to 5% of the loss over that of the gated network, and the
largest distances of singular values over the largest one, of what is stated and of theory.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results

LATE = 0.05
"""Loss over initial loss at which times are compared."""


@Figure(
    layout="abc;def;ghi",
    height=4.1,
    heights=(1.1, 1.0, 1.0),
    cf={"a": "Fig. 5", "d": "Fig. 5", "g": "Fig. 5"},
    reads={
        "three_contexts four_contexts five_contexts": {
            "trajectory": "loss",
            "metrics": "level_time",
        },
        "three_contexts_gated four_contexts_gated five_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
            "metrics": "level_time pathway_error_sup",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Both networks, theory and the source's closed form."""
    return [
        style.handle("ReLU network", **contextual.RELU),
        style.handle("gated, $q = C - 1$", **contextual.RELN),
        style.BAND,
        style.handle("theory", **style.THEORY),
        style.handle("Jarvis et al., closed form", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss with three contexts, as a share of its start."""
    _draw_losses(results, "three_contexts", ax)


def panel_b(results: Results, ax: Axes) -> None:
    """Loss with four contexts."""
    _draw_losses(results, "four_contexts", ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Loss with five contexts."""
    _draw_losses(results, "five_contexts", ax)


def panel_d(results: Results, ax: Axes) -> None:
    """Singular values of the common pathway with three contexts, a shade for modes alike."""
    _draw_values(results, "three_contexts", True, ax)


def panel_e(results: Results, ax: Axes) -> None:
    """Singular values of the common pathway with four contexts."""
    _draw_values(results, "four_contexts", True, ax)


def panel_f(results: Results, ax: Axes) -> None:
    """Singular values of the common pathway with five contexts."""
    _draw_values(results, "five_contexts", True, ax)


def panel_g(results: Results, ax: Axes) -> None:
    """Singular values of the context pathways with three contexts; bands over pathways, too."""
    _draw_values(results, "three_contexts", False, ax)


def panel_h(results: Results, ax: Axes) -> None:
    """Singular values of the context pathways with four contexts."""
    _draw_values(results, "four_contexts", False, ax)


def panel_i(results: Results, ax: Axes) -> None:
    """Singular values of the context pathways with five contexts."""
    _draw_values(results, "five_contexts", False, ax)


def _draw_losses(results: Results, experiment: str, ax: Axes) -> None:
    relu, reln = results.cell(experiment), contextual.reln(results.cells(f"{experiment}_gated"))
    draw_relative_loss(ax, relu, contextual.RELU)
    solutions = {"staged_modes": style.PAPER, "head_start": style.THEORY}
    draw_relative_loss(ax, reln, contextual.RELN, solutions)
    style.epoch_axis(ax, relu.flow_time)
    ax.set(xlim=(0, _end(relu)), ylim=(0, None))
    late, early = (contextual.level_time(cell, LATE) for cell in (relu, reln))
    contexts = contextual.task(relu).contexts
    ax.set_title(f"$C={contexts}$: ReLU to {LATE:.0%} at {late / early:.2f} times")


def _draw_values(results: Results, experiment: str, common: bool, ax: Axes) -> None:
    cell = contextual.reln(results.cells(f"{experiment}_gated"))
    pathways = np.flatnonzero(contextual.pathway_gates(cell).all(axis=1) == common).tolist()
    stated = smallest_scale(cell.get("theory", "pathway_values", solution="staged_modes"))
    stated = stated.isel(pathway=pathways).mean(["seed", "pathway"])
    for group in contextual.mode_groups(stated):
        ax.plot(cell.flow_time, stated.isel(pathway_mode=group).mean("pathway_mode"), **style.PAPER)
    contextual.draw_singular_values(ax, cell, pathways)
    ax.set(xlim=(0, _end(results.cell(experiment))), ylim=(0, None), ylabel="singular value")
    if not common:
        ax.set_xlabel(style.FLOW_TIME)
    off = metric(cell, "pathway_error_sup").isel(pathway=pathways)
    near, far = (
        float(off.sel(solution=solution).max("pathway").mean("seed"))
        for solution in ("pathway_modes", "staged_modes")
    )
    name = "Common" if common else "Context"
    ax.set_title(f"{name}: {far:.0%} off, theory {near:.1%}")


def _end(cell: CellResults) -> float:
    """The time at which the loss of the ReLU network has settled."""
    return style.settling_time(relative_loss(cell.get("trajectory", "loss")), cell.flow_time)
