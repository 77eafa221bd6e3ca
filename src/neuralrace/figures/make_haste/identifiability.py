"""Losses alone do not tell which gated network a ReLU network is.

The paper's proposition 4.2 (Jarvis et al., "Make Haste Slowly") has one gated network whose loss is
that of the ReLU network: beside the common pathway, those that are open in C - 1 of C contexts
(shaded). Here every family of pathways open in q contexts is set beside ReLU networks of three to
five contexts. With the two initial values free, as in a fit by hand, the closed form of every
family fits the loss; with nothing fitted the form is the same for q and C - q. Networks with five
contexts were trained only for the two families whose closed forms with head start are nearest.
Trained families of fewer contexts follow as well as C - 1 does, and outputs tell more than losses.
Markers and bars are means and ranges over ten runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
CLOSED_FORMS = {
    "unfitted_gap": ("nothing fitted", {"color": "0.4", "marker": "v", "zorder": 4}),
    "head_start_gap": ("with head start", {"color": style.categorical(9), "marker": "o"}),
    "fitted_gap": ("both starts fitted", {"color": style.categorical(1), "marker": "s"}),
}
TRAINED = {"imitation_output_error": ("outputs", {"color": style.categorical(4), "marker": "^"})}
"""Names and markers of metrics."""
LOSSES = {"imitation_gap": style.COLOURS["gated"]}
FITTED = {"fitted_gap": style.categorical(1)}
"""Colour of the metric that has a line at its mean over families."""
ALIKE = 1.25
"""Largest mean of a family over the smallest, of losses that are called alike."""
LEVEL = 0.05
"""Loss over initial loss at which times are compared."""
SHADE = {"color": style.PAPER["color"], "alpha": 0.18, "linewidth": 0}
"""Shade of the family in the paper."""
BAR = {"color": "0.75", "linewidth": 2.2, "zorder": 1, "solid_capstyle": "round"}
Rows = Mapping[str, Mapping[str, Any]]
"""Labels of families in a metric, by name of the family."""


@Figure(
    layout="a;b",
    height=4.0,
    cf={"a": "prop. 4.2", "b": "prop. 4.2"},
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
    """Closed forms, and the paper's family."""
    forms = [style.handle(n, linestyle="", **props) for n, props in CLOSED_FORMS.values()]
    return [*forms, Patch(**SHADE, label="Jarvis et al.: $q = C - 1$")]


def panel_a(results: Results, ax: Axes) -> None:
    """Largest distance of the loss of the ReLU network from closed forms of each family, over the
    initial loss. The line is the mean over families with both starts fitted.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    numbers = [cell.get("metrics", "fitted_gap")["open_in"].values.tolist() for cell in cells]
    rows = [{f"$q$ = {q}": {"open_in": q} for q in own} for own in numbers]
    parts = _draw_families(ax, cells, rows, CLOSED_FORMS, FITTED)
    parts[len(parts) // 2].set_xlabel("largest distance of losses (initial loss)")
    ax.set_title("Fitted closed forms all follow the loss")


def panel_b(results: Results, ax: Axes) -> None:
    """Gated networks of each family, trained: distance of their outputs from the ReLU network's at
    equal loss, squared, over the squared targets (range of runs). The line is the largest distance
    of losses, over the initial loss, the mean over families. Numbers are times to 5% of the loss,
    over the ReLU network's. With five contexts two families were trained.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    rows = [
        {"$q$ = " + "+".join(map(str, q)): {"candidate": name} for q, name in families.items()}
        for families in map(contextual.candidate_names, cells)
    ]
    parts = _draw_families(ax, cells, rows, TRAINED, LOSSES)
    for part, cell, labels in zip(parts, cells, rows, strict=True):
        ratios = metric(cell, "imitation_time_ratio").sel(loss_level=LEVEL).mean("seed")
        for row, label in enumerate(labels.values()):
            ratio = float(ratios.sel(label))
            text = f"{ratio:.2f}" if np.isfinite(ratio) else "never"
            part.annotate(text, (1, row), (4, 0), part.get_yaxis_transform(), "offset points",
                          va="center", fontsize=6.5)  # fmt: skip
        part.annotate("time", (1, 1), (4, 4), "axes fraction", "offset points", fontsize=6.5)
    gaps = [
        metric(cells[-1], "imitation_gap").sel(label).mean("seed") for label in rows[-1].values()
    ]
    alike = max(gaps) < ALIKE * min(gaps)
    (name, props), line = TRAINED["imitation_output_error"], np.mean(gaps)
    first = metric(cells[-1], "imitation_output_error").sel(next(iter(rows[-1].values())))
    low, high = parts[0].get_xlim()
    parts[0].set_xlim(low, 1.3 * high)
    both = "losses:\nall alike" if alike else "losses"
    for text, x, y, colour in (
        (name, float(first.mean("seed")), 0.8, props["color"]),
        (both, float(line), 0.1, LOSSES["imitation_gap"]),
    ):
        left = x < np.sqrt(low * high)
        parts[-1].annotate(text, (x, y), (6 if left else -6, 0), parts[-1].get_xaxis_transform(),
                           "offset points", ha="left" if left else "right", va="center",
                           color=colour)  # fmt: skip
    parts[len(parts) // 2].set_xlabel("distance from the ReLU network when trained")
    ax.set_title("Outputs tell families apart better than losses")


def _draw_families(
    ax: Axes,
    cells: Sequence[CellResults],
    rows: Sequence[Rows],
    metrics: Mapping[str, tuple[str, Mapping[str, Any]]],
    common: Mapping[str, Any],
) -> list[Axes]:
    """Draws metrics of all families on a logarithmic axis, a part for each number of contexts.

    The metric in `common` has a line at its mean over families, in its colour.
    """
    most = max(map(len, rows))
    parts = list(style.split(ax, 1, len(cells), sharex=True)[0])
    for part, cell, labels in zip(parts, cells, rows, strict=True):
        count = contextual.task(cell).contexts
        for key, colour in common.items():
            values = [metric(cell, key).sel(label).mean("seed") for label in labels.values()]
            part.axvline(float(np.mean(values)), color=colour, zorder=1, linewidth=4, alpha=0.5)
        means = [
            style.point_series(
                part,
                range(len(labels)),
                [metric(cell, key).sel(label) for label in labels.values()],
                across=True,
                markersize=5,
                **props,
            )
            for key, (_, props) in metrics.items()
        ]
        for row, values in enumerate(zip(*means, strict=True)):
            part.plot([min(values), max(values)], [row, row], **BAR)
        for row in [row for row, name in enumerate(labels) if name == f"$q$ = {count - 1}"]:
            part.axhspan(row - 0.4, row + 0.4, **SHADE)
        part.set_yticks(range(len(labels)), list(labels))
        part.set(xscale="log", ylim=(most - 0.4, -0.6))
        part.tick_params(axis="y", length=0)
        part.xaxis.set_minor_formatter(NullFormatter())
        part.set_title(f"$C$ = {count}", loc="center")
    return parts
