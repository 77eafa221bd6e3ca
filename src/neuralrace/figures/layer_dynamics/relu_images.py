"""Layer norms of a ReLU network that learns images (fig. 2)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "images": {
            "trajectory": "layer_norm relative_rate_gap",
            "metrics": "early_relative_rate_gap late_relative_rate_gap",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Growth of norms and squared norms; how far apart adjacent layers' rates are and stay."""
    cells = sorted(results.cells("images"), key=lambda cell: cell.spec.layered.bias)
    cell, time = cells[0], cells[0].trajectory["time"]
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=0)
    gaps = cell.get("trajectory", "relative_rate_gap").isel(init_scale=0)
    layers, pairs = norms["layer"].values, gaps["pair"].values
    colours = style.ordered(len(layers))
    figure, axes = style.panels(4, height=1.4)
    growth, squares, apart, late = axes[:, 0]
    for layer, colour in zip(layers, colours, strict=True):
        at = norms.sel(layer=layer)
        line = {"color": colour, "linewidth": 1.4}
        style.over_seeds(growth, time, at - at.isel(time=0), **line)
        style.over_seeds(squares, time, at**2 - at.isel(time=0) ** 2, **line)
    for pair, colour in zip(pairs, colours, strict=False):
        style.over_seeds(apart, time, gaps.sel(pair=pair), color=colour, linewidth=1.4)
    growth.set_ylabel("growth of norm")
    squares.set_ylabel("growth of\nsquared norm")
    apart.set(ylabel="relative rate gap", xlabel=f"training time ({time.attrs['units']})")
    for ax in (growth, squares, apart):
        ax.set_xlim(0, float(time[-1]))
        ax.tick_params(labelbottom=ax is apart)

    for index, cell in enumerate(cells):
        for shift, when in ((-0.2, "early"), (0.2, "late")):
            values = cell.get("metrics", f"{when}_relative_rate_gap").isel(init_scale=0)
            look = _look(index, when)
            for pair in pairs:
                at = pair + shift + 0.14 * (index - (len(cells) - 1) / 2)
                style.points(late, at, values.sel(pair=pair), **look)
    late.set(ylabel="relative rate gap", xlabel="adjacent layers", xticks=pairs)
    late.set_xticklabels([f"{pair}, {pair + 1}" for pair in pairs])
    for ax in (apart, late):
        ax.set_ylim(0, None)
    name = "with biases" if cells[0].spec.layered.bias else "without biases"
    titles = [f"layers, {name}", "the same, squared", f"adjacent layers, {name}"]
    style.letters(axes[:, 0], [*titles, "first and last tenth of training"])
    entries = [
        style.entry(f"layer {layer}", color=colour)
        for layer, colour in zip(layers, colours, strict=True)
    ]
    marks = [
        style.entry(
            f"d: {when}, {'with' if cell.spec.layered.bias else 'no'} biases",
            linestyle="",
            **_look(index, when),
        )
        for index, cell in enumerate(cells)
        for when in ("early", "late")
    ]
    style.legend(figure, [*entries, style.BAND, *marks], columns=3)
    return figure


def _look(index: int, when: str) -> dict:
    look = {"color": style.distinct(index), "marker": style.marker(index)}
    return look | ({"markerfacecolor": "white"} if when == "early" else {})
