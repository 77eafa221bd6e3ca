"""Losses alone do not tell which gated network a ReLU network is.

The paper's proposition 4.2 (Jarvis et al., "Make Haste Slowly") has one gated network whose loss is
that of the ReLU network: beside the common pathway, those that are open in C - 1 of C contexts
(shaded). Here every family of pathways open in q contexts is set beside ReLU networks of three to
five contexts. With the two initial values free, as in a fit by hand, the closed form of every
family fits the loss; with nothing fitted the form is the same for q and C - q. Trained families of
fewer contexts follow as well as C - 1 does, and outputs tell more than losses. A family of two
numbers has pathways of both kinds. Means and ranges over seeds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
CLOSED_FORMS = {
    "unfitted_gap": ("nothing fitted", {"color": "0.6", "marker": "v"}),
    "head_start_gap": ("with head start", {"color": style.categorical(9), "marker": "o"}),
    "fitted_gap": ("both starts fitted", {"color": style.categorical(1), "marker": "s"}),
}
TRAINED = {
    "imitation_gap": ("losses", {"color": style.COLOURS["gated"], "marker": "D"}),
    "imitation_output_error": ("outputs", {"color": style.categorical(4), "marker": "^"}),
}
"""Names and markers of metrics."""
LEVEL = 0.05
"""Loss over initial loss at which times are compared."""
PAPER = {"color": style.PAPER["color"], "alpha": 0.18, "linewidth": 0}
"""Shade of the family in the paper."""
Families = Sequence[tuple[CellResults, Mapping[str, Mapping[str, Any]]]]
"""Cells, each with the labels of its families in a metric, by name of the family."""


@Figure(
    layout="abc",
    height=2.7,
    widths=(1.15, 1.0, 1.0),
    cf={"a": "prop. 4.2"},
    reads={
        "three_contexts four_contexts five_contexts": {
            "metrics": (
                "fitted_gap head_start_gap imitation_gap imitation_output_error "
                "imitation_time_ratio unfitted_gap"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The paper's family."""
    return [Patch(**PAPER, label="Jarvis et al.: $q = C - 1$")]


def panel_a(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of the ReLU network from closed forms of each family, over the
    initial loss.
    """
    families = _closed_forms(results)
    _draw_distances(ax, families, CLOSED_FORMS)
    ax.set_ylabel("distance of losses (initial loss)")
    worst = max(float(metric(cell, "fitted_gap").max()) for cell, _ in families)
    ax.set_title(f"Fitted, all families are within {worst:.1%}")


def panel_b(results: Results, ax: Axes) -> None:
    """Trained gated networks of each family: largest distance of their losses, over the initial
    loss, and of their outputs at equal loss, squared, over the squared targets.
    """
    families = _trained(results)
    _draw_distances(ax, families, TRAINED)
    ax.set_ylabel("distance when trained")
    cell, names = families[-1]
    errors = metric(cell, "imitation_output_error").mean("seed")
    least = min(names, key=lambda name: float(errors.sel(names[name]).fillna(np.inf)))
    ax.set_title(f"$C$ = {contextual.task(cell).contexts}: outputs of $q$ = {least} are nearest")


def panel_c(results: Results, ax: Axes) -> None:
    """Time of trained gated networks to 5% of the initial loss, over that of the ReLU network."""
    families = _trained(results)
    props = {"color": style.COLOURS["gated"], "marker": "D"}
    means = _draw(ax, families, "imitation_time_ratio", props, loss_level=LEVEL)
    ax.axhline(1, **style.GUIDE)
    _name_families(ax, families)
    ax.set(ylabel=f"time to {LEVEL:.0%} of loss (ReLU network)")
    ax.margins(y=0.12)
    times = ", ".join(f"{mean:.2f}" for mean in means[-1])
    ax.set_title(f"$C$ = {contextual.task(families[-1][0]).contexts}: times are {times}")


def _closed_forms(results: Results) -> Families:
    """Families of the closed forms."""
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    numbers = [cell.get("metrics", "fitted_gap")["open_in"].values.tolist() for cell in cells]
    return [(c, {str(q): {"open_in": q} for q in n}) for c, n in zip(cells, numbers, strict=True)]


def _trained(results: Results) -> Families:
    """Families of the trained networks."""
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    names = [contextual.candidate_names(cell).items() for cell in cells]
    labels = [{"+".join(map(str, q)): {"candidate": name} for q, name in own} for own in names]
    return list(zip(cells, labels, strict=True))


def _draw_distances(
    ax: Axes, families: Families, metrics: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> None:
    """Draws metrics of all families on a logarithmic axis, with a legend below all points."""
    for key, (name, props) in metrics.items():
        _draw(ax, families, key, props)
        ax.plot([], [], linestyle="", label=name, **props)
    _name_families(ax, families)
    ax.set_yscale("log")
    ax.set_ylim(ax.dataLim.minposy / 4, ax.dataLim.y1 * 1.6)
    ax.legend(loc="lower left")


def _draw(
    ax: Axes, families: Families, name: str, props: Mapping[str, Any], **at: float
) -> list[list[float]]:
    """Draws a metric of all families, with a thin line through those of a cell; returns means."""
    first, means = 0, []
    for cell, labels in families:
        shown = [metric(cell, name).sel(at).sel(label) for label in labels.values()]
        positions = range(first, first + len(shown))
        means.append(style.point_series(ax, positions, shown, **props))
        ax.plot(positions, means[-1], color=props["color"], linewidth=0.8)
        first += len(shown) + 1
    return means


def _name_families(ax: Axes, families: Families) -> None:
    """Labels q on the x axis, numbers of contexts on top, and a shade for the paper's family."""
    positions, labels, first = [], [], 0
    for cell, names in families:
        count = contextual.task(cell).contexts
        own = list(range(first, first + len(names)))
        positions += own
        labels += names
        for position in own[list(names).index(str(count - 1)) :][:1]:
            ax.axvspan(position - 0.45, position + 0.45, **PAPER)
        ax.annotate(
            f"$C$ = {count}",
            (float(np.mean(own)), 1),
            (0, -2),
            ax.get_xaxis_transform(),
            "offset points",
            ha="center",
            va="top",
        )
        first += len(names) + 1
    ax.set_xticks(positions, labels)
    ax.set_xlabel("pathways open in $q$ contexts")
