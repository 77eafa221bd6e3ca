"""Many domains that share one hidden layer: what they learn, when, and beyond training (fig. 4)."""

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

STARTS = {
    "random start": {"color": style.distinct(3)},
    "decoupled start": {"color": style.distinct(9), "linestyle": style.LINES[3]},
}
LAYERS = {
    "input layer": {"color": style.distinct(1)},
    "hidden layer": {"color": style.distinct(0)},
    "output layer": {"color": style.distinct(2), "linestyle": style.LINES[2], "linewidth": 1.4},
}
EXPECTED = {"color": "0.3", "marker": "<", "linestyle": "", "clip_on": False, "zorder": 4}
ROUNDING = {"color": style.distinct(0), "linestyle": style.LINES[2]}
# Distances below the precision of the arithmetic are drawn at it.
EPSILON = float(np.finfo(float).eps)


@Figure(
    reads={
        "pathways": {
            "trajectory": (
                "loss pair_outputs similarity singular_values trained_error untrained_error"
            ),
            "theory": "loss singular_values",
        },
        "pathways_decoupled pathways_step_size": {
            "trajectory": "loss",
            "theory": "loss",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Task, loss and singular values against theory, errors, and the pictures of one seed."""
    cell, decoupled = results.cell("pathways"), results.cell("pathways_decoupled")
    time = cell.flow_time
    figure = Canvas(figsize=(style.COLUMN, 9))
    rows = figure.add_gridspec(6, 1, height_ratios=(1.25, 1.15, 1.4, 1, 1.15, 2.4))
    task, pictures = (
        [figure.add_subplot(cell) for cell in rows[row].subgridspec(1, 2, width_ratios=widths)]
        for row, widths in ((0, (1, 1.3)), (-1, (1, 1)))
    )
    curves = [figure.add_subplot(rows[row]) for row in range(1, 5)]
    loss, values, errors, distance = curves

    targets = cell.domains.targets[0].T
    units, items = ([str(n) for n in range(1, count + 1)] for count in targets.shape)
    shades = style.heat(task[0], targets, targets.min(), targets.max(), units, items)
    task[0].set(xlabel="item", ylabel="output unit")
    figure.colorbar(shades, ax=task[0], label="target", aspect=14)
    domains.draw_mask(task[1], cell)

    for (name, look), each, solution in zip(
        STARTS.items(), (cell, decoupled), ("routing_race", "reduction"), strict=True
    ):
        simulated = _relative(each.get("trajectory", "loss"))
        predicted = _relative(each.get("theory", "loss", solution=solution))
        style.over_seeds(loss, each.flow_time, simulated, label=name, **look)
        loss.plot(each.flow_time, predicted.mean("seed"), **style.THEORY)
    loss.set_ylabel("loss over\ninitial loss")
    loss.legend(loc="upper right")
    style.epochs(loss, time)

    _draw_values(values, cell)
    domains.draw_errors(errors, cell)
    errors.legend(
        handles=[
            style.entry(f"{name} pairs", **look | {"marker": None})
            for name, look in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED))
        ],
        loc="lower left",
    )
    _draw_distance(distance, decoupled, results.cells("pathways_step_size"))
    for ax in curves:
        ax.set_xlim(0, float(time[-1]))
        ax.tick_params(labelbottom=ax is distance)
    distance.set_xlabel(style.FLOW_TIME)

    shades = domains.draw_similarity(pictures[0], cell)
    figure.colorbar(shades, ax=pictures[0], location="bottom", label="cosine", ticks=(-1, 0, 1))
    shades = domains.draw_outputs(pictures[1], cell)
    figure.colorbar(shades, ax=pictures[1], location="bottom", label="output", extend="both")
    titles = [
        "task of one pair",
        "trained pairs",
        "loss",
        "singular values",
        "pairs of domains",
        "decoupled start: distance from theory",
        "first hidden layer",
        "outputs of all pairs",
    ]
    style.letters([*task, *curves, *pictures], titles)
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [style.BAND, theory], columns=2)
    return figure


def _relative(loss: xr.DataArray) -> xr.DataArray:
    """Loss over initial loss of the runs of one init scale, free of its normalisation."""
    loss = loss.isel(init_scale=0)
    return loss / loss.isel(time=0, drop=True)


def _draw_values(ax: Axes, cell: CellResults) -> None:
    """Singular values of the layers by mode, and where sqrt(M) puts those of the hidden layer."""
    simulated = cell.get("trajectory", "singular_values").isel(init_scale=0)
    predicted = cell.get("theory", "singular_values", solution="routing_race").isel(init_scale=0)
    modes = list(style.mode_colours(cell.strength))
    for layer, look in enumerate(LAYERS.values()):
        for mode in modes:
            values = simulated.isel(layer=layer).sel(singular_mode=mode)
            style.over_seeds(ax, cell.flow_time, values, **look)
            theory = predicted.isel(layer=layer).sel(singular_mode=mode).mean("seed")
            ax.plot(cell.flow_time, theory, **style.THEORY)
    size = cell.routing.families(cell.spec.dataset.count)[0].size
    ends = simulated.isel(layer=0, time=-1).sel(singular_mode=modes).mean("seed") * size**0.5
    ax.plot([cell.flow_time[-1]] * len(modes), ends, **EXPECTED)
    ax.set(ylabel="singular value", ylim=(0, 1.5 * ends.max()))
    entries = [style.entry(name, **look) for name, look in LAYERS.items()]
    ratio = style.entry(rf"$\sqrt{{M}}$ x input layer, $M$ = {size}", **EXPECTED)
    ax.legend(handles=[*entries, ratio], loc="upper left", ncols=2)


def _draw_distance(ax: Axes, cell: CellResults, finer: list[CellResults]) -> None:
    """Distance of the loss from the reduction under the same steps, and from its gradient flow."""
    finer = sorted(finer, key=lambda each: each.spec.training.learning_rate, reverse=True)
    lines = [
        (each, "reduction", {"color": colour})
        for each, colour in zip(finer, style.ordered(len(finer)), strict=True)
    ]
    for each, solution, look in [*lines, (cell, "reduction_descent", ROUNDING)]:
        predicted = _relative(each.get("theory", "loss", solution=solution))
        off = abs(_relative(each.get("trajectory", "loss")) - predicted)
        style.over_seeds(ax, each.flow_time, off.clip(min=EPSILON), **look)
    ax.set(yscale="log", ylabel="distance\n(initial loss)")
    entries: list[Artist] = [
        style.entry(rf"flow, step {_step(each):.2g} $\tau$", **look) for each, _, look in lines
    ]
    entries.append(style.entry("same steps", **ROUNDING))
    ax.legend(handles=entries, loc="lower left", bbox_to_anchor=(0, 0.1), ncols=2)


def _step(cell: CellResults) -> float:
    """Gradient-flow time of a step."""
    return float(cell.flow_time[-1] / cell.flow_time["time"][-1])
