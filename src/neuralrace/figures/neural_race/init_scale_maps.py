"""Representations and outputs of all pairs, from the race to the lazy regime (fig. 6c, d)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "init_scale": {
            "trajectory": "pair_outputs similarity",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Cosines in the first hidden layer, and outputs, at the smallest, a middle, the largest scale.

    One seed, at the end of training.
    """
    cell = results.cell("init_scale")
    scales = cell.trajectory["init_scale"].values
    order = scales.argsort().tolist()
    shown = list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]]))
    figure, axes = style.panels(2, len(shown), height=1.75)
    for above, below, index in zip(*axes, shown, strict=True):
        cosines = domains.draw_similarity(above, cell, index)
        outputs = domains.draw_outputs(below, cell, index)
        above.set_xlabel("")
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
        ax.tick_params(labelleft=False)
    figure.colorbar(cosines, ax=axes[0], label="cosine", ticks=(-1, 0, 1))
    figure.colorbar(outputs, ax=axes[1], label="output", extend="both")
    names = [rf"$\sigma_0$ = {scales[index]:g}" for index in shown]
    style.letters(axes.flat, [*names, *names])
    return figure
