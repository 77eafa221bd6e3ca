"""What depth does to the growth bound, and to growth (fig. 1 iii)."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "growth": {
            "trajectory": "",
            "metrics": "product_norm",
        },
        "small_weights": {
            "trajectory": "",
            "metrics": "bound_by_depth",
        },
    }
)
def draw(results: Results) -> Canvas:
    """The bound at each depth with the quoted constants; simulated growth at each depth.

    Every start has a bound of its own: one line each, the median start bold.
    """
    small = results.cell("small_weights")
    grown = sorted(results.cells("growth"), key=lambda cell: len(cell.spec.layered.hidden))
    bounds = small.get("metrics", "bound_by_depth")
    depths, scales = bounds["depth"].values, bounds["init_scale"].values
    colours = style.ordered(len(depths))
    figure, axes = style.panels(len(scales) + 1, height=1.5)
    for index, ax in enumerate(axes[:-1, 0]):
        curves = bounds.isel(init_scale=index)
        starts = curves.isel(depth=0, time=0).values
        typical = int(np.argsort(starts)[len(starts) // 2])
        curves = curves / curves.max(("depth", "time"))
        for depth, colour in enumerate(colours):
            curve = curves.isel(depth=depth).transpose("time", "seed")
            ax.plot(small.flow_time, curve, color=colour, linewidth=0.6, alpha=0.5)
            ax.plot(small.flow_time, curve.isel(seed=typical), color=colour)
        ax.set(ylabel="bound over its plateau", xlim=(0, style.settled(curves, small.flow_time)))
    simulated = axes[-1, 0]
    ends = []
    for cell in grown:
        depth = len(cell.spec.layered.hidden) + 1
        product = cell.get("metrics", "product_norm")
        product = product.isel(init_scale=int(product["init_scale"].values.argmin()))
        share = product / product.isel(time=-1)
        line = dict(zip(depths, colours, strict=True)).get(depth, "0.5")
        style.over_seeds(simulated, cell.flow_time, share, color=line)
        ends.append(style.settled(share.mean("seed"), cell.flow_time))
    simulated.set(xlim=(0, max(ends)), ylabel=r"$|\prod W|$ over its end", xlabel=style.FLOW_TIME)
    least = float(grown[0].trajectory["init_scale"].min())
    titles = [f"bound, init scale {scale:g}" for scale in scales]
    style.letters(axes[:, 0], [*titles, f"simulated growth, init scale {least:g}"])
    entries = [
        style.entry(f"{depth} layers", color=colour)
        for depth, colour in zip(depths, colours, strict=True)
    ]
    style.legend(figure, [*entries, style.BAND], columns=4)
    return figure
