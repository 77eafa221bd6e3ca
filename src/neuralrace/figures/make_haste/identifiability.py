"""Losses alone do not tell which gated network a ReLU network is.

The paper's proposition 4.2 (Jarvis et al., "Make Haste Slowly") has one gated network whose loss is
that of the ReLU network: beside the common pathway, those that are open in all contexts but one
(shaded). Here every family, open in one context or more, is set beside ReLU networks of three to
five contexts. With the two initial values free, as in a fit by hand, the closed form of
every family fits the loss (a). Trained jointly from 1e-4, the family of the paper is ahead of the
ReLU network; with four and five contexts another one takes about its time (b). Trained in stages
from 1e-5, with as many units in all, the family of the paper keeps step (figure on more contexts).
Networks with five contexts were trained only for the two families whose closed forms with head
start are nearest.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
GAPS: dict[str, dict[str, Any]] = {
    "fitted_gap": {"color": style.categorical(0), "marker": "o"},
    "unfitted_gap": {"color": "0.3", "marker": "s", "markerfacecolor": "white"},
}
"""Markers of closed forms with both starts fitted, and with nothing fitted."""
TRAINED = {"color": style.categorical(0), "marker": "D"}
LEVEL = 0.05
"""Loss over initial loss at which times are compared."""
RANGE = "mean; range of runs if wider than the marker"
SHADE = {"color": "0.88", "linewidth": 0, "zorder": 0}
"""Shade of the family in the paper."""


@Figure(
    layout="ab",
    height=4.2,
    widths=(1.2, 1),
    cf={"a": "prop. 4.2"},
    reads={
        "three_contexts four_contexts five_contexts": {
            "metrics": "fitted_gap imitation_time_ratio unfitted_gap",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: the family of the paper and all markers are named at the first rows."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of the ReLU network from the closed form of each family, over
    the initial loss: with nothing fitted, and with both starts fitted. Means and ranges over ten
    runs.
    """
    cells = _cells(results)
    rows = list(map(_families, cells))
    parts = _parts(cells, rows, ax)
    for part, cell, families in zip(parts, cells, rows, strict=True):
        for row, number in enumerate(families):
            for name, props in GAPS.items():
                gap = metric(cell, name).sel(open_in=number)
                style.points(part, row, gap, across=True, markersize=6, **props)
        part.set_xscale("log")
    parts[-1].set_xlabel(
        f"largest distance from the ReLU network's loss, over the\ninitial loss ({RANGE})"
    )
    for gap, name in zip(GAPS, ("both starts fitted", "nothing fitted"), strict=True):
        at = float(metric(cells[0], gap).isel(open_in=0).mean())
        parts[0].annotate(
            f"Jarvis et al., closed form,\n{name}", (at, 1), (0, 2), parts[0].get_xaxis_transform(),
            textcoords="offset points", ha="center", color=GAPS[gap]["color"],
        )  # fmt: skip
    ax.set_title("Fitted, every family follows the loss")


def panel_b(results: Results, ax: Axes) -> None:
    """Gated networks of each family, trained: time to 5% of the initial loss over the ReLU
    network's. Means and ranges over ten runs.
    """
    cells = _cells(results)
    trained = list(map(contextual.candidate_names, cells))
    rows = list(map(_families, cells))
    parts = _parts(cells, rows, ax)
    for part, cell, families, names in zip(parts, cells, rows, trained, strict=True):
        ratios = metric(cell, "imitation_time_ratio").sel(loss_level=LEVEL)
        for row, number in enumerate(families):
            if (number,) not in names:
                part.text(1.02, row, "not trained", va="center", color="0.4")
                continue
            values = ratios.sel(candidate=names[number,])
            if values.isnull().all():
                part.text(1.02, row, "never", va="center", color="0.4")
            else:
                style.points(part, row, values, across=True, markersize=6, **TRAINED)
        own = families.index(contextual.task(cell).contexts - 1)
        part.text(0.98, own, "Jarvis et al.: all but one", color="0.35", va="center", ha="right",
                  transform=part.get_yaxis_transform())  # fmt: skip
        part.axvline(1, color=style.COLOURS["relu"], zorder=1, **style.SIMULATION)
    parts[0].annotate(
        "time of the\nReLU network", (1, 1), (0, 2), parts[0].get_xaxis_transform(),
        textcoords="offset points", ha="center", color=style.COLOURS["relu"],
    )  # fmt: skip
    parts[-1].set_xlabel(f"time to {LEVEL:.0%} of the loss, over the ReLU network's\n({RANGE})")
    ax.set_title("Trained, the paper's family is too early")


def _cells(results: Results) -> list[CellResults]:
    return [results.cell(experiment) for experiment in EXPERIMENTS]


def _families(cell: CellResults) -> list[int]:
    """The numbers q of contexts that the pathways of a family are open in."""
    return cell.get("metrics", "fitted_gap")["open_in"].values.tolist()


def _parts(cells: list[CellResults], rows: list[list[int]], ax: Axes) -> list[Axes]:
    """A part of a panel for each number of contexts, with rows of families."""
    counts = list(map(len, rows))
    parts = list(style.split(ax, len(cells), sharex=True, height_ratios=counts)[:, 0])
    for part, cell, families in zip(parts, cells, rows, strict=True):
        contexts = contextual.task(cell).contexts
        part.axhspan(*(families.index(contexts - 1) + edge for edge in (-0.45, 0.45)), **SHADE)
        part.set_yticks(range(len(families)), [f"open in {number}" for number in families])
        part.set(ylim=(len(families) - 0.5, -0.5), ylabel=f"{contexts} contexts")
        part.tick_params(axis="y", length=0)
        part.xaxis.set_minor_formatter(NullFormatter())
        part.label_outer()
    return parts
