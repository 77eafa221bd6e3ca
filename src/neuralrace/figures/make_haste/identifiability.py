"""Losses alone do not tell which gated network a ReLU network is, nor do outputs at equal loss."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
CLOSED_FORMS = {
    "unfitted_gap": ("nothing fitted", {"color": "0.6", "marker": "v"}),
    "head_start_gap": ("with the head start", {"color": style.distinct(0), "marker": "o"}),
    "fitted_gap": ("both starts fitted", {"color": style.distinct(1), "marker": "s"}),
}
TRAINED = {
    "imitation_gap": ("trained, loss", {"color": style.distinct(0), "marker": "D"}),
    "imitation_output_error": ("trained, outputs", {"color": style.distinct(3), "marker": "^"}),
}
"""Metrics, what to call them and how to draw them."""


@Figure(
    reads={
        "three_contexts four_contexts five_contexts": {
            "metrics": (
                "fitted_gap head_start_gap imitation_gap imitation_output_error unfitted_gap"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Distances of closed forms of each family, and of trained candidates."""
    figure, axes = style.panels(2, len(EXPERIMENTS), height=1.6, sharey="row")
    for (closed, trained), experiment in zip(axes.T, EXPERIMENTS, strict=True):
        cell = results.cell(experiment)
        open_in = cell.get("metrics", "fitted_gap")["open_in"].values
        for metric, (_, look) in CLOSED_FORMS.items():
            _draw(closed, cell, metric, [{"open_in": q} for q in open_in], look)
        names = gated.candidates(cell)
        for metric, (_, look) in TRAINED.items():
            _draw(trained, cell, metric, [{"candidate": name} for name in names.values()], look)
        closed.set_xticks(range(len(open_in)), map(str, open_in))
        trained.set_xticks(range(len(names)), ["+".join(map(str, q)) for q in names])
        for ax in (closed, trained):
            ax.set(yscale="log", xlabel="family $q$")
            ax.margins(x=0.2, y=0.1)
    axes[0, 0].set_ylabel("closed form: distance\n(initial loss)")
    axes[1, 0].set_ylabel("trained: distance\n(initial loss; $|y|^2$)")
    contexts = [gated.task(results.cell(experiment)).contexts for experiment in EXPERIMENTS]
    style.letters(axes[0], [f"$C$ = {count}" for count in contexts])
    entries = [
        style.entry(name, linestyle="", **look)
        for name, look in [*CLOSED_FORMS.values(), *TRAINED.values()]
    ]
    style.legend(figure, entries, columns=3)
    return figure


def _draw(ax: Axes, cell: CellResults, metric: str, labels: list[dict], look: dict) -> None:
    """A metric at each label, a row of markers joined by a thin line."""
    values = gated.smallest(cell.get("metrics", metric))
    means = []
    for place, label in enumerate(labels):
        style.points(ax, place, values.sel(label), **look)
        means.append(float(values.sel(label).mean("seed")))
    ax.plot(means, color=look["color"], linewidth=0.8)
