"""XoR with a linear margin: how soon ReLU and gated networks learn it (fig. 2d, e)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.datasets.xor import CROSSOVER
from neuralrace.figures import margins, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

ALONE = {
    "margin_linear": {"label": "linear pathways alone", "linestyle": style.LINES[2]},
    "margin_xor": {"label": "XoR pathways alone", "linestyle": style.LINES[3]},
}
"""Theories of one kind of pathway, with their looks."""


@Figure(
    reads={
        "xor_margin": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "loss_half_time predicted_loss_half_time",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Times to half of the loss by margin, and losses below, near and above equal speed.

    Either kind of pathway alone is drawn for the smallest init scale among the times, and for the
    largest among the losses, where a fall takes longest in its own time.
    """
    cells = margins.by_margin(results, "xor_margin")
    shown = [cells[index] for index in examples([margins.margin(cell) for cell in cells])]
    figure = Canvas(figsize=(style.COLUMN, 2.5 + 0.95 * len(shown)))
    times, *losses = figure.subplots(
        1 + len(shown), 1, height_ratios=[1.8, *[1] * len(shown)], squeeze=False
    )[:, 0]
    _draw_times(times, cells)
    for ax, cell in zip(losses, shown, strict=True):
        _draw_losses(ax, cell)
    end = max(
        style.settled(_of_scale(cell.get("trajectory", "loss"), 0), cell.flow_time)
        for cell in shown
    )
    for ax in losses:
        ax.set_xlim(0, 1.2 * end)
        ax.tick_params(labelbottom=ax is losses[-1])
    losses[-1].set_xlabel(style.FLOW_TIME)
    titles = [rf"loss at $\Delta$ = {margins.margin(cell):.4g}" for cell in shown]
    style.letters([times, *losses], ["time to half of the loss", *titles])
    alone = [style.entry(**style.GUIDE | look) for look in ALONE.values()]
    theory = style.entry("theory: both kinds race", **style.THEORY)
    style.legend(figure, [*margins.entries(cells[0]), *alone, theory, style.BAND], columns=2)
    return figure


def examples(values: Sequence[float]) -> list[int]:
    """Places, in rising values, of the one nearest to equal speed and of one to either side."""
    near = int(abs(np.asarray(values) - CROSSOVER).argmin())
    return sorted({near // 2, near, (near + len(values)) // 2})


def _of_scale(values: xr.DataArray, rank: int) -> xr.DataArray:
    """Values of the runs of one init scale, 0 the largest and -1 the smallest."""
    return values.isel(init_scale=np.argsort(-values["init_scale"].values)[rank])


def _draw_times(ax: Axes, cells: list[CellResults]) -> None:
    """Flow time to half of the loss by margin, of networks and of theory."""
    places = [margins.margin(cell) for cell in cells]

    def predicted(solution: str, scale: float) -> list[float]:
        """Mean over seeds by margin; NaN where some never get there."""
        return [
            float(
                cell.get("metrics", "predicted_loss_half_time", solution=solution)
                .sel(init_scale=scale)
                .mean("seed", skipna=False)
            )
            for cell in cells
        ]

    scales = margins.scales(cells[0])
    for scale, look in scales.items():
        measured = [cell.get("metrics", "loss_half_time").sel(init_scale=scale) for cell in cells]
        for place, each in zip(places, measured, strict=True):
            style.points(ax, place, each, **look)
        ax.plot(places, predicted("margin_race", scale), **style.THEORY)
    top = ax.dataLim.y1
    for solution, look in ALONE.items():
        ax.plot(places, predicted(solution, min(scales)), **style.GUIDE | look)
    margins.draw_crossover(ax)
    ax.set(xlabel=margins.LABEL, ylabel=r"flow time (units of $\tau$)", ylim=(0, 1.1 * top))


def _draw_losses(ax: Axes, cell: CellResults) -> None:
    """Loss at the largest init scale, the race on top, and either kind of pathway alone."""
    scale, look = next(iter(margins.scales(cell).items()))
    at = {"init_scale": scale}
    loss = cell.get("trajectory", "loss").sel(at)
    style.over_seeds(ax, cell.flow_time, loss, color=look["color"])
    for solution, line in {**ALONE, "margin_race": style.THEORY}.items():
        theory = cell.get("theory", "loss", solution=solution).sel(at).mean("seed")
        ax.plot(cell.flow_time, theory, **({} if solution == "margin_race" else style.GUIDE) | line)
    ax.set(ylabel="loss", ylim=(0, 1.1 * float(loss.max())))
