"""Gaps between layer norms and what bounds them, for every kind of start."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

EXPERIMENTS = ("balanced_start", "small_weights", "growth")
FLOOR = 1e-6
"""Smaller values are drawn here, at the edge."""
INITIAL = {"color": style.distinct(0), "marker": "o", "markerfacecolor": "white"}
FINAL = {"color": style.distinct(0), "marker": "o"}
BOUND = {"color": "black", "marker": "|", "markersize": 8, "markeredgewidth": 1.2}
SHARE = {"color": style.distinct(3), "marker": "s"}
IDENTITY = {"color": style.distinct(2), "marker": "^"}


@Figure(
    reads={
        "growth small_weights balanced_start": {
            "trajectory": "imbalance_trace",
            "metrics": (
                "final_norm_gap initial_norm_gap norm_gap_identity_error norm_gap_over_bound"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """One row for each start: its gap before and after training, its bound, and two checks.

    Of the pairs of adjacent layers, each row shows the largest value.
    """
    rows = [
        (cell, index)
        for experiment in EXPERIMENTS
        for cell in results.cells(experiment)
        for index in range(cell.metrics.sizes["init_scale"])
    ]
    figure = Canvas(figsize=(style.COLUMN, 1.2 + 0.26 * len(rows)))
    gaps, checks = figure.subplots(1, 2, sharey=True, width_ratios=(1.3, 1))
    names = []
    for row, (cell, index) in enumerate(rows):
        trace = cell.get("trajectory", "imbalance_trace").isel(init_scale=index, time=0)
        bound = (abs(trace) ** 0.5).max("pair").clip(min=FLOOR)
        style.points(gaps, row, bound, across=True, **BOUND)
        for ax, metric, look in (
            (gaps, "initial_norm_gap", INITIAL),
            (gaps, "final_norm_gap", FINAL),
            (checks, "norm_gap_over_bound", SHARE),
            (checks, "norm_gap_identity_error", IDENTITY),
        ):
            values = cell.get("metrics", metric).isel(init_scale=index)
            values = values.where(np.isfinite(values)).max("pair").clip(min=FLOOR)
            style.points(ax, row, values, across=True, **look)
        names.append(_name(cell, float(trace["init_scale"])))
    checks.axvline(1, **style.GUIDE)
    gaps.set_yticks(range(len(rows)), names)
    gaps.set(
        xscale="log", xlabel="gap of norms", xlim=(FLOOR / 2, None), ylim=(len(rows) - 0.5, -0.5)
    )
    checks.set(xscale="log", xlabel="share or error", xlim=(FLOOR / 2, 5))
    for ax in (gaps, checks):
        ax.grid(axis="y", color="0.9", linewidth=0.5)
        ax.tick_params(axis="y", length=0)
    style.letters((gaps, checks), ["largest gap", "checks"])
    entries = [
        style.entry("a: at the start", linestyle="", **INITIAL),
        style.entry("a: at the end", linestyle="", **FINAL),
        style.entry(r"a: bound $\sqrt{|\mathrm{tr}\,C|}$", linestyle="", **BOUND),
        style.entry("b: gap over bound", linestyle="", **SHARE),
        style.entry("b: error of identity", linestyle="", **IDENTITY),
        style.entry("b: where bound breaks", **style.GUIDE),
    ]
    style.legend(figure, entries, columns=2)
    return figure


def _name(cell: CellResults, scale: float) -> str:
    data = cell.data
    widths = (data.x.shape[1], *cell.spec.layered.hidden, data.y.shape[1])
    law = cell.spec.init.name.replace("_", "-")
    return f"{law} {scale:g}\n{'-'.join(map(str, widths))}"
