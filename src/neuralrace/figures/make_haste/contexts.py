"""Three, four and five contexts: ReLU networks and their rectified linear networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 5: hierarchies in all contexts, and gated networks
whose context pathways are open in all contexts but one (q = C - 1). In a they are trained in stages
(appendix F), with as many units in all, from 1e-5: ReLU and gated network come to 5% of the loss at
the same time within a tenth. In b, c and d they are trained jointly, with the 100 units of appendix
H in each pathway, from 1e-4, and are early. The source's closed form (dotted) has context pathways
begin on the residual with the strength of their initial weights. It holds where they are trained on
the residual alone, and is late here; dashed is theory with what they gain while the common pathway
learns, with nothing fitted. Means and ranges over runs: eight in a; ten of ReLU and five of gated
networks in the others.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, relative_loss, smallest_scale
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
RELN = "reln"
"""The candidate of the ReLU network that is trained in stages."""
LATE = 0.05
"""Loss over initial loss at which times are compared."""
LABEL = (-0.16, 0.5)
"""Place of the label of an axis up, the same in all rows, so that they begin below one another."""


@Figure(
    layout="a;b;c;d",
    height=7.3,
    heights=(1.2, 1.2, 1.0, 1.0),
    cf={"a": "Fig. 5", "b": "Fig. 5", "c": "Fig. 5", "d": "Fig. 5"},
    reads={
        "contexts_reln": {
            "trajectory": "loss",
            "metrics": "imitation_loss imitation_time_ratio",
        },
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
        style.handle("theory (b to d)", **style.THEORY),
        style.handle("Jarvis et al. (b to d)", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over initial loss, trained in stages; the text is the time of the gated network to 5% of
    the loss (grey line), over that of the ReLU network.
    """
    cells = results.cells("contexts_reln")
    cells = sorted(cells, key=lambda cell: contextual.task(cell).contexts)
    parts = style.split(ax, 1, len(cells), sharey=True)[0]
    for part, cell in zip(parts, cells, strict=True):
        draw_relative_loss(part, cell, contextual.RELU)
        initial = smallest_scale(cell.get("trajectory", "loss")).isel(time=0, drop=True)
        imitated = metric(cell, "imitation_loss", candidate=RELN) / initial
        style.over_seeds(part, cell.flow_time, imitated, **contextual.RELN)
        ratio = metric(cell, "imitation_time_ratio", candidate=RELN).sel(loss_level=LATE)
        _finish_loss(part, cell, float(ratio.mean("seed")))
    parts[0].set_ylabel("loss / initial loss")
    parts[0].yaxis.set_label_coords(*LABEL)
    ax.set_title("Trained in stages, gated networks are slightly faster")


def panel_b(results: Results, ax: Axes) -> None:
    """The same, trained jointly. Theory is the closed form with the head start."""
    parts = style.split(ax, 1, len(EXPERIMENTS), sharey=True)[0]
    for part, (relu, reln) in zip(parts, _pairs(results), strict=True):
        draw_relative_loss(part, relu, contextual.RELU)
        solutions = {"staged_modes": style.PAPER, "head_start": style.THEORY}
        draw_relative_loss(part, reln, contextual.RELN, solutions)
        late, early = (contextual.level_time(cell, LATE) for cell in (relu, reln))
        _finish_loss(part, relu, early / late)
    parts[0].set_ylabel("loss / initial loss")
    parts[0].yaxis.set_label_coords(*LABEL)
    ax.set_title("Trained jointly, gated networks are clearly faster")


def panel_c(results: Results, ax: Axes) -> None:
    """Singular values of the common pathway, a shade for modes alike. Theory is joint modes of all
    pathways; the text is the largest distance over the largest value, of theory and of the source's
    closed form.
    """
    parts = _draw_values(results, True, ax)
    for part in parts:
        part.tick_params(labelbottom=False)
    style.note(parts[0], "dark: strong modes", "lower right")
    ax.set_title("Common pathway: several modes overshoot")


def panel_d(results: Results, ax: Axes) -> None:
    """Singular values of the context pathways; bands are over pathways, too."""
    parts = _draw_values(results, False, ax)
    for part in parts:
        part.set_xlabel(style.FLOW_TIME)
    parts[0].text(0.03, 0.7, "dark:\nstrong\nmodes", transform=parts[0].transAxes,
                  fontsize=6.5, va="top")  # fmt: skip
    ax.set_title("Context pathways: paper's closed form is too slow")


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
        text = f"max. error: theory {near:.1%}, Jarvis et al. {far:.0%}"
        style.note(part, text)
    parts[0].set_ylabel("singular value")
    parts[0].yaxis.set_label_coords(*LABEL)
    return parts


def _finish_loss(part: Axes, cell: CellResults, ratio: float) -> None:
    """Axes of a loss, with the init scale and the time of the gated network over the ReLU one."""
    part.set(xlim=(0, _end(cell)), yscale="log", ylim=(0.01, 1.2), ylabel="")
    part.set_xlabel(style.FLOW_TIME)
    scale = float(cell.get("trajectory", "loss")["init_scale"].min())
    style.note(part, f"init scale $10^{{{np.log10(scale):.2g}}}$", "lower left", color="0.35")
    part.axhline(LATE, **style.GUIDE)
    style.note_at(part, f"{LATE:.0%}", (0, LATE), (3, 2))
    part.set_title(f"{contextual.task(cell).contexts} contexts", loc="center")
    if np.isfinite(ratio):
        style.note(part, f"time to {LATE:.0%}: {ratio:.2f} of ReLU's")


def _pairs(results: Results) -> list[tuple[CellResults, CellResults]]:
    """The ReLU network and its gated network, by number of contexts."""
    return [
        (results.cell(experiment), contextual.reln(results.cells(f"{experiment}_gated")))
        for experiment in EXPERIMENTS
    ]


def _end(cell: CellResults) -> float:
    """The time at which the loss of the ReLU network has settled."""
    return style.settling_time(relative_loss(cell.get("trajectory", "loss")), cell.flow_time)
