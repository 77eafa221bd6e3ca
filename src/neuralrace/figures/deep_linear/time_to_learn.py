"""How long a mode takes against how strong it is."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "time_to_learn": {
            "metrics": (
                "half_time half_time_over_predicted half_time_over_written half_time_times_s"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Time to half of each mode's target, with the closed form and the paper's formula."""
    cell = results.cell("time_to_learn")
    half = cell.get("metrics", "half_time")
    predicted = (half / cell.get("metrics", "half_time_over_predicted")).mean("seed")
    written = (half / cell.get("metrics", "half_time_over_written")).mean("seed")
    inverse = (half / cell.get("metrics", "half_time_times_s")).mean(("init_scale", "seed")).values
    scales = half["init_scale"].values

    figure, axes = style.panels(2, height=1.9, sharex=True)
    for index, colour in enumerate(style.ordered(len(scales))):
        look = {"color": colour, "marker": style.marker(index)}
        for mode, x in enumerate(inverse):
            style.points(axes[0, 0], x, half.isel(init_scale=index, mode=mode), **look)
        ratio = half.isel(init_scale=index) / predicted.isel(init_scale=index)
        axes[1, 0].plot(inverse, ratio.mean("seed"), linestyle="none", **look)
        axes[1, 0].plot(inverse, written[index] / predicted[index], **style.PAPER)
        axes[0, 0].plot(inverse, predicted[index], **style.THEORY)
        axes[0, 0].plot(inverse, written[index], **style.PAPER)
    axes[1, 0].axhline(1, **style.THEORY)
    axes[0, 0].set(
        xscale="log", yscale="log", ylabel="time to half strength\n" + r"(units of $\tau$)"
    )
    axes[1, 0].set(
        xlabel="inverse singular value $1/s$", ylabel="over closed form", ylim=(0.8, None)
    )
    ticks = np.round(inverse, 2)
    axes[1, 0].set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes[1, 0].minorticks_off()
    style.letters(
        axes[:, 0], ["time to half of each mode's target", "the same over the closed form"]
    )
    entries = [
        style.entry(f"init scale {scale:g}", color=colour, marker=style.marker(i), linestyle="none")
        for i, (scale, colour) in enumerate(zip(scales, style.ordered(len(scales)), strict=True))
    ]
    style.legend(
        figure,
        [
            *entries,
            style.entry(r"closed form $\log(s/\epsilon-1)/2s$", **style.THEORY),
            style.entry(r"Saxe et al.: $\log(s/\epsilon)/s$", **style.PAPER),
        ],
        columns=2,
    )
    return figure
