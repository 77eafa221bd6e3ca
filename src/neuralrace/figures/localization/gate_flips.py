"""When gates flip, beside when receptive fields localise (sec. 2.1)."""

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

CLOCK = "snapshot_flow_time"


@Figure(
    reads={
        "gate_flips": {
            "metrics": (
                "gate_flip_fraction gate_flips_between participation_curve predicted_gate_flips"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """By marginal: flips from the start, participation, and flips between any two times.

    The last are at the largest init scale, where they take longest.
    """
    cells = results.cells("gate_flips")
    figure = Canvas(figsize=(style.COLUMN, 4.8))
    axes = figure.subplots(3, len(cells), height_ratios=[1, 1, 1.3], squeeze=False)
    looks = _looks(cells[0])
    slowest = max(looks)
    between = [
        _first_layer(cell, "gate_flips_between").sel(init_scale=slowest).mean("seed")
        for cell in cells
    ]
    largest = max(float(each.max()) for each in between)
    for (flips, spread, pairs), cell, values in zip(axes.T, cells, between, strict=True):
        _draw_curves(flips, _first_layer(cell, "gate_flip_fraction"), looks)
        predicted = cell.get("metrics", "predicted_gate_flips").mean("seed")
        for scale in looks:
            flips.plot(predicted[CLOCK], predicted.sel(init_scale=scale), **style.THEORY)
        _draw_curves(spread, cell.get("metrics", "participation_curve"), looks)
        time = values[CLOCK]
        shades = pairs.pcolormesh(time, time, values, vmin=0, vmax=largest, cmap=style.HEAT)
        pairs.set_aspect("equal")
    figure.colorbar(shades, ax=list(axes[2]), label="gates that differ", aspect=12)
    for row, label in zip(axes, ("gates unlike the start", "participation"), strict=False):
        for ax in row:
            ax.set_ylim(0, 1.05 * max(beside.dataLim.y1 for beside in row))
        row[0].set_ylabel(label)
    axes[2, 0].set_ylabel(r"flow time (units of $\tau$)")
    figure.supxlabel(style.FLOW_TIME, fontsize=style.SHEET["axes.labelsize"])
    names = [receptive.marginal(cell) for cell in cells]
    others = [""] * len(cells) + [f"init scale {slowest:g}"] * len(cells)
    style.letters(axes.ravel(), [*names, *others])
    entries = [style.entry(f"init scale {scale:g}", **look) for scale, look in looks.items()]
    theory = style.entry("Gaussian formula", **style.THEORY)
    style.legend(figure, [*entries, theory, style.BAND], columns=3)
    return figure


def _first_layer(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric of hidden layers, of the first of them."""
    return cell.get("metrics", metric).sel(layer=1, drop=True)


def _looks(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Looks by init scale, the smallest first."""
    scales = sorted(cell.metrics["init_scale"].values.tolist())
    return {
        scale: {"color": colour, "linestyle": style.LINES[index % len(style.LINES)]}
        for index, (scale, colour) in enumerate(
            zip(scales, style.ordered(len(scales)), strict=True)
        )
    }


def _draw_curves(ax: Axes, curve: xr.DataArray, looks: dict[float, dict[str, Any]]) -> None:
    """A curve over snapshots by init scale."""
    for scale, look in looks.items():
        style.over_seeds(ax, curve[CLOCK], curve.sel(init_scale=scale), **look)
    ax.set_xlim(0, float(curve[CLOCK][-1]))
