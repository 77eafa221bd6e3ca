"""Receptive fields of ReLU networks that learn from single pulses (sec. 1)."""

from typing import Any

from matplotlib.figure import Figure as Canvas

from neuralrace.datasets.single_pulse import SinglePulse
from neuralrace.errors import UserError
from neuralrace.figures import gated, receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

UNITS = 3
SUPPORTS = {"zero_one": "0 and 1", "plus_minus": r"$-$1 and 1"}


@Figure(
    reads={
        "single_pulse": {
            "trajectory": "weight_1",
            "metrics": "participation",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Units of one run by variant of the data, beside the participation of all units."""
    cells = {(_widths(cell), _variant(cell)): cell for cell in results.cells("single_pulse")}
    columns, rows = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    looks: list[dict[str, Any]] = [
        {"color": colour, "marker": style.marker(index)}
        for index, colour in enumerate(style.ordered(len(columns)))
    ]
    figure = Canvas(figsize=(style.COLUMN, 0.9 + 0.85 * len(rows)))
    axes = figure.subplots(len(rows), len(columns) + 1, squeeze=False)
    for ax in axes[1:, -1]:
        ax.sharex(axes[0, -1])
    for (widths, variant), cell in cells.items():
        row, column = rows.index(variant), columns.index(widths)
        fields = receptive.learned(cell).isel(seed=0).values
        receptive.draw(axes[row, column], receptive.examples(fields, UNITS))
        value = gated.smallest(cell.get("metrics", "participation"))
        style.points(axes[row, -1], column, value, across=True, **looks[column])
    for variant, (fields, *_, values) in zip(rows, axes, strict=True):
        fields.set_ylabel(variant)
        values.set(ylim=(len(columns) - 0.5, -0.5))
        values.set_yticks([])
    for ax in axes[-1, :-1]:
        ax.set_xlabel(receptive.PLACE)
    axes[-1, -1].set(xlabel="participation", xlim=(1, None))
    style.letters(axes[0], [*columns, "all units"])
    entries = [
        style.entry(f"width {widths}", linestyle="", **look)
        for widths, look in zip(columns, looks, strict=True)
    ]
    style.legend(figure, entries, columns=len(columns))
    return figure


def pulses(cell: CellResults) -> SinglePulse:
    """The single pulses of a cell.

    Raises:
        UserError: its dataset is another one.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, SinglePulse):
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no pulses to draw")
    return dataset


def _widths(cell: CellResults) -> str:
    """Widths of class one and of class two."""
    ranges = (str(low) if low == high else f"{low} to {high}" for low, high in pulses(cell).widths)
    return " against ".join(ranges)


def _variant(cell: CellResults) -> str:
    """Values off and on the pulse, and whether they are exchanged."""
    dataset = pulses(cell)
    values = SUPPORTS[dataset.support]
    return f"{values},\nexchanged" if dataset.complement else values
