"""In how many contexts the units of a ReLU network are open that carry the residual."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

EXPERIMENTS = ("three_contexts", "four_contexts", "five_contexts")
PARTS = {
    "carried_residual": ("residual", {"color": style.distinct(3), "marker": "o"}),
    "carried_common": ("common part", {"color": style.distinct(9), "marker": "s"}),
}
"""Metrics, what to call them and how to draw them."""


@Figure(
    reads={
        "three_contexts four_contexts five_contexts": {
            "metrics": "carried_common carried_residual",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Shares of the residual and of the common part, beside the speed of each family."""
    figure, axes = style.panels(len(EXPERIMENTS), height=1.25)
    for ax, experiment in zip(axes[:, 0], EXPERIMENTS, strict=True):
        cell = results.cell(experiment)
        contexts = gated.task(cell).contexts
        numbers = np.arange(contexts + 1)
        speed = np.sqrt(numbers * (contexts - numbers) / contexts)
        for offset, (metric, (_, look)) in zip((-0.1, 0.1), PARTS.items(), strict=True):
            carried = gated.smallest(cell.get("metrics", metric))
            for number, share in zip(
                numbers, carried.transpose("open_contexts", "seed"), strict=True
            ):
                style.points(ax, number + offset, share, **look)
        ax.plot(numbers, speed / speed.max(), **style.THEORY)
        ax.axvline(contexts - 1, **style.PAPER | {"zorder": 0})
        ax.set(
            xticks=numbers, xlim=(-0.4, contexts + 0.4), ylim=(-0.06, 1.06), ylabel="share carried"
        )
    axes[-1, 0].set_xlabel("contexts that a unit is open in, $q$")
    style.letters(
        axes[:, 0], [f"$C$ = {gated.task(results.cell(e)).contexts}" for e in EXPERIMENTS]
    )
    entries = [style.entry(name, linestyle="", **look) for name, look in PARTS.values()]
    entries.append(style.entry(r"speed $\sqrt{q(C-q)/C}$ over largest", **style.THEORY))
    entries.append(style.entry("Jarvis et al.: $C - 1$", **style.PAPER))
    style.legend(figure, [*entries], columns=2)
    return figure
