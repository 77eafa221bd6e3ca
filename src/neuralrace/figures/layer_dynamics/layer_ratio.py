"""How unequal two layers end that start aligned and unequal."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.gram import diagonal, vectors
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "unequal_layers": {
            "trajectory": "gram",
            "theory": "layer_strength",
            "metrics": "final_layer_ratio final_layer_ratio_over_limit",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Ratio of the larger to the smaller layer in each mode over time, at each init scale."""
    cell = results.cell("unequal_layers")
    encoder, decoder, _ = vectors(cell)
    ratio = (diagonal(encoder) / diagonal(decoder)) ** 0.5
    ratio = ratio.where(ratio >= 1, 1 / ratio)
    layers = cell.get("theory", "layer_strength")
    predicted = (layers.max("layer") / layers.min("layer")).mean("seed")
    ends = cell.get("metrics", "final_layer_ratio")
    limit = (ends / cell.get("metrics", "final_layer_ratio_over_limit")).mean("seed")
    time, scales = cell.flow_time, ratio["init_scale"].values
    figure, axes = style.panels(len(scales), height=1.4, sharex=True)
    end = style.settled(ratio, time)
    for index, ax in enumerate(axes[:, 0]):
        at = {"init_scale": index}
        for mode, colour in style.mode_colours(cell.strength).items():
            style.over_seeds(ax, time, ratio.isel(at).sel(mode=mode), color=colour)
            ax.plot(time, predicted.isel(at).sel(mode=mode), **style.THEORY)
            level = limit.isel(at).sel(mode=mode)
            ax.plot(end, level, marker="<", color=colour, markersize=5, clip_on=False, zorder=4)
        ax.axhline(1, **style.PAPER)
        ax.set(ylabel="larger over\nsmaller layer", xlim=(0, end), ylim=(0, None))
    axes[-1, 0].set_xlabel(style.FLOW_TIME)
    style.letters(axes[:, 0], [f"init scale {scale:g}" for scale in scales])
    entries = [
        *style.mode_entries(cell.strength),
        style.BAND,
        style.entry("eq. 13", **style.THEORY),
        style.entry("limit from $\\delta$ and $s$", color="0.3", marker="<", linestyle=""),
        style.entry("Basu et al.: limit", **style.PAPER),
    ]
    style.legend(figure, entries, columns=3)
    return figure
