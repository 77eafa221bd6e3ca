"""What lets one family of context pathways win: a head start while the common pathway learns.

On Jarvis, Klein, Rosman and Saxe, sec. 4 and appendices F and G, which explain the family that wins
by its speed on the residual of the common pathway. Trained on that alone, pathways that are open in
q and in C - q contexts learn alike, in the closed form of the source and in theory, and those of
half of the contexts are the fastest. Theory exists at whole q alone, so in b and e it is a short
line at each point. Beside a common pathway, more contexts are faster; of five contexts, only
pathways of three and of four were trained. The source's closed form (dotted) knows no difference
there either; dashed is the one with what context pathways gain while the common one learns. Means
and ranges over five runs, in e over ten.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, smallest_scale
from neuralrace.results.cells import CellResults, Results

Families = Mapping[contextual.Numbers, CellResults]
Point = tuple[int | float, Any, float]
"""q, times of runs, and that of theory."""
SHOWN = "context_stage_four"
STAGES = ("context_stage", SHOWN)
TASKS = ("three_contexts", "four_contexts", "five_contexts")
WHOLE = "three_contexts_gated"
NAMES: tuple[tuple[tuple[int, int], Literal["left", "right"]], ...] = (
    ((-11, -6), "right"),
    ((9, 6), "left"),
    ((4, 11), "left"),
)
"""Offsets in points and alignments of the names of C, beside the first points."""
HALF = 0.035
"""Half the length of a line of theory at one q/C."""
SHORT = r"flow time (units of $\tau$)"
LATE = 0.05
"""Loss over initial loss at the end of learning."""


@Figure(
    layout="aaabbb;ccddee",
    height=4.1,
    reads={
        "context_stage context_stage_four": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "loss_half_time predicted_loss_half_time",
        },
        "three_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
        },
        "three_contexts four_contexts five_contexts": {
            "theory": "candidate_loss",
            "metrics": "imitation_time_ratio level_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory, and the guide of b; lines and markers are named in the panels."""
    guide = r"$\propto 1/\sqrt{q(C-q)}$, through $q = C-1$"
    return [style.handle("theory", **style.THEORY), style.handle(guide, **style.GUIDE)]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss of context pathways on the residual alone, with four contexts; the families of q and of
    C - q contexts lie on one another.
    """
    families = contextual.families(results.cells(SHOWN))
    _draw_losses(ax, families, "pathway_modes")
    contexts = contextual.task(next(iter(families.values()))).contexts
    for (q,), cell in families.items():
        half = float(metric(cell, "loss_half_time").mean("seed"))
        if np.isfinite(half):
            left, lower = 2 * q == contexts, 2 * q > contexts
            ax.annotate(
                f"$q$ = {q}", (half, 0.5), (-9, -9) if left else (7, 15 - 11 * lower),
                textcoords="offset points", ha="right" if left else "left",
                color=contextual.family_props((q,))["color"],
            )  # fmt: skip
    ax.set(ylim=(0, None))
    _name_task(ax, families, 0.9)
    ax.set_title("Residual alone: $q$ and $C-q$ contexts learn alike")


def panel_b(results: Results, ax: Axes) -> None:
    """Time to half of the loss of a against q/C; thin lines are proportional to 1/sqrt(q(C - q)),
    through theory at the largest q, and not exact between.
    """
    points = []
    for experiment in STAGES:
        families = contextual.families(results.cells(experiment))
        points.append([
            (
                q,
                metric(cell, "loss_half_time"),
                float(metric(cell, "predicted_loss_half_time", solution="pathway_modes").mean()),
            )
            for (q,), cell in families.items()
        ])  # fmt: skip
    counts = _contexts(results)
    _draw_times(ax, counts, points)
    for count, own in zip(counts, points, strict=False):
        last, _, time = own[-1]
        q = np.linspace(0.1, 0.9, 60) * count
        guide = time * np.sqrt(last * (count - last) / (q * (count - q)))
        ax.plot(q / count, guide, **style.GUIDE)
    ax.set_ylabel(r"time to half of the loss ($\tau$)")
    ax.set_title("Residual alone: two of four contexts win")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss of pathways of one and of two of three contexts beside a common pathway."""
    families = contextual.families(results.cells(WHOLE))
    _draw_losses(ax, families, "head_start")
    ax.set(yscale="log", ylim=(0.01, 1.2))
    _name_task(ax, families, 0.9)
    ax.text(0.79, 0.12, "$q$ = 1", color=_colour(families, 0), ha="right", transform=ax.transAxes)
    ax.text(0.42, 0.12, "$q$ = 2", color=_colour(families, -1), ha="right", transform=ax.transAxes)
    ax.text(0.99, 0.55, "Jarvis et al.,\nclosed form,\neither $q$", ha="right",
            color=style.PAPER["color"], transform=ax.transAxes)  # fmt: skip
    ax.axhline(LATE, **style.GUIDE)
    ax.text(1, LATE, f"{LATE:.0%}", color="0.4", va="bottom", ha="right", fontsize=6.5,
            transform=ax.get_yaxis_transform())  # fmt: skip
    ax.set_title("Whole task: two contexts beat one")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest singular value of the context pathways of c, mean over these."""
    families = contextual.families(results.cells(WHOLE))
    for numbers, cell in families.items():
        pathways = np.flatnonzero(~contextual.pathway_gates(cell).all(axis=1))
        at = {"pathway": pathways, "pathway_mode": 0}
        values = smallest_scale(cell.get("trajectory", "pathway_values")).isel(at).mean("pathway")
        theory = cell.get("theory", "pathway_values", solution="pathway_modes")
        theory = smallest_scale(theory).isel(at).mean(["pathway", "seed"])
        style.over_seeds(ax, cell.flow_time, values, **_props(numbers))
        ax.plot(cell.flow_time, theory, **style.THEORY)
    ax.set(xlabel=SHORT, yscale="log")
    ax.set_ylabel("first singular value\nof context pathways")
    ax.yaxis.set_major_locator(LogLocator(100))
    ax.set_xlim(0, float(cell.flow_time[-1]))
    ax.text(0.36, 0.45, "$q$ = 1", color=_colour(families, 0), transform=ax.transAxes)
    ax.text(0.03, 0.88, "$q$ = 2", color=_colour(families, -1), transform=ax.transAxes)
    _name_task(ax, families, 0.06)
    ax.set_title("Two contexts have a head start")


def panel_e(results: Results, ax: Axes) -> None:
    """Time to 5% of the loss against q/C beside a common pathway of 100 units; context pathways
    have 100 units, or share out as many where there are more of them.
    """
    points = []
    for cell in map(results.cell, TASKS):
        reached = metric(cell, "imitation_time_ratio") * metric(cell, "level_time")
        points.append([
            (numbers[0], reached.sel(candidate=name, loss_level=LATE), _solved_time(cell, name))
            for numbers, name in contextual.candidate_names(cell).items()
            if len(numbers) == 1
        ])  # fmt: skip
    _draw_times(ax, _contexts(results), points)
    ax.set_ylabel(rf"time to {LATE:.0%} of the loss ($\tau$)")
    ax.set_title("Whole task: more contexts win")


def _contexts(results: Results) -> list[int]:
    """Numbers of contexts of the tasks, which are those of the stages, too."""
    return [contextual.task(results.cell(experiment)).contexts for experiment in TASKS]


def _draw_losses(ax: Axes, families: Families, solution: str) -> None:
    """Draws the loss of every family over time, with theory and the paper's closed form on top."""
    solutions = {"staged_modes": style.PAPER, solution: style.THEORY}
    for numbers, cell in families.items():
        draw_relative_loss(ax, cell, _props(numbers), solutions)
        ax.set(xlabel=SHORT, xlim=(0, float(cell.flow_time[-1])))


