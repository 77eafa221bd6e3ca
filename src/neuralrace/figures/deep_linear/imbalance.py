"""Negative control: the exact solution needs a balanced start."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

DESCENT = {"color": "0.35", "marker": "_", "markersize": 11, "markeredgewidth": 1.2}


@Figure(
    reads={
        "imbalance": {
            "trajectory": "",
            "theory": "loss",
            "metrics": "approximation_error discretisation_error",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Distance of the exact solution from gradient flow, over time and against the imbalance."""
    cells = sorted(results.cells("imbalance"), key=lambda cell: cell.spec.init.imbalance)
    figure, axes = style.panels(2, height=1.7)
    curves, worst = axes[:, 0]
    ends = []
    for cell, colour in zip(cells, style.ordered(len(cells)), strict=True):
        imbalance = cell.spec.init.imbalance
        flow = cell.get("theory", "loss", solution="flow").isel(init_scale=0)
        exact = cell.get("theory", "loss", solution="exact").isel(init_scale=0)
        off = abs(exact - flow) / flow.isel(time=0)
        style.over_seeds(curves, cell.flow_time, off, color=colour, label=f"{imbalance:g}")
        ends.append(style.settled(flow, cell.flow_time))
        theory = cell.get("metrics", "approximation_error", solution="exact").isel(init_scale=0)
        descent = cell.get("metrics", "discretisation_error").isel(init_scale=0)
        style.points(worst, imbalance, theory, color=colour, marker="o")
        style.points(worst, imbalance, descent, **DESCENT)
    curves.legend(title="imbalance", loc="upper right")
    curves.set(xlabel=style.FLOW_TIME, xlim=(0, max(ends)), ylabel="error (initial loss)")
    worst.set(yscale="log", xlabel="imbalance of the start", ylabel="error (initial loss)")
    style.letters(axes[:, 0], ["exact solution against gradient flow", "the largest error"])
    entries = [
        style.entry("exact solution", color="0.3", marker="o"),
        style.entry("gradient descent", linestyle="", **DESCENT),
        style.BAND,
    ]
    style.legend(figure, entries, columns=3)
    return figure
