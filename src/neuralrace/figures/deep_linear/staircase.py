"""Singular modes learned one by one from small random weights."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "staircase": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Mode strengths at each init scale and the loss at all of them, against the closed form."""
    cell = results.cell("staircase")
    modes, loss = cell.get("trajectory", "mode_strength"), cell.get("trajectory", "loss")
    closed_modes = cell.get("theory", "mode_strength", solution="aligned_modes").mean("seed")
    closed_loss = cell.get("theory", "loss", solution="aligned_modes").mean("seed")
    scales, time = modes["init_scale"].values, cell.flow_time
    strength = cell.strength

    figure, axes = style.panels(len(scales) + 1, height=1.25, sharex=True)
    last = axes[-1, 0]
    for ax, scale, scale_colour in zip(
        axes[:, 0], scales, style.ordered(len(scales)), strict=False
    ):
        at = {"init_scale": scale}
        for mode, colour in style.mode_colours(strength).items():
            style.over_seeds(ax, time, modes.sel(at | {"mode": mode}), color=colour)
            ax.plot(time, closed_modes.sel(at | {"mode": mode}), **style.THEORY)
        ax.set_ylabel("mode strength")
        style.over_seeds(last, time, loss.sel(at), color=scale_colour, label=f"{scale:g}")
        last.plot(time, closed_loss.sel(at), **style.THEORY)
    last.legend(title="init scale", loc="upper right")
    last.set(xlabel=style.FLOW_TIME, ylabel="training loss", xlim=(0, time[-1]))
    style.epochs(axes[0, 0], time)
    style.letters(axes[:, 0], [*(f"init scale {scale:g}" for scale in scales), "loss"])
    entries = [
        *style.mode_entries(strength),
        style.BAND,
        style.entry("closed form", **style.THEORY),
    ]
    style.legend(figure, entries, columns=3)
    return figure
