"""Layer norms of the deepest linear network, and its bound (fig. 1 ii)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "growth": {
            "trajectory": "layer_norm",
            "metrics": "layer_strength quoted_strength_bound strength_bound",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Norm of every layer at each init scale, and the strength that theorem 3 bounds over it.

    A ratio above 1 breaks the bound.
    """
    cell = max(results.cells("growth"), key=lambda cell: len(cell.spec.layered.hidden))
    norms, time = cell.get("trajectory", "layer_norm"), cell.flow_time
    strength = cell.get("metrics", "layer_strength")
    bounds = {
        "bound, constants of the run": strength / cell.get("metrics", "strength_bound"),
        "Basu et al.: bound": strength / cell.get("metrics", "quoted_strength_bound"),
    }
    scales, layers = norms["init_scale"].values, norms["layer"].values
    layer_colours = style.ordered(len(layers))
    figure, axes = style.panels(len(scales) + 1, height=1.3)
    panels, ratios = axes[:-1, 0], axes[-1, 0]
    for index, ax in enumerate(panels):
        for layer, colour in zip(layers, layer_colours, strict=True):
            values = norms.isel(init_scale=index).sel(layer=layer)
            style.over_seeds(ax, time, values, color=colour)
        for position, ratio in enumerate(bounds.values()):
            worst = ratio.isel(init_scale=index).max("time")
            look = {"color": style.distinct((0, 3)[position]), "marker": style.marker(position)}
            style.points(ratios, index + 0.2 * (position - 0.5), worst, **look)
        ax.set(ylabel="Frobenius norm", xlim=(0, style.settled(norms, time)))
        ax.tick_params(labelbottom=ax is panels[-1])
    panels[-1].set_xlabel(style.FLOW_TIME)
    ratios.axhline(1, **style.GUIDE)
    ratios.set(yscale="log", xlabel="init scale", ylabel="strength over bound")
    ratios.set_xlim(-0.5, len(scales) - 0.5)
    ratios.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    titles = [f"init scale {scale:g}" for scale in scales]
    style.letters(axes[:, 0], [*titles, "largest ratio of strength to bound"])
    entries = [
        style.entry(f"$|W_{layer}|$", color=colour)
        for layer, colour in zip(layers, layer_colours, strict=True)
    ]
    entries += [
        style.entry(name, color=style.distinct((0, 3)[i]), marker=style.marker(i), linestyle="")
        for i, name in enumerate(bounds)
    ]
    limit = style.entry("where the bound breaks", **style.GUIDE)
    style.legend(figure, [*entries, style.BAND, limit], columns=2)
    return figure
