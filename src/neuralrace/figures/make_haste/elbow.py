"""How many clusters of gates it takes to imitate a ReLU network (fig. 9)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

SOURCES = {
    "training": {"label": "gates of all of training", "color": style.distinct(0), "marker": "o"},
    "start": {
        "label": "gates of the start",
        "color": "0.7",
        "marker": "^",
        "linestyle": style.LINES[2],
        "linewidth": 1.1,
    },
}
"""When gates are from."""
DESIGNED = {"color": style.distinct(3), "linewidth": 1.1, "linestyle": style.LINES[3]}


@Figure(
    reads={
        "contextual": {
            "metrics": "identification_gap identification_mse imitation_gap",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Mean squared error at equal times, and distance of losses, by number of clusters."""
    cell = results.cell("contextual")
    figure, axes = style.panels(2, height=1.55, sharex=True)
    errors, gaps = axes[:, 0]
    _draw(errors, cell, "identification_mse")
    _draw(gaps, cell, "identification_gap")
    _draw_designed(gaps, cell, "imitation_gap")
    errors.set(yscale="log", ylabel="mean squared\nerror")
    gaps.set(xlabel="number of clusters $k$", ylabel="share of\ninitial loss", ylim=(0, None))
    titles = ["outputs at equal times", "largest distance of losses"]
    style.letters([errors, gaps], titles)
    entries = [style.entry(**look) for look in SOURCES.values()]
    designed = style.entry("pathways as designed", **DESIGNED)
    style.legend(figure, [*entries, designed], columns=2)
    return figure


def _draw(ax: Axes, cell: CellResults, metric: str) -> None:
    """A distance by number of clusters, mean over runs."""
    for source, look in SOURCES.items():
        values = gated.smallest(cell.get("metrics", metric, source=source)).mean("run")
        ax.plot(values["clusters"], values, **look)


def _draw_designed(ax: Axes, cell: CellResults, imitation: str) -> None:
    """The distance of the gated network of the paper, 100 units in each pathway."""
    name = gated.candidates(cell)[gated.task(cell).contexts - 1,]
    designed = gated.smallest(cell.get("metrics", imitation, candidate=name))
    low, mean, high = (float(each) for each in (designed.min(), designed.mean(), designed.max()))
    ax.axhspan(low, high, color=DESIGNED["color"], alpha=0.2, linewidth=0)
    ax.axhline(mean, **DESIGNED)
