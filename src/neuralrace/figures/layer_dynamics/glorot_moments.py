"""What Glorot initialisation makes of C and of the layer norms."""

from itertools import pairwise

import seaborn as sns
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure
from neuralrace.theory.balance import expected_imbalance, glorot_squared_norm

NAMES = {"standard": r"variance $2/(n_{l-1}+n_l)$", "product": r"variance $1/(n_{l-1} n_l)$"}
"""Entry variance by the name that the initialisation law gives it."""


@Figure(
    reads={
        "glorot_moments": {
            "metrics": "initial_imbalance_squared initial_squared_norm",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Distribution over seeds of |C|^2 at the start for each variance, and squared layer norms.

    Of several pairs of layers, the first.
    """
    cells = results.cells("glorot_moments")
    figure, axes = style.panels(len(cells) + 1, height=1.4)
    norms = axes[-1, 0]
    entries, titles = [], []
    for index, cell in enumerate(cells):
        ax, data, law = axes[index, 0], cell.spec.dataset.load(), cell.spec.init
        scale = float(cell.metrics["init_scale"][0])
        widths = (data.x.shape[1], *cell.spec.layered.hidden, data.y.shape[1])
        expected = [
            scale**2 * (glorot_squared_norm(*pair) if law.variance == "standard" else 1.0)
            for pair in pairwise(widths)
        ]
        imbalance = cell.get("metrics", "initial_imbalance_squared").isel(init_scale=0, pair=0)
        colour, marker = style.distinct(index), style.marker(index)
        sns.histplot(imbalance.values, stat="density", color=colour, alpha=0.45, linewidth=0, ax=ax)
        ax.axvline(float(imbalance.mean()), color=colour)
        ax.axvline(expected_imbalance(expected[0], expected[1], *widths[:3]), **style.THEORY)
        ax.axvline(0, **style.PAPER)
        ax.set(xlabel="$|C|^2$ at the start", ylabel="density")

        squares = cell.get("metrics", "initial_squared_norm").isel(init_scale=0)
        for layer, value in zip(squares["layer"].values, expected, strict=True):
            at = layer + 0.2 * (index - (len(cells) - 1) / 2)
            style.points(norms, at, squares.sel(layer=layer), color=colour, marker=marker)
            norms.plot([at - 0.08, at + 0.08], [value, value], **style.THEORY)
        entries.append(style.entry(NAMES[law.variance], color=colour, marker=marker))
        titles.append(NAMES[law.variance])
    norms.set(xlabel="layer", ylabel="squared norm", ylim=(0, None), xticks=squares["layer"].values)
    style.letters(axes[:, 0], [*titles, "squared norms of both layers"])
    expectation = style.entry("expected", **style.THEORY)
    stated = style.entry("Basu et al.: expected", **style.PAPER)
    style.legend(figure, [*entries, expectation, stated], columns=2)
    return figure
