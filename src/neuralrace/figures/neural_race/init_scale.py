"""From the race to the lazy regime: loss and errors by init scale (fig. 6a, b)."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

LEAST_LOSS = 1e-5
"""Lower end of the axis of the loss, where runs have long generalised."""


@Figure(
    reads={
        "init_scale": {
            "trajectory": "loss",
            "metrics": "final_trained_error final_untrained_error initial_rate_share stages",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Loss over time at every init scale, errors at the end, and how stage-like the loss falls."""
    cell = results.cell("init_scale")
    loss = cell.get("trajectory", "loss")
    loss = loss / loss.isel(time=0, drop=True)
    scales = loss["init_scale"].values.tolist()
    figure, axes = style.panels(4, height=1.45, height_ratios=(1.5, 1.2, 0.8, 0.8))
    losses, errors, stages, rates = axes[:, 0]
    colours = style.ordered(len(scales))
    for index, colour in enumerate(colours):
        style.over_seeds(losses, cell.flow_time, loss.isel(init_scale=index), color=colour)
    losses.set(yscale="log", ylim=(LEAST_LOSS, 1.5), ylabel="loss over initial loss")
    losses.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    style.epochs(losses, cell.flow_time)

    def draw_metric(ax: Axes, name: str, look: dict[str, Any], least: float = 0) -> None:
        values = cell.get("metrics", name).clip(min=least)
        domains.draw_ends(ax, scales, list(values.transpose("init_scale", "seed")), look)

    for name, look in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        draw_metric(errors, f"final_{name}_error", look, domains.FLOOR)
        errors.plot([], [], label=f"{name} pairs", **look)
    errors.set(yscale="log", ylabel="relative error")
    errors.legend(loc="center right")
    draw_metric(stages, "stages", {"color": "0.3", "marker": "o"})
    draw_metric(rates, "initial_rate_share", {"color": "0.3", "marker": "o"})
    stages.set(ylabel="drops of\nthe loss")
    rates.set(ylabel="initial over\nlargest rate", ylim=(0, 1.05), xlabel="init scale")
    for ax in (errors, stages, rates):
        ax.sharex(rates)
        ax.tick_params(labelbottom=ax is rates)
    titles = ["loss", "error at the end of training", "stages", "rate of learning"]
    style.letters(axes[:, 0], titles)
    entries = [
        style.entry(f"{scale:g}", color=colour)
        for scale, colour in zip(scales, colours, strict=True)
    ]
    figure.legend(
        handles=[*entries, style.BAND], title="init scale", loc="outside upper center", ncols=4
    )
    return figure