def _name_task(ax: Axes, families: Families, height: float) -> None:
    """Writes the number of contexts of the task at the right edge."""
    contexts = contextual.task(next(iter(families.values()))).contexts
    ax.text(0.98, height, f"$C$ = {contexts}", ha="right", transform=ax.transAxes)


def _draw_times(ax: Axes, contexts: Sequence[int], points: Iterable[Sequence[Point]]) -> None:
    """Draws times of simulation and of theory against q/C, a grey and a marker for each C.

    Points of the largest C may be absent.
    """
    # The palest of one grey more would be hard to see.
    looks = zip(style.greys(len(contexts) + 1), style.MARKERS, NAMES, strict=False)
    for count, own, (shade, marker, (shift, side)) in zip(contexts, points, looks, strict=False):
        x = [q / count for q, _, _ in own]
        times = [times for _, times, _ in own]
        first, *_ = style.point_series(ax, x, times, color=shade, marker=marker, markersize=6)
        name = f"$C$ = {count}"
        if len(own) < count - 1:
            name += ",\nonly $q$ = " + ", ".join(str(q) for q, _, _ in own)
        style.note_at(ax, name, (x[0], first), shift, color=shade, ha=side, va="center")
        for place, (_, _, time) in zip(x, own, strict=True):
            ax.plot([place - HALF, place + HALF], [time, time], **style.THEORY)
    ax.set(xlabel="share of contexts $q/C$", xlim=(0.1, 0.9))
    if np.isfinite(ax.dataLim.intervaly).all():  # short runs may never get there
        ax.set_ylim(0.8 * ax.dataLim.y0, 1.15 * ax.dataLim.y1)


def _solved_time(cell: CellResults, candidate: str) -> float:
    """Time at which the loss of a candidate falls to 5% in theory; the mean over seeds, or NaN."""
    loss = smallest_scale(cell.get("theory", "candidate_loss", candidate=candidate)).mean("seed")
    reached = cell.metrics["flow_time"].where((loss <= LATE * loss.isel(time=0)).values.ravel())
    return float(reached.min())


def _props(numbers: contextual.Numbers) -> dict[str, Any]:
    """Line of a family; widths differ, so that lines under another one are visible."""
    return {
        "color": contextual.family_props(numbers)["color"],
        "linewidth": 6.0 / numbers[0] ** 0.6,
        "alpha": 0.85,
    }


def _colour(families: Families, position: int) -> style.Colour:
    return contextual.family_props(list(families)[position])["color"]
