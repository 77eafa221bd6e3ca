"""How fast modes cease to interfere."""

from typing import Literal

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.gram import vectors
from neuralrace.records.results import Results
from neuralrace.registry import Figure
from neuralrace.theory.tied import cosines, first_order_interference

FLOOR = 1e-3
"""Least share of the initial cosine that is drawn."""
RULES: dict[str, Literal["sum", "larger"]] = {
    "decay_over_sum": "sum",
    "decay_over_larger": "larger",
}


@Figure(
    reads={
        "interference_pair interference_many": {
            "trajectory": "gram",
            "metrics": "decay_over_larger decay_over_sum",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Cosine of the two strongest modes against two rules, and the decay of all pairs in both."""
    cells = [*results.cells("interference_pair"), *results.cells("interference_many")]
    counts = [int((cell.strength != 0).sum()) for cell in cells]
    figure, axes = style.panels(len(cells) + 1, height=1.45)
    for ax, cell in zip(axes[:, 0], cells, strict=False):
        gram = vectors(cell)[0].isel(init_scale=0)
        time = cell.flow_time
        simulated = _strongest(gram, cosines(gram.values))
        rules = [
            _strongest(gram, first_order_interference(time.values, gram.values, rate))
            for rate in RULES.values()
        ]
        style.over_seeds(ax, time, simulated, color=style.distinct(0))
        for rule, look in zip(rules, (style.THEORY, style.PAPER), strict=True):
            ax.plot(time, rule.mean("seed"), **look)
        ax.set(ylabel="|cosine| over\ninitial |cosine|", yscale="log", ylim=(FLOOR, 1.6))
        ax.set_xlim(0, float(time[rules[0].max("seed") > FLOOR].max()))
    axes[len(cells) - 1, 0].set_xlabel(style.FLOW_TIME)

    ax = axes[-1, 0]
    curves = []
    for line, cell, count in zip(style.LINES, cells, counts, strict=False):
        for index, (metric, rule) in enumerate(RULES.items()):
            look = {"color": style.distinct(index), "linestyle": line, "linewidth": 1.2}
            values = cell.get("metrics", metric).values
            sns.ecdfplot(x=values[np.isfinite(values)], ax=ax, **look)
            curves.append(style.entry(f"{count} modes, {rule} rule", **look))
    ax.axvline(1, **style.GUIDE)
    ax.set(xscale="log", xlabel="decay over that of rule", ylabel="share of pairs\nand seeds")
    titles = [f"strongest two of {count} modes" for count in counts]
    style.letters(axes[:, 0], [*titles, "decay of every pair and seed"])
    entries = [
        style.entry("simulation", color=style.distinct(0)),
        style.BAND,
        style.entry("sum of squared norms", **style.THEORY),
        style.entry("Saxe et al.: larger one", **style.PAPER),
    ]
    style.legend(figure, [*entries, *curves], columns=2)
    return figure


def _strongest(gram: xr.DataArray, cosine: np.ndarray) -> xr.DataArray:
    """Size of the cosine of the two strongest modes over its start, on the axes of `gram`."""
    return gram.copy(data=abs(cosine / cosine[:, :1])).isel(mode=0, other_mode=1)
