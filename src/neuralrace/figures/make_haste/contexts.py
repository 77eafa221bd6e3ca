"""Three, four and five contexts: ReLU networks and their rectified linear networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 5: hierarchies in all contexts, and gated networks
whose context pathways are open in all contexts but one (q = C - 1). What differs from the source:
its closed form (dotted) has context pathways begin on the residual with the strength of their
initial weights, and is late; dashed is theory with what they gain while the common pathway learns,
with nothing fitted. The init scale, which the text does not give, decides whether ReLU and gated
network keep step: from the 1e-4 of this figure the gated network is early, from about 1e-6 they
agree within a tenth, and from 1e-8 it is late with three and four contexts, by a tenth with five.
Means and ranges over runs, ten of ReLU and five of gated networks.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
LATE = 0.05
"""Loss over initial loss at which times are compared."""
LABEL = (-0.16, 0.5)
"""Place of the label of an axis up, the same in all rows, so that they begin below one another."""


@Figure(
    layout="a;b;c",
    height=5.0,
    heights=(1.2, 1.0, 1.0),
    cf={"a": "Fig. 5", "b": "Fig. 5", "c": "Fig. 5"},
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
        style.handle("theory", **style.THEORY),
        style.handle("Jarvis et al., closed form", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over initial loss; the text is the time of the ReLU network to 5% of the loss (grey
    line), over that of the gated network. Theory is the closed form with the head start.
    """
    parts = style.split(ax, 1, len(EXPERIMENTS), sharey=True)[0]
    for part, (relu, reln) in zip(parts, _pairs(results), strict=True):
        draw_relative_loss(part, relu, contextual.RELU)
        solutions = {"staged_modes": style.PAPER, "head_start": style.THEORY}
        draw_relative_loss(part, reln, contextual.RELN, solutions)
        part.set(xlim=(0, _end(relu)), yscale="log", ylim=(0.01, 1.2), ylabel="")
        part.axhline(LATE, **style.GUIDE)
        part.tick_params(labelbottom=False)
        style.note_at(part, f"{LATE:.0%}", (0, LATE), (3, 2))
        part.set_title(f"{contextual.task(relu).contexts} contexts", loc="center")
        late, early = (contextual.level_time(cell, LATE) for cell in (relu, reln))
        if np.isfinite(late / early):
            times = f"{late / early:.2f} times as long as the gated"
            style.note(part, f"to {LATE:.0%} the ReLU network takes\n{times}")
    parts[0].set_ylabel("loss over initial loss")
    parts[0].yaxis.set_label_coords(*LABEL)
    ax.set_title("ReLU networks share early stages, then fall behind")


def panel_b(results: Results, ax: Axes) -> None:
    """Singular values of the common pathway, a shade for modes alike. Theory is joint modes of all
    pathways; the text is the largest distance over the largest value, of theory and of the source's
    closed form.
    """
    parts = _draw_values(results, True, ax)
    for part in parts:
        part.tick_params(labelbottom=False)
    style.note(parts[0], "dark: strong modes", "lower right")
    ax.set_title("Gated network, common pathway: several modes overshoot")


def panel_c(results: Results, ax: Axes) -> None:
    """Singular values of the context pathways; bands are over pathways, too."""
    parts = _draw_values(results, False, ax)
    for part in parts:
        part.set_xlabel(style.FLOW_TIME)
    parts[0].text(0.03, 0.7, "dark:\nstrong\nmodes", transform=parts[0].transAxes,
                  fontsize=6.5, va="top")  # fmt: skip
    ax.set_title("Gated network, context pathways: closed form comes late")


def _draw_values(results: Results, common: bool, ax: Axes) -> np.ndarray:
    """Draws singular values of the common or of the context pathways; returns the axes."""
    parts: np.ndarray = style.split(ax, 1, len(EXPERIMENTS), sharey=True)[0]
    for part, (relu, cell) in zip(parts, _pairs(results), strict=True):
        pathways = np.flatnonzero(contextual.pathway_gates(cell).all(axis=1) == common).tolist()
        stated = smallest_scale(cell.get("theory", "pathway_values", solution="staged_modes"))
        stated = stated.isel(pathway=pathways).mean(["seed", "pathway"])
        for group in contextual.mode_groups(stated):
            curve = stated.isel(pathway_mode=group).mean("pathway_mode")
            part.plot(cell.flow_time, curve, **style.PAPER)
        contextual.draw_singular_values(part, cell, pathways)
        part.set(xlim=(0, _end(relu)), ylim=(0, 1.4 * part.dataLim.y1))
        off = metric(cell, "pathway_error_sup").isel(pathway=pathways)
        near, far = (
            float(off.sel(solution=solution).max("pathway").mean("seed"))
            for solution in ("pathway_modes", "staged_modes")
        )
        text = f"theory {near:.1%} off, Jarvis et al. {far:.0%} off"
        style.note(part, text)
    parts[0].set_ylabel("singular value")
    parts[0].yaxis.set_label_coords(*LABEL)
    return parts


def _pairs(results: Results) -> list[tuple[CellResults, CellResults]]:
    """The ReLU network and its gated network, by number of contexts."""
    return [
        (results.cell(experiment), contextual.reln(results.cells(f"{experiment}_gated")))
        for experiment in EXPERIMENTS
    ]


def _end(cell: CellResults) -> float:
    """The time at which the loss of the ReLU network has settled."""
    return style.settling_time(relative_loss(cell.get("trajectory", "loss")), cell.flow_time)
