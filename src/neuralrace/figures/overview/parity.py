"""Every theory against every simulation: half times of the loss.

A dot is a solution for a cell of the default configuration from one init scale: the time at which
the loss is half way from its start to the end of the simulation, in theory and in simulation, each
the median over seeds. All solutions that give a loss are here, from the same initial weights or
from their width and variance, and nothing is fitted. That includes solutions that leave something
out to show that it matters (hollow): one kind of pathway alone, from its part of the initial
weights or with an equal share of all units for each pathway; and some beyond what they assume:
equal layers (aligned modes), small starts (routing race), small steps (XoR race). The sources have
no such figure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.overview import PAPERS
from neuralrace.metrics.values import crossing_time
from neuralrace.results.cells import CellResults, Results

CLOSE = (0.9, 1.1)
"""Least and largest ratio of two half times that agree."""
MOST_NAMES = 4
"""Number of names; the largest deviations have one."""
NAME_BOX = (0.3, 0.03)
"""Width and height that a name takes, over those of the axes."""
BROKEN = {
    "aligned_modes": "unequal layers",
    "routing_race": "large init scale",
    "xor_race": "large steps",
}
"""Where solutions are off: which assumption fails."""
NAMES = {
    "margin_linear": "linear alone",
    "margin_linear_split": "linear, equal shares",
    "margin_xor": "XoR alone",
    "margin_xor_split": "XoR, equal shares",
    "xor_race": "XoR race",
}
"""Names of solutions that differ from their labels."""
PARTS = ("margin_linear", "margin_linear_split", "margin_xor", "margin_xor_split")
"""Solutions that leave out one kind of pathway, to show that it matters."""
LEFT_OUT = "pathways left out"
"""What sets `PARTS` apart from others."""
ROOM = 3
"""Least ratio, either way, of a dot with room for a note between it and 1."""
TALL = 3
"""Height of the row of all other solutions, over that of a row."""
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
"""Ticks of the axis of ratios that are shown if they are on it."""
MOST_TICKS = 6
"""With more of them, decades alone are shown."""
STEP = 0.01
"""Width of a column of dots, in logarithms of a ratio."""
DOTS = {"markersize": 3, "markeredgewidth": 0, "alpha": 0.6, "linestyle": ""}
HOLLOW = {"markersize": 3, "markeredgewidth": 0.6, "markerfacecolor": "white", "linestyle": ""}
"""Dots of `PARTS`."""


@Figure(
    layout="ab",
    height=3.9,
    reads={
        "deep_linear/exact deep_linear/explained deep_linear/imbalance "
        "deep_linear/interference_many deep_linear/interference_pair deep_linear/rotation "
        "deep_linear/semantic_deep deep_linear/semantic_shallow deep_linear/staircase "
        "deep_linear/step_size deep_linear/time_to_learn deep_linear/unaligned "
        "deep_linear/unexplained": {"trajectory": "loss", "theory": "loss"},
        "layer_dynamics/decoupled_modes layer_dynamics/growth layer_dynamics/step_size "
        "layer_dynamics/unequal_layers": {"trajectory": "loss", "theory": "loss"},
        "localization/closed_forms localization/one_unit localization/prediction": {
            "trajectory": "loss",
            "theory": "loss",
        },
        "make_haste/common_stage make_haste/context_stage make_haste/context_stage_five "
        "make_haste/context_stage_four make_haste/contextual_gated make_haste/contextual_stages "
        "make_haste/five_contexts_gated make_haste/four_contexts_gated "
        "make_haste/three_contexts_gated make_haste/xor_margin make_haste/xor_margin_gated": {
            "trajectory": "loss",
            "theory": "loss",
        },
        "neural_race/contexts neural_race/contexts_step_size neural_race/init_scale "
        "neural_race/pathways neural_race/pathways_apart neural_race/pathways_decoupled "
        "neural_race/pathways_single neural_race/pathways_step_size neural_race/race "
        "neural_race/structural_forms neural_race/xor_gated neural_race/xor_relu "
        "neural_race/xor_tickets": {
            "trajectory": "loss",
            "theory": "loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Papers, and what leaves something out."""
    papers = _papers(results)
    return [
        *(
            style.handle(
                PAPERS.get(paper, _plain(paper)), linestyle="", markeredgewidth=0, **papers[paper]
            )
            for paper in papers
        ),
        style.handle(LEFT_OUT, color="0.4", marker="D", **HOLLOW),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Half times in theory against those in simulation, in units of tau. The line is y = x. Where
    they differ most, the solution has a name.
    """
    papers, dots = _papers(results), list(half_times(results))
    times = [(dot.simulation, dot.theory) for dot in dots]
    ends = np.nanmin(times) / 2, np.nanmax(times) * 2
    ax.plot(ends, ends, **style.GUIDE)
    count = Counter(dot.paper for dot in dots)
    for dot in sorted(dots, key=lambda dot: -count[dot.paper]):  # papers of few dots on top
        ax.plot(dot.simulation, dot.theory, **papers[dot.paper], **_look(dot))
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.set(xlabel=r"half time in simulation ($\tau$)", ylabel=r"half time in theory ($\tau$)")
    named: dict[str, np.ndarray] = {}
    for dot in sorted(dots, key=lambda dot: -abs(np.log(dot.ratio))):
        place = np.log(np.divide((dot.simulation, dot.theory), ends[0])) / np.log(ends[1] / ends[0])
        free = all((abs(place - other) > NAME_BOX).any() for other in named.values())
        far = _far(dot.ratio)
        if far and free and dot.solution not in named and len(named) < MOST_NAMES:
            named[dot.solution] = place
            left = dot.ratio > 1 and place[0] > NAME_BOX[0]
            above = dot.ratio > 1 and not left  # and further left than the line y = x
            ax.annotate(
                _name(dot.solution),
                (dot.simulation, dot.theory),
                (-10 if above else -4 if left else 4, 5 if above else 0),
                textcoords="offset points",
                fontsize=6.5,
                ha="right" if left else "left",
                va="bottom" if above else "center",
            )
    ax.set_title("Most half times agree with theory")


def panel_b(results: Results, ax: Axes) -> None:
    """Theory over simulation: a row for each solution that is off in some cell by more than a
    tenth, the most exact on top, and a taller one for all others. Which assumption fails stands
    beside the dot that is furthest off; below are solutions that leave one kind of pathway out.
    Dots of nearly equal ratios are spread over the height of the row, where many hide others, of
    which the row has the number. The grey band is a tenth either way. Theory that never gets half
    way has no dot.
    """
    papers, groups = _papers(results), rows_of(half_times(results))
    rows = style.named_rows(ax, groups)
    pooled = not any(_far(dot.ratio) for dot in next(iter(groups.values()), []))
    heights = [TALL if pooled and not row else 1 for row in range(len(groups))]
    middles = [row - (height - 1) / 2 for row, height in enumerate(heights)]
    rows.set_yticks(middles, groups)
    rows.set_ylim(len(groups) - 0.4, 0.4 - max(heights, default=1))
    rows.axvspan(*CLOSE, color="0.9", zorder=0)
    rows.axvline(1, **style.GUIDE)
    style.note_at(rows, "within a tenth", (CLOSE[1], 0.4 - max(heights, default=1)), va="top")
    for row, height, own in zip(middles, heights, groups.values(), strict=True):
        for dot, shift in zip(own, _shifts([dot.ratio for dot in own]), strict=True):
            rows.plot(dot.ratio, row + height * shift, **papers[dot.paper], **_look(dot))
        if not own:  # a heading
            rows.axhline(row - 0.5, **style.GUIDE)
            continue
        furthest = max(own, key=lambda dot: abs(np.log(dot.ratio)))
        if _far(furthest.ratio):
            # Towards the other dots if these are far enough.
            inwards = not 1 / ROOM < furthest.ratio < ROOM
            left = (furthest.ratio > 1) == inwards
            place = {"ha": "right" if left else "left", "va": "center", "fontsize": 6}
            text = BROKEN.get(furthest.solution, "")
            style.note_at(rows, text, (furthest.ratio, row), (-5 if left else 5, 0), **place)
    rows.set(xscale="log", xlabel="half time, theory over simulation")
    low, high = rows.get_xlim()
    high = max(high, 1 / low, 5.0)  # with room for names on either side
    low = 1 / high
    rows.set_xlim(low, high)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    if len(ticks) > MOST_TICKS:
        ticks = [tick for tick in ticks if np.log10(tick) % 1 == 0]
    rows.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    rows.set_xticks([], minor=True)
    rows.tick_params(axis="y", length=0)
    for label, own in zip(rows.get_yticklabels(), groups.values(), strict=True):
        label.set_fontweight("normal" if own else "bold")
    ax.set_title("Full theory is off where an assumption fails")


@dataclass(frozen=True)
class HalfTimes:
    """Half times of a cell from an init scale, in units of tau, medians over seeds."""

    paper: str
    experiment: str
    solution: str
    simulation: float
    theory: float

    @property
    def ratio(self) -> float:
        """Theory over simulation."""
        return self.theory / self.simulation


def half_times(results: Results) -> Iterator[HalfTimes]:
    """Half times of all cells, init scales and solutions, of seeds that reach both."""
    for name, cell in results.items():
        paper, experiment, _ = name.split("/")
        for solution, simulation, theory in _half_times(cell):
            yield HalfTimes(paper, experiment, solution, simulation, theory)


def rows_of(dots: Iterable[HalfTimes]) -> dict[str, list[HalfTimes]]:
    """Dots by row: of all close solutions, then of each other one, most exact first.

    Last are those of `PARTS`, after a heading, which has no dots.
    """
    own: dict[str, list[HalfTimes]] = {}
    for dot in dots:
        own.setdefault(dot.solution, []).append(dot)
    spread = {name: max(abs(np.log(dot.ratio)) for dot in group) for name, group in own.items()}
    ranked = sorted(own, key=spread.__getitem__)
    far = [name for name in ranked if any(_far(dot.ratio) for dot in own[name])]
    close = [name for name in own if name not in far]
    dots = [dot for name in close for dot in own[name]]
    rows = {f"{len(close)} others ({len(dots)} dots)": dots} if close else {}
    rows |= {_name(name): own[name] for name in far if name not in PARTS}
    parts = {_name(name): own[name] for name in far if name in PARTS}
    return rows | ({LEFT_OUT: []} | parts if parts else {})


def _half_times(cell: CellResults) -> Iterator[tuple[str, float, float]]:
    loss, solved = cell.get("trajectory", "loss"), cell.get("theory", "loss")
    level = (loss.isel(time=0, drop=True) + loss.isel(time=-1, drop=True)) / 2
    measured = crossing_time(-loss, -level, cell.flow_time)
    predicted = crossing_time(-solved, -level, cell.flow_time)
    both = (measured > 0) & (predicted > 0)
    medians = [times.where(both).median("seed") for times in (measured, predicted)]
    for solution in solved["solution"].values:
        for scale in loss["init_scale"].values:
            at = {"solution": solution, "init_scale": scale}
            simulation, theory = (float(times.sel(at)) for times in medians)
            if np.isfinite(simulation):  # of the seeds that reach both
                yield str(solution), simulation, theory


def _papers(results: Results) -> dict[str, dict]:
    """Colour and marker of each paper."""
    papers = dict.fromkeys(name.partition("/")[0] for name in results)
    return {
        paper: {"color": style.categorical(index), "marker": style.marker(index)}
        for index, paper in enumerate(papers)
    }


def _look(dot: HalfTimes) -> dict[str, Any]:
    """Properties of a dot, without colour and marker."""
    return HOLLOW if dot.solution in PARTS else DOTS


def _far(ratio: int | float) -> bool:
    """Whether half times, if both exist, differ by more than a tenth."""
    return bool(ratio < CLOSE[0] or ratio > CLOSE[1])


def _shifts(ratios: Iterable[float]) -> np.ndarray:
    """Positions across a row at which dots of nearly equal ratios do not hide one another."""
    columns = np.round(np.log(list(ratios)) / STEP)
    shifts = np.zeros(len(columns))
    for column in np.unique(columns):
        inside = np.flatnonzero(columns == column)
        shifts[inside] = np.linspace(-0.4, 0.4, len(inside) + 2)[1:-1]
    return shifts


def _name(solution: str) -> str:
    return NAMES.get(solution, _plain(solution))


def _plain(name: str) -> str:
    return name.replace("_", " ")
