"""Frozen gates in place of those of a ReLU network: loss and receptive fields (sec. 2.2)."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import frozen, gated, receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

LOSSES = ("frozen_fresh_loss", "frozen_limit_fresh_loss", "relu_fresh_loss")
SPREADS = ("frozen_participation", "frozen_limit_participation", "participation")
"""With frozen gates at the end of training and after infinite time, and of the ReLU network."""
UNITS = 3
"""How many units are shown."""


@Figure(
    reads={
        "prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": (
                "frozen_fresh_loss frozen_limit_fresh_loss frozen_limit_participation "
                "frozen_loss frozen_participation participation relu_fresh_loss"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Loss on fresh samples and participation by source of gates, and units of either network.

    Units are the first ones of the first seed, at the end of training.
    """
    cells = results.cells("prediction")
    figure = Canvas(figsize=(style.COLUMN, 5.4))
    losses, spreads, fields = figure.subplots(
        3, len(cells), height_ratios=(1.25, 1.25, 1.2), sharey="row", sharex="row", squeeze=False
    )
    for cell, loss, spread, units in zip(cells, losses, spreads, fields, strict=True):
        _draw_sources(loss, cell, *LOSSES)
        _draw_sources(spread, cell, *SPREADS)
        receptive.draw(units, _units(receptive.learned(cell)), **frozen.RELU)
        theory = gated.smallest(cell.get("theory", "receptive_fields", solution="initial_gates"))
        receptive.draw(units, _units(theory), **style.THEORY)
        loss.set_xlabel("loss on fresh samples")
        spread.set_xlabel("participation")
        units.set_xlabel(receptive.PLACE)
    names = list(frozen.sources(cells[0]).values())
    for first in (losses[0], spreads[0]):
        first.set_yticks(range(len(names)), names)
        first.invert_yaxis()
        first.set_xlim(0, None)
        first.locator_params(axis="x", nbins=4)
    fields[0].set_ylabel(f"weights of units 1 to {UNITS}")
    style.letters(losses, [rf"$\xi_1, \xi_2$ = {receptive.lengths(cell)}" for cell in cells])
    entries = [
        style.entry("ReLU network", **frozen.RELU),
        style.entry("frozen gates, end of training", linestyle="", **frozen.MATCHED),
        style.entry("frozen gates, infinite time", linestyle="", **frozen.LIMIT),
        style.entry("gates of the start", **style.THEORY),
    ]
    style.legend(figure, entries, columns=2)
    return figure


def _draw_sources(ax: Axes, cell: CellResults, matched: str, limit: str, relu: str) -> None:
    """A value by source of gates, in rows, and that of the ReLU network."""
    for metric, offset, look in ((matched, -0.17, frozen.MATCHED), (limit, 0.17, frozen.LIMIT)):
        for row, source in enumerate(frozen.sources(cell)):
            values = gated.smallest(cell.get("metrics", metric, gates_from=source))
            style.points(ax, row + offset, values, across=True, **look)
    frozen.draw_relu(ax, gated.smallest(cell.get("metrics", relu)), across=True)


def _units(fields: xr.DataArray) -> receptive.Fields:
    """Receptive fields of the first units of the first seed."""
    return fields.isel(seed=0).values[:UNITS]
